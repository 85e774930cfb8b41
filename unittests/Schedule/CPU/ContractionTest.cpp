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
// A convolution with a bias: the window of each output position is the column of a matrix whose
// depth is channels times positions of the weight. Two spatial dims with numbers of their own.
TEST_F(ContractionTest, Convolution) {
  struct Case {
    int64_t stride, dilation;
  };
  for (Case c : {Case{1, 1}, Case{1, 2}, Case{2, 1}}) {
    std::string text = llvm::formatv(R"(
!x = tensor<?x3x?x?xf32, #quern.dims<d0, d1, d2>>
!w = tensor<9x3x3x2xf32>
!o = tensor<?x9x?x?xf32, #quern.dims<d0, d3, d4>>
#id = affine_map<(n, o, y, x) -> (n, o, y, x)>
kernel.func @k kind "convolution" {{
^bb0(%x: !x, %w: !w, %b: tensor<9xf32>, %o: !o):
  %zero = arith.constant 0.0 : f32
  %z = linalg.fill ins(%zero : f32) outs(%o : !o) -> !o
  %1 = linalg.generic {{indexing_maps = [affine_map<(n, o, y, x, c, k, l) -> (o, c, k, l)>,
                                        affine_map<(n, o, y, x, c, k, l) -> (n, o, y, x)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%w : !w) outs(%z : !o) {{
  ^bb0(%a: f32, %acc: f32):
    %n = linalg.index 0 : index
    %y = linalg.index 2 : index
    %u = linalg.index 3 : index
    %c = linalg.index 4 : index
    %k = linalg.index 5 : index
    %l = linalg.index 6 : index
    %stride = arith.constant {0} : i64
    %dilation = arith.constant {1} : i64
    %y0 = arith.index_cast %y : index to i64
    %y1 = arith.muli %y0, %stride : i64
    %k0 = arith.index_cast %k : index to i64
    %k1 = arith.muli %k0, %dilation : i64
    %y2 = arith.addi %y1, %k1 : i64
    %y3 = arith.index_cast %y2 : i64 to index
    %u0 = arith.index_cast %u : index to i64
    %u1 = arith.muli %u0, %stride : i64
    %l0 = arith.index_cast %l : index to i64
    %u2 = arith.addi %u1, %l0 : i64
    %u3 = arith.index_cast %u2 : i64 to index
    %e = tensor.extract %x[%n, %c, %y3, %u3] : !x
    %t = arith.mulf %e, %a : f32
    %r = arith.addf %acc, %t : f32
    linalg.yield %r : f32 } -> !o
  %2 = linalg.generic {{indexing_maps = [#id, affine_map<(n, o, y, x) -> (o)>, #id],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%1, %b : !o, tensor<9xf32>) outs(%o : !o) {{
  ^bb0(%a: f32, %q: f32, %d: f32):
    %r = arith.addf %a, %q : f32
    linalg.yield %r : f32 } -> !o
  kernel.yield %2 : !o
})",
                                     c.stride, c.dilation);
    std::vector<CompiledKernel> kernels;
    kernels.push_back(compile(text));
    EXPECT_NE(kernels.back().ir.find("llvm.alloca"), std::string::npos) << "is not packed";
    ScheduleOptions strict, reference;
    strict.strict = true;
    reference.reference = true;
    kernels.push_back(compile(text, strict));
    kernels.push_back(compile(text, reference));
    for (const MachineModel &machine : otherMachines())
      kernels.push_back(compile(text, {}, machine));
    for (CompiledKernel &k : kernels) {
      ASSERT_TRUE(bool(k));
      for (int64_t rows : {1, 3})
        for (int64_t columns : {0, 1, 7, 16, 23, 24, 25, 70}) {
          int64_t n = 2, h = c.stride * rows + 2 * c.dilation, w = c.stride * columns + 1;
          std::vector<float> x = randomFloats(n * 3 * h * w), weight = randomFloats(9 * 18),
                             bias = randomFloats(9, -1, 1, 3), o(n * 9 * rows * columns + 1, 9.f);
          k({x.data(), weight.data(), bias.data(), o.data()}, {n, h, w, rows, columns}, 1);
          for (int64_t i = 0; i < n * 9 * rows * columns; ++i) {
            int64_t u = i % columns, y = i / columns % rows, f = i / columns / rows % 9,
                    b = i / columns / rows / 9;
            double want = bias[f];
            for (int64_t t = 0; t < 18; ++t)
              want += double(x[((b * 3 + t / 6) * h + y * c.stride + t / 2 % 3 * c.dilation) * w +
                               u * c.stride + t % 2]) *
                      weight[f * 18 + t];
            ASSERT_NEAR(o[i], want, 1e-4) << i << " of " << rows << "x" << columns;
          }
          ASSERT_EQ(o.back(), 9.f) << "written behind the end";
        }
    }
  }
}

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
