//===- Emulate.h - CUDA's names as host C++ ---------------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What a kernel text sees when it is compiled as host C++: the same text that
/// NVRTC compiles. No system header, so that a unit takes a fraction of a
/// second. `device/ptx.cuh` is its counterpart on the device.
///
//===----------------------------------------------------------------------===//
#pragma once
#include "Interface.h"

using size_t = decltype(sizeof 0);

#define __global__
#define __device__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
// One block runs at a time, so a static is shared memory; a section of its own
// gives it a known address range.
#define __shared__ static __attribute__((section("quern_shared"), used))
#define QUERN_DYNAMIC_SHARED(type, name)                                                           \
  type *const name = static_cast<type *>(quern::emulator::hooks.dynamicShared())
// Reports its accesses itself.
#define QUERN_UNCHECKED __attribute__((no_sanitize("thread"), noinline))

// UnitSupport.cpp has these.
#pragma GCC visibility push(hidden)
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
namespace quern::emulator {
extern Hooks hooks;
extern Unit unit;
} // namespace quern::emulator
#pragma GCC visibility pop

extern "C" { // libm, declared here
float expf(float), exp2f(float), expm1f(float), logf(float), log2f(float), log10f(float),
    log1pf(float);
float erff(float), erfcf(float), tanhf(float), sqrtf(float), cbrtf(float), powf(float, float);
float sinf(float), cosf(float), tanf(float), sinhf(float), coshf(float);
float asinf(float), acosf(float), atanf(float), atan2f(float, float), asinhf(float), acoshf(float),
    atanhf(float);
float fmaf(float, float, float), fmodf(float, float), fmaxf(float, float), fminf(float, float),
    fabsf(float);
float floorf(float), ceilf(float), truncf(float), roundf(float), rintf(float),
    copysignf(float, float);
double exp(double), exp2(double), expm1(double), log(double), log2(double), log10(double),
    log1p(double);
double erf(double), erfc(double), tanh(double), sqrt(double), cbrt(double), pow(double, double);
double sin(double), cos(double), tan(double), sinh(double), cosh(double);
double asin(double), acos(double), atan(double), atan2(double, double), asinh(double),
    acosh(double), atanh(double);
double fma(double, double, double), fmod(double, double), fmax(double, double),
    fmin(double, double), fabs(double);
double floor(double), ceil(double), trunc(double), round(double), rint(double),
    copysign(double, double);
}
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / sqrt(x); }
static inline float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
static inline unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
static inline float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
static inline int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
static inline double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }
static inline long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }

namespace quern::emulator {

template <class T>
T shuffle(Op op, unsigned mask, int line, T value, int argument, int width = 32) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  Operand operand{};
  __builtin_memcpy(&operand.value, &value, sizeof(T));
  operand.argument = argument, operand.width = width;
  hooks.collective(op, mask, line, operand);
  __builtin_memcpy(&value, &operand.result, sizeof(T));
  return value;
}
inline unsigned vote(unsigned mask, int line, bool predicate) {
  Operand operand{};
  operand.value = predicate;
  hooks.collective(Op::Ballot, mask, line, operand);
  return operand.result;
}
inline void syncWarp(int line, unsigned mask = 0xffffffffu) {
  Operand operand{};
  hooks.collective(Op::SyncWarp, mask, line, operand);
}

struct Call { // braced, so that the arguments are read from left to right
  template <class... P> Call(void (*kernel)(P...), P... arguments) { kernel(arguments...); }
};
template <class T> QUERN_UNCHECKED T next(void **&arguments) {
  return *static_cast<T *>(*arguments++);
}
template <class... P> QUERN_UNCHECKED void thunk(void *kernel, void **arguments) {
  Call{reinterpret_cast<void (*)(P...)>(kernel), next<P>(arguments)...};
}
struct Enlist : Kernel {
  template <class... P>
  QUERN_UNCHECKED Enlist(const char *text, const char *name, void (*function)(P...))
      : Kernel{text,        name,         reinterpret_cast<void *>(function),
               thunk<P...>, sizeof...(P), unit.kernels} {
    static_assert(((sizeof(P) == 8) && ...), "kernel parameters are pointers and 64-bit integers");
    unit.kernels = this;
  }
};

} // namespace quern::emulator

#define __syncthreads() quern::emulator::hooks.barrier(quern::emulator::Op::Barrier, __LINE__, 0)
#define __syncthreads_and(p)                                                                       \
  quern::emulator::hooks.barrier(quern::emulator::Op::BarrierAnd, __LINE__, p)
#define __syncthreads_or(p)                                                                        \
  quern::emulator::hooks.barrier(quern::emulator::Op::BarrierOr, __LINE__, p)
#define __syncwarp(...) quern::emulator::syncWarp(__LINE__ __VA_OPT__(, ) __VA_ARGS__)
#define QUERN_SHUFFLE(op, mask, ...)                                                               \
  quern::emulator::shuffle(quern::emulator::Op::op, mask, __LINE__, __VA_ARGS__)
#define __shfl_sync(mask, ...) QUERN_SHUFFLE(Shuffle, mask, __VA_ARGS__)
#define __shfl_up_sync(mask, ...) QUERN_SHUFFLE(ShuffleUp, mask, __VA_ARGS__)
#define __shfl_down_sync(mask, ...) QUERN_SHUFFLE(ShuffleDown, mask, __VA_ARGS__)
#define __shfl_xor_sync(mask, ...) QUERN_SHUFFLE(ShuffleXor, mask, __VA_ARGS__)
#define __ballot_sync(mask, p) quern::emulator::vote(mask, __LINE__, p)
#define __any_sync(mask, p) (__ballot_sync(mask, p) != 0)
#define __all_sync(mask, p) (__ballot_sync(mask, !(p)) == 0)

template <class T> QUERN_UNCHECKED T atomicAdd(T *p, T value) {
  quern::emulator::hooks.access(p, sizeof(T), quern::emulator::Access::Atomic,
                                __builtin_return_address(0));
  const T old = *p;
  *p = old + value;
  return old;
}

namespace quern { // the names of device/ptx.cuh

struct alignas(2) f16 {
  unsigned short bits;
};
inline float toFloat(f16 value) { return __builtin_bit_cast(_Float16, value.bits); }
inline f16 toF16(float value) {
  return {__builtin_bit_cast(unsigned short, static_cast<_Float16>(value))};
}

struct alignas(2) bf16 {
  unsigned short bits;
};
inline float toFloat(bf16 value) {
  return __uint_as_float(static_cast<unsigned>(value.bits) << 16);
}
inline bf16 toBf16(float value) {
  const unsigned bits = __float_as_uint(value);
  return {static_cast<unsigned short>(value != value ? 0x7fff
                                                     : (bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

template <class V> inline void storeWhole(V *p, const V &value) { *p = value; }
template <class V> inline V loadWhole(const V *p) { return *p; }

} // namespace quern
