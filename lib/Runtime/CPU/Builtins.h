//===- Builtins.h - Conversions between float formats -----------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_LIB_RUNTIME_CPU_BUILTINS_H
#define QUERN_LIB_RUNTIME_CPU_BUILTINS_H

#include "quern-c/Builtins.h"

#include <stdint.h>
#include <string.h>

namespace quern::rt {

template <typename To, typename From> To bitsOf(From value) {
  static_assert(sizeof(To) == sizeof(From));
  To bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

/// Rounds an f64 to a 16-bit float of `exponent` exponent bits, to nearest, ties to
/// even, once. NaN stays NaN (quiet), overflow is infinity.
template <int exponent> uint16_t narrow(double value) {
  constexpr int mantissa = 15 - exponent, bias = (1 << (exponent - 1)) - 1;
  constexpr uint16_t infinity = uint16_t(((1 << exponent) - 1) << mantissa);
  uint64_t bits = bitsOf<uint64_t>(value);
  uint16_t sign = uint16_t(bits >> 48 & 0x8000);
  bits &= ~uint64_t(0) >> 1;
  if (bits > uint64_t(0x7ff) << 52)
    return uint16_t(sign | infinity | 1 << (mantissa - 1));
  int e = int(bits >> 52) - 1023 + bias;
  // What is left of the 53-bit significand; subnormal results keep fewer bits of it.
  int drop = 52 - mantissa;
  uint64_t significand = (bits & ((uint64_t(1) << 52) - 1)) | uint64_t(bits >> 52 ? 1 : 0) << 52;
  if (e <= 0) {
    drop += 1 - e;
    e = 1;
    if (drop > 54)
      return sign;
  }
  uint64_t kept = significand >> drop, rest = significand & ((uint64_t(1) << drop) - 1);
  uint64_t half = uint64_t(1) << (drop - 1);
  if (rest > half || (rest == half && (kept & 1)))
    ++kept;
  // The leading one adds itself to the exponent field; so does a carry out of the rounding.
  uint64_t result = (uint64_t(e - 1) << mantissa) + kept;
  return uint16_t(sign | (e > 0 && result < infinity ? result : infinity));
}

} // namespace quern::rt

float __extendhfsf2(_Float16 value) {
  using namespace quern::rt;
  uint16_t bits = bitsOf<uint16_t>(value);
  uint32_t sign = uint32_t(bits & 0x8000) << 16, rest = bits & 0x7fff;
  if (rest >= 0x7c00) // infinity and NaN
    return bitsOf<float>(sign | 0x7f800000 | (rest & 0x3ff) << 13 | (rest > 0x7c00 ? 0x400000 : 0));
  if (rest >= 0x400)
    return bitsOf<float>(sign | ((rest << 13) + (uint32_t(127 - 15) << 23)));
  // A subnormal: its integer value times 2^-24, which f32 holds exactly.
  return bitsOf<float>(sign | bitsOf<uint32_t>(float(rest) * 5.9604644775390625e-8f));
}
_Float16 __truncdfhf2(double value) {
  return quern::rt::bitsOf<_Float16>(quern::rt::narrow<5>(value));
}
_Float16 __truncsfhf2(float value) { return __truncdfhf2(double(value)); }
_Float16 __truncdfbf2(double value) {
  return quern::rt::bitsOf<_Float16>(quern::rt::narrow<8>(value));
}
_Float16 __truncsfbf2(float value) { return __truncdfbf2(double(value)); }

#endif // QUERN_LIB_RUNTIME_CPU_BUILTINS_H
