//===- Program.cpp - Compiled functions -----------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Program.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "quern/Dialect/Quern/IR/Quern.h"
#include "quern/Support/Error.h"

using namespace llvm;

namespace quern::conformance {

void loadDialects(mlir::MLIRContext &context) {
  context.loadDialect<QuernDialect, mlir::func::FuncDialect, mlir::tensor::TensorDialect>();
}

Expected<std::unique_ptr<Program>> Program::compile(mlir::ModuleOp module, Target target,
                                                    unsigned threads) {
  return unsupported("compiling");
}

} // namespace quern::conformance
