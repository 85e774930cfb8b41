//===- Space.h - The iteration space of fused linalg ops --------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// One loop nest for a DAG of linalg.generic ops, if there is one: every op's loops
/// are expressed in the dims of the largest op, every tensor in memory is an access
/// that is linear in them, and dims that all accesses treat as one are collapsed.
/// Reductions must agree on the dims that they reduce (the *pass* dims): each level of
/// reductions is then one pass over those.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_LIB_SCHEDULE_CPU_SPACE_H
#define QUERN_LIB_SCHEDULE_CPU_SPACE_H

#include "Emitter.h"
#include "quern/Schedule/SumOrder.h"
#include "llvm/ADT/SetVector.h"

namespace quern::cpu {

/// Element number `offset + sum(coeffs[d] * index[d])` of a tensor in memory.
struct Access {
  mlir::Value tensor;
  llvm::SmallVector<Dim, 4> coeffs;
  Dim offset;

  bool dependsOn(unsigned dim) const { return !coeffs[dim].isConstant(0); }
  bool operator==(const Access &o) const {
    return tensor == o.tensor && coeffs == o.coeffs && offset == o.offset;
  }
};

/// The sizes of a value of the kernel's body: named by its type, or by what made it.
Dim dimOf(mlir::Value v, unsigned i);
llvm::SmallVector<Dim> shapeOf(mlir::Value v);
/// The size of a loop of `op`; unknown when no operand tells.
Dim loopSize(mlir::linalg::GenericOp op, unsigned loop);
/// The strides of a tensor in memory: the host's for a strided argument.
llvm::SmallVector<Dim> stridesOf(kernel::FuncOp kernel, mlir::Value v);
/// The value that holds the same elements in the same order: behind views and casts.
mlir::Value throughViews(mlir::Value v);
/// Follows reshapes that only add or drop unit dims, casts, and fills used as inits.
mlir::Value lookThrough(mlir::Value v, mlir::AffineMap &access);
/// The access of `map` (from a space of `numDims` dims) to a tensor; none when it is
/// not linear.
std::optional<Access> linearAccess(kernel::FuncOp kernel, mlir::Value tensor, mlir::AffineMap map);
/// In what order a reduction goes.
SumOrder sumOrder(mlir::linalg::GenericOp op);

class Space {
public:
  struct SpaceDim {
    Dim size;
    bool pass = false;
    unsigned loop = 0; ///< of the root op: the innermost one of those that it stands for
  };
  struct OpInfo {
    mlir::AffineMap loops; ///< from the root op's loops to this op's
    int level = 0;         ///< reductions that must be complete before its value is known
    bool reduction = false;
    llvm::SmallBitVector deps; ///< dims of the space on which its value depends
    llvm::SmallVector<std::optional<Access>> operands; ///< of those in memory
    llvm::SmallVector<Access> indices;                 ///< linalg.index, for each loop
  };
  struct Output {
    mlir::Value value; ///< what an op of the nest yields
    Access access;     ///< to the out argument (or buffer) that takes it
    int level = 0;     ///< the pass after (or in) which it is written
  };

  /// `ops` in order; `outputs`: values and the tensors in memory that take them;
  /// `inMemory`: whether a value is to be loaded instead of computed.
  Space(kernel::FuncOp kernel, llvm::ArrayRef<mlir::linalg::GenericOp> ops,
        llvm::ArrayRef<std::pair<mlir::Value, mlir::Value>> outputs,
        llvm::function_ref<bool(mlir::Value)> inMemory);
  /// Whether there is such a nest; if not, `reason` says why.
  bool isValid() const { return reason.empty(); }
  std::string reason;

  kernel::FuncOp kernel;
  llvm::SmallVector<mlir::linalg::GenericOp> ops;
  llvm::SmallVector<Output> outputs;
  llvm::SmallVector<SpaceDim> dims;
  llvm::DenseMap<mlir::Operation *, OpInfo> info;
  int levels = 0; ///< of reductions, one on top of another

  bool hasPassDims() const {
    return llvm::any_of(dims, [](const SpaceDim &d) { return d.pass; });
  }
  /// The op of the nest behind a value; null for what is in memory or a constant.
  mlir::linalg::GenericOp producer(mlir::Value v) const;
  bool inMemory(mlir::Value v) const { return memory.contains(v); }

private:
  bool fail(const llvm::Twine &why);
  bool mapLoops();
  bool mapBackwards(mlir::linalg::GenericOp op);
  bool mapForwards(mlir::linalg::GenericOp op);
  bool setLoops(mlir::linalg::GenericOp op, llvm::MutableArrayRef<mlir::AffineExpr> loops);
  bool findPassDims();
  bool makeAccesses(llvm::ArrayRef<std::pair<mlir::Value, mlir::Value>> outs);
  void chooseOrder(llvm::ArrayRef<std::pair<mlir::Value, mlir::Value>> outs);
  void findLevels();

  mlir::linalg::GenericOp root;
  llvm::SmallVector<Dim> rootSizes;
  llvm::SmallBitVector pass;         ///< over the root's loops
  llvm::SmallVector<unsigned> order; ///< root loops, outermost in memory first
  llvm::DenseSet<mlir::Value> memory;
};

} // namespace quern::cpu

#endif // QUERN_LIB_SCHEDULE_CPU_SPACE_H
