//===- PoolTest.cpp - Threads ---------------------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "FakeFunction.h"

#include "gtest/gtest.h"
#include <atomic>
#include <dlfcn.h>
#include <pthread.h>
#include <thread>
#include <unistd.h>

// The sanitizers' own function, which must hear of every thread; null without them.
extern "C" __attribute__((weak)) int
___interceptor_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

// Stands before libc's, so that a test can make it fail.
static std::atomic<int> threadsLeft{1000};
extern "C" int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
                              void *arg) {
  using Real = int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  static Real real = ___interceptor_pthread_create
                         ? ___interceptor_pthread_create
                         : reinterpret_cast<Real>(dlsym(RTLD_NEXT, "pthread_create"));
  if (threadsLeft-- <= 0)
    return EAGAIN;
  return real(thread, attr, fn, arg);
}

namespace {

// Counts each unit; keeps a thread busy for about as long as `unit_cost` says.
void count(void *const *bufs, const int64_t *dims, int64_t lo, int64_t hi) {
  auto *counts = static_cast<std::atomic<int> *>(bufs[0]);
  for (int64_t i = lo; i < hi; ++i)
    ++counts[i];
  if (bufs[1])
    static_cast<std::atomic<int> *>(bufs[1])->fetch_add(1);
}
int64_t cheap(const int64_t *) { return 1; }
int64_t dear(const int64_t *) { return 1000; }

quern_kernel kernelOf(int64_t (*cost)(const int64_t *)) {
  return {"count", count, fake::firstDim, cost, 2, 1, 0, 0, 0, 0};
}

struct Counts {
  std::vector<std::atomic<int>> counts;
  std::atomic<int> chunks{0};
  explicit Counts(size_t n) : counts(n) {}
  void run(quern_context *ctx, const quern_kernel &k) {
    void *bufs[] = {counts.data(), &chunks};
    int64_t dims[] = {int64_t(counts.size())};
    ASSERT_EQ(quern_rt_launch(ctx, &k, bufs, dims), 0);
  }
  void expectAll(int n) {
    for (auto &c : counts)
      ASSERT_EQ(c.load(), n);
  }
};

TEST(Pool, EachUnitOnce) {
  quern_kernel k = kernelOf(dear);
  quern_context *ctx = quern_context_create(4);
  for (size_t n : {0, 1, 2, 5, 64, 1001}) {
    Counts counts(n);
    for (int i = 0; i < 200; ++i)
      counts.run(ctx, k);
    counts.expectAll(200);
  }
  quern_context_destroy(ctx);
}

TEST(Pool, CheapStaysOnOneThread) {
  threadsLeft = 0; // none is even tried
  quern_kernel k = kernelOf(cheap);
  quern_context *ctx = quern_context_create(4);
  Counts counts(1000);
  counts.run(ctx, k);
  EXPECT_EQ(counts.chunks, 1);
  EXPECT_EQ(threadsLeft, 0);
  quern_context_destroy(ctx);
  threadsLeft = 1000;
}

TEST(Pool, WithoutThreads) {
  for (int left : {0, 1, 2}) {
    threadsLeft = left;
    quern_kernel k = kernelOf(dear);
    quern_context *ctx = quern_context_create(8);
    Counts counts(1000);
    for (int i = 0; i < 10; ++i)
      counts.run(ctx, k);
    counts.expectAll(10);
    quern_context_destroy(ctx);
  }
  threadsLeft = 1000;
}

TEST(Pool, ParksAndWakes) {
  quern_kernel k = kernelOf(dear);
  quern_context *ctx = quern_context_create(3);
  Counts counts(100);
  for (int i = 0; i < 20; ++i) {
    counts.run(ctx, k);
    usleep(2000); // far longer than workers spin
  }
  counts.expectAll(20);
  quern_context_destroy(ctx);
}

// One unit waits for the other: both must be running at once.
void meet(void *const *bufs, const int64_t *, int64_t lo, int64_t hi) {
  auto *arrived = static_cast<std::atomic<int> *>(bufs[0]);
  arrived->fetch_add(int(hi - lo));
  while (arrived->load() < 2)
    std::this_thread::yield();
}

TEST(Pool, ReallyParallel) {
  quern_kernel k = {"meet", meet, fake::firstDim, nullptr, 1, 1, 0, 0, 0, 0};
  quern_context *ctx = quern_context_create(2);
  std::atomic<int> arrived{0};
  void *bufs[] = {&arrived};
  int64_t dims[] = {2};
  EXPECT_EQ(quern_rt_launch(ctx, &k, bufs, dims), 0);
  EXPECT_EQ(arrived, 2);
  quern_context_destroy(ctx);
}

TEST(Pool, ContextsInManyThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      quern_kernel k = kernelOf(dear);
      quern_context *ctx = quern_context_create(2);
      Counts counts(300);
      for (int i = 0; i < 100; ++i)
        counts.run(ctx, k);
      counts.expectAll(100);
      quern_context_destroy(ctx);
    });
  for (std::thread &t : threads)
    t.join();
}

TEST(Pool, Profiler) {
  quern_kernel k = kernelOf(dear);
  quern_context *ctx = quern_context_create(1);
  std::vector<std::string> seen;
  quern_context_set_profiler(
      ctx,
      [](void *self, const quern_kernel *kernel, const int64_t *dims, int64_t begin, int64_t end) {
        EXPECT_LE(begin, end);
        static_cast<std::vector<std::string> *>(self)->push_back(kernel->name +
                                                                 std::to_string(dims[0]));
      },
      &seen);
  Counts(7).run(ctx, k);
  EXPECT_EQ(seen, std::vector<std::string>{"count7"});
  quern_context_destroy(ctx);
}

} // namespace
