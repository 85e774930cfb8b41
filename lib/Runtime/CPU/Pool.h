//===- Pool.h - Threads that share the range of a kernel --------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// One region at a time. The caller publishes a job and works on it too; workers
/// join while it is open and claim chunks. A worker that comes late, or not at
/// all because the machine is busy, delays nobody: the caller waits only for
/// those that have joined. Workers spin briefly for the next job, then park.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_LIB_RUNTIME_CPU_POOL_H
#define QUERN_LIB_RUNTIME_CPU_POOL_H

#include "quern-c/Runtime.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

namespace quern::rt {

inline int64_t now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t(t.tv_sec) * 1000000000 + t.tv_nsec;
}

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

class Pool {
public:
  /// `count` threads in all, the caller's included. Threads that cannot be
  /// created are done without.
  void init(int32_t count) {
    wanted = count;
    pthread_mutex_init(&mutex, nullptr);
    pthread_cond_init(&wake, nullptr);
  }
  void destroy() {
    __atomic_store_n(&stop, true, __ATOMIC_SEQ_CST);
    publish(0);
    for (int32_t i = 0; i < started; ++i)
      pthread_join(threads[i], nullptr);
    free(threads);
    pthread_cond_destroy(&wake);
    pthread_mutex_destroy(&mutex);
  }

  /// Threads that a region can have.
  int32_t size() {
    if (wanted > 1 && !threads)
      start();
    return started + 1;
  }

  /// Runs `kernel` over [0, range) in chunks, on at most `limit` threads.
  void run(const quern_kernel *kernel, void *const *bufs, const int64_t *dims, int64_t range,
           int64_t chunk, int32_t limit) {
    job = {kernel, bufs, dims, range, chunk};
    __atomic_store_n(&next, 0, __ATOMIC_RELAXED);
    publish(limit - 1);
    work();
    __atomic_fetch_or(&state, kClosed, __ATOMIC_ACQ_REL);
    for (int spins = 0; __atomic_load_n(&state, __ATOMIC_ACQUIRE) & kActive;)
      if (++spins < 4096)
        pause();
      else
        sched_yield(); // a worker with a chunk has lost its core
  }

private:
  // The state word: 32 bits of epoch, a bit that says whether workers may still
  // join, 15 bits of how many may join yet, 16 bits of how many are at work.
  static constexpr uint64_t kActive = 0xffff, kRoom = uint64_t(1) << 16,
                            kRoomMask = uint64_t(0x7fff) << 16, kClosed = uint64_t(1) << 31,
                            kEpoch = uint64_t(1) << 32;
  static constexpr int64_t kSpin = 30000; // ns

  struct Job {
    const quern_kernel *kernel;
    void *const *bufs;
    const int64_t *dims;
    int64_t range, chunk;
  };

  // Opens a new epoch for `room` workers; wakes the parked ones.
  void publish(int32_t room) {
    uint64_t epoch = (__atomic_load_n(&state, __ATOMIC_RELAXED) & ~(kEpoch - 1)) + kEpoch;
    __atomic_store_n(&state, epoch | uint64_t(room) * kRoom, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&parked, __ATOMIC_SEQ_CST) > 0) {
      pthread_mutex_lock(&mutex);
      pthread_cond_broadcast(&wake);
      pthread_mutex_unlock(&mutex);
    }
  }

  void work() {
    for (;;) {
      int64_t lo = __atomic_fetch_add(&next, job.chunk, __ATOMIC_RELAXED);
      if (lo >= job.range)
        return;
      int64_t hi = job.range - lo < job.chunk ? job.range : lo + job.chunk;
      job.kernel->cpu(job.bufs, job.dims, lo, hi);
    }
  }

  bool sameEpoch(uint64_t a, uint64_t b) { return !((a ^ b) & ~(kEpoch - 1)); }

  // The state once its epoch is not that of `seen`.
  uint64_t await(uint64_t seen) {
    uint64_t s;
    for (int64_t end = now() + kSpin; now() < end;)
      for (int i = 0; i < 32; ++i, pause())
        if (!sameEpoch(s = __atomic_load_n(&state, __ATOMIC_ACQUIRE), seen))
          return s;
    pthread_mutex_lock(&mutex);
    __atomic_fetch_add(&parked, 1, __ATOMIC_SEQ_CST);
    while (sameEpoch(s = __atomic_load_n(&state, __ATOMIC_SEQ_CST), seen))
      pthread_cond_wait(&wake, &mutex);
    __atomic_fetch_sub(&parked, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&mutex);
    return s;
  }

  void loop() {
    for (uint64_t seen = 0;;) {
      uint64_t s = seen = await(seen);
      if (__atomic_load_n(&stop, __ATOMIC_SEQ_CST))
        return;
      // Once the exchange has succeeded the job cannot change until this worker leaves.
      while (sameEpoch(s, seen) && !(s & kClosed) && (s & kRoomMask))
        if (__atomic_compare_exchange_n(&state, &s, s + 1 - kRoom, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE)) {
          work();
          __atomic_fetch_sub(&state, 1, __ATOMIC_RELEASE);
          break;
        }
    }
  }

  void start() {
    threads = static_cast<pthread_t *>(malloc(sizeof(pthread_t) * size_t(wanted - 1)));
    if (!threads)
      return void(wanted = 1);
    // Signals are for the program's own threads.
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    auto entry = [](void *self) -> void * { return static_cast<Pool *>(self)->loop(), nullptr; };
    while (started < wanted - 1 && pthread_create(&threads[started], nullptr, entry, this) == 0)
      ++started;
    pthread_sigmask(SIG_SETMASK, &old, nullptr);
  }

  alignas(64) uint64_t state = 0;
  Job job = {};
  alignas(64) int64_t next = 0;
  alignas(64) pthread_mutex_t mutex;
  pthread_cond_t wake;
  int32_t parked = 0;
  bool stop = false;
  pthread_t *threads = nullptr;
  int32_t wanted = 1, started = 0;
};

} // namespace quern::rt

#endif // QUERN_LIB_RUNTIME_CPU_POOL_H
