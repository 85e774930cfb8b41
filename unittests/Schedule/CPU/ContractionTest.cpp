//===- ContractionTest.cpp - Matrix products against C++ ------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "KernelTest.h"
#include "llvm/ADT/bit.h"

using namespace quern;
using namespace quern::test;

namespace {

/// relu(left x right + bias) + residual, all of them with names for what differs.
struct Form {
  std::string left = "tensor<?x?xf32, #quern.dims<d0, d1>>", leftMap = "(m, n, k) -> (m, k)";
  std::string right = "tensor<?x?xf32, #quern.dims<d1, d2>>", rightMap = "(m, n, k) -> (k, n)";
  std::string column = "tensor<?xf32, #quern.dims<d2>>";
  std::string out = "tensor<?x?xf32, #quern.dims<d0, d2>>";
  std::string attributes = "share [0, 3]";

  std::string text() const {
    std::string result = R"(
#L = affine_map<LEFTMAP>
#R = affine_map<RIGHTMAP>
#C = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>
#n = affine_map<(m, n) -> (n)>
kernel.func @k kind "contraction" ATTRIBUTES {
^bb0(%x: LEFT, %w: RIGHT, %b: COLUMN, %res: OUT, %o: OUT):
  %zero = arith.constant 0.0 : f32
  %z = linalg.fill ins(%zero : f32) outs(%o : OUT) -> OUT
  %1 = linalg.generic {indexing_maps = [#L, #R, #C], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : LEFT, RIGHT) outs(%z : OUT) {
  ^bb0(%p: f32, %q: f32, %acc: f32):
    %t = arith.mulf %p, %q : f32
    %r = arith.addf %acc, %t : f32
    linalg.yield %r : f32 } -> OUT
  %2 = linalg.generic {indexing_maps = [#id, #n, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%1, %b, %res : OUT, COLUMN, OUT) outs(%o : OUT) {
  ^bb0(%p: f32, %q: f32, %s: f32, %d: f32):
    %t = arith.addf %p, %q : f32
    %m = arith.maximumf %t, %zero : f32
    %r = arith.addf %m, %s : f32
    linalg.yield %r : f32 } -> OUT
  kernel.yield %2 : OUT
})";
    for (auto [from, to] :
         {std::pair("LEFTMAP", leftMap), std::pair("RIGHTMAP", rightMap),
          std::pair("ATTRIBUTES", attributes), std::pair("LEFT", left), std::pair("RIGHT", right),
          std::pair("COLUMN", column), std::pair("OUT", out)})
      for (size_t at = 0; (at = result.find(from, at)) != std::string::npos;)
        result.replace(at, strlen(from), to);
    return result;
  }
};

class ContractionTest : public KernelTest {
protected:
  /// Runs and compares; `transposed` (left, right) say how the operands lie.
  void check(const CompiledKernel &k, int64_t m, int64_t n, int64_t d, bool leftT, bool rightT,
             std::vector<int64_t> dims, bool inPlace = false,
             const PackedLayout *layout = nullptr) {
    std::vector<float> x = randomFloats(m * d, -1, 1), w = randomFloats(d * n, -1, 1, 2),
                       bias = randomFloats(n, -1, 1, 3), res = randomFloats(m * n, -1, 1, 4),
                       o(m * n + 1, 9.f), old = res;
    std::vector<char> bytes;
    void *right = w.data();
    if (layout) {
      bytes = packConstant(*layout, {reinterpret_cast<char *>(w.data()), w.size() * 4});
      right = bytes.data();
    }
    float *out = inPlace ? res.data() : o.data();
    k({x.data(), right, bias.data(), res.data(), out}, dims, 1);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double want = bias[j];
        for (int64_t l = 0; l < d; ++l)
          want += double(x[leftT ? l * m + i : i * d + l]) * w[rightT ? j * d + l : l * n + j];
        want = std::max(want, 0.0) + old[i * n + j];
        ASSERT_NEAR(out[i * n + j], want, 1e-5 + 2e-7 * d)
            << i << "," << j << " of " << m << "x" << n << "x" << d;
      }
    ASSERT_EQ(o[m * n], 9.f) << "written behind the end";
  }
};

TEST_F(ContractionTest, DynamicSizes) {
  ScheduleOptions strict, reference;
  strict.strict = true;
  reference.reference = true;
  std::vector<CompiledKernel> kernels;
  kernels.push_back(compile(Form().text()));
  kernels.push_back(compile(Form().text(), strict));
  kernels.push_back(compile(Form().text(), reference));
  for (const MachineModel &machine : otherMachines())
    kernels.push_back(compile(Form().text(), {}, machine));
  for (CompiledKernel &k : kernels) {
    ASSERT_TRUE(bool(k));
    for (int64_t m : {0, 1, 5, 6, 7, 33, 131})
      for (int64_t n : {0, 1, 15, 16, 17, 50})
        for (int64_t d : {0, 1, 3, 4, 9, 70})
          check(k, m, n, d, false, false, {m, d, n}, (m + n) % 2);
    check(k, 300, 20, 1100, false, false, {300, 1100, 20}); // several blocks of rows and depth
  }
}

TEST_F(ContractionTest, TransposedOperands) {
  Form linear;
  linear.right = "tensor<?x?xf32, #quern.dims<d2, d1>>";
  linear.rightMap = "(m, n, k) -> (n, k)";
  Form gradient;
  gradient.left = "tensor<?x?xf32, #quern.dims<d0, d1>>";
  gradient.leftMap = "(m, n, k) -> (k, m)";
  gradient.right = "tensor<?x?xf32, #quern.dims<d0, d2>>";
  gradient.out = "tensor<?x?xf32, #quern.dims<d1, d2>>";
  for (ScheduleOptions options : {ScheduleOptions{}, ScheduleOptions{true, false}}) {
    CompiledKernel l = compile(linear.text(), options), g = compile(gradient.text(), options);
    ASSERT_TRUE(l && g);
    for (int64_t m : {1, 6, 40})
      for (int64_t n : {1, 8, 16, 31, 64})
        for (int64_t d : {0, 1, 7, 8, 23, 64}) {
          check(l, m, n, d, false, true, {m, d, n});
          check(g, m, n, d, true, false, {d, m, n}, true);
        }
    check(l, 9, 40, 1500, false, true, {9, 1500, 40});
  }
}

TEST_F(ContractionTest, PackedConstant) {
  for (int64_t m : {1, 4, 64, 129})
    for (int64_t n : {2, 24, 48, 50, 96}) {
      Form form;
      int64_t d = 37;
      auto type = [](int64_t a, int64_t b) {
        return llvm::formatv("tensor<{0}x{1}xf32>", a, b).str();
      };
      form.left = type(m, d);
      form.right = type(d, n);
      form.out = type(m, n);
      form.column = llvm::formatv("tensor<{0}xf32>", n);
      mlir::OwningOpRef<mlir::ModuleOp> module;
      kernel::FuncOp plain = parse(form.text(), module);
      auto layout = getPackedLayout(plain, 1, MachineModel::get(target));
      ASSERT_TRUE(layout.has_value());
      EXPECT_FALSE(getPackedLayout(plain, 0, MachineModel::get(target)));
      form.attributes = "packed [1]";
      CompiledKernel k = compile(form.text());
      ASSERT_TRUE(bool(k));
      check(k, m, n, d, false, false, {}, false, &*layout);
    }
}

TEST_F(ContractionTest, PackedOperandOfAnotherKernelIsRefused) {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  kernel::FuncOp kernel = parse(R"(
#id = affine_map<(i) -> (i)>
kernel.func @k kind "pointwise" packed [0] {
^bb0(%x: tensor<8xf32>, %o: tensor<8xf32>):
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<8xf32>) outs(%o : tensor<8xf32>) {
  ^bb0(%a: f32, %d: f32):
    linalg.yield %a : f32 } -> tensor<8xf32>
  kernel.yield %1 : tensor<8xf32>
})",
                                module);
  EXPECT_TRUE(mlir::failed(scheduleKernel(kernel, MachineModel::get(target))));
  EXPECT_NE(errors.find("a packed operand is read by no contraction"), std::string::npos) << errors;
}

