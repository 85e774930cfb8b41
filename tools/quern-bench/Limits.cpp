//===- Limits.cpp - What this machine can do at most ----------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Limits.h"
#include <time.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace quern::bench {

bool wallClock = false;

double now() {
  timespec t;
  clock_gettime(wallClock ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

static volatile float sink;

// Each variant is a burst of `steps` rounds over enough accumulators to hide the latency of an
// FMA (4 cycles, two a cycle, with some to spare), and a copy of four vectors a round. They are
// written out for each instruction set because a target attribute is not inherited by a template.
#define QUERN_VARIANT(suffix, target, vector, lanes, accumulators, fma, splat)                     \
  target static double burst##suffix(int64_t steps) {                                              \
    vector sums[accumulators];                                                                     \
    for (int i = 0; i < accumulators; ++i)                                                         \
      sums[i] = splat(1e-3f * i);                                                                  \
    vector x = splat(0.999f), y = splat(1e-3f);                                                    \
    for (int64_t k = 0; k < steps; ++k) {                                                          \
      _Pragma("GCC unroll 32") for (int i = 0; i < accumulators; ++i) sums[i] =                    \
          fma(sums[i], x, y);                                                                      \
    }                                                                                              \
    vector total = sums[0];                                                                        \
    for (int i = 1; i < accumulators; ++i)                                                         \
      total = total + sums[i];                                                                     \
    sink = total[0];                                                                               \
    return 2.0 * lanes * accumulators * double(steps);                                             \
  }                                                                                                \
  target static void copy##suffix(void *to, const void *from, int64_t bytes) {                     \
    auto *out = static_cast<vector *>(to);                                                         \
    auto *in = static_cast<const vector *>(from);                                                  \
    for (int64_t i = 0, n = bytes / int64_t(sizeof(vector)); i < n; i += 4) {                      \
      vector a = in[i], b = in[i + 1], c = in[i + 2], d = in[i + 3];                               \
      out[i] = a;                                                                                  \
      out[i + 1] = b;                                                                              \
      out[i + 2] = c;                                                                              \
      out[i + 3] = d;                                                                              \
    }                                                                                              \
  }

typedef float Vector4 __attribute__((vector_size(16)));
static inline Vector4 splat4(float x) { return Vector4{x, x, x, x}; }
static inline Vector4 multiplyAdd4(Vector4 a, Vector4 x, Vector4 y) { return a * x + y; }
QUERN_VARIANT(128, , Vector4, 4, 12, multiplyAdd4, splat4)
#if defined(__x86_64__)
QUERN_VARIANT(256, __attribute__((target("avx2,fma"))), __m256, 8, 12, _mm256_fmadd_ps,
              _mm256_set1_ps)
QUERN_VARIANT(512, __attribute__((target("avx512f"))), __m512, 16, 24, _mm512_fmadd_ps,
              _mm512_set1_ps)
#endif

namespace {
struct Variant {
  double (*burst)(int64_t steps);
  void (*copy)(void *to, const void *from, int64_t bytes);
};
} // namespace

static Variant widest() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f"))
    return {burst512, copy512};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return {burst256, copy256};
#endif
  return {burst128, copy128};
}

double fmaBurst() {
  static const Variant variant = widest();
  double start = now();
  double flops = variant.burst(200000);
  return flops / (now() - start);
}

void plainCopy(void *to, const void *from, int64_t bytes) {
  static const Variant variant = widest();
  variant.copy(to, from, bytes);
}

} // namespace quern::bench
