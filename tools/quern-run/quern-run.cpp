//===- quern-run.cpp - Runs models and artefacts --------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Inputs.h"
#include "Trace.h"
#include "quern/Compiler/CommandLine.h"
#include "quern/Compiler/Execute.h"
#include "quern/Import/ONNX/Importer.h"
#include "quern/Import/ONNX/TestFolder.h"
#include "quern/Support/Error.h"
#include "quern/Support/Npy.h"
#include "quern/Support/Output.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"

#include <chrono>

using namespace llvm;
using namespace quern;

static CompileCommandLine compilation;
static cl::OptionCategory execution("Execution");

static cl::list<std::string> files(cl::Positional, cl::desc("<MODEL> [input.npy | input.pb …]"),
                                   cl::cat(execution));
static cl::opt<std::string> functionName("function", cl::desc("Which function (the only one)"),
                                         cl::value_desc("name"), cl::cat(execution));
static cl::opt<uint64_t> seed("random-inputs", cl::desc("Make inputs from this seed"),
                              cl::value_desc("seed"), cl::cat(execution));
static cl::list<std::string> dims("dim", cl::desc("Size of a free dim of random inputs"),
                                  cl::value_desc("B=4"), cl::CommaSeparated, cl::cat(execution));
static ReplacedOption librariesThreads("threads");
static cl::opt<unsigned> threads("threads", cl::desc("Threads of a call (0: one for each core)"),
                                 cl::init(0), cl::cat(execution));

namespace {
/// A number of calls that may be left out.
struct CallsParser : cl::parser<unsigned> {
  using parser::parser;
  bool parse(cl::Option &option, StringRef name, StringRef text, unsigned &calls) {
    calls = 100;
    if (text.empty())
      return false;
    return parser::parse(option, name, text, calls) ||
           (calls == 0 && option.error("expected at least one call"));
  }
};
} // namespace

static cl::opt<unsigned, false, CallsParser>
    benchmark("benchmark", cl::ValueOptional,
              cl::desc("Time this many calls (100) and print the median"), cl::value_desc("calls"),
              cl::cat(execution));
static cl::opt<std::string> profile("profile", cl::desc("Time each kernel: a Chrome trace"),
                                    cl::value_desc("trace.json"), cl::cat(execution));
static cl::opt<bool>
    printMemory("print-memory",
                cl::desc("Print the bytes that a call takes, and took before each step"),
                cl::cat(execution));
static cl::opt<bool> poison("poison", cl::desc("Fill unwritten memory with NaN before the call"),
                            cl::cat(execution));
static cl::opt<std::string> saveFolder("save", cl::desc("Write outputs to this folder as .npy"),
                                       cl::value_desc("folder"), cl::cat(execution));
static cl::opt<bool> quiet("quiet", cl::desc("Do not print the outputs"), cl::cat(execution));
static cl::opt<std::string> onnxTest("onnx-test",
                                     cl::desc("Run a test folder of ONNX, with MODEL: through "
                                              "this artefact of its model"),
                                     cl::value_desc("folder"), cl::cat(execution));
static cl::opt<std::string> writeOutputs("write-outputs",
                                         cl::desc("With --onnx-test: write the outputs here"),
                                         cl::value_desc("folder"), cl::cat(execution));

namespace {

/// A model or an artefact, ready to be called.
struct Loaded {
  std::unique_ptr<mlir::MLIRContext> ctx;
  std::unique_ptr<CompiledModel> compiled;
  std::unique_ptr<Artefact> artefact;
  ArrayRef<const quern_function *> functions;
  RuntimeTable runtime;

  Expected<const quern_function *> pick() const {
    if (functionName.empty() && functions.size() == 1)
      return functions.front();
    std::string names;
    for (const quern_function *fn : functions) {
      if (functionName == fn->name)
        return fn;
      names += (names.empty() ? "'" : ", '") + std::string(fn->name) + "'";
    }
    return invalidInput(functionName.empty()
                            ? "expected --function, one of " + names
                            : "no function '" + functionName + "' (there are " + names + ")");
  }
};

} // namespace

