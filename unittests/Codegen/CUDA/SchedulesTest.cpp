//===- SchedulesTest.cpp - Numbers of every CUDA scheduler ----------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "KernelTest.h"
#include <cmath>
#include <random>

using namespace quern;
using namespace quern::test;

namespace {

const std::string maps = R"(
#id = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>
#col = affine_map<(r, c) -> (c)>
#none = affine_map<(r, c) -> ()>
#v = affine_map<(r) -> (r)>
)";

std::string replace(std::string text, const std::string &from, const std::string &to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

std::vector<float> random(size_t count, unsigned seed = 1) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> uniform(-2.0f, 2.0f);
  std::vector<float> values(count);
  for (float &value : values)
    value = uniform(engine);
  return values;
}

void expectClose(const std::vector<float> &got, const std::vector<double> &wanted,
                 double tolerance = 1e-5) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i)
    if (std::isnan(wanted[i]))
      ASSERT_TRUE(std::isnan(got[i])) << i;
    else
      ASSERT_NEAR(got[i], wanted[i], tolerance * std::max(1.0, std::abs(wanted[i]))) << i;
}

/// Sizes around every vector and block boundary.
const std::vector<std::pair<int64_t, int64_t>> shapes = {
    {0, 5}, {1, 1}, {3, 0}, {2, 3}, {5, 4}, {7, 129}, {9, 1000}, {130, 7}, {2, 1030}};

//===----------------------------------------------------------------------===//
// Pointwise
//===----------------------------------------------------------------------===//

const std::string biasTanh = maps + R"(
kernel.func @bias_tanh kind "pointwise" share [0, 0] {
^bb0(%x: TYPE, %bias: BIAS, %scale: tensor<f32>, %o: TYPE):
  %1 = linalg.generic {indexing_maps = [#id, #col, #none, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %bias, %scale : TYPE, BIAS, tensor<f32>) outs(%o : TYPE) {
  ^bb0(%a: f32, %b: f32, %s: f32, %d: f32):
    %t = arith.addf %a, %b : f32
    %h = math.tanh %t : f32
    %r = arith.mulf %h, %s : f32
    linalg.yield %r : f32
  } -> TYPE
  kernel.yield %1 : TYPE
})";

TEST_F(KernelTest, PointwiseWithARowOperand) {
  compile(replace(replace(biasTanh, "TYPE", "tensor<?x?xf32, #quern.dims<d0, d1>>"), "BIAS",
                  "tensor<?xf32, #quern.dims<d1>>"));
  for (auto [rows, columns] : shapes)
    for (int shared : {-1, 0}) {
      std::vector<float> x = random(rows * columns), bias = random(columns, 2), scale = {1.5f};
      auto outs = run({Buffer::of(x), Buffer::of(bias), Buffer::of(scale)}, {x.size() * 4},
                      {rows, columns}, {shared});
      std::vector<double> wanted;
      for (size_t i = 0; i < x.size(); ++i)
        wanted.push_back(std::tanh(double(x[i]) + bias[i % columns]) * 1.5);
      ASSERT_EQ(outs.size(), 1u);
      expectClose(outs[0].as<float>(), wanted);
    }
}

TEST_F(KernelTest, PointwiseStatic) {
  compile(replace(replace(biasTanh, "TYPE", "tensor<6x768xf32>"), "BIAS", "tensor<768xf32>"));
  std::vector<float> x = random(6 * 768), bias = random(768, 2), scale = {-1.0f};
  auto outs = run({Buffer::of(x), Buffer::of(bias), Buffer::of(scale)}, {x.size() * 4}, {});
  std::vector<double> wanted;
  for (size_t i = 0; i < x.size(); ++i)
    wanted.push_back(-std::tanh(double(x[i]) + bias[i % 768]));
  ASSERT_EQ(outs.size(), 1u);
  expectClose(outs[0].as<float>(), wanted);
  EXPECT_NE(text.find("const int number"), std::string::npos) << text; // small enough for 32 bits
  for (const CubinKernel &kernel : cubins()) {
    EXPECT_FALSE(kernel.spills());
    EXPECT_EQ(kernel.count("LDG.128"), 2);
    EXPECT_EQ(kernel.count("STG.128"), 1);
  }
}

