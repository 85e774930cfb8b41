//===- GenericTest.cpp - Kernels that are no rows and no products ---------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "KernelTest.h"

using namespace quern;
using namespace quern::test;

namespace {

class GenericTest : public KernelTest {
protected:
  std::vector<CompiledKernel> variants(llvm::StringRef text) {
    std::vector<CompiledKernel> kernels;
    kernels.push_back(compile(text));
    for (const MachineModel &machine : otherMachines())
      kernels.push_back(compile(text, {}, machine));
    ScheduleOptions reference;
    reference.reference = true;
    kernels.push_back(compile(text, reference));
    return kernels;
  }
};

TEST_F(GenericTest, ConcatBranches) {
  const char *text = R"(
!x = tensor<?x?xf32, #quern.dims<d0, d1>>
!y = tensor<?x?xf32, #quern.dims<d0, d2>>
!o = tensor<?x?xf32, #quern.dims<d0, d1 + d2>>
kernel.func @cat kind "generic" {
^bb0(%x: !x, %y: !y, %o: !o):
  %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%o : !o) {
  ^bb0(%d: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %n = kernel.dim #quern.dim<d1>
    %first = arith.cmpi slt, %j, %n : index
    %r = scf.if %first -> f32 {
      %a = tensor.extract %x[%i, %j] : !x
      scf.yield %a : f32
    } else {
      %k = arith.subi %j, %n : index
      %b = tensor.extract %y[%i, %k] : !y
      scf.yield %b : f32
    }
    linalg.yield %r : f32 } -> !o
  kernel.yield %1 : !o
})";
  for (CompiledKernel &k : variants(text)) {
    ASSERT_TRUE(bool(k));
    for (int64_t n : {0, 3, 40}) {
      int64_t r = 4, m = 5;
      std::vector<float> x = randomFloats(r * n), y = randomFloats(r * m), o(r * (n + m));
      k({x.data(), y.data(), o.data()}, {r, n, m, n + m}, 1);
      for (int64_t i = 0; i < r; ++i)
        for (int64_t j = 0; j < n + m; ++j)
          ASSERT_EQ(o[i * (n + m) + j], j < n ? x[i * n + j] : y[i * m + j - n]);
    }
  }
}

// Rows of a table: consecutive along the vector. A permutation: not.
TEST_F(GenericTest, EmbeddingOfAPermutation) {
  const char *text = R"(
!w = tensor<?x?xf32, #quern.dims<d0, d1>>
!t = tensor<?x?xi64, #quern.dims<d2, d3>>
!o = tensor<?x?x?xf32, #quern.dims<d3, d2, d1>>
kernel.func @embedding kind "gather" {
^bb0(%w: !w, %t: !t, %o: !o):
  %1 = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (j, i)>, affine_map<(i, j, k) -> (i, j, k)>],
      iterator_types = ["parallel", "parallel", "parallel"]} ins(%t : !t) outs(%o : !o) {
  ^bb0(%n: i64, %d: f32):
    %k = linalg.index 2 : index
    %i = arith.index_cast %n : i64 to index
    %a = tensor.extract %w[%i, %k] : !w
    linalg.yield %a : f32 } -> !o
  kernel.yield %1 : !o
})";
  for (CompiledKernel &k : variants(text)) {
    ASSERT_TRUE(bool(k));
    for (int64_t c : oddSizes()) {
      int64_t rows = 11, a = 3, b = 4;
      std::vector<float> w = randomFloats(rows * c), o(a * b * c);
      std::vector<int64_t> t(a * b);
      for (int64_t i = 0; i < a * b; ++i)
        t[i] = i * 5 % rows;
      k({w.data(), t.data(), o.data()}, {rows, c, a, b}, 1);
      for (int64_t i = 0; i < b; ++i)
        for (int64_t j = 0; j < a; ++j)
          for (int64_t l = 0; l < c; ++l)
            ASSERT_EQ(o[(i * a + j) * c + l], w[t[j * b + i] * c + l]);
    }
  }
}

