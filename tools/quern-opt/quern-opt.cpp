//===- quern-opt.cpp - Runs passes over IR files --------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "quern/Dialect/Kernel/IR/Kernel.h"
#include "quern/Dialect/Quern/IR/OpStatus.h"
#include "quern/Pipelines/Registry.h"

static llvm::cl::opt<bool> report("quern-report",
                                  llvm::cl::desc("passes remark what they chose and refused"));

static llvm::cl::opt<bool>
    printOpStatus("print-op-status", llvm::cl::desc("print what there is of each op, and exit"));

int main(int argc, char **argv) {
  // Needs no input, so that it comes before the driver.
  for (int i = 1; i < argc; ++i)
    if (llvm::StringRef(argv[i]).ltrim('-') == printOpStatus.ArgStr) {
      quern::printOpStatus(llvm::outs());
      return 0;
    }
  mlir::DialectRegistry registry;
  quern::registerDialects(registry);
  // Options are parsed before a context exists; the dialect carries them to the passes.
  registry.addExtension(+[](mlir::MLIRContext *, quern::kernel::KernelDialect *dialect) {
    dialect->reporting = report;
  });
  quern::registerPasses();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "Quern's optimiser driver\n", registry));
}