TEST_F(KernelTest, PointwiseFlatInHalfPrecision) {
  compile(maps + R"(
kernel.func @scale kind "pointwise" {
^bb0(%x: tensor<?x3xf16, #quern.dims<d0>>, %o: tensor<?x3xbf16, #quern.dims<d0>>):
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x3xf16, #quern.dims<d0>>) outs(%o : tensor<?x3xbf16, #quern.dims<d0>>) {
  ^bb0(%a: f16, %d: bf16):
    %w = arith.extf %a : f16 to f32
    %three = arith.constant 3.0 : f32
    %t = arith.mulf %w, %three : f32
    %r = arith.truncf %t : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<?x3xbf16, #quern.dims<d0>>
  kernel.yield %1 : tensor<?x3xbf16, #quern.dims<d0>>
})");
  // 1, -2, 0.5, 65504 (largest), smallest subnormal, nan
  std::vector<uint16_t> x = {0x3c00, 0xc000, 0x3800, 0x7bff, 0x0001, 0x7e00};
  auto outs = run({Buffer::of(x)}, {x.size() * 2}, {2});
  ASSERT_EQ(outs.size(), 1u);
  std::vector<uint16_t> got = outs[0].as<uint16_t>();
  EXPECT_EQ((std::vector<uint16_t>(got.begin(), got.begin() + 5)),
            (std::vector<uint16_t>{0x4040, 0xc0c0, 0x3fc0, 0x4840, 0x3440}));
  EXPECT_EQ(got[5] & 0x7fff, 0x7fff);
  EXPECT_NE(text.find("quern::load<8>"), std::string::npos) << text;
  for (const CubinKernel &kernel : cubins())
    EXPECT_FALSE(kernel.spills());
}

TEST_F(KernelTest, TransposedReadsAreGuarded) {
  compile(R"(
kernel.func @transpose kind "pointwise" {
^bb0(%x: tensor<?x?xf32, #quern.dims<d0, d1>>, %o: tensor<?x?xf32, #quern.dims<d1, d0>>):
  %1 = linalg.generic {indexing_maps = [affine_map<(r, c) -> (c, r)>, affine_map<(r, c) -> (r, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x?xf32, #quern.dims<d0, d1>>) outs(%o : tensor<?x?xf32, #quern.dims<d1, d0>>) {
  ^bb0(%a: f32, %d: f32):
    linalg.yield %a : f32
  } -> tensor<?x?xf32, #quern.dims<d1, d0>>
  kernel.yield %1 : tensor<?x?xf32, #quern.dims<d1, d0>>
})");
  for (auto [rows, columns] : shapes) {
    std::vector<float> x = random(rows * columns);
    auto outs = run({Buffer::of(x)}, {x.size() * 4}, {rows, columns});
    std::vector<double> wanted(x.size());
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        wanted[j * rows + i] = x[i * columns + j];
    ASSERT_EQ(outs.size(), 1u);
    expectClose(outs[0].as<float>(), wanted, 0);
  }
}

TEST_F(KernelTest, Gather) {
  compile(R"(
kernel.func @embedding kind "gather" {
^bb0(%w: tensor<10x?xf32, #quern.dims<d0>>, %i: tensor<?xi64, #quern.dims<d1>>, %o: tensor<?x?xf32, #quern.dims<d1, d0>>):
  %1 = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r)>, affine_map<(r, c) -> (r, c)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%i : tensor<?xi64, #quern.dims<d1>>) outs(%o : tensor<?x?xf32, #quern.dims<d1, d0>>) {
  ^bb0(%a: i64, %d: f32):
    %c = linalg.index 1 : index
    %r = arith.index_cast %a : i64 to index
    %e = tensor.extract %w[%r, %c] : tensor<10x?xf32, #quern.dims<d0>>
    linalg.yield %e : f32
  } -> tensor<?x?xf32, #quern.dims<d1, d0>>
  kernel.yield %1 : tensor<?x?xf32, #quern.dims<d1, d0>>
})");
  EXPECT_NE(text.find("quern::load<2>(in0 + "), std::string::npos) << text; // rows by vectors
  for (int64_t width : {1, 4, 7, 300}) {
    std::vector<float> w = random(10 * width);
    std::vector<int64_t> indices = {9, 0, 3, 3, 7};
    auto outs = run({Buffer::of(w), Buffer::of(indices)}, {indices.size() * width * 4},
                    {width, int64_t(indices.size())});
    std::vector<double> wanted;
    for (int64_t index : indices)
      for (int64_t j = 0; j < width; ++j)
        wanted.push_back(w[index * width + j]);
    ASSERT_EQ(outs.size(), 1u);
    expectClose(outs[0].as<float>(), wanted, 0);
  }
  for (const CubinKernel &kernel : cubins())
    EXPECT_FALSE(kernel.spills());
}

TEST_F(KernelTest, UndecidedBroadcastIsStrided) {
  compile(maps + R"(
kernel.func @add kind "pointwise" strided [1] {
^bb0(%x: tensor<?x4xf32, #quern.dims<d0>>, %y: tensor<?x4xf32, #quern.dims<d1>>, %o: tensor<?x4xf32, #quern.dims<d0>>):
  %1 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %y : tensor<?x4xf32, #quern.dims<d0>>, tensor<?x4xf32, #quern.dims<d1>>) outs(%o : tensor<?x4xf32, #quern.dims<d0>>) {
  ^bb0(%a: f32, %b: f32, %d: f32):
    %t = arith.addf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<?x4xf32, #quern.dims<d0>>
  kernel.yield %1 : tensor<?x4xf32, #quern.dims<d0>>
})");
  std::vector<float> x = random(12), y = random(4, 2);
  auto outs = run({Buffer::of(x), Buffer::of(y)}, {48}, {3, 1, 0, 1});
  std::vector<double> wanted;
  for (int i = 0; i < 12; ++i)
    wanted.push_back(x[i] + y[i % 4]);
  ASSERT_EQ(outs.size(), 1u);
  expectClose(outs[0].as<float>(), wanted);
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

const std::string softmax = maps + R"(
kernel.func @softmax kind "row_reduction" share [0, 0] {
^bb0(%x: FULL, %o: FULL):
  %ninf = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %n = kernel.dim #quern.dim<d0>
  %e = tensor.empty(%n) : ROW
  %f = linalg.fill ins(%ninf : f32) outs(%e : ROW) -> ROW
  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : FULL) outs(%f : ROW) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.maximumf %acc, %a : f32
    linalg.yield %r : f32 } -> ROW
  %p = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %m : FULL, ROW) outs(%o : FULL) {
  ^bb0(%a: f32, %b: f32, %d: f32):
    %s = arith.subf %a, %b : f32
    %r = math.exp %s : f32
    linalg.yield %r : f32 } -> FULL
  %z = linalg.fill ins(%zero : f32) outs(%e : ROW) -> ROW
  %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%p : FULL) outs(%z : ROW) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32 } -> ROW
  %q = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%p, %s : FULL, ROW) outs(%o : FULL) {
  ^bb0(%a: f32, %b: f32, %d: f32):
    %r = arith.divf %a, %b : f32
    linalg.yield %r : f32 } -> FULL
  kernel.yield %q : FULL
})";

