//===- quern-bench.cpp - How close kernels come to the machine ------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Times compiled functions against a limit of this machine that is timed between
/// the samples: fused multiply-adds in registers, or a plain copy of the bytes that
/// the function must move. Both figures are the best of their samples. On one thread both
/// are time that the thread was running: a sample is longer than a time slice of a machine
/// that others use as well.
///
//===----------------------------------------------------------------------===//

#include "Limits.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "quern/Compiler/CommandLine.h"
#include "quern/Compiler/Compiler.h"
#include "quern/Compiler/Execute.h"
#include "quern/Import/ATen/Graph.h"
#include "quern/Support/Error.h"
#include "quern/Support/Output.h"
#include "quern/Support/Tool.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Regex.h"
#include <cmath>

using namespace llvm;
using namespace quern;
using namespace quern::bench;
using aten::GraphBuilder;
using aten::Scalar;

static cl::OptionCategory category("Options");
static cl::opt<std::string> filter("filter", cl::desc("Only benchmarks whose name matches"),
                                   cl::value_desc("regex"), cl::cat(category));
static ReplacedOption librariesThreads("threads");
static cl::opt<int> threads("threads", cl::desc("Threads (default: 1)"), cl::init(1),
                            cl::cat(category));
static cl::opt<std::string> jsonFile("json", cl::desc("Write the results to this file"),
                                     cl::value_desc("file"), cl::cat(category));
static cl::opt<double> seconds("seconds", cl::desc("Time for each benchmark (default: 1.5)"),
                               cl::init(1.5), cl::cat(category));

namespace {
/// One function of one input and one output.
struct Benchmark {
  StringLiteral name;
  int64_t rows, columns; ///< of the input
  int64_t resultColumns;
  /// Builds the result from the input.
  mlir::Value (*build)(GraphBuilder &g, mlir::Value x, const Benchmark &benchmark);
  bool isProduct = false; ///< measured against FMAs, else against a copy
  double flops() const { return 2.0 * rows * columns * resultColumns; }
  int64_t bytes() const { return 4 * rows * (columns + resultColumns); }
};

struct Figure {
  StringRef name, limit;
  double ms, limitMs;
  double fraction() const { return limitMs / ms; }
};
} // namespace

/// Numbers between -1 and 1 that repeat late.
static float pseudoRandom(int64_t i) {
  return float(uint64_t(i * 2654435761u) % 65536) / 32768.0f - 1.0f;
}

static HostTensor filled(ArrayRef<int64_t> dims) {
  HostTensor tensor(DType::F32, dims);
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    tensor.as<float>()[i] = pseudoRandom(i);
  return tensor;
}

static mlir::Value constant(GraphBuilder &g, ArrayRef<int64_t> dims) {
  HostTensor values = filled(dims);
  auto type = mlir::RankedTensorType::get(dims, g.builder().getF32Type());
  auto blob = mlir::HeapAsmResourceBlob::allocateAndCopyWithAlign(
      ArrayRef<char>(values.as<char>(), values.numBytes()), 64);
  auto attr = mlir::DenseResourceElementsAttr::get(type, "b", std::move(blob));
  return mlir::arith::ConstantOp::create(g.builder(), g.builder().getUnknownLoc(), attr);
}

static mlir::Value matmul(GraphBuilder &g, mlir::Value x, const Benchmark &benchmark) {
  mlir::Value b = constant(g, {benchmark.columns, benchmark.resultColumns});
  return g.call("mm.default", {{"self", x}, {"mat2", b}});
}
static mlir::Value gelu(GraphBuilder &g, mlir::Value x, const Benchmark &) {
  return g.call("gelu.default", {{"self", x}});
}
static mlir::Value softmax(GraphBuilder &g, mlir::Value x, const Benchmark &) {
  return g.call("softmax.int", {{"self", x}, {"dim", Scalar::integer(-1)}});
}
static mlir::Value layerNorm(GraphBuilder &g, mlir::Value x, const Benchmark &benchmark) {
  SmallVector<int64_t> shape = {benchmark.columns};
  mlir::Value weight = g.input("weight", DType::F32, shape);
  mlir::Value bias = g.input("bias", DType::F32, shape);
  return g.call("layer_norm.default",
                {{"input", x}, {"normalized_shape", shape}, {"weight", weight}, {"bias", bias}});
}

static constexpr Benchmark benchmarks[] = {
    {"matmul_128x1536x384", 128, 1536, 384, matmul, true},
    {"matmul_512x512x512", 512, 512, 512, matmul, true},
    {"gelu_16m", 16, 1 << 20, 1 << 20, gelu},
    {"softmax_4096x1024", 4096, 1024, 1024, softmax},
    {"layer_norm_4096x768", 4096, 768, 768, layerNorm},
};

