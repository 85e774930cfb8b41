//===- RowsTest.cpp - Row and column reductions against C++ ---------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "KernelTest.h"

using namespace quern;
using namespace quern::test;

namespace {

class RowsTest : public KernelTest {
protected:
  /// The kernel as scheduled for this machine, for other widths, strict, and as reference.
  std::vector<CompiledKernel> variants(llvm::StringRef text) {
    std::vector<CompiledKernel> kernels;
    kernels.push_back(compile(text));
    for (const MachineModel &machine : otherMachines())
      kernels.push_back(compile(text, {}, machine));
    ScheduleOptions strict, reference;
    strict.strict = true;
    reference.reference = true;
    kernels.push_back(compile(text, strict));
    kernels.push_back(compile(text, reference));
    return kernels;
  }
};

const char *softmax = R"(
#id = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>
!t = tensor<?x?xf32, #quern.dims<d0, d1>>
!r = tensor<?xf32, #quern.dims<d0>>
kernel.func @softmax kind "row_reduction" share [0, 0] {
^bb0(%x: !t, %o: !t):
  %c0 = arith.constant 0 : index
  %ninf = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : !t
  %e = tensor.empty(%n) : !r
  %f = linalg.fill ins(%ninf : f32) outs(%e : !r) -> !r
  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : !t) outs(%f : !r) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.maximumf %acc, %a : f32
    linalg.yield %r : f32 } -> !r
  %p = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %m : !t, !r) outs(%o : !t) {
  ^bb0(%a: f32, %b: f32, %d: f32):
    %s = arith.subf %a, %b : f32
    %r = math.exp %s : f32
    linalg.yield %r : f32 } -> !t
  %z = linalg.fill ins(%zero : f32) outs(%e : !r) -> !r
  %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%p : !t) outs(%z : !r) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32 } -> !r
  %q = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%p, %s : !t, !r) outs(%o : !t) {
  ^bb0(%a: f32, %b: f32, %d: f32):
    %r = arith.divf %a, %b : f32
    linalg.yield %r : f32 } -> !t
  kernel.yield %q : !t
})";

TEST_F(RowsTest, Softmax) {
  for (CompiledKernel &k : variants(softmax)) {
    ASSERT_TRUE(bool(k));
    for (int64_t c : oddSizes())
      for (bool inPlace : {false, true}) {
        int64_t r = 5;
        std::vector<float> x = randomFloats(r * c, -20, 20), o(r * c + 1, 5.f);
        if (c) {
          x[3 * c + c / 2] = NAN;
          x[2 * c + c - 1] = -INFINITY;
          x[4 * c] = c > 1 ? -INFINITY : 1;
        }
        std::vector<float> in = x;
        float *out = inPlace ? x.data() : o.data();
        k({x.data(), out}, {r, c}, 2);
        for (int64_t i = 0; i < r; ++i) {
          double max = -INFINITY, sum = 0;
          for (int64_t j = 0; j < c; ++j)
            max = std::max<double>(max, in[i * c + j]);
          for (int64_t j = 0; j < c; ++j)
            sum += std::exp(in[i * c + j] - max);
          for (int64_t j = 0; j < c; ++j) {
            double want = std::exp(in[i * c + j] - max) / sum;
            if (i == 3 || (i == 2 && c == 1))
              ASSERT_TRUE(std::isnan(out[i * c + j])) << c;
            else
              ASSERT_NEAR(out[i * c + j], want, 2e-6 * std::max(want, 1e-3))
                  << i << "," << j << " of " << c;
          }
        }
        ASSERT_EQ(o[r * c], 5.f);
      }
  }
}