std::vector<double> softmaxOf(const std::vector<float> &x, int64_t columns) {
  std::vector<double> wanted(x.size());
  for (size_t row = 0; columns && row < x.size() / columns; ++row) {
    double largest = -INFINITY, sum = 0;
    for (int64_t j = 0; j < columns; ++j)
      largest =
          std::isnan(x[row * columns + j]) ? NAN : std::max(largest, double(x[row * columns + j]));
    for (int64_t j = 0; j < columns; ++j)
      sum += std::exp(x[row * columns + j] - largest);
    for (int64_t j = 0; j < columns; ++j)
      wanted[row * columns + j] = std::exp(x[row * columns + j] - largest) / sum;
  }
  return wanted;
}

TEST_F(KernelTest, SoftmaxOfFreeRows) {
  compile(replace(replace(softmax, "FULL", "tensor<?x?xf32, #quern.dims<d0, d1>>"), "ROW",
                  "tensor<?xf32, #quern.dims<d0>>"));
  EXPECT_NE(text.find("16 threads a row, 4 elements a thread"), std::string::npos) << text;
  for (auto [rows, columns] : shapes)
    for (int shared : {-1, 0}) {
      std::vector<float> x = random(rows * columns);
      if (x.size() > 3)
        x[2] = -INFINITY;
      auto outs = run({Buffer::of(x)}, {x.size() * 4}, {rows, columns}, {shared});
      ASSERT_EQ(outs.size(), 1u);
      expectClose(outs[0].as<float>(), softmaxOf(x, columns));
    }
}

TEST_F(KernelTest, SoftmaxOfShortRows) {
  for (int64_t columns : {1, 10, 128, 1000}) {
    std::string full = "tensor<?x" + std::to_string(columns) + "xf32, #quern.dims<d0>>";
    compile(replace(replace(softmax, "FULL", full), "ROW", "tensor<?xf32, #quern.dims<d0>>"));
    EXPECT_EQ(text.find("16 threads a row") == std::string::npos, columns == 1) << text;
    for (int64_t rows : {1, 4, 9})
      for (int shared : {-1, 0}) {
        std::vector<float> x = random(rows * columns);
        auto outs = run({Buffer::of(x)}, {x.size() * 4}, {rows}, {shared});
        ASSERT_EQ(outs.size(), 1u);
        expectClose(outs[0].as<float>(), softmaxOf(x, columns));
      }
  }
  for (const CubinKernel &kernel : cubins()) {
    EXPECT_FALSE(kernel.spills());
    EXPECT_GE(kernel.count("LDG.128"), 3);
    EXPECT_GE(kernel.count("STG.128"), 1);
    EXPECT_GE(kernel.count("SHFL"), 10);
  }
}

