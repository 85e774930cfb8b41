//===- CommandLine.cpp - Options that the tools share ---------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Compiler/CommandLine.h"

#include "quern/Support/Tool.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace quern {

CompileCommandLine::CompileCommandLine()
    : category("Compilation"),
      target("target", cl::desc("Where the kernels run"), cl::cat(category),
             cl::init(DeviceKind::CPU),
             cl::values(clEnumValN(DeviceKind::CPU, "cpu", "this or another CPU"),
                        clEnumValN(DeviceKind::CUDA, "cuda", "NVIDIA GPUs"),
                        clEnumValN(DeviceKind::CUDAEmulated, "cuda-emulated",
                                   "CUDA text, run on the CPU"))),
      cpu("cpu", cl::desc("native, or a CPU of LLVM's with features: x86-64-v3,+avx512f"),
          cl::value_desc("name"), cl::cat(category), cl::init("native")),
      chips("chip", cl::desc("Chips that CUDA kernels are compiled for (sm_80,sm_90)"),
            cl::CommaSeparated, cl::value_desc("sm_NN"), cl::cat(category)),
      level("O",
            cl::desc("0: every op by itself, in plain loops, as a reference; 1: fused and "
                     "scheduled"),
            cl::Prefix, cl::cat(category), cl::init(1)),
      strict("strict", cl::desc("Round at each op as written"), cl::cat(category)),
      noInplace("no-inplace", cl::desc("Give every result a buffer of its own"), cl::cat(category)),
      noCache("no-cache", cl::desc("Neither read nor write $QUERN_CACHE_DIR"), cl::cat(category)),
      report("report", cl::desc("Print what the passes chose, and why not otherwise"),
             cl::cat(category)),
      compileThreads("compile-threads", cl::desc("Threads that compile (0: one for each core)"),
                     cl::cat(category), cl::init(0)),
      dumpAfter("dump-after", cl::desc("Print the IR to stderr after this pass (all: each)"),
                cl::value_desc("pass"), cl::cat(category)) {}

CompileOptions CompileCommandLine::get() const {
  CompileOptions options;
  options.device = target;
  options.cpu = cpu;
  if (!chips.empty())
    options.chips.assign(chips.begin(), chips.end());
  options.level = level;
  options.strict = strict;
  options.inplace = !noInplace;
  options.threads = compileThreads;
  if (noCache)
    options.cache = DiskCache();
  options.report = report;
  options.dumpAfter = dumpAfter;
  if (report)
    options.onRemark = [](StringRef line) { errs() << line << "\n"; };
  return options;
}

ReplacedOption::ReplacedOption(StringRef name) {
  if (cl::Option *option = cl::getRegisteredOptions().lookup(name))
    option->removeArgument();
}

void parseToolOptions(int argc, char **argv, StringRef overview) {
  startTool();
  std::string errors;
  raw_string_ostream os(errors);
  if (!cl::ParseCommandLineOptions(argc, argv, overview, &os)) {
    // What is wrong with a value has been said already, by the option itself.
    StringRef text = StringRef(errors).trim();
    errs() << "error: invalid: " << (text.empty() ? "value of an option, see --help" : text)
           << "\n";
    std::exit(QUERN_INVALID);
  }
}

} // namespace quern