// Mean and variance, gamma and beta by column, the row's mean as a second result; the
// rows are two dims, and everything is kept apart by a copy of the input in place.
const char *layerNorm = R"(
#id = affine_map<(b, s, c) -> (b, s, c)>
#row = affine_map<(b, s, c) -> (b, s)>
#col = affine_map<(b, s, c) -> (c)>
#v = affine_map<(b, s) -> (b, s)>
!t = tensor<?x?x?xf32, #quern.dims<d0, d1, d2>>
!r = tensor<?x?xf32, #quern.dims<d0, d1>>
!c = tensor<?xf32, #quern.dims<d2>>
kernel.func @layer_norm kind "row_reduction" share [0, 0] {
^bb0(%x: !t, %g: !c, %be: !c, %o: !t, %om: !r):
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %eps = arith.constant 1.0e-5 : f32
  %c2 = arith.constant 2 : index
  %w = tensor.dim %x, %c2 : !t
  %wi = arith.index_cast %w : index to i64
  %wf = arith.sitofp %wi : i64 to f32
  %inv = arith.divf %one, %wf : f32
  %z = linalg.fill ins(%zero : f32) outs(%om : !r) -> !r
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x : !t) outs(%z : !r) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32 } -> !r
  %mean = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel", "parallel"]}
      ins(%sum : !r) outs(%om : !r) {
  ^bb0(%a: f32, %d: f32):
    %r = arith.mulf %a, %inv : f32
    linalg.yield %r : f32 } -> !r
  %cen = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %mean : !t, !r) outs(%o : !t) {
  ^bb0(%a: f32, %b: f32, %d: f32):
    %r = arith.subf %a, %b : f32
    linalg.yield %r : f32 } -> !t
  %sq = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%cen : !t) outs(%z : !r) {
  ^bb0(%a: f32, %acc: f32):
    %m = arith.mulf %a, %a : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32 } -> !r
  %rstd = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel", "parallel"]}
      ins(%sq : !r) outs(%om : !r) {
  ^bb0(%a: f32, %d: f32):
    %v = arith.mulf %a, %inv : f32
    %ve = arith.addf %v, %eps : f32
    %r = math.rsqrt %ve : f32
    linalg.yield %r : f32 } -> !r
  %q = linalg.generic {indexing_maps = [#id, #row, #col, #col, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%cen, %rstd, %g, %be : !t, !r, !c, !c) outs(%o : !t) {
  ^bb0(%a: f32, %b: f32, %ga: f32, %bb: f32, %d: f32):
    %s = arith.mulf %a, %b : f32
    %t = arith.mulf %s, %ga : f32
    %r = arith.addf %t, %bb : f32
    linalg.yield %r : f32 } -> !t
  kernel.yield %q, %mean : !t, !r
})";

TEST_F(RowsTest, LayerNorm) {
  for (CompiledKernel &k : variants(layerNorm)) {
    ASSERT_TRUE(bool(k));
    for (int64_t c : oddSizes())
      for (bool inPlace : {false, true}) {
        int64_t b = 2, s = 3, r = b * s;
        std::vector<float> x = randomFloats(r * c, 3, 5), g = randomFloats(c, -2, 2, 2),
                           be = randomFloats(c, -1, 1, 3), o(r * c), m(r), in = x;
        float *out = inPlace ? x.data() : o.data();
        k({x.data(), g.data(), be.data(), out, m.data()}, {b, s, c}, 1);
        for (int64_t i = 0; i < r; ++i) {
          double mean = 0, var = 0;
          for (int64_t j = 0; j < c; ++j)
            mean += in[i * c + j] / double(c);
          for (int64_t j = 0; j < c; ++j)
            var += (in[i * c + j] - mean) * (in[i * c + j] - mean) / c;
          if (c)
            ASSERT_NEAR(m[i], mean, 1e-5);
          for (int64_t j = 0; j < c; ++j)
            ASSERT_NEAR(out[i * c + j],
                        (in[i * c + j] - mean) / std::sqrt(var + 1e-5) * g[j] + be[j],
                        c < 3 ? 1e-3 : 2e-5)
                << c;
        }
      }
  }
}

