//===- Trace.h - Times of launches ------------------------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_TOOLS_QUERN_RUN_TRACE_H
#define QUERN_TOOLS_QUERN_RUN_TRACE_H

#include "quern/Compiler/Execute.h"

#include <string>
#include <vector>

namespace quern {

/// Records the launches of a runner while it lives.
class Trace {
public:
  explicit Trace(Runner &runner);
  ~Trace();

  /// Chrome's trace format, to be opened in chrome://tracing or Perfetto.
  llvm::Error write(llvm::StringRef path) const;
  /// Time by kernel, most first.
  void print(llvm::raw_ostream &os) const;

private:
  struct Event {
    std::string kernel;
    std::vector<int64_t> dims;
    int64_t begin, end;
  };
  Runner &runner;
  std::vector<Event> events;
};

} // namespace quern

#endif // QUERN_TOOLS_QUERN_RUN_TRACE_H
