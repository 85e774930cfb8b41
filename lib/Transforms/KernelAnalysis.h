//===- KernelAnalysis.h - What a lowered body says --------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Facts for fusion, read from the linalg form of ops, so that no pass knows ops by
/// name: over which dims they reduce, at which index they read, which out may be the
/// buffer of which in.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_LIB_TRANSFORMS_KERNELANALYSIS_H
#define QUERN_LIB_TRANSFORMS_KERNELANALYSIS_H

#include "quern/Dialect/Kernel/IR/Kernel.h"
#include "quern/Dialect/Quern/IR/Quern.h"
#include "llvm/ADT/SmallBitVector.h"

namespace quern {

/// The loops of an op (or of all ops of a kernel), and which of them are reduced.
struct LoopSpace {
  llvm::SmallVector<Dim> full;
  llvm::SmallBitVector reduced;

  /// The dims of a value that stays after the reduction: with ones for the reduced, or without.
  llvm::SmallVector<Dim> kept(bool withOnes) const;
  friend bool operator==(const LoopSpace &a, const LoopSpace &b) {
    return a.full == b.full && a.reduced == b.reduced;
  }
};

/// How a reduction or row op sees its operands.
struct RowFacts {
  LoopSpace space;
  /// By flat operand: read at the loops' own index, everywhere.
  llvm::SmallBitVector identity;
};

/// What the op's result is another view of; null for an op that makes no view.
mlir::Value viewSource(mlir::Operation *op);

/// An op lowered by itself: its operands are the block's arguments.
struct LoweredAlone {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::Block *block;
  mlir::Operation *op;
  llvm::SmallVector<mlir::Value> results;
};

/// None, and no error, when the op has no linalg form.
std::optional<LoweredAlone> lowerAlone(StructuredOp op);

/// The facts of an op that reduces; none when its reductions are over different loops, or when it
/// has no linalg form.
std::optional<RowFacts> analyzeRows(StructuredOp op);

/// Derives `kind` and `share` of a kernel whose body still holds structured ops. Fails, after an
/// error, when an op cannot be lowered.
mlir::LogicalResult deriveKernelFacts(kernel::FuncOp kernel);

} // namespace quern

#endif // QUERN_LIB_TRANSFORMS_KERNELANALYSIS_H