// The numerics contract: whatever the width, the same bits.
TEST_F(RowsTest, SumsAreTheSameBitsAtAnyWidth) {
  const char *text = R"(
kernel.func @sum kind "row_reduction" {
^bb0(%x: tensor<?x?xf32, #quern.dims<d0, d1>>, %o: tensor<?xf32, #quern.dims<d0>>):
  %zero = arith.constant 0.0 : f32
  %z = linalg.fill ins(%zero : f32) outs(%o : tensor<?xf32, #quern.dims<d0>>) -> tensor<?xf32, #quern.dims<d0>>
  %s = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?x?xf32, #quern.dims<d0, d1>>) outs(%z : tensor<?xf32, #quern.dims<d0>>) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32 } -> tensor<?xf32, #quern.dims<d0>>
  kernel.yield %s : tensor<?xf32, #quern.dims<d0>>
})";
  CompiledKernel here = compile(text);
  for (const MachineModel &machine : otherMachines()) {
    CompiledKernel other = compile(text, {}, machine);
    for (int64_t c : oddSizes()) {
      std::vector<float> x = randomFloats(7 * c, -100, 100), a(7), b(7);
      here({x.data(), a.data()}, {7, c});
      other({x.data(), b.data()}, {7, c}, 3);
      for (int i = 0; i < 7; ++i)
        ASSERT_EQ(a[i], b[i]) << c;
    }
  }
}

// Nor does it matter how the operand lies, or what runs beside the sum: the op's loops alone
// decide. Lanes along the summed dim, along the other one, and none at all; two summed dims.
TEST_F(RowsTest, SumsAreTheSameBitsInAnyNest) {
  auto text = [](llvm::StringRef map, llvm::StringRef type, llvm::StringRef term, bool last) {
    return llvm::formatv(R"(
!x = {1}
!o = tensor<?xf32, #quern.dims<d0>>
#loops = affine_map<{3}>
kernel.func @sum kind "row_reduction" {{
^bb0(%x: !x, %o: !o):
  %zero = arith.constant 0.0 : f32
  %z = linalg.fill ins(%zero : f32) outs(%o : !o) -> !o
  %s = linalg.generic {{indexing_maps = [affine_map<{0}>, #loops], iterator_types = [{4}]}
      ins(%x : !x) outs(%z : !o) {{
  ^bb0(%a: f32, %acc: f32):
    {2}
    %r = arith.addf %acc, %t : f32
    linalg.yield %r : f32 } -> !o
  kernel.yield %s : !o
})",
                         map, type, term, last ? "(r, i, j) -> (r)" : "(i, j, r) -> (r)",
                         last ? "\"parallel\", \"reduction\", \"reduction\""
                              : "\"reduction\", \"reduction\", \"parallel\"")
        .str();
  };
  const char *same = "%t = arith.addf %a, %zero : f32";
  const char *branch = R"(%c = arith.cmpf ogt, %a, %zero : f32
    %t = scf.if %c -> f32 { scf.yield %a : f32 } else { %w = arith.addf %a, %zero : f32 scf.yield %w : f32 })";
  const char *rij = "tensor<?x?x5xf32, #quern.dims<d0, d1>>",
             *ijr = "tensor<?x5x?xf32, #quern.dims<d1, d0>>",
             *jri = "tensor<5x?x?xf32, #quern.dims<d0, d1>>";
  for (bool last : {true, false}) {
    std::string from = last ? "(r, i, j) -> " : "(i, j, r) -> ";
    struct Layout {
      std::string text;
      int64_t r, i, j; ///< which dim of memory: 0 is the outermost
    };
    std::vector<Layout> layouts = {{text(from + "(r, i, j)", rij, same, last), 0, 1, 2},
                                   {text(from + "(r, i, j)", rij, branch, last), 0, 1, 2},
                                   {text(from + "(i, j, r)", ijr, same, last), 2, 0, 1},
                                   {text(from + "(j, r, i)", jri, same, last), 1, 2, 0}};
    for (int64_t n : {0, 1, 2, 12, 13, 40}) {
      int64_t rows = 19;
      std::vector<float> x = randomFloats(rows * n * 5, -100, 100), want;
      for (const Layout &layout : layouts)
        for (unsigned variant = 0; variant < 5; ++variant) {
          ScheduleOptions options;
          options.strict = variant == 3;
          options.reference = variant == 4;
          std::optional<MachineModel> machine;
          if (variant == 1 || variant == 2)
            machine = otherMachines()[variant - 1];
          CompiledKernel k = compile(layout.text, options, machine);
          ASSERT_TRUE(bool(k));
          int64_t sizes[3], strides[3];
          sizes[layout.r] = rows, sizes[layout.i] = n, sizes[layout.j] = 5;
          strides[2] = 1, strides[1] = sizes[2], strides[0] = sizes[1] * sizes[2];
          std::vector<float> laid(x.size()), o(rows);
          for (int64_t r = 0; r < rows; ++r)
            for (int64_t i = 0; i < n; ++i)
              for (int64_t j = 0; j < 5; ++j)
                laid[r * strides[layout.r] + i * strides[layout.i] + j * strides[layout.j]] =
                    x[(r * n + i) * 5 + j];
          // The sizes are arguments in the order of their appearance.
          std::vector<int64_t> dims = {rows, n};
          if (layout.r > layout.i)
            std::swap(dims[0], dims[1]);
          k({laid.data(), o.data()}, dims, 3);
          if (want.empty())
            want = o;
          EXPECT_EQ(o, want) << "layout " << &layout - layouts.data() << ", variant " << variant
                             << ", " << n << (last ? ", last" : ", first");
        }
    }
  }
}

// A gradient's bias: the sum over rows, a mean over the middle dim, arg max with two
// running values, all of them with lanes along a dim that stays.
TEST_F(RowsTest, ColumnSum) {
  const char *text = R"(
!t = tensor<?x?x?xf32, #quern.dims<d0, d1, d2>>
!o = tensor<?x?xf32, #quern.dims<d0, d2>>
kernel.func @sum kind "column_reduction" {
^bb0(%x: !t, %o: !o):
  %zero = arith.constant 0.0 : f32
  %z = linalg.fill ins(%zero : f32) outs(%o : !o) -> !o
  %s = linalg.generic {indexing_maps = [affine_map<(i, k, j) -> (i, k, j)>, affine_map<(i, k, j) -> (i, j)>],
      iterator_types = ["parallel", "reduction", "parallel"]} ins(%x : !t) outs(%z : !o) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32 } -> !o
  kernel.yield %s : !o
})";
  for (CompiledKernel &k : variants(text))
    for (int64_t c : oddSizes()) {
      int64_t b = 2, n = 37;
      std::vector<float> x = randomFloats(b * n * c), o(b * c);
      k({x.data(), o.data()}, {b, n, c}, 1);
      for (int64_t i = 0; i < b; ++i)
        for (int64_t j = 0; j < c; ++j) {
          double want = 0;
          for (int64_t l = 0; l < n; ++l)
            want += x[(i * n + l) * c + j];
          ASSERT_NEAR(o[i * c + j], want, 1e-4);
        }
    }
}

TEST_F(RowsTest, ArgMax) {
  const char *text = R"(
!t = tensor<?x?xf32, #quern.dims<d0, d1>>
!v = tensor<?xf32, #quern.dims<d0>>
!i = tensor<?xi64, #quern.dims<d0>>
kernel.func @argmax kind "row_reduction" {
^bb0(%x: !t, %o: !v, %oi: !i):
  %ninf = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0 : i64
  %f = linalg.fill ins(%ninf : f32) outs(%o : !v) -> !v
  %g = linalg.fill ins(%zero : i64) outs(%oi : !i) -> !i
  %m:2 = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r)>, affine_map<(r, c) -> (r)>],
      iterator_types = ["parallel", "reduction"]} ins(%x : !t) outs(%f, %g : !v, !i) {
  ^bb0(%a: f32, %best: f32, %at: i64):
    %ix = linalg.index 1 : index
    %i = arith.index_cast %ix : index to i64
    %more = arith.cmpf ogt, %a, %best : f32
    %v = arith.select %more, %a, %best : f32
    %w = arith.select %more, %i, %at : i64
    linalg.yield %v, %w : f32, i64 } -> (!v, !i)
  kernel.yield %m#0, %m#1 : !v, !i
})";
  for (CompiledKernel &k : variants(text))
    for (int64_t c : oddSizes()) {
      int64_t r = 19;
      std::vector<float> x = randomFloats(r * c), o(r);
      std::vector<int64_t> oi(r);
      k({x.data(), o.data(), oi.data()}, {r, c}, 1);
      for (int64_t i = 0; i < r && c; ++i) {
        int64_t want = std::max_element(&x[i * c], &x[i * c] + c) - &x[i * c];
        ASSERT_EQ(oi[i], want);
        ASSERT_EQ(o[i], x[i * c + want]);
      }
    }
}

