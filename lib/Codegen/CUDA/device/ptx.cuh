//===- ptx.cuh - What needs PTX -----------------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Small functions around PTX. The emulator's Emulate.h has the same names as
// plain C++.
//
//===----------------------------------------------------------------------===//
#pragma once

namespace quern {

struct alignas(2) f16 {
  unsigned short bits;
};

__device__ __forceinline__ float toFloat(f16 value) {
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));
  return result;
}

__device__ __forceinline__ f16 toF16(float value) {
  f16 result;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
  return result;
}

struct alignas(2) bf16 {
  unsigned short bits;
};

__device__ __forceinline__ float toFloat(bf16 value) {
  return __uint_as_float(static_cast<unsigned>(value.bits) << 16);
}

__device__ __forceinline__ bf16 toBf16(float value) {
  bf16 result;
#if __CUDA_ARCH__ >= 800
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
#else
  const unsigned bits = __float_as_uint(value);
  result.bits = value != value ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
#endif
  return result;
}

} // namespace quern

#define QUERN_DYNAMIC_SHARED(type, name)                                                           \
  extern __shared__ __align__(16) unsigned char quernDynamicShared[];                              \
  type *const name = reinterpret_cast<type *>(quernDynamicShared)
