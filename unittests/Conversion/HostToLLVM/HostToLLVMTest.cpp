//===- HostToLLVMTest.cpp - Host functions, called through the C ABI ------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Conversion/HostToLLVM/HostToLLVM.h"
#include "quern-c/Runtime.h"
#include "quern/Codegen/CPU/Compile.h"
#include "quern/Codegen/CPU/Jit.h"
#include "quern/Dialect/Kernel/IR/Kernel.h"
#include "quern/Dialect/Quern/IR/Quern.h"

#include "gtest/gtest.h"

using namespace mlir;
using namespace quern;

namespace {

// Rows of kernels written by hand: @add is y = x + w for x of <d0, 4>, w strided.
const char *kernelFunctions = R"(
  func.func @add(%bufs: !llvm.ptr, %dims: !llvm.ptr, %lo: i64, %hi: i64) {
    %c0 = arith.constant 0 : i64
    %c1 = arith.constant 1 : i64
    %c4 = arith.constant 4 : i64
    %x = llvm.load %bufs : !llvm.ptr -> !llvm.ptr
    %w1 = llvm.getelementptr %bufs[1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
    %w = llvm.load %w1 : !llvm.ptr -> !llvm.ptr
    %y2 = llvm.getelementptr %bufs[2] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
    %y = llvm.load %y2 : !llvm.ptr -> !llvm.ptr
    %s1 = llvm.getelementptr %dims[1] : (!llvm.ptr) -> !llvm.ptr, i64
    %rowStride = llvm.load %s1 : !llvm.ptr -> i64
    %s2 = llvm.getelementptr %dims[2] : (!llvm.ptr) -> !llvm.ptr, i64
    %colStride = llvm.load %s2 : !llvm.ptr -> i64
    scf.for %i = %lo to %hi step %c1 : i64 {
      scf.for %j = %c0 to %c4 step %c1 : i64 {
        %row = arith.muli %i, %c4 : i64
        %at = arith.addi %row, %j : i64
        %wr = arith.muli %i, %rowStride : i64
        %wc = arith.muli %j, %colStride : i64
        %wat = arith.addi %wr, %wc : i64
        %xp = llvm.getelementptr %x[%at] : (!llvm.ptr, i64) -> !llvm.ptr, f32
        %wp = llvm.getelementptr %w[%wat] : (!llvm.ptr, i64) -> !llvm.ptr, f32
        %yp = llvm.getelementptr %y[%at] : (!llvm.ptr, i64) -> !llvm.ptr, f32
        %a = llvm.load %xp : !llvm.ptr -> f32
        %b = llvm.load %wp : !llvm.ptr -> f32
        %r = arith.addf %a, %b : f32
        llvm.store %r, %yp : f32, !llvm.ptr
      }
    }
    return
  }
  func.func @add_range(%dims: !llvm.ptr) -> i64 {
    %r = llvm.load %dims : !llvm.ptr -> i64
    return %r : i64
  }
  func.func @add_unit_cost(%dims: !llvm.ptr) -> i64 {
    %r = arith.constant 3000 : i64
    return %r : i64
  })";

const char *kernels = R"(
  kernel.func @add kind "pointwise" strided [1] {
  ^bb0(%x: tensor<?x4xf32, #quern.dims<d0>>, %w: tensor<?x4xf32, #quern.dims<d0>>,
       %y: tensor<?x4xf32, #quern.dims<d0>>):
    kernel.yield %y : tensor<?x4xf32, #quern.dims<d0>>
  })";

class Host : public testing::Test {
protected:
  MLIRContext ctx;
  std::string errors;
  std::unique_ptr<ScopedDiagnosticHandler> handler;
  std::unique_ptr<JitLibrary> jit;
  std::vector<std::vector<float>> constants;
  quern_context *context = quern_context_create(2);

  Host() {
    DialectRegistry registry;
    registerCodegenDialects(registry);
    registry.insert<QuernDialect, kernel::KernelDialect>();
    ctx.appendDialectRegistry(registry);
    ctx.loadAllAvailableDialects();
    handler = std::make_unique<ScopedDiagnosticHandler>(&ctx, [this](Diagnostic &d) {
      errors += d.str() + "\n";
      return success();
    });
  }
  ~Host() override { quern_context_destroy(context); }