/// What docs/numerics.md says: 64 partial sums, joined pairwise.
template <class T, class Sum> Sum sumOfRow(const T *row, int64_t columns) {
  Sum partial[64] = {};
  for (int64_t i = 0; i < columns; ++i)
    partial[i % 64] += Sum(row[i]);
  for (int half = 32; half; half /= 2)
    for (int i = 0; i < half; ++i)
      partial[i] += partial[i + half];
  return partial[0];
}

const std::string rowSum = maps + R"(
kernel.func @sum kind "row_reduction" {
^bb0(%x: tensor<?x?xTYPE, #quern.dims<d0, d1>>, %o: tensor<?xTYPE, #quern.dims<d0>>):
  %zero = arith.constant 0.0 : TYPE
  %z = linalg.fill ins(%zero : TYPE) outs(%o : tensor<?xTYPE, #quern.dims<d0>>) -> tensor<?xTYPE, #quern.dims<d0>>
  %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?x?xTYPE, #quern.dims<d0, d1>>) outs(%z : tensor<?xTYPE, #quern.dims<d0>>) {
  ^bb0(%a: TYPE, %acc: TYPE):
    %r = arith.addf %acc, %a : TYPE
    linalg.yield %r : TYPE } -> tensor<?xTYPE, #quern.dims<d0>>
  kernel.yield %s : tensor<?xTYPE, #quern.dims<d0>>
})";

TEST_F(KernelTest, RowsAreSummedIn64Parts) {
  // By a team of threads, or where that is not possible by one.
  for (const char *kind : {"row_reduction", "column_reduction"}) {
    compile(replace(replace(rowSum, "TYPE", "f32"), "row_reduction", kind));
    EXPECT_EQ(text.find("a thread a row") == std::string::npos, kind[0] == 'r') << text;
    for (auto [rows, columns] : shapes) {
      std::vector<float> x = random(rows * columns), wanted;
      for (int64_t row = 0; row < rows; ++row)
        wanted.push_back(sumOfRow<float, float>(x.data() + row * columns, columns));
      auto outs = run({Buffer::of(x)}, {size_t(rows) * 4}, {rows, columns});
      ASSERT_EQ(outs.size(), 1u);
      EXPECT_EQ(outs[0].as<float>(), wanted) << rows << " x " << columns; // every bit
    }
  }
  compile(replace(rowSum, "TYPE", "f64")); // another width, the same order
  for (auto [rows, columns] : shapes) {
    std::vector<double> x, wanted;
    for (float value : random(rows * columns))
      x.push_back(value / 3.0);
    for (int64_t row = 0; row < rows; ++row)
      wanted.push_back(sumOfRow<double, double>(x.data() + row * columns, columns));
    auto outs = run({Buffer::of(x)}, {size_t(rows) * 8}, {rows, columns});
    ASSERT_EQ(outs.size(), 1u);
    EXPECT_EQ(outs[0].as<double>(), wanted) << rows << " x " << columns;
  }
}

