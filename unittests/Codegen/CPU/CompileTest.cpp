//===- CompileTest.cpp - MLIR to code that runs ---------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Codegen/CPU/Compile.h"
#include "quern/Codegen/CPU/Jit.h"

#include "gtest/gtest.h"
#include <cmath>
#include <cstring>

using namespace mlir;
using namespace quern;

namespace {

using Kernel = void (*)(void *const *, const int64_t *, int64_t, int64_t);

class Compile : public testing::Test {
protected:
  MLIRContext ctx;
  std::string errors;
  ScopedDiagnosticHandler handler{&ctx, [&](Diagnostic &d) {
                                    errors += d.str() + "\n";
                                    return success();
                                  }};
  Compile() {
    DialectRegistry registry;
    registerCodegenDialects(registry);
    ctx.appendDialectRegistry(registry);
    ctx.loadAllAvailableDialects();
    ctx.disableMultithreading();
    ctx.allowUnregisteredDialects();
  }
  FailureOr<ObjectCode> compile(StringRef text, CodegenOptions options = {},
                                CpuTarget target = CpuTarget::native()) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &ctx);
    EXPECT_TRUE(module) << errors;
    return compileToObject(*module, target, options);
  }
  // A kernel over one f32 input and one output, with `body` computing %r from %x.
  static std::string pointwise(StringRef body, StringRef in = "f32", StringRef out = "f32") {
    return llvm::formatv(R"(
      func.func @k(%bufs: !llvm.ptr, %dims: !llvm.ptr, %lo: i64, %hi: i64) {{
        %c1 = arith.constant 1 : i64
        %p = llvm.load %bufs : !llvm.ptr -> !llvm.ptr
        %q1 = llvm.getelementptr %bufs[1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
        %q = llvm.load %q1 : !llvm.ptr -> !llvm.ptr
        scf.for %i = %lo to %hi step %c1 : i64 {{
          %pi = llvm.getelementptr %p[%i] : (!llvm.ptr, i64) -> !llvm.ptr, {0}
          %qi = llvm.getelementptr %q[%i] : (!llvm.ptr, i64) -> !llvm.ptr, {1}
          %x = llvm.load %pi : !llvm.ptr -> {0}
          {2}
          llvm.store %r, %qi : {1}, !llvm.ptr
        }
        return
      })",
                         in, out, body);
  }
  template <typename In, typename Out>
  std::vector<Out> run(StringRef text, std::vector<In> in, CodegenOptions options = {}) {
    FailureOr<ObjectCode> object = compile(text, options);
    EXPECT_TRUE(succeeded(object)) << errors;
    if (failed(object))
      return {};
    auto jit = JitLibrary::create();
    EXPECT_TRUE(bool(jit));
    EXPECT_FALSE((*jit)->add(llvm::MemoryBuffer::getMemBufferCopy(object->ref())));
    auto address = (*jit)->lookup("k");
    EXPECT_TRUE(bool(address)) << llvm::toString(address.takeError());
    std::vector<Out> out(in.size());
    void *bufs[] = {in.data(), out.data()};
    reinterpret_cast<Kernel>(*address)(bufs, nullptr, 0, int64_t(in.size()));
    return out;
  }
};

TEST_F(Compile, EveryLevelRuns) {
  std::string text = pointwise("%r = math.exp %x : f32");
  for (unsigned level : {0, 1, 2}) {
    CodegenOptions options;
    options.level = level;
    auto out = run<float, float>(text, {0, 1, -1, 2, 3, 4, 5, 6, 7}, options);
    ASSERT_EQ(out.size(), 9u);
    EXPECT_FLOAT_EQ(out[8], std::exp(7.0f));
  }
}

TEST_F(Compile, FunctionsWithoutIntrinsicAreLibms) {
  for (auto [op, fn] : {std::pair("erf", &erff), {"cbrt", &cbrtf}, {"asinh", &asinhf}})
    EXPECT_FLOAT_EQ(
        (run<float, float>(pointwise(std::string("%r = math.") + op + " %x : f32"), {0.7f})[0]),
        fn(0.7f))
        << op;
}

TEST_F(Compile, NarrowFloatsNeedNoSupportLibrary) {
  // 1 + 2^-8 + 2^-30 is just above the middle of two bf16 numbers: one rounding goes up,
  // two (through f32) go down to even. 1 + 2^-11 + 2^-40 the same for f16.
  EXPECT_EQ((run<double, uint16_t>(pointwise("%r = arith.truncf %x : f64 to bf16", "f64", "bf16"),
                                   {1 + std::ldexp(1, -8) + std::ldexp(1, -30)})[0]),
            0x3f81);
  EXPECT_EQ((run<double, uint16_t>(pointwise("%r = arith.truncf %x : f64 to f16", "f64", "f16"),
                                   {1 + std::ldexp(1, -11) + std::ldexp(1, -40)})[0]),
            0x3c01);
  EXPECT_EQ((run<float, uint16_t>(pointwise("%r = arith.truncf %x : f32 to bf16", "f32", "bf16"),
                                  {1.00390625f})[0]),
            0x3f80);
  EXPECT_EQ((run<uint16_t, float>(pointwise("%r = arith.extf %x : bf16 to f32", "bf16", "f32"),
                                  {0x4049})[0]),
            3.140625f);
}

TEST_F(Compile, ContractionOnlyWhereAllowed) {
  // a * a - b with a rounded product is 0; fused it is the rounding error.
  auto body = [](StringRef flags) {
    return ("%m = arith.mulf %x, %x " + flags + " : f32\n %c = arith.constant 0x3F801000 : f32\n" +
            "%r = arith.subf %m, %c " + flags + " : f32")
        .str();
  };
  float a = 1 + std::ldexp(1.0f, -12), product = a * a; // 1 + 2^-11 + 2^-24
  uint32_t bits;
  memcpy(&bits, &product, 4);
  ASSERT_EQ(bits, 0x3F801000u);
  EXPECT_EQ((run<float, float>(pointwise(body("")), {a})[0]), 0.0f);
  if (CpuTarget::native().has("fma"))
    EXPECT_EQ((run<float, float>(pointwise(body("fastmath<contract>")), {a})[0]),
              std::ldexp(1.0f, -24));
}

TEST_F(Compile, NamesWhatCannotBeLowered) {
  EXPECT_TRUE(failed(compile(R"(
    func.func @k(%x: f32) -> f32 {
      %r = "test.unknown"(%x) : (f32) -> f32
      return %r : f32
    })")));
  EXPECT_NE(errors.find("'test.unknown'"), std::string::npos) << errors;
}

TEST_F(Compile, TargetsAndText) {
  std::string text = pointwise("%r = arith.addf %x, %x : f32");
  CodegenOptions options;
  options.emit = CodegenOptions::Emit::Assembly;
  options.level = 2;
  auto refuse = [](const llvm::Twine &text) { FAIL() << text.str(); };
  FailureOr<CpuTarget> wide = CpuTarget::parse("skylake-avx512", refuse);
  FailureOr<CpuTarget> narrow = CpuTarget::parse("x86-64,+sse4.1", refuse);
  EXPECT_EQ(wide->vectorBits(), 512u);
  EXPECT_EQ(narrow->vectorBits(), 128u);
  EXPECT_TRUE(narrow->has("sse4.1"));
  EXPECT_FALSE(narrow->has("avx2"));
  EXPECT_TRUE(compile(text, options, *wide)->ref().contains("%zmm"));
  EXPECT_TRUE(compile(text, options, *narrow)->ref().contains("%xmm"));
  EXPECT_FALSE(compile(text, options, *narrow)->ref().contains("%ymm"));
  EXPECT_TRUE(compile(text)->ref().starts_with("\x7f"
                                               "ELF"));
}

TEST_F(Compile, BadTargets) {
  std::string text;
  auto keep = [&](const llvm::Twine &t) { text = t.str(); };
  EXPECT_TRUE(failed(CpuTarget::parse("pentagon", keep)));
  EXPECT_EQ(text, "invalid: unknown CPU 'pentagon' (expected native, or a name such as x86-64-v3)");
  EXPECT_TRUE(failed(CpuTarget::parse("", keep)));
  EXPECT_TRUE(failed(CpuTarget::parse("native,+warp9", keep)));
  EXPECT_EQ(text, "invalid: CPU feature '+warp9' (expected + or -, and a name of LLVM's such as "
                  "avx2)");
  EXPECT_TRUE(failed(CpuTarget::parse("native,avx2", keep)));
}

} // namespace