  void add(StringRef text, bool isKernel) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &ctx);
    ASSERT_TRUE(module) << errors;
    if (!isKernel) {
      auto made = convertHostToLLVM(*module);
      ASSERT_TRUE(succeeded(made)) << errors;
      ASSERT_TRUE(succeeded(verify(*module))) << errors;
      for (HostConstant &c : *made) {
        constants.emplace_back(c.value.getValues<float>().begin(),
                               c.value.getValues<float>().end());
        ASSERT_FALSE(jit->define(c.symbol, constants.back().data()));
      }
    }
    CodegenOptions options;
    options.kernels = isKernel;
    FailureOr<ObjectCode> object = compileToObject(*module, CpuTarget::native(), options);
    ASSERT_TRUE(succeeded(object)) << errors;
    ASSERT_FALSE(jit->add(llvm::MemoryBuffer::getMemBufferCopy(object->ref())));
  }
  const quern_function *compile(StringRef host) {
    jit = llvm::cantFail(JitLibrary::create());
    add(kernelFunctions, true);
    add((kernels + host).str(), false);
    if (testing::Test::HasFatalFailure())
      return nullptr;
    auto *artefact =
        static_cast<quern_artefact *>(llvm::cantFail(jit->lookup("quern_artefact_table")));
    EXPECT_EQ(artefact->num_functions, 1);
    return artefact->functions[0];
  }
  std::string refused(StringRef host) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>((kernels + host).str(), &ctx);
    EXPECT_TRUE(module) << errors;
    errors.clear();
    EXPECT_TRUE(failed(convertHostToLLVM(*module)));
    return errors;
  }

  struct Tensor {
    std::vector<float> data;
    std::vector<int64_t> dims;
    DLTensor dl() {
      return {data.data(),
              {kDLCPU, 0},
              int32_t(dims.size()),
              {kDLFloat, 32, 1},
              dims.data(),
              nullptr,
              0};
    }
  };
  quern_status call(const quern_function *fn, std::vector<Tensor *> in, std::vector<Tensor *> out) {
    std::vector<DLTensor> tensors;
    for (auto *list : {&in, &out})
      for (Tensor *t : *list)
        tensors.push_back(t->dl());
    std::vector<const DLTensor *> inputs;
    std::vector<DLTensor *> outputs;
    for (size_t i = 0; i < tensors.size(); ++i)
      i < in.size() ? inputs.push_back(&tensors[i]) : outputs.push_back(&tensors[i]);
    return quern_call(context, fn, inputs.data(), outputs.data());
  }
};

