//===- LoweringBuilder.h - From ops to linalg on tensors --------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What a lowering function writes to. The form that schedulers read: a graph of
/// `linalg.generic` on tensors; regions of arith and math ops on signless scalars,
/// with `linalg.index`, `kernel.dim` and `tensor.extract` (from kernel arguments or
/// other values) where an index map does not do. Types keep their dims' names.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_CONVERSION_QUERNTOLINALG_LOWERINGBUILDER_H
#define QUERN_CONVERSION_QUERNTOLINALG_LOWERINGBUILDER_H

#include "mlir/IR/AffineMap.h"
#include "mlir/IR/Builders.h"
#include "mlir/Pass/Pass.h"
#include "quern/Dialect/Quern/IR/Quern.h"
#include "quern/Dialect/Quern/IR/ScalarBuilder.h"

namespace quern {

class LoweringBuilder {
public:
  /// `operands`: the op's operands, already lowered, by flat number.
  LoweringBuilder(mlir::OpBuilder &b, mlir::Operation *op, mlir::ValueRange operands)
      : b(b), loc(op->getLoc()), op(op), operands(operands) {}

  mlir::OpBuilder &b;
  mlir::Location loc;

  /// The lowered value of declared operand `i` (null when left out), or element `j` of a list.
  mlir::Value operand(unsigned i, unsigned j = 0) const;
  unsigned numElements(unsigned i) const;
  /// The dtype of an operand as the op sees it (with its sign).
  mlir::Type dtype(unsigned i) const;
  mlir::Type resultDtype(unsigned i = 0) const;
  llvm::SmallVector<Dim> resultDims(unsigned i = 0) const;
  static llvm::SmallVector<Dim> dims(mlir::Value v) {
    return getDims(mlir::cast<mlir::RankedTensorType>(v.getType()));
  }

  /// An uninitialised tensor; its free sizes are `kernel.dim` ops.
  mlir::Value empty(llvm::ArrayRef<Dim> dims, mlir::Type dtype);
  /// A tensor of one number.
  mlir::Value fill(llvm::ArrayRef<Dim> dims, mlir::Type dtype, Scalar number);
  /// The value of a size, as an index.
  mlir::Value dim(Dim d);

  using Region = llvm::function_ref<Scalar(ScalarBuilder &, llvm::ArrayRef<Scalar>)>;
  /// One result element from the inputs' elements at the maps. Inputs and result are seen in
  /// compute dtype (f32 for f16 and bf16) with sign by `dtypes`; loops are the result's dims.
  mlir::Value pointwise(llvm::ArrayRef<Dim> dims, mlir::Type dtype, mlir::ValueRange inputs,
                        llvm::ArrayRef<mlir::Type> dtypes, llvm::ArrayRef<mlir::AffineMap> maps,
                        Region region);
  /// The same with numpy's broadcasting in place of maps. An operand whose broadcast is decided by
  /// the call has no map: the region reads it by its own size. (quern-fuse gives pointwise kernels
  /// such an operand as a strided argument of the result's sizes, which loads as vectors; here,
  /// where ops of any class and functions without kernels are lowered, there is nobody to choose a
  /// stride.)
  mlir::Value broadcast(llvm::ArrayRef<Dim> dims, mlir::Type dtype, mlir::ValueRange inputs,
                        llvm::ArrayRef<mlir::Type> dtypes, Region region);
  /// A reduction: `loops` are all loop sizes, `reduced` marks the summed ones, the result's dims
  /// are the others in order. `combine(accumulator, elements…)`; `init` is the neutral element. The
  /// accumulator has `accumulatorDtype`, which is also the result's. A loop that is no dim of an
  /// input or of the result gets its size from an extra input, a `tensor.empty` that is not read.
  mlir::Value
  reduce(llvm::ArrayRef<Dim> loops, llvm::ArrayRef<bool> reduced, mlir::Type accumulatorDtype,
         Scalar init, mlir::ValueRange inputs, llvm::ArrayRef<mlir::Type> dtypes,
         llvm::ArrayRef<mlir::AffineMap> maps,
         llvm::function_ref<Scalar(ScalarBuilder &, Scalar, llvm::ArrayRef<Scalar>)> combine);
  /// The same elements in the same order with other sizes (kernel.view).
  mlir::Value view(mlir::Value v, llvm::ArrayRef<Dim> dims);
  /// Pointwise conversion to another dtype (none when it is the same).
  mlir::Value convert(mlir::Value v, mlir::Type from, mlir::Type to);

  /// The dtype in which sums of this dtype are accumulated (f32 for f16 and bf16).
  static mlir::Type accumulatorType(mlir::Type dtype) { return ScalarBuilder::computeType(dtype); }

  /// Inside a region: the loop index as index type, an element of a tensor at computed indices
  /// (as a scalar in compute dtype).
  mlir::Value index(unsigned loop);
  Scalar extract(mlir::Value tensor, mlir::Type dtype, mlir::ValueRange indices);
  /// An index as a scalar of an integer dtype (i64 by default), and back.
  Scalar fromIndex(mlir::Value index, mlir::Type dtype = {});
  mlir::Value toIndex(Scalar s);
  mlir::Value constantIndex(int64_t v);
  /// Index arithmetic.
  mlir::Value addIndex(mlir::Value x, mlir::Value y);
  mlir::Value subIndex(mlir::Value x, mlir::Value y);
  mlir::Value mulIndex(mlir::Value x, mlir::Value y);
  /// One of two scalars of the same dtype; only the chosen side is evaluated, so that an element
  /// which is not there is not read.
  Scalar choose(mlir::Value condition, llvm::function_ref<Scalar()> then,
                llvm::function_ref<Scalar()> otherwise);

  /// The map of an operand that broadcasts into `dims`: constant 0 where its dim is known 1.
  mlir::AffineMap broadcastMap(mlir::Value operand, llvm::ArrayRef<Dim> dims);
  mlir::AffineMap identityMap(unsigned rank);

private:
  mlir::Operation *op;
  mlir::ValueRange operands;
  mlir::Type elementType(mlir::Type dtype) { return ScalarBuilder::signless(dtype); }
};

/// A lowering: the results' values, or failure after an error.
using LoweringFunction = mlir::FailureOr<llvm::SmallVector<mlir::Value>> (*)(mlir::Operation *,
                                                                             LoweringBuilder &);

namespace lowering {
#include "quern/Dialect/Quern/IR/Lowerings.h.inc"
} // namespace lowering

/// Lowers one structured op; null results where it failed (after an error).
mlir::FailureOr<llvm::SmallVector<mlir::Value>> lowerOp(mlir::Operation *op, LoweringBuilder &b);

/// Lowers every structured op in a kernel.func or func.func, in place. Argument types lose their
/// sign, and keep the names of their dims.
mlir::LogicalResult lowerToLinalg(mlir::Operation *function);
/// The same for all functions and kernels: `quern-to-linalg`.
std::unique_ptr<mlir::Pass> createQuernToLinalgPass();
void registerQuernToLinalgPass();

/// Ops read through ops that only move elements (permutations, broadcasts), which then go. Part of
/// `lowerToLinalg`.
void composeMoves(mlir::Operation *function);

} // namespace quern

#endif // QUERN_CONVERSION_QUERNTOLINALG_LOWERINGBUILDER_H
