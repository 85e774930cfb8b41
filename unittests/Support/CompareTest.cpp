//===- CompareTest.cpp ----------------------------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Support/Compare.h"
#include "quern/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace quern;

static HostTensor f32(llvm::ArrayRef<double> values) {
  return HostTensor::fromValues(DType::F32, {int64_t(values.size())}, values);
}

TEST(Compare, Table) {
  EXPECT_EQ(getTolerance(DType::F32, Rounding::Exact).rtol, 0);
  EXPECT_EQ(getTolerance(DType::F32, Rounding::Pointwise).rtol, 1e-6);
  EXPECT_EQ(getTolerance(DType::F32, Rounding::Accumulating, 4).atol, 1e-6);
  EXPECT_EQ(getTolerance(DType::F32, Rounding::Accumulating, 4, true).atol, 4e-6);
  EXPECT_EQ(getTolerance(DType::F64, Rounding::Accumulating, 100).rtol, 1e-13);
  EXPECT_EQ(getTolerance(DType::F16, Rounding::Accumulating, 100).rtol, 1e-3 + 1e-5);
  EXPECT_EQ(getTolerance(DType::BF16, Rounding::Pointwise, 1, true).rtol, 8e-3);
  EXPECT_EQ(getTolerance(DType::I32, Rounding::Pointwise).rtol, 0);
  EXPECT_EQ(getTolerance(DType::F32, Rounding::Exact, 1, false, 0.5).floor, 4);
  EXPECT_EQ(getTolerance(DType::F16, Rounding::Exact, 1, false, INFINITY).floor, 0);
}

TEST(Compare, DtypeAndShape) {
  Comparison c = compare(f32({1, 2}), HostTensor(DType::F64, {2}), {});
  EXPECT_FALSE(c.ok);
  EXPECT_EQ(c.message, "got f32[2], expected f64[2]");
  EXPECT_FALSE(compare(f32({1, 2}), f32({1, 2}).reshape({2, 1}), {}).ok);
  EXPECT_TRUE(compare(HostTensor(DType::F32, {0}), HostTensor(DType::F32, {0}), {}).ok);
}

TEST(Compare, Numbers) {
  Tolerance loose;
  loose.rtol = 0.1;
  loose.atol = 0.01;
  EXPECT_TRUE(compare(f32({1.1, 0.01}), f32({1, 0}), loose).ok);
  Comparison c = compare(f32({1, 5, 2.5, 0}), f32({1, 2, 2, 0}).reshape({4}), loose);
  EXPECT_FALSE(c.ok);
  EXPECT_EQ(c.where, 1);
  EXPECT_EQ(c.maxError, 3);
  EXPECT_EQ(c.message, "element [1]: got 5, expected 2, allowed error 0.21");
  // The error reported is the worst one that is not allowed, not the largest.
  c = compare(f32({1005, 0.5}), f32({1000, 0}), loose);
  EXPECT_EQ(c.where, 1);
  EXPECT_EQ(c.maxError, 5);
}

TEST(Compare, SpecialValues) {
  Tolerance loose;
  loose.rtol = loose.atol = 1;
  EXPECT_TRUE(compare(f32({NAN, INFINITY, -INFINITY, -0.0}), f32({NAN, INFINITY, -INFINITY, 0}),
                      Tolerance())
                  .ok);
  EXPECT_FALSE(compare(f32({NAN}), f32({1}), loose).ok);
  EXPECT_FALSE(compare(f32({1}), f32({NAN}), loose).ok);
  EXPECT_FALSE(compare(f32({INFINITY}), f32({-INFINITY}), loose).ok);
  EXPECT_FALSE(compare(f32({1e30}), f32({INFINITY}), loose).ok);
  Comparison c = compare(f32({0, INFINITY}), f32({0, 1}), loose);
  EXPECT_FALSE(c.ok);
  EXPECT_EQ(c.where, 1);
}

TEST(Compare, ScaleFloorAndMaxRel) {
  Tolerance scaled;
  scaled.atol = 0.01;
  EXPECT_FALSE(compare(f32({0.5, 100}), f32({0, 100}), scaled).ok);
  scaled.scaleByMax = true;
  EXPECT_TRUE(compare(f32({0.5, 100}), f32({0, 100}), scaled).ok);
  EXPECT_FALSE(compare(f32({0.02, 0.5}), f32({0, 0.5}), scaled).ok);
  Tolerance floor;
  floor.floor = 0.1;
  EXPECT_TRUE(compare(f32({0.09, 10.9}), f32({0, 10}), floor).ok);
  EXPECT_FALSE(compare(f32({0.2}), f32({0}), floor).ok);
  Tolerance whole;
  whole.maxRel = 0.01;
  EXPECT_TRUE(compare(f32({0.9, 100}), f32({0, 100}), whole).ok);
  EXPECT_FALSE(compare(f32({1.1, 100}), f32({0, 100}), whole).ok);
}

TEST(Compare, IntegersAreExact) {
  HostTensor a(DType::I64, {2, 2}), b(DType::I64, {2, 2});
  a.setInt(3, (int64_t(1) << 60) + 1);
  b.setInt(3, int64_t(1) << 60);
  Comparison c = compare(a, b, getTolerance(DType::F32, Rounding::Pointwise));
  EXPECT_FALSE(c.ok);
  EXPECT_EQ(c.message, "element [1, 1]: got 1152921504606846977, expected 1152921504606846976");
  EXPECT_GT(c.maxError, 0);
  EXPECT_TRUE(compare(b, b, {}).ok);
}

TEST(Compare, OnnxTolerance) {
  Tolerance standard = llvm::cantFail(readOnnxTolerance("/nowhere/data.json"));
  EXPECT_EQ(standard.rtol, 1e-3);
  EXPECT_EQ(standard.atol, 1e-7);
  EXPECT_FALSE(standard.maxRel);
  llvm::SmallString<64> path;
  int fd;
  ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("data", "json", fd, path));
  {
    llvm::raw_fd_ostream os(fd, /*shouldClose=*/true);
    os << R"({"rtol": 0.25, "max_rel": 0.5})";
  }
  Tolerance own = llvm::cantFail(readOnnxTolerance(path));
  EXPECT_EQ(own.rtol, 0.25);
  EXPECT_EQ(own.atol, 1e-7);
  EXPECT_EQ(own.maxRel, 0.5);
  llvm::sys::fs::remove(path);
}