// A batch that both operands have, one that the right one lacks, in f64.
TEST_F(ContractionTest, BatchedDouble) {
  const char *text = R"(
!x = tensor<?x?x?xf64, #quern.dims<d0, d1, d2>>
!w = tensor<?x?x?xf64, #quern.dims<d0, d2, d3>>
!o = tensor<?x?x?xf64, #quern.dims<d0, d1, d3>>
kernel.func @bmm kind "contraction" {
^bb0(%x: !x, %w: !w, %o: !o):
  %zero = arith.constant 0.0 : f64
  %z = linalg.fill ins(%zero : f64) outs(%o : !o) -> !o
  %1 = linalg.generic {indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, k, n)>,
      affine_map<(b, m, n, k) -> (b, m, n)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : !x, !w) outs(%z : !o) {
  ^bb0(%p: f64, %q: f64, %acc: f64):
    %t = arith.mulf %p, %q : f64
    %r = arith.addf %acc, %t : f64
    linalg.yield %r : f64 } -> !o
  kernel.yield %1 : !o
})";
  CompiledKernel k = compile(text);
  ASSERT_TRUE(bool(k));
  for (int64_t m : {1, 13, 40})
    for (int64_t n : {1, 8, 19}) {
      int64_t batch = 3, d = 21;
      std::vector<double> x(batch * m * d), w(batch * d * n), o(batch * m * n);
      for (size_t i = 0; i < x.size(); ++i)
        x[i] = std::sin(i);
      for (size_t i = 0; i < w.size(); ++i)
        w[i] = std::cos(i);
      k({x.data(), w.data(), o.data()}, {batch, m, d, n}, 2);
      for (int64_t b = 0; b < batch; ++b)
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < n; ++j) {
            double want = 0;
            for (int64_t l = 0; l < d; ++l)
              want += x[(b * m + i) * d + l] * w[(b * d + l) * n + j];
            ASSERT_NEAR(o[(b * m + i) * n + j], want, 1e-12);
          }
    }
}