TEST_F(KernelTest, LayerNormReadsVectors) {
  compile(maps + R"(
kernel.func @layer_norm kind "row_reduction" {
^bb0(%x: tensor<?x768xf32, #quern.dims<d0>>, %g: tensor<768xf32>, %be: tensor<768xf32>, %o: tensor<?x768xf32, #quern.dims<d0>>, %mo: tensor<?x1xf32, #quern.dims<d0>>):
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %eps = arith.constant 1.0e-5 : f32
  %w = arith.constant 768.0 : f32
  %n = kernel.dim #quern.dim<d0>
  %e = tensor.empty(%n) : tensor<?xf32, #quern.dims<d0>>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32, #quern.dims<d0>>) -> tensor<?xf32, #quern.dims<d0>>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<?x768xf32, #quern.dims<d0>>) outs(%z : tensor<?xf32, #quern.dims<d0>>) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32 } -> tensor<?xf32, #quern.dims<d0>>
  %mean = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]} ins(%sum : tensor<?xf32, #quern.dims<d0>>) outs(%e : tensor<?xf32, #quern.dims<d0>>) {
  ^bb0(%a: f32, %d: f32):
    %r = arith.divf %a, %w : f32
    linalg.yield %r : f32 } -> tensor<?xf32, #quern.dims<d0>>
  %cen = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %mean : tensor<?x768xf32, #quern.dims<d0>>, tensor<?xf32, #quern.dims<d0>>) outs(%o : tensor<?x768xf32, #quern.dims<d0>>) {
  ^bb0(%a: f32, %b: f32, %d: f32):
    %s = arith.subf %a, %b : f32
    linalg.yield %s : f32 } -> tensor<?x768xf32, #quern.dims<d0>>
  %sq = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%cen : tensor<?x768xf32, #quern.dims<d0>>) outs(%z : tensor<?xf32, #quern.dims<d0>>) {
  ^bb0(%a: f32, %acc: f32):
    %m = arith.mulf %a, %a : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32 } -> tensor<?xf32, #quern.dims<d0>>
  %rstd = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]} ins(%sq : tensor<?xf32, #quern.dims<d0>>) outs(%e : tensor<?xf32, #quern.dims<d0>>) {
  ^bb0(%a: f32, %d: f32):
    %v = arith.divf %a, %w : f32
    %ve = arith.addf %v, %eps : f32
    %r = math.rsqrt %ve : f32
    linalg.yield %r : f32 } -> tensor<?xf32, #quern.dims<d0>>
  %q = linalg.generic {indexing_maps = [#id, #row, #col, #col, #id], iterator_types = ["parallel", "parallel"]} ins(%cen, %rstd, %g, %be : tensor<?x768xf32, #quern.dims<d0>>, tensor<?xf32, #quern.dims<d0>>, tensor<768xf32>, tensor<768xf32>) outs(%o : tensor<?x768xf32, #quern.dims<d0>>) {
  ^bb0(%a: f32, %b: f32, %ga: f32, %bb: f32, %d: f32):
    %s = arith.mulf %a, %b : f32
    %t = arith.mulf %s, %ga : f32
    %r = arith.addf %t, %bb : f32
    linalg.yield %r : f32 } -> tensor<?x768xf32, #quern.dims<d0>>
  %mk = kernel.view %mean sizes(%n) : tensor<?xf32, #quern.dims<d0>> to tensor<?x1xf32, #quern.dims<d0>>
  kernel.yield %q, %mk : tensor<?x768xf32, #quern.dims<d0>>, tensor<?x1xf32, #quern.dims<d0>>
})");
  int64_t rows = 6, columns = 768;
  std::vector<float> x = random(rows * columns), g = random(columns, 2), b = random(columns, 3);
  auto outs =
      run({Buffer::of(x), Buffer::of(g), Buffer::of(b)}, {x.size() * 4, size_t(rows) * 4}, {rows});
  ASSERT_EQ(outs.size(), 2u);
  std::vector<double> wanted, means;
  for (int64_t row = 0; row < rows; ++row) {
    double mean = 0, squares = 0;
    for (int64_t j = 0; j < columns; ++j)
      mean += x[row * columns + j] / double(columns);
    for (int64_t j = 0; j < columns; ++j)
      squares += std::pow(x[row * columns + j] - mean, 2);
    for (int64_t j = 0; j < columns; ++j)
      wanted.push_back((x[row * columns + j] - mean) / std::sqrt(squares / columns + 1e-5) * g[j] +
                       b[j]);
    means.push_back(mean);
  }
  expectClose(outs[0].as<float>(), wanted);
  expectClose(outs[1].as<float>(), means);
  for (const CubinKernel &kernel : cubins()) {
    EXPECT_FALSE(kernel.spills());
    EXPECT_GE(kernel.count("LDG.128"), 5);
    EXPECT_GE(kernel.count("STG.128"), 1);
  }
}

