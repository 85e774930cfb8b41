//===- Dims.h - Sizes over a function ---------------------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What the passes share that name, check and compute sizes: where symbols are
/// bound, what a function promises of them, what the checks of an op leave open.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_TRANSFORMS_DIMS_H
#define QUERN_TRANSFORMS_DIMS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "quern/Dialect/Quern/IR/OpRecord.h"
#include "llvm/ADT/DenseSet.h"

namespace quern {

/// Buffers start at multiples of these bytes, a cache line; the runtime aligns the arena so.
inline constexpr int64_t bufferAlignment = 64;

/// The bytes of a tensor of these sizes.
Dim getTensorBytes(llvm::ArrayRef<Dim> sizes, mlir::Type element);
/// The bytes that a buffer of these sizes takes: rounded up to the alignment.
Dim getBufferBytes(llvm::ArrayRef<Dim> sizes, mlir::Type element);

/// What a pass on tensors takes: fails, with an error, for a function on buffers, and where an
/// argument or a result is no tensor that a function can have (without a rank, with elements of no
/// dtype or more of them than 64 bits can count). Scalars are left to quern-bufferize.
mlir::LogicalResult verifyTensors(mlir::func::FuncOp func, llvm::StringRef pass);

/// What a pass on buffers takes: fails, with an error, where a tensor or a result is left.
mlir::LogicalResult verifyBuffers(mlir::func::FuncOp func, llvm::StringRef pass);

/// The ranges that the function promises.
Facts getSignatureFacts(mlir::func::FuncOp func);

/// Takes as known what the runtime checks of every argument: at most QUERN_MAX_BYTES.
void assumeArgumentsFit(mlir::func::FuncOp func, Facts &facts);

/// Runs the meta function of a structured op, and adds what its result types and its
/// destinations claim beyond it (`<op>_result`, `<op>_into`): the sizes must be equal, and
/// sizes that a tensor can have (at most QUERN_MAX_BYTES in all).
MetaResult runChecks(mlir::Operation *op, const Facts &facts);

/// Where the symbols of a function are bound: each once, by a dim of an argument or
/// of a `kernel.bind_dims`.
class DimBindings {
public:
  struct Binding {
    mlir::Value value;
    unsigned dim;
    /// Bound by an argument, or in the entry block by a bind_dims of one.
    bool inPrologue;
  };

  /// Fails, with an error, where a symbol is bound twice, or used where it is not bound.
  static mlir::FailureOr<DimBindings> get(mlir::func::FuncOp func);

  const Binding *lookup(llvm::StringRef symbol) const;
  /// Whether all of its symbols are known from the start of the function.
  bool inPrologue(const Condition &condition) const;
  /// The last bind_dims of an argument in the entry block, or null: the prologue starts behind.
  mlir::Operation *getLastInPrologue() const { return lastInPrologue; }

private:
  llvm::StringMap<Binding> bindings;
  mlir::Operation *lastInPrologue = nullptr;
};

/// What quern-propagate-shapes promises: sizes of all results of structured ops are
/// known by name, and names are bound once, before their uses.
mlir::LogicalResult verifyNamed(mlir::func::FuncOp func);

/// Names of the functions that the module mentions: others call them, so their
/// signatures carry no names of sizes.
llvm::DenseSet<mlir::StringAttr> getCalledFunctions(mlir::ModuleOp module);

/// Turns every kernel.dim of the function into arithmetic.
mlir::LogicalResult lowerDims(mlir::func::FuncOp func);

} // namespace quern

#endif // QUERN_TRANSFORMS_DIMS_H