static Expected<Figure> measure(const Benchmark &benchmark) {
  std::unique_ptr<mlir::MLIRContext> context = createContext();
  context->loadAllAvailableDialects();
  mlir::OwningOpRef<mlir::ModuleOp> module =
      mlir::ModuleOp::create(mlir::UnknownLoc::get(context.get()));
  GraphBuilder g(*module, "main");
  mlir::Value x = g.input("x", DType::F32, {benchmark.rows, benchmark.columns});
  g.output("y", benchmark.build(g, x, benchmark));
  FailureOr<mlir::func::FuncOp> func = g.finish();
  if (failed(func))
    return make_error<StatusError>(QUERN_INTERNAL, benchmark.name + ": cannot be built");
  CompileOptions options;
  Expected<std::unique_ptr<CompiledModel>> model = compileModel(*module, options);
  if (!model)
    return model.takeError();
  const quern_function *function = (*model)->lookup("main");
  Runner runner(threads);

  // Several sets of buffers in turn, so that none is left in a cache by the sample before.
  // Products stay in the caches on purpose: their limit is arithmetic.
  int64_t sets =
      benchmark.isProduct ? 1 : std::clamp<int64_t>((256 << 20) / benchmark.bytes(), 1, 8);
  std::vector<std::vector<HostTensor>> inputs(sets), outputs(sets);
  for (int64_t i = 0; i < sets; ++i) {
    for (int32_t k = 0; k < function->num_inputs; ++k)
      inputs[i].push_back(
          filled(ArrayRef<int64_t>(function->inputs[k].dims, function->inputs[k].rank)));
    Expected<std::vector<HostTensor>> allocated = runner.allocateOutputs(*function, inputs[i]);
    if (!allocated)
      return allocated.takeError();
    outputs[i] = std::move(*allocated);
  }

  int64_t copied = std::min(inputs[0][0].numBytes(), outputs[0][0].numBytes()) / 256 * 256;
  // A product is short: enough calls in a sample for the clock.
  int64_t calls = benchmark.isProduct ? std::max<int64_t>(1, int64_t(2e8 / benchmark.flops())) : 1;
  double best = HUGE_VAL, bestLimit = HUGE_VAL;
  double end = now() + seconds;
  for (int64_t sample = 0; sample < 8 || now() < end; ++sample) {
    int64_t set = sample % sets, other = (sample + 1) % sets;
    double start = now();
    for (int64_t i = 0; i < calls; ++i)
      if (Error error = runner.call(*function, inputs[set], outputs[set]))
        return std::move(error);
    double mine = (now() - start) / double(calls);
    double limit;
    if (benchmark.isProduct) {
      limit = benchmark.flops() / (fmaBurst() * std::max(1, int(threads)));
    } else {
      start = now();
      plainCopy(outputs[other][0].data(), inputs[other][0].data(), copied);
      // The bytes that must move, at the rate of the copy.
      limit = (now() - start) * double(benchmark.bytes()) / double(2 * copied);
    }
    if (sample < 2)
      continue; // pages and clocks warm up
    best = std::min(best, mine);
    bestLimit = std::min(bestLimit, limit);
  }
  return Figure{benchmark.name, benchmark.isProduct ? "fma" : "copy", best * 1e3, bestLimit * 1e3};
}

static Error writeResults(ArrayRef<Figure> figures) {
  json::Array list;
  for (const Figure &figure : figures)
    list.push_back(json::Object{{"name", figure.name},
                                {"ms", figure.ms},
                                {"limit", figure.limit},
                                {"limit_ms", figure.limitMs},
                                {"fraction", figure.fraction()}});
  return writeOutput(jsonFile, [&](raw_ostream &os) {
    os << formatv("{0:2}", json::Value(std::move(list))) << '\n';
  });
}

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  startTool();
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv,
                              "times kernels against limits of this machine, timed in the same "
                              "run: FMAs in registers, or a plain copy of the bytes to move\n");
  Regex regex(filter.empty() ? ".*" : filter.getValue());
  std::string wrong;
  if (!regex.isValid(wrong))
    return reportError(invalidInput("--filter: " + wrong));
  if (!jsonFile.empty())
    if (Error error = checkOutputPath(jsonFile))
      return reportError(std::move(error));
  wallClock = threads != 1;
  std::vector<Figure> figures;
  for (const Benchmark &benchmark : benchmarks) {
    if (!regex.match(benchmark.name))
      continue;
    Expected<Figure> figure = measure(benchmark);
    if (!figure)
      return reportError(figure.takeError());
    outs() << formatv("{0,-24} {1,9:f3} ms   {2,4} limit {3,9:f3} ms   fraction {4:f2}\n",
                      figure->name, figure->ms, figure->limit, figure->limitMs, figure->fraction());
    outs().flush();
    figures.push_back(*figure);
  }
  if (figures.empty())
    return reportError(invalidInput("--filter: no benchmark matches '" + filter + "'"));
  if (!jsonFile.empty())
    if (Error error = writeResults(figures))
      return reportError(std::move(error));
  return QUERN_OK;
}