// bf16 operands, sums in f32, the result rounded once.
TEST_F(ContractionTest, BF16) {
  const char *text = R"(
!x = tensor<?x?xbf16, #quern.dims<d0, d1>>
!w = tensor<?x?xbf16, #quern.dims<d2, d1>>
!o = tensor<?x?xbf16, #quern.dims<d0, d2>>
!f = tensor<?x?xf32, #quern.dims<d0, d2>>
#id = affine_map<(m, n) -> (m, n)>
kernel.func @k kind "contraction" {
^bb0(%x: !x, %w: !w, %o: !o):
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : !x
  %n = tensor.dim %w, %c0 : !w
  %e = tensor.empty(%m, %n) : !f
  %z = linalg.fill ins(%zero : f32) outs(%e : !f) -> !f
  %1 = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
      affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : !x, !w) outs(%z : !f) {
  ^bb0(%a: bf16, %b: bf16, %acc: f32):
    %p = arith.extf %a : bf16 to f32
    %q = arith.extf %b : bf16 to f32
    %t = arith.mulf %p, %q : f32
    %r = arith.addf %acc, %t : f32
    linalg.yield %r : f32 } -> !f
  %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%1 : !f) outs(%o : !o) {
  ^bb0(%a: f32, %d: bf16):
    %r = arith.truncf %a : f32 to bf16
    linalg.yield %r : bf16 } -> !o
  kernel.yield %2 : !o
})";
  CompiledKernel k = compile(text);
  ASSERT_TRUE(bool(k));
  auto widen = [](uint16_t v) { return llvm::bit_cast<float>(uint32_t(v) << 16); };
  for (int64_t m : {1, 7, 30})
    for (int64_t n : {1, 16, 21}) {
      int64_t d = 19;
      std::vector<uint16_t> x(m * d), w(n * d), o(m * n + 1, 7);
      for (size_t i = 0; i < x.size(); ++i)
        x[i] = llvm::bit_cast<uint32_t>(float(std::sin(i))) >> 16;
      for (size_t i = 0; i < w.size(); ++i)
        w[i] = llvm::bit_cast<uint32_t>(float(std::cos(i))) >> 16;
      k({x.data(), w.data(), o.data()}, {m, d, n}, 1);
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
          double want = 0;
          for (int64_t l = 0; l < d; ++l)
            want += double(widen(x[i * d + l])) * widen(w[j * d + l]);
          ASSERT_NEAR(widen(o[i * n + j]), want, 0.005 * std::abs(want) + 1e-5);
        }
      ASSERT_EQ(o[m * n], 7);
    }
}

} // namespace
