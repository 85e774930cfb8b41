//===- MathTest.cpp - Accuracy of the vector functions --------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "KernelTest.h"
#include "llvm/ADT/bit.h"

using namespace quern;
using namespace quern::test;

namespace {

using Function = double (*)(double);

class MathTest : public KernelTest {
protected:
  static std::string text(llvm::StringRef op, llvm::StringRef type) {
    return llvm::formatv(R"(
#id = affine_map<(i) -> (i)>
kernel.func @k kind "pointwise" {{
^bb0(%x: tensor<?x{1}, #quern.dims<d0>>, %o: tensor<?x{1}, #quern.dims<d0>>):
  %1 = linalg.generic {{indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<?x{1}, #quern.dims<d0>>) outs(%o : tensor<?x{1}, #quern.dims<d0>>) {{
  ^bb0(%a: {1}, %d: {1}):
    %r = {0} %a : {1}
    linalg.yield %r : {1} } -> tensor<?x{1}, #quern.dims<d0>>
  kernel.yield %1 : tensor<?x{1}, #quern.dims<d0>>
})",
                         op, type);
  }

  /// Distance from the exact value in units of the last place of the nearest float.
  static double ulps(float got, double want) {
    float nearest = float(want);
    if (std::isnan(want) || std::isinf(nearest))
      return std::isnan(want) ? (std::isnan(got) ? 0 : INFINITY) : got == nearest ? 0 : INFINITY;
    double ulp =
        std::max(std::ldexp(1.0, std::ilogb(nearest == 0 ? 0x1p-149 : nearest) - 23), 0x1p-149);
    return std::abs(got - want) / ulp;
  }

  /// The worst error over every `step`-th float there is, NaN, infinities and
  /// subnormals among them.
  void sweep(llvm::StringRef op, Function exact, double limit,
             std::optional<MachineModel> machine = std::nullopt, uint32_t step = 4099) {
    CompiledKernel k = compile(text(op, "f32"), {}, machine);
    ASSERT_TRUE(bool(k));
    std::vector<float> x;
    for (uint64_t bits = 0; bits < uint64_t(1) << 32; bits += step)
      x.push_back(llvm::bit_cast<float>(uint32_t(bits)));
    for (float special : {0.f, -0.f, 1.f, -1.f, INFINITY, -INFINITY, NAN, 0x1p-149f, -0x1p-149f,
                          0x1.fffffep127f, 88.72284f, -103.97f, 0.625f, 0.92f, 3.93f})
      x.push_back(special);
    std::vector<float> o(x.size());
    k({x.data(), o.data()}, {int64_t(x.size())});
    double worst = 0;
    float at = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      double error = ulps(o[i], exact(x[i]));
      if (error > worst)
        worst = error, at = x[i];
    }
    EXPECT_LE(worst, limit) << op.str() << " of " << at << " gives "
                            << o[std::find(x.begin(), x.end(), at) - x.begin()] << ", not "
                            << exact(at);
    RecordProperty(("ulp of " + op).str(), std::to_string(worst));
  }
  void sweepAll(llvm::StringRef op, Function exact, double limit) {
    {
      SCOPED_TRACE("this machine");
      sweep(op, exact, limit);
    }
    for (const MachineModel &machine : otherMachines()) {
      SCOPED_TRACE(machine.str());
      sweep(op, exact, limit, machine);
    }
  }
};

TEST_F(MathTest, Exp) {
  sweepAll("math.exp", [](double x) { return std::exp(x); }, 2);
}
TEST_F(MathTest, Erf) {
  sweepAll("math.erf", [](double x) { return std::erf(x); }, 2);
}
TEST_F(MathTest, Tanh) {
  sweepAll("math.tanh", [](double x) { return std::tanh(x); }, 2);
}
TEST_F(MathTest, Log) {
  sweepAll("math.log", [](double x) { return std::log(x); }, 2);
}

// Others are libm's, in full.
TEST_F(MathTest, FromLibm) {
  sweep("math.log1p", [](double x) { return std::log1p(x); }, 2, std::nullopt, 65537);
  sweep("math.sin", [](double x) { return std::sin(x); }, 2, std::nullopt, 65537);
}

TEST_F(MathTest, DoublePrecision) {
  std::pair<const char *, Function> functions[] = {
      {"math.exp", [](double x) { return std::exp(x); }},
      {"math.erf", [](double x) { return std::erf(x); }},
      {"math.tanh", [](double x) { return std::tanh(x); }}};
  for (auto [op, exact] : functions) {
    CompiledKernel k = compile(text(op, "f64"));
    ASSERT_TRUE(bool(k));
    std::vector<double> x;
    for (int i = -1000; i <= 1000; ++i)
      x.push_back(i * 0.0137);
    x.insert(x.end(), {INFINITY, -INFINITY, 0.0, -0.0, 1e-310, 700, -740});
    std::vector<double> o(x.size());
    k({x.data(), o.data()}, {int64_t(x.size())});
    for (size_t i = 0; i < x.size(); ++i)
      if (std::isinf(exact(x[i])))
        EXPECT_EQ(o[i], exact(x[i]));
      else
        EXPECT_NEAR(o[i], exact(x[i]), 1e-15 * std::abs(exact(x[i]))) << op << " of " << x[i];
  }
}

// What is strict is libm, bit for bit.
TEST_F(MathTest, StrictIsLibm) {
  ScheduleOptions strict;
  strict.strict = true;
  CompiledKernel k = compile(text("math.exp", "f32"), strict);
  ASSERT_TRUE(bool(k));
  std::vector<float> x = randomFloats(1000, -90, 90), o(1000);
  k({x.data(), o.data()}, {1000});
  for (int i = 0; i < 1000; ++i)
    EXPECT_EQ(o[i], std::exp(x[i]));
}

} // namespace
