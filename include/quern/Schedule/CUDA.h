//===- CUDA.h - Kernel bodies to device functions ---------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A kernel in tensor semantics becomes a module with one device function and what the
/// host needs to launch it:
/// ```mlir
///   gpu.module @k_device {
///     gpu.func @k(%in0: memref<?xf32>, …, %out0: memref<?xf32>, %d0: index, …) kernel
///         attributes {known_block_size = array<i32: 256, 1, 1>, quern.index_bits = 64 : i32,
///                     quern.schedule = "…"}
///   }
///   func.func @k_range(%dims: !llvm.ptr) -> i64          // thread blocks
/// ```
/// Buffers are flat; the sizes, then the strides of strided arguments, follow them.
/// Buffers that share memory with no other carry `llvm.noalias`.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_SCHEDULE_CUDA_H
#define QUERN_SCHEDULE_CUDA_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "quern/Dialect/Kernel/IR/Kernel.h"

#include <memory>
#include <string>

namespace mlir {
class Pass;
}

namespace quern {
namespace cuda {

/// On a gpu.func: the bits of an index, 32 when every element number fits.
inline constexpr llvm::StringLiteral indexBitsAttrName = "quern.index_bits";
/// On a gpu.func: the schedule in words, for readers.
inline constexpr llvm::StringLiteral scheduleAttrName = "quern.schedule";
/// On a gpu.barrier: only of this many consecutive threads, a part of a warp.
inline constexpr llvm::StringLiteral teamAttrName = "quern.team";
/// On an scf.for: to be unrolled.
inline constexpr llvm::StringLiteral unrollAttrName = "quern.unroll";

} // namespace cuda

struct CudaScheduleOptions {
  /// Rounds at each op as written: products do not feed sums unrounded.
  bool strict = false;
};

/// A device function for one kernel, whose body is linalg on tensors, by the scheduler for
/// its kind or else by the generic one. An `unsupported:` error is emitted at the op that none
/// handles.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
scheduleCudaKernel(kernel::FuncOp kernel, const CudaScheduleOptions &options = {});

/// The device function of a module that `scheduleCudaKernel` made.
mlir::gpu::GPUFuncOp getDeviceFunction(mlir::ModuleOp module);

/// `quern-schedule-cuda`: a module becomes the functions of its kernels, with `chips` as the
/// targets of `gpu-module-to-binary`.
std::unique_ptr<mlir::Pass> createScheduleCUDAPass(const CudaScheduleOptions &options = {},
                                                   llvm::ArrayRef<std::string> chips = {});
void registerScheduleCUDAPass();

} // namespace quern

#endif // QUERN_SCHEDULE_CUDA_H
