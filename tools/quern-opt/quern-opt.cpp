//===- quern-opt.cpp - Runs passes over IR files --------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "quern/Dialect/Kernel/IR/Kernel.h"
#include "quern/Dialect/Quern/IR/OpStatus.h"
#include "quern/Pipelines/Registry.h"
#include "quern/Support/Error.h"
#include "quern/Support/Output.h"
#include "quern/Support/Tool.h"
#include "quern/Transforms/Report.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"

namespace cl = llvm::cl;

static cl::OptionCategory category("Quern");
static cl::opt<std::string> input(cl::Positional, cl::desc("<input file>"), cl::init("-"),
                                  cl::cat(category));
static cl::opt<std::string> output("o", cl::desc("output file"), cl::value_desc("file"),
                                   cl::init("-"), cl::cat(category));
static cl::opt<bool> report("quern-report", cl::cat(category),
                            cl::desc("passes remark what they chose and refused"));
static cl::opt<bool> printOpStatus("print-op-status", cl::cat(category),
                                   cl::desc("print what there is of each op, and exit"));

static quern_status firstError = QUERN_OK;
static bool isVerifyingDiagnostics = false;

/// The exit code is that of the first error. A remark is one line, and what is about the whole
/// module has no line (the driver would say `file:0:0`); everything else is left to the driver.
static llvm::LogicalResult handle(mlir::Diagnostic &diagnostic) {
  bool isError = diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error;
  if (isError && firstError == QUERN_OK)
    firstError = quern::splitStatus(diagnostic.str()).first;
  if (isVerifyingDiagnostics)
    return mlir::failure();
  if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Remark && report) {
    llvm::errs() << quern::remarkLine(diagnostic) << "\n";
    return mlir::success();
  }
  auto file = mlir::dyn_cast<mlir::FileLineColLoc>(diagnostic.getLocation());
  if (!isError || !file || file.getLine())
    return mlir::failure();
  llvm::errs() << file.getFilename().getValue() << ": error: " << diagnostic << "\n";
  return mlir::success();
}

/// Upstream's driver, with an output that appears whole or not at all.
static int run(int argc, char **argv, mlir::DialectRegistry &registry) {
  mlir::MlirOptMainConfig config = mlir::MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects() || config.shouldListPasses()) {
    (void)mlir::MlirOptMain(argc, argv, input, output, registry);
    return QUERN_OK;
  }
  isVerifyingDiagnostics = config.shouldVerifyDiagnostics();
  if (llvm::Error error = quern::checkOutputPath(output))
    return quern::reportError(std::move(error));
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(input);
  if (!buffer)
    return quern::reportError(
        quern::invalidInput(input + ": cannot be read: " + buffer.getError().message()));
  std::string text;
  llvm::raw_string_ostream os(text);
  if (failed(mlir::MlirOptMain(os, std::move(*buffer), registry, config)))
    return firstError == QUERN_OK ? QUERN_INVALID : firstError; // no error of an op: a bad pipeline
  return quern::reportError(
      quern::writeOutput(output, [&](llvm::raw_ostream &file) { file << text; }));
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  quern::startTool();
  // Needs no input, so that it comes before the driver.
  for (int i = 1; i < argc; ++i)
    if (llvm::StringRef(argv[i]).ltrim('-') == printOpStatus.ArgStr) {
      quern::printOpStatus(llvm::outs());
      return QUERN_OK;
    }
  // What LLVM's libraries register for themselves is not for users of this tool (--help-hidden).
  for (auto &entry : cl::getRegisteredOptions())
    if (!llvm::is_contained(entry.second->Categories, &category))
      entry.second->setHiddenFlag(cl::Hidden);
  mlir::DialectRegistry registry;
  quern::registerDialects(registry);
  // Options are parsed before a context exists; the dialect carries them to the passes. Dialects
  // are loaded after the driver has its own handler, which is asked after ours.
  registry.addExtension(+[](mlir::MLIRContext *ctx, quern::kernel::KernelDialect *dialect) {
    dialect->reporting = report;
    ctx->getDiagEngine().registerHandler(handle);
  });
  quern::registerPasses();
  std::string header = mlir::registerCLIOptions("Quern's optimiser driver\n", registry);
  // Not by upstream's function, which exits with 1 for a bad option.
  std::string wrong;
  llvm::raw_string_ostream errors(wrong);
  if (!cl::ParseCommandLineOptions(argc, argv, header, &errors)) {
    // What is wrong with the options of a pass has been said already.
    llvm::StringRef text = llvm::StringRef(wrong).trim();
    return quern::reportError(
        quern::invalidInput(text.empty() ? "value of an option, see --help" : text));
  }
  return run(argc, argv, registry);
}
