//===- IsolationTest.cpp --------------------------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "../../lib/Conformance/Isolation.h"
#include "gtest/gtest.h"
#include <cmath>
#include <cstdlib>
#include <map>
#include <unistd.h>

using namespace quern::conformance;

namespace {
std::map<unsigned, TestResult> runAll(std::vector<std::vector<unsigned>> batches, RunBatch run,
                                      unsigned timeout = 30) {
  std::map<unsigned, TestResult> results;
  IsolationOptions options;
  options.timeout = timeout;
  runIsolated(std::move(batches), options, run, [&](unsigned test, TestResult result) {
    EXPECT_FALSE(results.count(test)) << "reported twice";
    results[test] = std::move(result);
  });
  return results;
}
} // namespace

TEST(Isolation, Results) {
  auto results = runAll({{0, 1}, {2}}, [](llvm::ArrayRef<unsigned> batch, Report report) {
    for (unsigned test : batch)
      report(test, {test == 1 ? Status::Failed : Status::Passed, test * 0.5, "text \"1\"\n"});
  });
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[0].status, Status::Passed);
  EXPECT_EQ(results[1].status, Status::Failed);
  EXPECT_EQ(results[2].maxError, 1.0);
  EXPECT_EQ(results[2].message, "text \"1\"\n");
}

TEST(Isolation, ACrashCountsForItsTestOnly) {
  auto results = runAll({{0, 1, 2, 3, 4}}, [](llvm::ArrayRef<unsigned> batch, Report report) {
    for (unsigned test : batch) {
      if (test == 2)
        abort();
      report(test, {Status::Passed, 0, ""});
    }
  });
  ASSERT_EQ(results.size(), 5u);
  for (auto &[test, result] : results)
    EXPECT_EQ(result.status, test == 2 ? Status::Crashed : Status::Passed);
  EXPECT_NE(results[2].message.find("Abort"), std::string::npos);
}

TEST(Isolation, AHangIsKilled) {
  auto results = runAll(
      {{0, 1, 2}},
      [](llvm::ArrayRef<unsigned> batch, Report report) {
        for (unsigned test : batch) {
          while (test == 1)
            sleep(1);
          report(test, {Status::Passed, 0, ""});
        }
      },
      /*timeout=*/1);
  EXPECT_EQ(results[0].status, Status::Passed);
  EXPECT_EQ(results[1].status, Status::Timeout);
  EXPECT_EQ(results[2].status, Status::Passed);
}

// A batch that does not compile reports nothing: it is halved until the culprit is alone.
TEST(Isolation, UnreportedBatchesAreHalved) {
  auto results = runAll({{0, 1, 2, 3, 4, 5, 6}}, [](llvm::ArrayRef<unsigned> batch, Report report) {
    bool bad = llvm::is_contained(batch, 5u);
    if (bad && batch.size() > 1)
      return;
    for (unsigned test : batch)
      report(test, {bad ? Status::Failed : Status::Passed, 0, ""});
  });
  ASSERT_EQ(results.size(), 7u);
  for (auto &[test, result] : results)
    EXPECT_EQ(result.status, test == 5 ? Status::Failed : Status::Passed);
}

TEST(Isolation, NoResultAndExitCode) {
  auto results = runAll({{0}, {1}}, [](llvm::ArrayRef<unsigned> batch, Report report) {
    if (batch[0] == 1)
      _exit(7);
  });
  EXPECT_EQ(results[0].status, Status::Failed);
  EXPECT_EQ(results[0].message, "no result");
  EXPECT_EQ(results[1].status, Status::Crashed);
  EXPECT_EQ(results[1].message, "exit code 7");
  EXPECT_TRUE(std::isinf(results[1].maxError));
}
