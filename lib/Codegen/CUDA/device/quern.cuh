//===- quern.cuh - Included by every kernel text --------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// NVRTC gets this file and ptx.cuh from memory; the emulator compiles it as host
// C++. Nothing else is included: NVRTC has no include path.
//
//===----------------------------------------------------------------------===//
#pragma once
#ifdef __CUDACC_RTC__
#include "ptx.cuh"
#else
#include "Emulate.h"
#endif

namespace quern {

inline constexpr unsigned fullWarp = 0xffffffffu;

//===----------------------------------------------------------------------===//
// Vectors
//===----------------------------------------------------------------------===//

/// N elements that are read and written by one access.
template <class T, int N> struct alignas(sizeof(T) * N) vec {
  T values[N];
  __device__ __forceinline__ T &operator[](int i) { return values[i]; }
  __device__ __forceinline__ const T &operator[](int i) const { return values[i]; }
};

template <int N, class T> __device__ __forceinline__ vec<T, N> splat(T value) {
  vec<T, N> result;
#pragma unroll
  for (int i = 0; i < N; ++i)
    result[i] = value;
  return result;
}

template <class V> __device__ __forceinline__ bool isAligned(const void *p) {
  return reinterpret_cast<size_t>(p) % sizeof(V) == 0;
}

/// The first min(N, left) elements at p, zeros after them: one access where all N
/// exist and p is aligned.
template <int N, class T> __device__ __forceinline__ vec<T, N> load(const T *p, long long left) {
  vec<T, N> result;
  if (left >= N && isAligned<vec<T, N>>(p)) {
    result = loadWhole(reinterpret_cast<const vec<T, N> *>(p));
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i)
      result[i] = i < left ? p[i] : T{};
  }
  return result;
}

/// Writes the first min(N, left) elements.
template <int N, class T>
__device__ __forceinline__ void store(T *p, const vec<T, N> &value, long long left) {
  if (left >= N && isAligned<vec<T, N>>(p)) {
    storeWhole(reinterpret_cast<vec<T, N> *>(p), value);
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i)
      if (i < left)
        p[i] = value[i];
  }
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

template <class T> struct Unsigned;
template <> struct Unsigned<bool> { using type = unsigned char; };
template <> struct Unsigned<signed char> { using type = unsigned char; };
template <> struct Unsigned<short> { using type = unsigned short; };
template <> struct Unsigned<int> { using type = unsigned; };
template <> struct Unsigned<long long> { using type = unsigned long long; };

/// The bits as an unsigned number.
template <class T> __device__ __forceinline__ typename Unsigned<T>::type toUnsigned(T value) {
  return static_cast<typename Unsigned<T>::type>(value);
}

/// Sums that wrap: signed overflow is undefined.
template <class T> __device__ __forceinline__ T wrapAdd(T a, T b) {
  return static_cast<T>(static_cast<unsigned long long>(a) + static_cast<unsigned long long>(b));
}
template <class T> __device__ __forceinline__ T wrapSub(T a, T b) {
  return static_cast<T>(static_cast<unsigned long long>(a) - static_cast<unsigned long long>(b));
}
template <class T> __device__ __forceinline__ T wrapMul(T a, T b) {
  return static_cast<T>(static_cast<unsigned long long>(a) * static_cast<unsigned long long>(b));
}

/// To the nearest f32 towards zero, its last bit set when inexact: rounding that once
/// more to 16 bits is as rounding the double directly.
__device__ __forceinline__ float roundToOdd(double value) {
  float result = static_cast<float>(value);
  if (result != value && value == value) {
    unsigned bits = __float_as_uint(result);
    if (fabs(static_cast<double>(result)) > fabs(value))
      --bits;
    result = __uint_as_float(bits | 1u);
  }
  return result;
}
__device__ __forceinline__ f16 toF16(double value) { return toF16(roundToOdd(value)); }
__device__ __forceinline__ bf16 toBf16(double value) { return toBf16(roundToOdd(value)); }

/// Truncates towards zero; saturates; NaN gives 0.
template <class To, class From> __device__ __forceinline__ To toSigned(From value) {
  constexpr To largest =
      static_cast<To>(~0ull >> (65 - 8 * sizeof(To))), least = static_cast<To>(-largest - 1);
  if (!(value == value))
    return 0;
  if (value <= static_cast<From>(least))
    return least;
  if (value >= static_cast<From>(largest))
    return largest;
  return static_cast<To>(value);
}
/// The same for an unsigned number, whose bits are given.
template <class To, class From> __device__ __forceinline__ To toUnsignedBits(From value) {
  constexpr unsigned long long largest = ~0ull >> (64 - 8 * sizeof(To));
  if (!(value > 0))
    return 0;
  if (value >= static_cast<From>(largest))
    return static_cast<To>(largest);
  return static_cast<To>(static_cast<unsigned long long>(value));
}

/// Quotients rounded down and up.
template <class T> __device__ __forceinline__ T floorDiv(T a, T b) {
  const T quotient = a / b;
  return quotient * b != a && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}
template <class T> __device__ __forceinline__ T ceilDiv(T a, T b) {
  const T quotient = a / b;
  return quotient * b != a && (a < 0) == (b < 0) ? quotient + 1 : quotient;
}

