//===- PointwiseTest.cpp - Pointwise kernels against C++ ------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "KernelTest.h"

using namespace quern;
using namespace quern::test;

namespace {

using PointwiseTest = KernelTest;

TEST_F(PointwiseTest, FlatAtEverySize) {
  const char *text = R"(
#id = affine_map<(r, c) -> (r, c)>
kernel.func @k kind "pointwise" share [0, 0] {
^bb0(%x: tensor<?x?xf32, #quern.dims<d0, d1>>, %y: tensor<?x?xf32, #quern.dims<d0, d1>>,
     %o: tensor<?x?xf32, #quern.dims<d0, d1>>):
  %k = arith.constant 1.25 : f32
  %1 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %y : tensor<?x?xf32, #quern.dims<d0, d1>>, tensor<?x?xf32, #quern.dims<d0, d1>>)
      outs(%o : tensor<?x?xf32, #quern.dims<d0, d1>>) {
  ^bb0(%a: f32, %b: f32, %d: f32):
    %t = arith.mulf %a, %k : f32
    %u = arith.addf %t, %b : f32
    linalg.yield %u : f32 } -> tensor<?x?xf32, #quern.dims<d0, d1>>
  %2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%1, %x : tensor<?x?xf32, #quern.dims<d0, d1>>, tensor<?x?xf32, #quern.dims<d0, d1>>)
      outs(%o : tensor<?x?xf32, #quern.dims<d0, d1>>) {
  ^bb0(%a: f32, %b: f32, %d: f32):
    %w = arith.subf %a, %b : f32
    linalg.yield %w : f32 } -> tensor<?x?xf32, #quern.dims<d0, d1>>
  kernel.yield %2 : tensor<?x?xf32, #quern.dims<d0, d1>>
})";
  std::vector<CompiledKernel> kernels;
  kernels.push_back(compile(text));
  ScheduleOptions reference;
  reference.reference = true;
  kernels.push_back(compile(text, reference));
  for (const MachineModel &machine : otherMachines())
    kernels.push_back(compile(text, {}, machine));
  for (CompiledKernel &k : kernels) {
    ASSERT_TRUE(bool(k));
    for (int64_t r : {0, 1, 3})
      for (int64_t c : oddSizes())
        for (bool inPlace : {false, true}) {
          std::vector<float> x = randomFloats(r * c), y = randomFloats(r * c, -1, 1, 2), in = x;
          std::vector<float> o(r * c + 8, 77.f);
          if (r * c)
            x[r * c / 2] = NAN, in = x;
          void *out = inPlace ? x.data() : o.data();
          k({x.data(), y.data(), out}, {r, c}, inPlace ? 1 : 0);
          for (int64_t i = 0; i < r * c; ++i) {
            float want = in[i] * 1.25f + y[i] - in[i], got = static_cast<float *>(out)[i];
            if (std::isnan(want))
              EXPECT_TRUE(std::isnan(got));
            else
              ASSERT_NEAR(got, want, 1e-5) << i << " of " << r << " x " << c;
          }
          for (int64_t i = r * c; i < r * c + 8; ++i)
            ASSERT_EQ(o[i], 77.f) << "written behind the end";
        }
  }
}

// Results that no cache would hold are stored past them, where they are aligned; also in the
// smallest pieces, and with a rest.
TEST_F(PointwiseTest, LargeResultsAreStreamed) {
  const char *text = R"(
#id = affine_map<(i) -> (i)>
!t = tensor<20011xf32>
kernel.func @k kind "pointwise" share [0, 0] {
^bb0(%x: !t, %o: !t):
  %k = arith.constant 1.25 : f32
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : !t) outs(%o : !t) {
  ^bb0(%a: f32, %d: f32):
    %t = arith.mulf %a, %k : f32
    linalg.yield %t : f32 } -> !t
  kernel.yield %1 : !t
})";
  constexpr int64_t n = 20011;
  MachineModel machine = MachineModel::get(target);
  EXPECT_EQ(compile(text).ir.find("nontemporal"), std::string::npos) << "it is small";
  machine.l3Bytes = n * 4;
  CompiledKernel k = compile(text, {}, machine);
  ASSERT_TRUE(bool(k));
  if (!machine.avx)
    GTEST_SKIP() << "this CPU has no AVX";
  EXPECT_NE(k.ir.find("nontemporal"), std::string::npos);
  machine.l3Bytes = n * 4 + 4;
  EXPECT_EQ(compile(text, {}, machine).ir.find("nontemporal"), std::string::npos);
  std::vector<float> x = randomFloats(n), o(n + 64);
  float *aligned = o.data();
  while (reinterpret_cast<uintptr_t>(aligned) % 64)
    ++aligned;
  for (float *out : {aligned, aligned + 1, aligned + 4, aligned + 8}) {
    std::fill(o.begin(), o.end(), 77.f);
    k({x.data(), out}, {}, 1);
    for (int64_t i = 0; i < n; ++i)
      ASSERT_EQ(out[i], x[i] * 1.25f) << i;
    ASSERT_EQ(out[n], 77.f) << "written behind the end";
  }
  std::copy(x.begin(), x.end(), aligned);
  k({aligned, aligned}, {}, 1); // in place
  for (int64_t i = 0; i < n; ++i)
    ASSERT_EQ(aligned[i], x[i] * 1.25f) << i;
}

} // namespace
