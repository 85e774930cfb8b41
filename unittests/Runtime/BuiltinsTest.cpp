//===- BuiltinsTest.cpp - Conversions between float formats ---------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern-c/Builtins.h"

#include "gtest/gtest.h"
#include <cmath>
#include <cstring>

namespace {

uint16_t bits(_Float16 value) {
  uint16_t b;
  memcpy(&b, &value, 2);
  return b;
}
_Float16 half(uint16_t b) {
  _Float16 value;
  memcpy(&value, &b, 2);
  return value;
}
// The value of a 16-bit float by its definition.
double valueOf(uint16_t b, int exponentBits) {
  int mantissa = 15 - exponentBits, bias = (1 << (exponentBits - 1)) - 1;
  int e = (b & 0x7fff) >> mantissa, m = b & ((1 << mantissa) - 1);
  double magnitude =
      e ? std::ldexp((1 << mantissa) + m, e - bias - mantissa) : std::ldexp(m, 1 - bias - mantissa);
  return b & 0x8000 ? -magnitude : magnitude;
}

TEST(Builtins, EveryHalfComesBack) {
  for (uint32_t b = 0; b < 0x10000; ++b) {
    float wide = __extendhfsf2(half(uint16_t(b)));
    if ((b & 0x7fff) > 0x7c00) {
      EXPECT_TRUE(std::isnan(wide));
      EXPECT_EQ(bits(__truncsfhf2(wide)) & 0x7e00, 0x7e00);
      continue;
    }
    ASSERT_EQ(bits(__truncsfhf2(wide)), b);
    ASSERT_EQ(bits(__truncdfhf2(wide)), b);
    if ((b & 0x7fff) < 0x7c00)
      ASSERT_EQ(double(wide), valueOf(uint16_t(b), 5));
  }
}

// Between every two neighbours: just below the middle, the middle (to even), just above.
template <typename F> void rounds(F narrow, int exponentBits) {
  uint16_t infinity = uint16_t(((1 << exponentBits) - 1) << (15 - exponentBits));
  for (uint16_t b = 0; b + 1 < infinity; ++b) {
    double low = valueOf(b, exponentBits), high = valueOf(b + 1, exponentBits);
    double middle = low + (high - low) / 2;
    ASSERT_EQ(narrow(low), b);
    ASSERT_EQ(narrow(std::nextafter(middle, low)), b);
    ASSERT_EQ(narrow(middle), (b & 1) ? b + 1 : b);
    ASSERT_EQ(narrow(std::nextafter(middle, high)), b + 1);
    ASSERT_EQ(narrow(-high), (b + 1) | 0x8000);
  }
  EXPECT_EQ(narrow(INFINITY), infinity);
  EXPECT_EQ(narrow(1e300), infinity);
  EXPECT_EQ(narrow(-1e300), infinity | 0x8000);
  EXPECT_EQ(narrow(5e-324), 0);
  EXPECT_EQ(narrow(-0.0), 0x8000);
  EXPECT_GT(narrow(NAN) & 0x7fff, infinity);
}

TEST(Builtins, HalfRoundsOnce) {
  rounds([](double v) { return bits(__truncdfhf2(v)); }, 5);
}
TEST(Builtins, BFloat16RoundsOnce) {
  rounds([](double v) { return bits(__truncdfbf2(v)); }, 8);
}

} // namespace