static Expected<Loaded> compile(std::unique_ptr<mlir::MLIRContext> ctx,
                                Expected<mlir::OwningOpRef<mlir::ModuleOp>> module) {
  if (!module)
    return module.takeError();
  auto compiled = compileModel(**module, compilation.get());
  if (!compiled)
    return compiled.takeError();
  Loaded loaded;
  loaded.ctx = std::move(ctx);
  loaded.compiled = std::move(*compiled);
  loaded.functions = loaded.compiled->functions();
  return loaded;
}

static Expected<Loaded> load(StringRef path) {
  StringRef ending = sys::path::extension(path);
  if (ending == ".so") {
    Loaded loaded;
    auto artefact = Artefact::load(path);
    if (!artefact)
      return artefact.takeError();
    loaded.artefact = std::move(*artefact);
    loaded.functions = loaded.artefact->functions();
    loaded.runtime = loaded.artefact->runtime();
    return loaded;
  }
  auto ctx = createContext();
  auto module = ending == ".onnx" ? onnx::importFile(*ctx, path) : parseModelFile(*ctx, path);
  return compile(std::move(ctx), std::move(module));
}

static void print(raw_ostream &os, const quern_tensor_info &info, const HostTensor &t) {
  constexpr int64_t most = 16;
  os << info.name << ": " << t.typeString() << " ";
  for (int64_t i = 0; i < std::min(most, t.numElements()); ++i)
    if (isFloat(t.dtype()))
      os << (i ? ", " : "") << format("%.7g", t.getDouble(i));
    else
      os << (i ? ", " : "") << t.getInt(i);
  os << (t.numElements() > most ? ", …\n" : "\n");
}

static void printPlan(raw_ostream &os, const Loaded &loaded, const quern_function &fn,
                      int64_t arena) {
  os << "arena: " << arena << " bytes\n";
  if (!loaded.compiled) // an artefact does not carry the rest
    return;
  const MemoryPlan &plan = loaded.compiled->memoryPlan(fn.name);
  for (const auto &[what, bytes] : {std::pair("each value in a buffer of its own", plan.functional),
                                    {"after in-place", plan.unplanned},
                                    {"planned", plan.arena}})
    if (!bytes.empty())
      os << what << ": " << bytes << " bytes\n";
}

static Error time(Runner &runner, const quern_function &fn, ArrayRef<HostTensor> inputs,
                  MutableArrayRef<HostTensor> outputs) {
  unsigned calls = benchmark;
  std::vector<double> ms;
  // Donated inputs change from call to call, as in a loop of training steps.
  for (unsigned i = 0; i < calls + 1; ++i) {
    auto begin = std::chrono::steady_clock::now();
    if (Error error = runner.call(fn, inputs, outputs))
      return error;
    auto end = std::chrono::steady_clock::now();
    if (i) // the first call warms up
      ms.push_back(std::chrono::duration<double, std::milli>(end - begin).count());
  }
  llvm::sort(ms);
  outs() << format("median %.4f ms, fastest %.4f ms, %u calls\n", ms[ms.size() / 2], ms.front(),
                   calls);
  return Error::success();
}

