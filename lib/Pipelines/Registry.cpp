//===- Registry.cpp - Every dialect and pass of the tools -----------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Pipelines/Registry.h"
#include "mlir/Dialect/Affine/Transforms/Passes.h"
#include "mlir/Dialect/Func/Extensions/InlinerExtension.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/GPU/Transforms/Passes.h"
#include "mlir/Transforms/Passes.h"
#include "quern/Codegen/CUDA/Emitter.h"
#include "quern/Conversion/HostToLLVM/HostToLLVM.h"
#include "quern/Conversion/QuernToLinalg/LoweringBuilder.h"
#include "quern/Dialect/Kernel/IR/Kernel.h"
#include "quern/Dialect/Quern/IR/Quern.h"
#include "quern/Pipelines/Pipelines.h"
#include "quern/Schedule/CPU.h"
#include "quern/Schedule/CUDA.h"
#include "quern/Transforms/Passes.h"

namespace quern {

void registerDialects(mlir::DialectRegistry &registry) {
  registry.insert<QuernDialect, kernel::KernelDialect, mlir::affine::AffineDialect,
                  mlir::arith::ArithDialect, mlir::func::FuncDialect, mlir::linalg::LinalgDialect,
                  mlir::math::MathDialect, mlir::memref::MemRefDialect, mlir::scf::SCFDialect,
                  mlir::tensor::TensorDialect, mlir::vector::VectorDialect, mlir::LLVM::LLVMDialect,
                  mlir::bufferization::BufferizationDialect, mlir::cf::ControlFlowDialect,
                  mlir::gpu::GPUDialect>();
  mlir::func::registerInlinerExtension(registry);
  registerNvrtcTarget(registry);
}

void registerPasses() {
  registerQuernPasses();
  registerEmitCUDAPass();
  registerHostToLLVMPass();
  registerQuernToLinalgPass();
  registerScheduleCPUPass();
  registerScheduleCUDAPass();
  registerPipelines();
  // Canonicalisation, inlining, loop motion; and what clones loops.
  mlir::registerTransformsPasses();
  mlir::affine::registerAffineLoopUnroll();
  // Device modules to the objects of their targets.
  mlir::registerGpuModuleToBinaryPass();
}

} // namespace quern