// log(sum exp(x - max)) + max - x[label]: a gather by comparison, a scalar tail.
TEST_F(RowsTest, CrossEntropy) {
  const char *text = R"(
#id = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>
#v = affine_map<(r) -> (r)>
!t = tensor<?x?xf32, #quern.dims<d0, d1>>
!r = tensor<?xf32, #quern.dims<d0>>
!l = tensor<?xi64, #quern.dims<d0>>
kernel.func @xent kind "row_reduction" {
^bb0(%x: !t, %l: !l, %o: !r):
  %ninf = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%ninf : f32) outs(%o : !r) -> !r
  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : !t) outs(%f : !r) {
  ^bb0(%a: f32, %acc: f32): %r = arith.maximumf %acc, %a : f32
    linalg.yield %r : f32 } -> !r
  %z = linalg.fill ins(%zero : f32) outs(%o : !r) -> !r
  %s = linalg.generic {indexing_maps = [#id, #row, #row], iterator_types = ["parallel", "reduction"]} ins(%x, %m : !t, !r) outs(%z : !r) {
  ^bb0(%a: f32, %b: f32, %acc: f32): %t = arith.subf %a, %b : f32
    %ex = math.exp %t : f32
    %r = arith.addf %acc, %ex : f32
    linalg.yield %r : f32 } -> !r
  %q = linalg.generic {indexing_maps = [#v, #v, #v, #v], iterator_types = ["parallel"]} ins(%s, %m, %l : !r, !r, !l) outs(%o : !r) {
  ^bb0(%a: f32, %b: f32, %c: i64, %d: f32):
    %i = linalg.index 0 : index
    %j = arith.index_cast %c : i64 to index
    %e = tensor.extract %x[%i, %j] : !t
    %lg = math.log %a : f32
    %t = arith.addf %lg, %b : f32
    %r = arith.subf %t, %e : f32
    linalg.yield %r : f32 } -> !r
  kernel.yield %q : !r
})";
  for (CompiledKernel &k : variants(text))
    for (int64_t c : oddSizes()) {
      int64_t r = c ? 9 : 0;
      std::vector<float> x = randomFloats(r * c, -9, 9), o(r);
      std::vector<int64_t> l(r);
      for (int64_t i = 0; i < r; ++i)
        l[i] = (i * 7) % c;
      k({x.data(), l.data(), o.data()}, {r, c}, 2);
      for (int64_t i = 0; i < r; ++i) {
        double sum = 0;
        for (int64_t j = 0; j < c; ++j)
          sum += std::exp(double(x[i * c + j]));
        ASSERT_NEAR(o[i], std::log(sum) - x[i * c + l[i]], 5e-6);
      }
    }
}

} // namespace
