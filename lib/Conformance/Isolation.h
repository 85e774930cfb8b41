//===- Isolation.h - Tests in processes of their own ------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Runs tests in child processes, many in one for speed, so that a crash or a
/// hang counts for the test that caused it and for no other.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_LIB_CONFORMANCE_ISOLATION_H
#define QUERN_LIB_CONFORMANCE_ISOLATION_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace quern::conformance {

enum class Status : uint8_t { Passed, Failed, Unsupported, Crashed, Timeout, Waived };
llvm::StringRef name(Status status);

struct TestResult {
  Status status = Status::Failed;
  double maxError = 0;
  std::string message;
};

struct IsolationOptions {
  unsigned workers = 2;
  /// Seconds without a result after which a child is killed.
  unsigned timeout = 30;
  /// Leaves the children's stderr alone (it is dropped otherwise).
  bool verbose = false;
};

using Report = llvm::function_ref<void(unsigned test, TestResult result)>;
/// Runs in a child. May leave tests of a batch of several unreported: they are run
/// again in smaller batches (for example when the batch does not compile).
using RunBatch = llvm::function_ref<void(llvm::ArrayRef<unsigned> batch, Report report)>;

/// Runs every test of every batch. `report` is called in this process, once a test.
/// The caller has no threads.
void runIsolated(std::vector<std::vector<unsigned>> batches, const IsolationOptions &options,
                 RunBatch run, Report report);

} // namespace quern::conformance
#endif // QUERN_LIB_CONFORMANCE_ISOLATION_H
