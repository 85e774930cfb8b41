//===- KernelBuilder.h - A device function being built ----------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_LIB_SCHEDULE_CUDA_KERNELBUILDER_H
#define QUERN_LIB_SCHEDULE_CUDA_KERNELBUILDER_H

#include "Body.h"
#include "quern/Schedule/CUDA.h"
#include <memory>

namespace quern::cuda {

/// The module of one kernel: what `scheduleCudaKernel` answers.
class KernelBuilder {
public:
  /// `threads`: of a block.
  KernelBuilder(BodyInfo &info, int threads);

  /// Writes the range function (`blocks` thread blocks), removes what is not used, hands the
  /// module over. `schedule`: in words.
  mlir::OwningOpRef<mlir::ModuleOp> finish(Dim blocks, const llvm::Twine &schedule);

  mlir::Value lessThan(mlir::Value a, mlir::Value b);
  /// `if (condition) { … }`: the builder goes into it. Leave it with `b.setInsertionPointAfter`.
  mlir::scf::IfOp enterIf(mlir::Value condition);
  /// `for (i = from; i < to; i += step) { … }` with carried values: the builder goes into it; the
  /// body ends with a yield of them when there are any.
  mlir::scf::ForOp enterFor(mlir::Value from, mlir::Value to, mlir::Value step,
                            llvm::StringRef name, mlir::ValueRange carried = {});
  /// A `__shared__` array.
  mlir::Value shared(llvm::ArrayRef<int64_t> shape, mlir::Type elementType, llvm::StringRef name);
  void barrier();
  mlir::Location named(llvm::StringRef name);
  mlir::Value name(mlir::Value value, llvm::StringRef name);

  BodyInfo &info;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::gpu::GPUFuncOp function;
  mlir::OpBuilder b;
  /// Of what needs no name in the text.
  mlir::Location loc;
  mlir::Value block, thread;
  std::unique_ptr<Indexing> indexing;
  std::unique_ptr<Body> body;

private:
  llvm::SmallVector<Dim> symbols;
};

/// The schedulers. Null, without a message, when the body is none of that kind.
using ScheduledModule = mlir::OwningOpRef<mlir::ModuleOp>;
ScheduledModule schedulePointwise(BodyInfo &info, const CudaScheduleOptions &options);
ScheduledModule scheduleRowReduction(BodyInfo &info, const CudaScheduleOptions &options);
ScheduledModule scheduleColumnReduction(BodyInfo &info, const CudaScheduleOptions &options);
ScheduledModule scheduleContraction(BodyInfo &info, const CudaScheduleOptions &options);
ScheduledModule scheduleGeneric(BodyInfo &info, const CudaScheduleOptions &options);

/// The outs of a kernel: what is yielded, and the argument that it is written to.
struct Out {
  mlir::Value value;
  unsigned argument;
  llvm::SmallVector<Dim> sizes;
};
llvm::SmallVector<Out> getOuts(BodyInfo &info);

} // namespace quern::cuda

#endif // QUERN_LIB_SCHEDULE_CUDA_KERNELBUILDER_H