TEST_F(KernelTest, ReductionOverInnerAndOuterDims) {
  // Over dims 0 and 2 of three: rows are not together in memory.
  compile(R"(
kernel.func @sum kind "row_reduction" {
^bb0(%x: tensor<?x5x?xf32, #quern.dims<d0, d1>>, %o: tensor<5xf32>):
  %one = arith.constant 1.0 : f32
  %f = linalg.fill ins(%one : f32) outs(%o : tensor<5xf32>) -> tensor<5xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (b)>],
      iterator_types = ["reduction", "parallel", "reduction"]}
      ins(%x : tensor<?x5x?xf32, #quern.dims<d0, d1>>) outs(%f : tensor<5xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32 } -> tensor<5xf32>
  kernel.yield %m : tensor<5xf32>
})");
  for (auto [n, k] : shapes) {
    std::vector<float> x = random(n * 5 * k);
    auto outs = run({Buffer::of(x)}, {20}, {n, k});
    std::vector<double> wanted(5, 1.0);
    for (size_t i = 0; i < x.size(); ++i)
      wanted[i / k % 5] += x[i];
    ASSERT_EQ(outs.size(), 1u);
    expectClose(outs[0].as<float>(), wanted, 1e-4);
  }
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// relu(a b + bias) for A (m,k) or (k,m), B (k,n) or (n,k).
std::string product(const std::string &a, const std::string &b, const std::string &aMap,
                    const std::string &bMap, const std::string &element = "f32") {
  std::string text = maps + R"(
kernel.func @linear kind "contraction" {
^bb0(%a: A, %b: B, %bias: tensor<?xf32, #quern.dims<n>>, %o: tensor<?x?xf32, #quern.dims<m, n>>):
  %zero = arith.constant 0.0 : f32
  %z = linalg.fill ins(%zero : f32) outs(%o : tensor<?x?xf32, #quern.dims<m, n>>) -> tensor<?x?xf32, #quern.dims<m, n>>
  %c = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (AMAP)>, affine_map<(m, n, k) -> (BMAP)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : A, B) outs(%z : tensor<?x?xf32, #quern.dims<m, n>>) {
  ^bb0(%x: ELEMENT, %y: ELEMENT, %acc: f32):
    CASTX
    CASTY
    %p = arith.mulf %xw, %yw : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32 } -> tensor<?x?xf32, #quern.dims<m, n>>
  %r = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]} ins(%c, %bias : tensor<?x?xf32, #quern.dims<m, n>>, tensor<?xf32, #quern.dims<n>>) outs(%o : tensor<?x?xf32, #quern.dims<m, n>>) {
  ^bb0(%x: f32, %y: f32, %d: f32):
    %t = arith.addf %x, %y : f32
    %m = arith.maximumf %t, %zero : f32
    linalg.yield %m : f32 } -> tensor<?x?xf32, #quern.dims<m, n>>
  kernel.yield %r : tensor<?x?xf32, #quern.dims<m, n>>
})";
  bool wide = element == "f32";
  text = replace(text, "CASTX",
                 wide ? "%xz = arith.constant 0.0 : f32"
                      : "%xw = arith.extf %x : " + element + " to f32");
  text = replace(text, "CASTY", wide ? "" : "%yw = arith.extf %y : " + element + " to f32");
  if (wide)
    text = replace(text, "%xw, %yw", "%x, %y");
  text = replace(replace(text, "AMAP", aMap), "BMAP", bMap);
  return replace(replace(replace(text, "ELEMENT", element), "A,", a + ","), "%a: A", "%a: " + a);
}

struct Case {
  bool aTransposed, bTransposed;
};

TEST_F(KernelTest, MatrixProducts) {
  for (Case c : {Case{false, false}, {true, false}, {false, true}, {true, true}}) {
    std::string a =
        c.aTransposed ? "tensor<?x?xf32, #quern.dims<k, m>>" : "tensor<?x?xf32, #quern.dims<m, k>>";
    std::string b =
        c.bTransposed ? "tensor<?x?xf32, #quern.dims<n, k>>" : "tensor<?x?xf32, #quern.dims<k, n>>";
    std::string source =
        product(a, b, c.aTransposed ? "k, m" : "m, k", c.bTransposed ? "n, k" : "k, n");
    source = replace(replace(source, "%b: B", "%b: " + b), ": A, B)", ": " + a + ", " + b + ")");
    source = replace(source, a + ", B)", a + ", " + b + ")");
    compile(source);
    ASSERT_NE(text, "") << message << source;
    EXPECT_NE(text.find("fmaf("), std::string::npos) << text;
    for (auto [m, n, k] : {std::tuple<int64_t, int64_t, int64_t>{1, 1, 1},
                           {3, 5, 0},
                           {64, 64, 16},
                           {65, 130, 17},
                           {70, 3, 40},
                           {2, 68, 33}}) {
      std::vector<float> av = random(m * k), bv = random(k * n, 2), bias = random(n, 3);
      // The kernel's symbols are in order of appearance.
      std::vector<int64_t> dims;
      for (int64_t d : c.aTransposed ? std::vector<int64_t>{k, m} : std::vector<int64_t>{m, k})
        dims.push_back(d);
      dims.push_back(n);
      auto outs =
          run({Buffer::of(av), Buffer::of(bv), Buffer::of(bias)}, {size_t(m * n) * 4}, dims);
      std::vector<double> wanted;
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
          double sum = bias[j];
          for (int64_t l = 0; l < k; ++l)
            sum += double(c.aTransposed ? av[l * m + i] : av[i * k + l]) *
                   (c.bTransposed ? bv[j * k + l] : bv[l * n + j]);
          wanted.push_back(std::max(sum, 0.0));
        }
      ASSERT_EQ(outs.size(), 1u);
      expectClose(outs[0].as<float>(), wanted, 1e-4);
    }
    for (const CubinKernel &kernel : cubins()) {
      EXPECT_FALSE(kernel.spills());
      EXPECT_GE(kernel.count("FFMA"), 256);
      EXPECT_GE(kernel.count("LDG.128"), 2);
      EXPECT_GE(kernel.count("STG.128"), 1);
      EXPECT_EQ(kernel.count("BAR"), 2);
    }
  }
}

