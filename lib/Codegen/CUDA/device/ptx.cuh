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

/// 16 bytes to global memory. In PTX: the compiler would merge the store with that of an
/// unaligned branch, element by element.
__device__ __forceinline__ void store16(void *p, uint4 word) {
  asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(p)),
               "r"(word.x), "r"(word.y), "r"(word.z), "r"(word.w)
               : "memory");
}

/// One access to global memory of the size of V: 1 to 16 bytes, or twice 16.
template <int Bytes> struct Word { using type = uint4; };
template <> struct Word<8> { using type = uint2; };
template <> struct Word<4> { using type = unsigned; };
template <> struct Word<2> { using type = unsigned short; };
template <> struct Word<1> { using type = unsigned char; };

template <class V> __device__ __forceinline__ void storeWhole(V *p, const V &value) {
  using T = typename Word<sizeof(V)>::type;
#pragma unroll
  for (int i = 0; i < static_cast<int>(sizeof(V) / sizeof(T)); ++i) {
    T word;
    memcpy(&word, reinterpret_cast<const char *>(&value) + i * sizeof(T), sizeof(T));
    if constexpr (sizeof(T) == 16)
      store16(reinterpret_cast<T *>(p) + i, word);
    else
      reinterpret_cast<T *>(p)[i] = word;
  }
}
template <class V> __device__ __forceinline__ V loadWhole(const V *p) {
  using T = typename Word<sizeof(V)>::type;
  V value;
#pragma unroll
  for (int i = 0; i < static_cast<int>(sizeof(V) / sizeof(T)); ++i) {
    const T word = reinterpret_cast<const T *>(p)[i];
    memcpy(reinterpret_cast<char *>(&value) + i * sizeof(T), &word, sizeof(T));
  }
  return value;
}

} // namespace quern

#define QUERN_DYNAMIC_SHARED(type, name)                                                           \
  extern __shared__ __align__(16) unsigned char quernDynamicShared[];                              \
  type *const name = reinterpret_cast<type *>(quernDynamicShared)
