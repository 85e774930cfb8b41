//===- quern-opt.cpp - Runs passes over IR files --------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "quern/Dialect/Kernel/IR/Kernel.h"
#include "quern/Dialect/Quern/IR/Quern.h"
#include "quern/Transforms/Passes.h"

namespace quern {
void registerHostToLLVMPass();
void registerQuernToLinalgPass();
}

static llvm::cl::opt<bool> report("quern-report",
                                  llvm::cl::desc("passes remark what they chose and refused"));

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<quern::QuernDialect, quern::kernel::KernelDialect, mlir::arith::ArithDialect,
                  mlir::func::FuncDialect, mlir::linalg::LinalgDialect, mlir::math::MathDialect,
                  mlir::memref::MemRefDialect, mlir::scf::SCFDialect, mlir::tensor::TensorDialect,
                  mlir::vector::VectorDialect, mlir::LLVM::LLVMDialect,
                  mlir::bufferization::BufferizationDialect, mlir::cf::ControlFlowDialect>();
  // Options are parsed before a context exists; the dialect carries them to the passes.
  registry.addExtension(+[](mlir::MLIRContext *, quern::kernel::KernelDialect *dialect) {
    dialect->reporting = report;
  });
  quern::registerQuernPasses();
  quern::registerHostToLLVMPass();
  quern::registerQuernToLinalgPass();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "Quern's optimiser driver\n", registry));
}