//===----------------------------------------------------------------------===//
// Generic, errors
//===----------------------------------------------------------------------===//

TEST_F(KernelTest, ProductWithOneColumn) {
  // The column is no index, and past the sum's end there is nothing to read.
  std::string a = "tensor<?x?xf32, #quern.dims<m, k>>", b = "tensor<?x1xf32, #quern.dims<k>>";
  std::string source = product(a, b, "m, k", "k, n");
  source = replace(replace(source, "%b: B", "%b: " + b), ", B)", ", " + b + ")");
  source = replace(replace(source, "tensor<?xf32, #quern.dims<n>>", "tensor<1xf32>"),
                   "tensor<?x?xf32, #quern.dims<m, n>>", "tensor<?x1xf32, #quern.dims<m>>");
  compile(source);
  int64_t m = 3, k = 13;
  std::vector<float> av = random(m * k), bv = random(k, 2), bias = {0.5f};
  auto outs = run({Buffer::of(av), Buffer::of(bv), Buffer::of(bias)}, {size_t(m) * 4}, {m, k});
  std::vector<double> wanted(m, 0.5);
  for (int64_t i = 0; i < m * k; ++i)
    wanted[i / k] += double(av[i]) * bv[i % k];
  for (double &value : wanted)
    value = std::max(value, 0.0);
  ASSERT_EQ(outs.size(), 1u);
  expectClose(outs[0].as<float>(), wanted);
}