// Results of one byte an element, conditions as bytes in memory, a transposed operand.
TEST_F(GenericTest, BooleansAndTransposition) {
  const char *text = R"(
!x = tensor<?x?xf32, #quern.dims<d0, d1>>
!y = tensor<?x?xf32, #quern.dims<d1, d0>>
!m = tensor<?x?xi1, #quern.dims<d0, d1>>
#id = affine_map<(i, j) -> (i, j)>
kernel.func @k kind "pointwise" {
^bb0(%x: !x, %y: !y, %m: !m, %o: !m):
  %1 = linalg.generic {indexing_maps = [#id, affine_map<(i, j) -> (j, i)>, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %y, %m : !x, !y, !m) outs(%o : !m) {
  ^bb0(%a: f32, %b: f32, %c: i1, %d: i1):
    %t = arith.cmpf olt, %a, %b : f32
    %r = arith.xori %t, %c : i1
    linalg.yield %r : i1 } -> !m
  kernel.yield %1 : !m
})";
  for (CompiledKernel &k : variants(text)) {
    ASSERT_TRUE(bool(k));
    for (int64_t c : oddSizes()) {
      int64_t r = 5;
      std::vector<float> x = randomFloats(r * c), y = randomFloats(r * c, -4, 4, 9);
      std::vector<uint8_t> m(r * c), o(r * c + 1, 77);
      for (int64_t i = 0; i < r * c; ++i)
        m[i] = i % 3 == 0;
      k({x.data(), y.data(), m.data(), o.data()}, {r, c}, 1);
      for (int64_t i = 0; i < r; ++i)
        for (int64_t j = 0; j < c; ++j)
          ASSERT_EQ(o[i * c + j], (x[i * c + j] < y[j * r + i]) ^ m[i * c + j]);
      ASSERT_EQ(o[r * c], 77);
    }
  }
}

// A broadcast that is decided at run time: strides of 0, or of the operand.
TEST_F(GenericTest, StridedBroadcast) {
  const char *text = R"(
!t = tensor<?x?xf32, #quern.dims<d0, d1>>
#id = affine_map<(i, j) -> (i, j)>
kernel.func @k kind "pointwise" strided [0, 1] {
^bb0(%x: !t, %y: !t, %o: !t):
  %1 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %y : !t, !t) outs(%o : !t) {
  ^bb0(%a: f32, %b: f32, %d: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32 } -> !t
  kernel.yield %1 : !t
})";
  for (CompiledKernel &k : variants(text)) {
    ASSERT_TRUE(bool(k));
    int64_t r = 7, c = 21;
    std::vector<float> x = randomFloats(r * c), y = randomFloats(r * c), o(r * c);
    for (int64_t xr : {int64_t(0), c})
      for (int64_t xc : {0, 1})
        for (int64_t yc : {0, 1}) {
          k({x.data(), y.data(), o.data()}, {r, c, xr, xc, c, yc}, 3);
          for (int64_t i = 0; i < r; ++i)
            for (int64_t j = 0; j < c; ++j)
              ASSERT_EQ(o[i * c + j], x[i * xr + j * xc] + y[i * c + j * yc]);
        }
  }
}

// Sums over different dims: no common nest, so op by op with a value between; the
// result may be the input's buffer and is still right.
TEST_F(GenericTest, OpByOp) {
  const char *text = R"(
!t = tensor<?x?xf32, #quern.dims<d0, d1>>
!r = tensor<?xf32, #quern.dims<d0>>
!c = tensor<?xf32, #quern.dims<d1>>
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#col = affine_map<(i, j) -> (j)>
kernel.func @k kind "generic" share [0, 0] {
^bb0(%x: !t, %o: !t):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : !t
  %m = tensor.dim %x, %c1 : !t
  %er = tensor.empty(%n) : !r
  %ec = tensor.empty(%m) : !c
  %zr = linalg.fill ins(%zero : f32) outs(%er : !r) -> !r
  %zc = linalg.fill ins(%zero : f32) outs(%ec : !c) -> !c
  %rows = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : !t) outs(%zr : !r) {
  ^bb0(%a: f32, %acc: f32): %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32 } -> !r
  %columns = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]} ins(%x : !t) outs(%zc : !c) {
  ^bb0(%a: f32, %acc: f32): %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32 } -> !c
  %q = linalg.generic {indexing_maps = [#id, #row, #col, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %rows, %columns : !t, !r, !c) outs(%o : !t) {
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32):
    %s = arith.mulf %b, %c : f32
    %r = arith.addf %a, %s : f32
    linalg.yield %r : f32 } -> !t
  kernel.yield %q : !t
})";
  for (CompiledKernel &k : variants(text)) {
    ASSERT_TRUE(bool(k));
    for (int64_t c : {0, 1, 9, 40})
      for (bool inPlace : {false, true}) {
        int64_t r = 6;
        std::vector<float> x = randomFloats(r * c), o(r * c), in = x;
        float *out = inPlace ? x.data() : o.data();
        k({x.data(), out}, {r, c});
        for (int64_t i = 0; i < r; ++i)
          for (int64_t j = 0; j < c; ++j) {
            double row = 0, column = 0;
            for (int64_t l = 0; l < c; ++l)
              row += in[i * c + l];
            for (int64_t l = 0; l < r; ++l)
              column += in[l * c + j];
            ASSERT_NEAR(out[i * c + j], in[i * c + j] + row * column, 1e-3);
          }
      }
  }
}