template <class T> __device__ __forceinline__ T magnitude(T a) { return a < 0 ? wrapSub(T(0), a) : a; }

/// The larger; NaN when one is NaN; 0 above -0.
template <class T> __device__ __forceinline__ T maximum(T a, T b) {
  if (a == b)
    return copysign(T(1), a) > 0 ? a : b;
  return a > b || !(a == a) ? a : b;
}
template <class T> __device__ __forceinline__ T minimum(T a, T b) {
  if (a == b)
    return copysign(T(1), a) > 0 ? b : a;
  return a < b || !(a == a) ? a : b;
}

//===----------------------------------------------------------------------===//
// Reductions over a part of a warp and over a block
//===----------------------------------------------------------------------===//

struct Add {
  template <class T> __device__ __forceinline__ static T apply(T a, T b) { return a + b; }
  __device__ __forceinline__ static int apply(int a, int b) { return wrapAdd(a, b); }
  __device__ __forceinline__ static long long apply(long long a, long long b) { return wrapAdd(a, b); }
};
struct Mul {
  template <class T> __device__ __forceinline__ static T apply(T a, T b) { return a * b; }
  __device__ __forceinline__ static int apply(int a, int b) { return wrapMul(a, b); }
  __device__ __forceinline__ static long long apply(long long a, long long b) { return wrapMul(a, b); }
};
struct Maximum {
  template <class T> __device__ __forceinline__ static T apply(T a, T b) { return maximum(a, b); }
};
struct Minimum {
  template <class T> __device__ __forceinline__ static T apply(T a, T b) { return minimum(a, b); }
};
/// The larger; the other one when one is NaN.
struct MaxNum {
  __device__ __forceinline__ static float apply(float a, float b) { return fmaxf(a, b); }
  __device__ __forceinline__ static double apply(double a, double b) { return fmax(a, b); }
};
struct MinNum {
  __device__ __forceinline__ static float apply(float a, float b) { return fminf(a, b); }
  __device__ __forceinline__ static double apply(double a, double b) { return fmin(a, b); }
};
struct MaxSigned {
  template <class T> __device__ __forceinline__ static T apply(T a, T b) { return a > b ? a : b; }
};
struct MinSigned {
  template <class T> __device__ __forceinline__ static T apply(T a, T b) { return a < b ? a : b; }
};
struct MaxUnsigned {
  template <class T> __device__ __forceinline__ static T apply(T a, T b) {
    return toUnsigned(a) > toUnsigned(b) ? a : b;
  }
};
struct MinUnsigned {
  template <class T> __device__ __forceinline__ static T apply(T a, T b) {
    return toUnsigned(a) < toUnsigned(b) ? a : b;
  }
};
struct And {
  template <class T> __device__ __forceinline__ static T apply(T a, T b) { return a & b; }
};
struct Or {
  template <class T> __device__ __forceinline__ static T apply(T a, T b) { return a | b; }
};
struct Xor {
  template <class T> __device__ __forceinline__ static T apply(T a, T b) { return a ^ b; }
};

template <class T>
__device__ __forceinline__ T shuffleXor(T value, int lanes, unsigned mask = fullWarp) {
  if constexpr (sizeof(T) < 4)
    return static_cast<T>(__shfl_xor_sync(mask, static_cast<int>(value), lanes));
  else
    return __shfl_xor_sync(mask, value, lanes);
}

/// The lanes of this thread's team: Threads consecutive threads of a warp, a power of two.
template <int Threads> __device__ __forceinline__ unsigned teamMask() {
  if constexpr (Threads == 32)
    return fullWarp;
  else
    return ((1u << Threads) - 1) << (threadIdx.x % 32 / Threads * Threads);
}

/// Over the team, the same in every thread: partial results are joined pairwise, those half a
/// team apart first. All threads of the team take part; those of other teams need not.
template <class Combine, int Threads, class T> __device__ __forceinline__ T teamReduce(T value) {
  const unsigned mask = teamMask<Threads>();
#pragma unroll
  for (int lanes = Threads / 2; lanes > 0; lanes /= 2)
    value = Combine::apply(value, shuffleXor(value, lanes, mask));
  return value;
}
template <class Combine, int Threads, class T, int N>
__device__ __forceinline__ vec<T, N> teamReduce(vec<T, N> values) {
#pragma unroll
  for (int i = 0; i < N; ++i)
    values[i] = teamReduce<Combine, Threads>(values[i]);
  return values;
}

/// Over the whole warp.
template <class Combine, class T> __device__ __forceinline__ T warpReduce(T value) {
  return teamReduce<Combine, 32>(value);
}

/// Over the block, the same in every thread, in a fixed order.
template <class Combine, class T, int Warps>
__device__ __forceinline__ T blockReduce(T value, T (&scratch)[Warps]) {
  value = warpReduce<Combine>(value);
  if (threadIdx.x % 32 == 0)
    scratch[threadIdx.x / 32] = value;
  __syncthreads();
  value = scratch[0];
#pragma unroll
  for (int warp = 1; warp < Warps; ++warp)
    value = Combine::apply(value, scratch[warp]);
  __syncthreads(); // scratch may be written again
  return value;
}

} // namespace quern
