//===- quern-conformance.cpp - Recorded results, run against Quern --------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Conformance/Conformance.h"
#include "quern/Support/Error.h"
#include "quern/Support/Tool.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace quern;
using namespace quern::conformance;

static cl::SubCommand atenCommand("aten", "recorded calls of ATen operators");
static cl::SubCommand onnxCommand("onnx", "ONNX's backend tests, and models with data");
static cl::SubCommand trainingCommand("training", "training steps: gradients, losses, parameters");

static cl::OptionCategory category("Options");
static cl::opt<Target> target("target", cl::desc("Where the code runs"), cl::cat(category),
                              cl::sub(atenCommand), cl::sub(onnxCommand), cl::sub(trainingCommand),
                              cl::init(Target::CPU),
                              cl::values(clEnumValN(Target::CPU, "cpu", "this CPU"),
                                         clEnumValN(Target::CUDAEmulated, "cuda-emulated",
                                                    "CUDA text, run on the CPU")));
static cl::opt<std::string> jsonFile("json", cl::desc("Write all results to this file"),
                                     cl::value_desc("file"), cl::cat(category),
                                     cl::sub(atenCommand), cl::sub(onnxCommand));
static cl::opt<std::string> filter("filter", cl::desc("Only cases whose id matches"),
                                   cl::value_desc("regex"), cl::cat(category), cl::sub(atenCommand),
                                   cl::sub(onnxCommand));
static cl::opt<std::string> overloads("overloads",
                                      cl::desc("Only cases of the overloads in this file"),
                                      cl::value_desc("file"), cl::cat(category),
                                      cl::sub(atenCommand));
static cl::list<std::string> modes("mode",
                                   cl::desc("Only these modes: value, dynamic, into, grad, error"),
                                   cl::CommaSeparated, cl::cat(category), cl::sub(atenCommand));
static cl::opt<std::string> waivers("waivers",
                                    cl::desc("Known misses: lines of <mode> <id> <reason>"),
                                    cl::value_desc("file"), cl::cat(category), cl::sub(atenCommand),
                                    cl::sub(onnxCommand));
static cl::opt<unsigned> workers("workers", cl::desc("Processes at a time"), cl::init(2),
                                 cl::cat(category), cl::sub(atenCommand), cl::sub(onnxCommand));
static cl::opt<unsigned> timeout("timeout", cl::desc("Seconds after which a test is killed"),
                                 cl::init(30), cl::cat(category), cl::sub(atenCommand),
                                 cl::sub(onnxCommand));
static cl::opt<unsigned> batch("batch", cl::desc("Tests compiled together"), cl::init(32),
                               cl::cat(category), cl::sub(atenCommand), cl::sub(onnxCommand));
static cl::opt<bool> verbose("verbose", cl::desc("Show what the tests print on stderr"),
                             cl::cat(category), cl::sub(atenCommand), cl::sub(onnxCommand));
static cl::list<std::string> atenFiles(cl::Positional, cl::OneOrMore, cl::value_desc("FILE.json…"),
                                       cl::desc("<FILE.json…>"), cl::cat(category),
                                       cl::sub(atenCommand));

static cl::list<std::string> onnxFolders(cl::Positional, cl::OneOrMore, cl::value_desc("DIR…"),
                                         cl::desc("<DIR…>"), cl::cat(category),
                                         cl::sub(onnxCommand));

static cl::opt<std::string> trainingFolder(cl::Positional, cl::Required, cl::desc("<DIR>"),
                                           cl::cat(category), cl::sub(trainingCommand));

static int finish(Expected<bool> passed) {
  if (!passed)
    return reportError(passed.takeError());
  return *passed ? QUERN_OK : QUERN_ERROR;
}

static void readRunOptions(RunOptions &options) {
  options.target = target;
  options.filter = filter;
  options.waiversFile = waivers;
  options.jsonFile = jsonFile;
  options.workers = std::max(1u, unsigned(workers));
  options.timeout = timeout;
  options.batch = std::max(1u, unsigned(batch));
  options.verbose = verbose;
}

static int runAtenCommand() {
  AtenOptions options;
  readRunOptions(options);
  options.overloadsFile = overloads;
  options.modes = modes;
  return finish(runAten(options, atenFiles));
}

static int runOnnxCommand() {
  RunOptions options;
  readRunOptions(options);
  return finish(runOnnx(options, onnxFolders));
}

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  startTool();
  cl::HideUnrelatedOptions(category);
  cl::HideUnrelatedOptions(category, atenCommand);
  cl::HideUnrelatedOptions(category, onnxCommand);
  cl::HideUnrelatedOptions(category, trainingCommand);
  cl::ParseCommandLineOptions(argc, argv,
                              "runs recorded results against Quern; exit code 0: all passed, "
                              "1: some did not, 3: bad input\n");
  if (atenCommand)
    return runAtenCommand();
  if (onnxCommand)
    return runOnnxCommand();
  if (trainingCommand)
    return finish(runTraining(trainingFolder, target));
  cl::PrintHelpMessage();
  return QUERN_INVALID;
}