const char *twoSteps = R"(
  func.func @f(%x: memref<?x4xf32> {quern.name = "the x", quern.dims = #quern.dims<B>},
               %w: memref<?x4xf32> {quern.dims = #quern.dims<W>},
               %y: memref<?x4xf32> {quern.out, quern.result = 0 : i64, quern.dims = #quern.dims<B>},
               %c: memref<1x4xf32> {quern.constant = dense<[[1.0, 2.0, 3.0, 4.0]]> : tensor<1x4xf32>})
      attributes {quern.result_names = ["sum"]} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %b = memref.dim %x, %c0 : memref<?x4xf32>
    %wr = memref.dim %w, %c0 : memref<?x4xf32>
    %same = arith.cmpi eq, %b, %wr : index
    %one = arith.cmpi eq, %wr, %c1 : index
    %ok = arith.ori %same, %one : i1
    kernel.guard %ok, "add_c1" "'quern.add' op add_c1: expected {0} or 1 rows, got {1}" (%b, %wr)
    %bytes = arith.muli %b, %c16 : index
    %arena = memref.alloc(%bytes) {alignment = 64} : memref<?xi8>
    %t = memref.view %arena[%c0][%b] : memref<?xi8> to memref<?x4xf32>
    kernel.launch @add ins(%x, %w : memref<?x4xf32>, memref<?x4xf32>) outs(%t : memref<?x4xf32>)
    kernel.launch @add ins(%t, %c : memref<?x4xf32>, memref<1x4xf32>) outs(%y : memref<?x4xf32>)
    return
  })";

TEST_F(Host, RunsThroughTheArena) {
  const quern_function *fn = compile(twoSteps);
  ASSERT_TRUE(fn);
  EXPECT_STREQ(fn->name, "f");
  EXPECT_STREQ(fn->inputs[0].name, "the x");
  EXPECT_STREQ(fn->inputs[0].dim_names[0], "B");
  EXPECT_STREQ(fn->inputs[0].dim_names[1], "");
  EXPECT_STREQ(fn->inputs[1].name, "arg1");
  EXPECT_STREQ(fn->outputs[0].name, "sum");
  EXPECT_EQ(fn->num_inputs, 2);
  EXPECT_EQ(fn->num_constants, 1);
  EXPECT_EQ(fn->num_kernels, 1);
  EXPECT_EQ(fn->kernels[0].num_dims, 3);

  Tensor x{{1, 2, 3, 4, 5, 6, 7, 8}, {2, 4}}, w{{10, 20, 30, 40, 50, 60, 70, 80}, {2, 4}};
  Tensor y{std::vector<float>(8), {2, 4}};
  ASSERT_EQ(call(fn, {&x, &w}, {&y}), QUERN_OK) << quern_context_error(context);
  EXPECT_EQ(y.data, (std::vector<float>{12, 24, 36, 48, 56, 68, 80, 92}));
  // An operand of one row, whose stride becomes 0; the same code.
  w = {{10, 20, 30, 40}, {1, 4}};
  ASSERT_EQ(call(fn, {&x, &w}, {&y}), QUERN_OK) << quern_context_error(context);
  EXPECT_EQ(y.data, (std::vector<float>{12, 24, 36, 48, 16, 28, 40, 52}));
  EXPECT_EQ(quern_context_peak_bytes(context), 64);
  // No rows at all; and one that does not fit, which writes nothing.
  Tensor none{{}, {0, 4}}, noneOut{{}, {0, 4}};
  EXPECT_EQ(call(fn, {&none, &w}, {&noneOut}), QUERN_OK) << quern_context_error(context);
  w = {std::vector<float>(12, 1.0f), {3, 4}};
  y.data.assign(8, -1);
  EXPECT_EQ(call(fn, {&x, &w}, {&y}), QUERN_INVALID);
  EXPECT_STREQ(quern_context_error(context),
               "invalid: 'quern.add' op add_c1: expected 2 or 1 rows, got 3");
  EXPECT_EQ(y.data, std::vector<float>(8, -1.0f));
}

TEST_F(Host, ManyThreads) {
  const quern_function *fn = compile(twoSteps);
  ASSERT_TRUE(fn);
  Tensor x{std::vector<float>(4000, 1.0f), {1000, 4}}, w{{0, 0, 0, 0}, {1, 4}};
  Tensor y{std::vector<float>(4000), {1000, 4}};
  for (int i = 0; i < 20; ++i)
    ASSERT_EQ(call(fn, {&x, &w}, {&y}), QUERN_OK);
  for (int i = 0; i < 4000; ++i)
    ASSERT_EQ(y.data[i], 2 + i % 4);
}

TEST_F(Host, SizesThatTheirNamesPromise) {
  const quern_function *fn = compile(R"(
    func.func @f(%x: memref<?x4xf32> {quern.dims = #quern.dims<B>},
                 %w: memref<?x4xf32> {quern.dims = #quern.dims<2*B+1>},
                 %y: memref<?x?xf32> {quern.out, quern.result = 0 : i64, quern.dims = #quern.dims<3*B, B>}) {
      return
    })");
  ASSERT_TRUE(fn);
  Tensor x{std::vector<float>(8), {2, 4}}, w{std::vector<float>(20), {5, 4}};
  Tensor y{std::vector<float>(12), {6, 2}};
  EXPECT_EQ(call(fn, {&x, &w}, {&y}), QUERN_OK) << quern_context_error(context);
  DLTensor xt = x.dl(), wt = w.dl();
  const DLTensor *inputs[] = {&xt, &wt};
  int64_t sizes[QUERN_MAX_RANK];
  EXPECT_EQ(quern_query(context, fn, inputs, sizes, nullptr), QUERN_OK);
  EXPECT_EQ(sizes[0], 6);
  EXPECT_EQ(sizes[1], 2);
  w.dims = {4, 4};
  EXPECT_EQ(call(fn, {&x, &w}, {&y}), QUERN_INVALID);
  EXPECT_STREQ(quern_context_error(context),
               "invalid: input 1 'arg1' of 'f': expected dim 0 to be 2*B + 1 = 5, got 4");
}

TEST_F(Host, ResultInADonatedInputAndInSlices) {
  // x += c in place; the first two rows of y are x + w, the others are x + w again.
  const quern_function *fn = compile(R"(
    func.func @f(%x: memref<?x4xf32> {quern.donated, quern.result = 1 : i64, quern.dims = #quern.dims<B>},
                 %w: memref<1x4xf32>,
                 %y: memref<?x4xf32> {quern.out, quern.result = 0 : i64, quern.dims = #quern.dims<2*B>}) {
      %b = kernel.dim #quern.dim<B>
      %first = memref.subview %y[0, 0][%b, 4][1, 1] : memref<?x4xf32> to memref<?x4xf32, strided<[4, 1]>>
      %second = memref.subview %y[%b, 0][%b, 4][1, 1] : memref<?x4xf32> to memref<?x4xf32, strided<[4, 1], offset: ?>>
      kernel.launch @add ins(%x, %w : memref<?x4xf32>, memref<1x4xf32>) outs(%x : memref<?x4xf32>)
      kernel.launch @add ins(%x, %w : memref<?x4xf32>, memref<1x4xf32>) outs(%first : memref<?x4xf32, strided<[4, 1]>>)
      kernel.launch @add ins(%first, %w : memref<?x4xf32, strided<[4, 1]>>, memref<1x4xf32>) outs(%second : memref<?x4xf32, strided<[4, 1], offset: ?>>)
      return
    })");
  ASSERT_TRUE(fn);
  EXPECT_EQ(fn->donated[0], 1);
  EXPECT_EQ(fn->output_alias[1], 0);
  Tensor x{{0, 0, 0, 0, 1, 1, 1, 1}, {2, 4}}, w{{1, 2, 3, 4}, {1, 4}};
  Tensor y{std::vector<float>(16), {4, 4}};
  ASSERT_EQ(call(fn, {&x, &w}, {&y, &x}), QUERN_OK) << quern_context_error(context);
  EXPECT_EQ(x.data, (std::vector<float>{1, 2, 3, 4, 2, 3, 4, 5}));
  EXPECT_EQ(y.data, (std::vector<float>{2, 4, 6, 8, 3, 5, 7, 9, 3, 6, 9, 12, 4, 7, 10, 13}));
}

TEST_F(Host, Refusals) {
  EXPECT_EQ(refused(R"(
    func.func @f(%x: memref<4xf32>, %y: memref<4xf32> {quern.out, quern.result = 0 : i64}) {
      memref.copy %x, %y : memref<4xf32> to memref<4xf32>
      return
    })"),
            "unsupported: 'memref.copy' in the host function\n");
  EXPECT_EQ(refused(R"(
    func.func @f(%x: memref<?xf32>, %y: memref<?xf32> {quern.out, quern.result = 0 : i64}) {
      return
    })"),
            "unsupported: a size that no argument gives\n");
  EXPECT_EQ(refused(R"(
    func.func @f(%x: memref<?xf32> {quern.dims = #quern.dims<B>},
                 %y: memref<?xf32> {quern.out, quern.result = 0 : i64, quern.dims = #quern.dims<S+1>}) {
      return
    })"),
            "unsupported: size S + 1: 'S' is not the size of an argument's dim\n");
  EXPECT_EQ(refused(R"(
    func.func @f(%x: memref<4x8xf32>, %w: memref<4x4xf32>,
                 %y: memref<4x4xf32> {quern.out, quern.result = 0 : i64}) {
      %s = memref.subview %x[0, 2][4, 4][1, 1] : memref<4x8xf32> to memref<4x4xf32, strided<[8, 1], offset: 2>>
      kernel.launch @add ins(%s, %w : memref<4x4xf32, strided<[8, 1], offset: 2>>, memref<4x4xf32>) outs(%y : memref<4x4xf32>)
      return
    })"),
            "internal: operand 0 is not contiguous and @add takes no strides for it\n");
  EXPECT_EQ(refused(R"(
    func.func @f(%x: memref<4xcomplex<f32>>) {
      return
    })"),
            "unsupported: element type 'complex<f32>' of argument 0\n");
}

} // namespace