TEST_F(KernelTest, ConvolutionIsGeneric) {
  compile(R"(
kernel.func @conv kind "convolution" {
^bb0(%x: tensor<2x?xf32, #quern.dims<d0>>, %w: tensor<3x2x5xf32>, %o: tensor<3x?xf32, #quern.dims<d1>>):
  %zero = arith.constant 0.0 : f32
  %z = linalg.fill ins(%zero : f32) outs(%o : tensor<3x?xf32, #quern.dims<d1>>) -> tensor<3x?xf32, #quern.dims<d1>>
  %c = linalg.generic {indexing_maps = [affine_map<(f, p, c, k) -> (c, p + k)>, affine_map<(f, p, c, k) -> (f, c, k)>, affine_map<(f, p, c, k) -> (f, p)>],
      iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<2x?xf32, #quern.dims<d0>>, tensor<3x2x5xf32>) outs(%z : tensor<3x?xf32, #quern.dims<d1>>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32 } -> tensor<3x?xf32, #quern.dims<d1>>
  kernel.yield %c : tensor<3x?xf32, #quern.dims<d1>>
})");
  int64_t length = 50;
  std::vector<float> x = random(2 * length), w = random(30, 2);
  auto outs = run({Buffer::of(x), Buffer::of(w)}, {3 * 46 * 4}, {length, 46});
  std::vector<double> wanted;
  for (int f = 0; f < 3; ++f)
    for (int p = 0; p < 46; ++p) {
      double sum = 0;
      for (int c = 0; c < 2; ++c)
        for (int k = 0; k < 5; ++k)
          sum += double(x[c * length + p + k]) * w[(f * 2 + c) * 5 + k];
      wanted.push_back(sum);
    }
  ASSERT_EQ(outs.size(), 1u);
  expectClose(outs[0].as<float>(), wanted);
  for (const CubinKernel &kernel : cubins())
    EXPECT_FALSE(kernel.spills());
}

TEST_F(KernelTest, ArgmaxHasTwoResults) {
  compile(R"(
kernel.func @argmax kind "row_reduction" {
^bb0(%x: tensor<?x?xf32, #quern.dims<d0, d1>>, %o: tensor<?xf32, #quern.dims<d0>>, %i: tensor<?xi64, #quern.dims<d0>>):
  %ninf = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0 : i64
  %f = linalg.fill ins(%ninf : f32) outs(%o : tensor<?xf32, #quern.dims<d0>>) -> tensor<?xf32, #quern.dims<d0>>
  %z = linalg.fill ins(%zero : i64) outs(%i : tensor<?xi64, #quern.dims<d0>>) -> tensor<?xi64, #quern.dims<d0>>
  %m:2 = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r)>, affine_map<(r, c) -> (r)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?x?xf32, #quern.dims<d0, d1>>) outs(%f, %z : tensor<?xf32, #quern.dims<d0>>, tensor<?xi64, #quern.dims<d0>>) {
  ^bb0(%a: f32, %best: f32, %at: i64):
    %c = linalg.index 1 : index
    %here = arith.index_cast %c : index to i64
    %more = arith.cmpf ogt, %a, %best : f32
    %v = arith.select %more, %a, %best : f32
    %w = arith.select %more, %here, %at : i64
    linalg.yield %v, %w : f32, i64
  } -> (tensor<?xf32, #quern.dims<d0>>, tensor<?xi64, #quern.dims<d0>>)
  kernel.yield %m#0, %m#1 : tensor<?xf32, #quern.dims<d0>>, tensor<?xi64, #quern.dims<d0>>
})");
  int64_t rows = 9, columns = 40;
  std::vector<float> x = random(rows * columns);
  auto outs = run({Buffer::of(x)}, {size_t(rows) * 4, size_t(rows) * 8}, {rows, columns});
  ASSERT_EQ(outs.size(), 2u);
  for (int64_t row = 0; row < rows; ++row) {
    auto best = std::max_element(x.begin() + row * columns, x.begin() + (row + 1) * columns);
    EXPECT_EQ(outs[0].as<float>()[row], *best);
    EXPECT_EQ(outs[1].as<int64_t>()[row], best - x.begin() - row * columns);
  }
}

TEST_F(KernelTest, IntegersWrap) {
  compile(R"(
kernel.func @wrap kind "pointwise" {
^bb0(%x: tensor<?xi32, #quern.dims<d0>>, %o: tensor<?xi32, #quern.dims<d0>>, %b: tensor<?xi1, #quern.dims<d0>>):
  %k = arith.constant -2147483648 : i32
  %1:2 = linalg.generic {indexing_maps = [affine_map<(r) -> (r)>, affine_map<(r) -> (r)>, affine_map<(r) -> (r)>], iterator_types = ["parallel"]}
      ins(%x : tensor<?xi32, #quern.dims<d0>>) outs(%o, %b : tensor<?xi32, #quern.dims<d0>>, tensor<?xi1, #quern.dims<d0>>) {
  ^bb0(%a: i32, %d: i32, %e: i1):
    %t = arith.addi %a, %k : i32
    %m = arith.muli %t, %a : i32
    %u = arith.cmpi ult, %a, %k : i32
    linalg.yield %m, %u : i32, i1
  } -> (tensor<?xi32, #quern.dims<d0>>, tensor<?xi1, #quern.dims<d0>>)
  kernel.yield %1#0, %1#1 : tensor<?xi32, #quern.dims<d0>>, tensor<?xi1, #quern.dims<d0>>
})");
  std::vector<int32_t> x = {0, 1, -1, INT32_MIN, INT32_MAX, 7};
  auto outs = run({Buffer::of(x)}, {x.size() * 4, x.size()}, {int64_t(x.size())});
  ASSERT_EQ(outs.size(), 2u);
  for (size_t i = 0; i < x.size(); ++i) {
    uint32_t a = x[i];
    EXPECT_EQ(uint32_t(outs[0].as<int32_t>()[i]), (a + 0x80000000u) * a);
    EXPECT_EQ(outs[1].as<char>()[i], a < 0x80000000u);
  }
  for (const CubinKernel &kernel : cubins())
    EXPECT_FALSE(kernel.spills());
}

TEST_F(KernelTest, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(compile(R"(
kernel.func @k kind "pointwise" {
^bb0(%x: tensor<?xf32>, %o: tensor<?xf32>):
  kernel.yield %x : tensor<?xf32>
})"),
            "");
  EXPECT_EQ(message, "invalid: argument 0 of kernel @k has a size without a name\n");
  context.allowUnregisteredDialects();
  EXPECT_EQ(compile(R"(
kernel.func @k kind "generic" {
^bb0(%x: tensor<4xf32>, %o: tensor<4xf32>):
  %1 = "some.op"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  kernel.yield %1 : tensor<4xf32>
})"),
            "");
  EXPECT_EQ(message, "unsupported: CUDA kernels do not take 'some.op'\n");
}

} // namespace
