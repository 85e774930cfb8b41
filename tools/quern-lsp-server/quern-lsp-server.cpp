//===- quern-lsp-server.cpp - IR files in editors -------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"
#include "quern/Pipelines/Registry.h"
#include "quern/Support/Tool.h"

int main(int argc, char **argv) {
  quern::startTool();
  // What LLVM's libraries register; the server's own options come later.
  llvm::cl::OptionCategory none("");
  llvm::cl::HideUnrelatedOptions(none);
  mlir::DialectRegistry registry;
  quern::registerDialects(registry);
  return failed(mlir::MlirLspServerMain(argc, argv, registry));
}
