//===- Reductions.h - In what order a reduction goes ------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_LIB_SCHEDULE_CUDA_REDUCTIONS_H
#define QUERN_LIB_SCHEDULE_CUDA_REDUCTIONS_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "quern/Shape/Dim.h"

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

/// In what order a reduction goes, which decides the bits of its result: docs/numerics.md. It
/// follows from the op by itself.
enum class SumOrder {
  Parts,    ///< `numParts` running values, of the elements equal mod that, joined pairwise
  Sequence, ///< one running value
  Any,      ///< the same in any order, or a sum of products
};
inline constexpr int64_t numParts = 64;
/// `loops`: the sizes of its loops.
SumOrder sumOrder(mlir::linalg::LinalgOp op, llvm::ArrayRef<Dim> loops);

} // namespace quern::cuda

#endif // QUERN_LIB_SCHEDULE_CUDA_REDUCTIONS_H
