//===- Report.h - Tables and JSON of test results ---------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_LIB_CONFORMANCE_REPORT_H
#define QUERN_LIB_CONFORMANCE_REPORT_H

#include "Isolation.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

namespace quern::conformance {

struct ReportedTest {
  std::string id;
  std::string op;   ///< what the table's row is named after
  std::string mode; ///< the table's column
  TestResult result;
};

/// Passed / attempted / all. Attempted leaves out what is unsupported or waived.
struct Score {
  unsigned passed = 0, attempted = 0, all = 0;
  void add(Status status);
  std::string str() const;
};

/// Prints a line for each test that did not pass, then a table with a row for each op, a column for
/// each of `modes`, and totals; writes {"total", "attempted", "passed", "tests": […]} where
/// `jsonFile` names a file (max_error is null where infinite). Whether every test passed or is
/// waived.
llvm::Expected<bool> finishReport(llvm::ArrayRef<ReportedTest> tests,
                                  llvm::ArrayRef<std::string> modes, llvm::StringRef jsonFile);

/// Known misses: lines of `<mode> <id> <reason>`, `#` starts a comment.
class Waivers {
public:
  /// `path` empty: none.
  static llvm::Expected<Waivers> read(llvm::StringRef path);
  /// The reason, or nothing.
  std::optional<llvm::StringRef> find(llvm::StringRef mode, llvm::StringRef id) const;

private:
  llvm::StringMap<std::string> reasons;
};

} // namespace quern::conformance
#endif // QUERN_LIB_CONFORMANCE_REPORT_H
