//===- Reductions.h - How partial results are joined ------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_LIB_SCHEDULE_CUDA_REDUCTIONS_H
#define QUERN_LIB_SCHEDULE_CUDA_REDUCTIONS_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "quern/Schedule/SumOrder.h"

namespace quern::cuda {

/// A combiner of two partial results.
struct Combiner {
  mlir::Operation *op;
  mlir::gpu::AllReduceOperation kind;
  mlir::TypedAttr neutral;

  /// A clone of the combiner: `a` is where the accumulator was.
  mlir::Value join(mlir::OpBuilder &builder, mlir::Value a, mlir::Value b) const;
};

/// How partial results of an accumulator are joined: the one op that takes it.
std::optional<Combiner> matchCombiner(mlir::linalg::LinalgOp op, unsigned init);

} // namespace quern::cuda

#endif // QUERN_LIB_SCHEDULE_CUDA_REDUCTIONS_H
