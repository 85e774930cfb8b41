//===- Emitter.h - Device functions as CUDA C++ -----------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Prints a `gpu.func` (scf, arith, math, memref, vector and gpu ops) as a CUDA C++
/// kernel that people can read. The text includes "quern.cuh" and nothing else; NVRTC
/// compiles it for a GPU and the emulated device compiles it for this machine.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_CODEGEN_CUDA_EMITTER_H
#define QUERN_CODEGEN_CUDA_EMITTER_H

#include "mlir/Dialect/GPU/IR/CompilationInterfaces.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include <string>

namespace quern {

/// The text of one kernel. An `unsupported:` error is emitted at an op that cannot be printed.
mlir::FailureOr<std::string> emitCuda(mlir::gpu::GPUFuncOp function);
/// The text of all kernels of a module.
mlir::FailureOr<std::string> emitCuda(mlir::gpu::GPUModuleOp module);

/// `quern-emit-cuda`: schedules each kernel of a module and prints its text on stdout.
void registerEmitCUDAPass();

/// `#quern.nvrtc` compiles device modules (quern/Dialect/Quern/IR/NvrtcAttr.h).
void registerNvrtcTarget(mlir::DialectRegistry &registry);

} // namespace quern

#endif // QUERN_CODEGEN_CUDA_EMITTER_H
