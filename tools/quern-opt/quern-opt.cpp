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
#include "quern/Support/Version.h"
#include "quern/Transforms/Report.h"

namespace cl = llvm::cl;

static cl::OptionCategory category("Quern");
static cl::opt<bool> report("quern-report", cl::cat(category),
                            cl::desc("passes remark what they chose and refused"));
static cl::opt<bool> printOpStatus("print-op-status", cl::cat(category),
                                   cl::desc("print what there is of each op, and exit"));

// Then the driver compares the remarks with what the text expects.
static bool isVerifying() {
  cl::Option *option = cl::getRegisteredOptions().lookup("verify-diagnostics");
  return option && option->getNumOccurrences() > 0;
}

static quern_status firstError = QUERN_OK;

int main(int argc, char **argv) {
  quern::setVersionPrinter();
  // Needs no input, so that it comes before the driver.
  for (int i = 1; i < argc; ++i)
    if (llvm::StringRef(argv[i]).ltrim('-') == printOpStatus.ArgStr) {
      quern::printOpStatus(llvm::outs());
      return 0;
    }
  // What LLVM's libraries register for themselves is not for users of this tool (--help-hidden).
  for (auto &entry : cl::getRegisteredOptions())
    if (!llvm::is_contained(entry.second->Categories, &category))
      entry.second->setHiddenFlag(cl::Hidden);
  mlir::DialectRegistry registry;
  quern::registerDialects(registry);
  // Options are parsed before a context exists; the dialect carries them to the passes.
  registry.addExtension(+[](mlir::MLIRContext *ctx, quern::kernel::KernelDialect *dialect) {
    dialect->reporting = report;
    // The exit code is that of the first error, and a remark is one line. Dialects are loaded after
    // the driver has its own handler, which prints the rest with its place in the text.
    ctx->getDiagEngine().registerHandler([](mlir::Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Remark && report &&
          !isVerifying()) {
        llvm::errs() << quern::remarkLine(diagnostic) << "\n";
        return mlir::success();
      }
      if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error && firstError == QUERN_OK)
        firstError = quern::splitStatus(diagnostic.str()).first;
      return mlir::failure();
    });
  });
  quern::registerPasses();
  if (succeeded(mlir::MlirOptMain(argc, argv, "Quern's optimiser driver\n", registry)))
    return QUERN_OK;
  return firstError == QUERN_OK ? QUERN_INVALID : firstError; // no error of an op: a bad file
}