static Error run() {
  if (files.empty())
    return invalidInput("expected a model");
  if (!saveFolder.empty() && !sys::fs::is_directory(saveFolder))
    return invalidInput(saveFolder + ": no such folder");
  if (!profile.empty())
    if (Error error = checkOutputPath(profile))
      return error;
  bool isRandom = seed.getNumOccurrences() || !dims.empty();
  if (isRandom && files.size() > 1)
    return invalidInput("expected input files or --random-inputs and --dim, got both");
  auto sizes = parseDims(dims);
  if (!sizes)
    return sizes.takeError();
  // Never taken apart: the process ends soon.
  static Expected<Loaded> &loaded = *new Expected<Loaded>(load(files.front()));
  if (!loaded)
    return loaded.takeError();
  Expected<const quern_function *> picked = loaded->pick();
  if (!picked)
    return picked.takeError();
  const quern_function &fn = **picked;

  std::vector<HostTensor> inputs;
  if (isRandom) {
    auto made = randomInputs(fn, seed, *sizes);
    if (!made)
      return made.takeError();
    inputs = std::move(*made);
  } else {
    auto read = readInputs(ArrayRef<std::string>(files).drop_front());
    if (!read)
      return read.takeError();
    inputs = std::move(*read);
  }

  auto device = Device::open(compilation.get().device);
  if (!device)
    return device.takeError();
  Runner runner(int32_t(threads), (*device)->get(), loaded->runtime);
  if (poison)
    loaded->runtime.setPoison(runner.context(), 1);
  int64_t arena = 0;
  auto outputs = runner.allocateOutputs(fn, inputs, &arena);
  if (!outputs)
    return outputs.takeError();
  if (printMemory)
    printPlan(outs(), *loaded, fn, arena);
  if (Error error = runner.call(fn, inputs, *outputs))
    return error;
  for (int32_t o = 0; o < fn.num_outputs; ++o) {
    if (!quiet)
      print(outs(), fn.outputs[o], (*outputs)[o]);
    if (!saveFolder.empty()) {
      SmallString<128> path(saveFolder);
      sys::path::append(path, "output_" + Twine(o) + ".npy");
      if (Error error = writeNpy(path, (*outputs)[o]))
        return error;
    }
  }
  if (benchmark.getNumOccurrences())
    if (Error error = time(runner, fn, inputs, *outputs))
      return error;
  if (!profile.empty()) {
    Trace trace(runner);
    if (Error error = runner.call(fn, inputs, *outputs))
      return error;
    if (Error error = trace.write(profile))
      return error;
    trace.print(outs());
  }
  return Error::success();
}

/// A function that runs test data, and what it needs to live.
static Expected<onnx::Callable> makeCallable(Expected<Loaded> loaded) {
  if (!loaded)
    return loaded.takeError();
  auto device = Device::open(compilation.get().device);
  if (!device)
    return device.takeError();
  Expected<const quern_function *> fn = loaded->pick();
  if (!fn)
    return fn.takeError();
  // In the order in which they are needed.
  struct State {
    Loaded model;
    std::unique_ptr<Device> device;
    Runner runner;
    State(Loaded m, std::unique_ptr<Device> d)
        : model(std::move(m)), device(std::move(d)),
          runner(int32_t(threads), device->get(), model.runtime) {}
  };
  auto state = std::make_shared<State>(std::move(*loaded), std::move(*device));
  return
      [state, fn = *fn](std::vector<HostTensor> inputs) { return state->runner.call(*fn, inputs); };
}

/// Runs the data of a test folder through its own model, or through the artefact given.
static int runTest() {
  if (files.size() > 1)
    return reportError(invalidInput("expected at most one artefact with --onnx-test"));
  auto compileTest = [](const onnx::Model &model) -> Expected<onnx::Callable> {
    if (!files.empty())
      return makeCallable(load(files.front()));
    auto ctx = createContext();
    auto module = onnx::importModel(*ctx, model);
    return makeCallable(compile(std::move(ctx), std::move(module)));
  };
  return onnx::runTestFolderCommand(onnxTest, compileTest, writeOutputs);
}

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  const cl::OptionCategory *shown[] = {&compilation.category, &execution};
  cl::HideUnrelatedOptions(shown);
  parseToolOptions(argc, argv,
                   "Compiles a model (.onnx, .mlir) in this process, or loads an artefact (.so), "
                   "and runs it.\n\n"
                   "Exit codes: 0 ok, 1 error or wrong result, 2 unsupported, 3 invalid input, "
                   "4 internal error.\n");
  if (!onnxTest.empty())
    return runTest();
  return reportError(run());
}
