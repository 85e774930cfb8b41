//===- Limits.h - What this machine can do at most --------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The two limits that kernels are measured against, on one thread, timed in the
/// same run as the kernels: machines differ, and the clock moves.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_TOOLS_BENCH_LIMITS_H
#define QUERN_TOOLS_BENCH_LIMITS_H

#include <cstdint>

namespace quern::bench {

/// Whether `now` is the time of the clock on the wall; otherwise the time that this thread
/// was running, so that other programs on the machine do not count.
extern bool wallClock;
/// Seconds since some fixed time.
double now();

/// Fused multiply-adds on independent accumulators in registers, at the widest
/// vectors that the CPU has (about a millisecond). Answers flops per second.
double fmaBurst();

/// A copy with ordinary vector loads and stores (no non-temporal ones), 64-byte
/// aligned. `bytes` is a multiple of 256.
void plainCopy(void *to, const void *from, int64_t bytes);

} // namespace quern::bench
#endif // QUERN_TOOLS_BENCH_LIMITS_H