// An integer division never traps.
TEST_F(GenericTest, IntegerDivision) {
  for (auto [op, want] : {std::pair("divsi", std::vector<int32_t>{-3, -1, INT32_MIN, -1, 0}),
                          std::pair("remsi", std::vector<int32_t>{-1, -7, 0, 0, 5}),
                          std::pair("floordivsi", std::vector<int32_t>{-4, -1, INT32_MIN, -1, 0}),
                          std::pair("ceildivsi", std::vector<int32_t>{-3, -1, INT32_MIN, -1, 1}),
                          std::pair("remui", std::vector<int32_t>{1, -7, INT32_MIN, 0, 5})}) {
    std::string text = llvm::formatv(R"(
#id = affine_map<(i) -> (i)>
!t = tensor<?xi32, #quern.dims<d0>>
kernel.func @k kind "pointwise" {{
^bb0(%x: !t, %y: !t, %o: !t):
  %1 = linalg.generic {{indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%x, %y : !t, !t) outs(%o : !t) {{
  ^bb0(%a: i32, %b: i32, %d: i32):
    %r = arith.{0} %a, %b : i32
    linalg.yield %r : i32 } -> !t
  kernel.yield %1 : !t
})",
                                     op);
    for (CompiledKernel &k : variants(text)) {
      ASSERT_TRUE(bool(k));
      std::vector<int32_t> x{-7, -7, INT32_MIN, 0, 5}, y{2, 0, -1, 0, 7}, o(5);
      k({x.data(), y.data(), o.data()}, {5});
      EXPECT_EQ(o, want) << op;
    }
  }
}

// f16 in and out, a view of the operand, a constant table, sums in f32 over two dims of
// which the nest keeps neither in order.
TEST_F(GenericTest, HalfPrecisionViewsAndTables) {
  const char *text = R"(
!x = tensor<?x12xf16, #quern.dims<d0>>
!v = tensor<?x3x4xf16, #quern.dims<d0>>
!o = tensor<3x1xf16>
!f = tensor<3xf32>
kernel.func @k kind "generic" {
^bb0(%x: !x, %o: !o):
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %v = kernel.view %x sizes(%n) : !x to !v
  %e = tensor.empty() : !f
  %z = linalg.fill ins(%zero : f32) outs(%e : !f) -> !f
  %s = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (k)>, affine_map<(i, j, k) -> (j)>],
      iterator_types = ["reduction", "parallel", "reduction"]} ins(%v, %w : !v, tensor<4xf32>) outs(%z : !f) {
  ^bb0(%a: f16, %b: f32, %acc: f32):
    %u = arith.extf %a : f16 to f32
    %t = arith.mulf %u, %b : f32
    %r = arith.addf %acc, %t : f32
    linalg.yield %r : f32 } -> !f
  %h = tensor.empty() : tensor<3xf16>
  %c = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%s : !f) outs(%h : tensor<3xf16>) {
  ^bb0(%a: f32, %d: f16):
    %r = arith.truncf %a : f32 to f16
    linalg.yield %r : f16 } -> tensor<3xf16>
  %y = kernel.view %c : tensor<3xf16> to !o
  kernel.yield %y : !o
})";
  std::string source = text;
  source.replace(source.find("  %v = kernel.view"), 0, "  %n = kernel.dim #quern.dim<d0>\n");
  for (CompiledKernel &k : variants(source)) {
    ASSERT_TRUE(bool(k));
    for (int64_t n : {0, 1, 5}) {
      std::vector<uint16_t> x(n * 12, 0x3c00), o(3); // ones
      for (int64_t i = 0; i < n; ++i)
        x[i * 12 + 4] = 0x4000; // two, in row 1 with weight 1
      k({x.data(), o.data()}, {n});
      auto half = [](double v) {
        int e = v ? std::ilogb(v) : 0;
        return v ? uint16_t(((e + 15) << 10) | int((std::ldexp(v, -e) - 1) * 1024)) : 0;
      };
      EXPECT_EQ(o[0], half(10 * n));
      EXPECT_EQ(o[1], half(11 * n));
      EXPECT_EQ(o[2], half(10 * n));
    }
  }
}

TEST_F(GenericTest, RefusesOtherOps) {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  kernel::FuncOp kernel = parse(R"(
kernel.func @k kind "generic" {
^bb0(%x: tensor<8xf32>, %o: tensor<8xf32>):
  %c = arith.constant 1 : index
  %v = arith.constant 1.0 : f32
  %1 = tensor.insert %v into %x[%c] : tensor<8xf32>
  kernel.yield %1 : tensor<8xf32>
})",
                                module);
  EXPECT_TRUE(mlir::failed(scheduleKernel(kernel, MachineModel::get(target))));
  EXPECT_NE(errors.find("unsupported: 'tensor.insert' in a kernel's body"), std::string::npos)
      << errors;
}

} // namespace
