//===- Outline.h - Groups of ops become kernels -----------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A group of ops becomes a `kernel.func` in terms of its own dims, equal kernels once,
/// and a `kernel.launch` in its place.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_LIB_TRANSFORMS_OUTLINE_H
#define QUERN_LIB_TRANSFORMS_OUTLINE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "quern/Dialect/Kernel/IR/Kernel.h"
#include "quern/Dialect/Quern/IR/Quern.h"
#include "llvm/ADT/StringMap.h"

namespace quern {

/// The result type of `op` that an operand must be given, when the operand's own sizes only turn
/// out at run time to be equal or broadcast: `strided` says that they may broadcast.
struct OperandForm {
  mlir::RankedTensorType type;
  bool strided = false;
};
OperandForm getOperandForm(StructuredOp op, mlir::OpOperand &operand);

/// Whether the operand is made inside the kernel that reads it: a splat constant, or an op without
/// operands, where the reader goes element by element; a permutation that a contraction reads.
bool isRemadeInside(mlir::OpOperand &operand);

class Outliner {
public:
  explicit Outliner(mlir::ModuleOp module);

  /// Makes (or finds) the kernel of these ops, which are in order, and a launch before `before`;
  /// replaces the results and erases the ops. Null after an error.
  kernel::LaunchOp outline(llvm::ArrayRef<mlir::Operation *> ops, mlir::Operation *before);

private:
  mlir::ModuleOp module;
  mlir::SymbolTable symbols;
  llvm::StringMap<kernel::FuncOp> kernels; ///< by text
};

} // namespace quern

#endif // QUERN_LIB_TRANSFORMS_OUTLINE_H
