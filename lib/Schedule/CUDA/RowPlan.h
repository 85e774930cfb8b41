//===- RowPlan.h - Reductions over the same rows ----------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Softmax, normalisations, losses, sums: any chain of reductions over the same rows,
/// with element-wise work between. A *row* is what is reduced together, its elements
/// are the *columns*; neither need be dims that lie together in memory.
///
/// Which dims of an out are its row is not read off the types: the out's element is
/// emitted once into a scratch function, and what its reductions are asked for tells.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_LIB_SCHEDULE_CUDA_ROWPLAN_H
#define QUERN_LIB_SCHEDULE_CUDA_ROWPLAN_H

#include "KernelBuilder.h"
#include "Reductions.h"

namespace quern::cuda {

struct RowReduction {
  mlir::linalg::LinalgOp op;
  SumOrder order;
  unsigned level; ///< one more than that of the reductions it needs
  /// How partial results are joined, for each result; empty when some cannot be.
  llvm::SmallVector<Combiner> combiners;
  llvm::SmallVector<Dim> columns; ///< its reduction loops
};

struct RowOut {
  Out out;
  llvm::SmallVector<bool> isRow; ///< of its dims
  llvm::SmallVector<Dim> columns;
};

struct RowPlan {
  llvm::SmallVector<RowReduction> reductions; ///< in order
  llvm::SmallVector<Dim> rows;
  /// Outs that are written in one loop over their columns.
  llvm::SmallVector<llvm::SmallVector<RowOut>> passes;

  /// Nothing when the body is none of that kind.
  static std::optional<RowPlan> make(BodyInfo &info);
};

/// Writes the outs of a pass at one column. False when the loads from number `firstLoad` on, those
/// of the pass, read elsewhere, or in another pass, what an out may overwrite.
bool writeOuts(KernelBuilder &k, llvm::ArrayRef<RowOut> pass, mlir::Value row, mlir::Value column,
               size_t firstLoad);

/// Whether an out of the pass may overwrite an operand.
bool mayShare(BodyInfo &info, llvm::ArrayRef<RowOut> pass);

} // namespace quern::cuda

#endif // QUERN_LIB_SCHEDULE_CUDA_ROWPLAN_H
