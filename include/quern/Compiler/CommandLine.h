//===- CommandLine.h - Options that the tools share -------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_COMPILER_COMMANDLINE_H
#define QUERN_COMPILER_COMMANDLINE_H

#include "quern/Compiler/Compiler.h"
#include "llvm/Support/CommandLine.h"

namespace quern {

/// The options of a compilation on the command line of a tool: a static object of it
/// registers them.
class CompileCommandLine {
public:
  CompileCommandLine();
  CompileOptions get() const;

  /// What other options of the tool belong to.
  llvm::cl::OptionCategory category;

private:
  llvm::cl::opt<DeviceKind> target;
  llvm::cl::opt<std::string> cpu;
  llvm::cl::list<std::string> chips;
  llvm::cl::opt<unsigned> level;
  llvm::cl::opt<bool> strict, noInplace, noCache, report;
  llvm::cl::opt<unsigned> compileThreads;
  llvm::cl::opt<std::string> dumpAfter;
};

/// Makes room for a tool's own option of this name: the shared LLVM registers the options of all
/// its libraries. A static object in front of the option.
struct ReplacedOption {
  explicit ReplacedOption(llvm::StringRef name);
};

/// Parses the command line: LLVM's and MLIR's own options stay hidden, `--version`
/// prints Quern's. Exits with 3 for an option that does not exist.
void parseToolOptions(int argc, char **argv, llvm::StringRef overview);

} // namespace quern

#endif // QUERN_COMPILER_COMMANDLINE_H
