//===- quern-opt.cpp - Runs passes over IR files --------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Dialect/Kernel/IR/Kernel.h"
#include "quern/Dialect/Quern/IR/Quern.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

namespace quern {
void registerQuernToLinalgPass();
}

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<quern::QuernDialect, quern::kernel::KernelDialect, mlir::arith::ArithDialect,
                  mlir::func::FuncDialect, mlir::linalg::LinalgDialect, mlir::math::MathDialect,
                  mlir::memref::MemRefDialect, mlir::scf::SCFDialect, mlir::tensor::TensorDialect,
                  mlir::vector::VectorDialect, mlir::LLVM::LLVMDialect,
                  mlir::bufferization::BufferizationDialect, mlir::cf::ControlFlowDialect>();
  quern::registerQuernToLinalgPass();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "Quern's optimiser driver\n", registry));
}
