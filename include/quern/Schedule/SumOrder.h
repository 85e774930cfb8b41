//===- SumOrder.h - In what order a reduction goes --------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What decides the bits of a reduction's result (docs/numerics.md). It follows from the op by
/// itself, not from what it is fused with, and it is one rule for every target: their results are
/// the same bits.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_SCHEDULE_SUMORDER_H
#define QUERN_SCHEDULE_SUMORDER_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "quern/Shape/Dim.h"

namespace quern {

/// The op that joins two running values of result `i` of a reduction, when the region
/// only applies it: `acc' = op(acc, f(inputs))`; else null.
mlir::Operation *combinerOf(mlir::linalg::LinalgOp op, unsigned i);
/// What the combiner leaves unchanged; null when there is none.
mlir::TypedAttr neutralElement(mlir::Operation *combiner);

enum class SumOrder {
  Parts,    ///< `numParts` running values, of the elements equal mod that, joined pairwise
  Sequence, ///< one running value
  Any,      ///< all orders give the same, or (sums of products) several are allowed
};
inline constexpr int64_t numParts = 64;
/// `loops`: the sizes of the op's loops.
SumOrder sumOrder(mlir::linalg::LinalgOp op, llvm::ArrayRef<Dim> loops);

} // namespace quern

#endif // QUERN_SCHEDULE_SUMORDER_H
