//===- Loss.cpp - Losses --------------------------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Dialect/Quern/IR/Ops/Loss.h"

#define GET_STRUCTURED_ARGS
#include "quern/Dialect/Quern/IR/Ops/Loss.structured.inc"

using namespace mlir;

namespace quern::meta {

static void nllLoss(const NllLossArgs &a, MetaContext &m) {
  Type dtype = a.self.dtype, index = a.target.dtype;
  if (!m.check(1, isa<FloatType>(dtype), "expected self to be of a float dtype, got {0}",
               {dtype}) ||
      !m.check(1, index.isSignlessInteger(64) || index.isUnsignedInteger(8),
               "expected target to be i64 or u8, got {0}", {index}) ||
      (a.weight && !m.check(1, a.weight.dtype == dtype,
                            "expected weight to have the dtype of self, got {0} and {1}",
                            {a.weight.dtype, dtype})))
    return;
  int64_t rank = a.self.rank();
  if (!m.check(2, rank == 1 || rank == 2, "expected self to have rank 1 or 2, got rank {0}",
               {rank}))
    return;
  // A single row may have its target in a list of one.
  bool listOfOne = rank == 1 && a.target.rank() == 1;
  if (!m.check(2, listOfOne || a.target.rank() == rank - 1,
               "expected target to have rank {0}, got rank {1}", {rank - 1, a.target.rank()}))
    return;
  if (listOfOne &&
      !m.check(3, Condition::eq(a.target.dim(0), m.constant(1)),
               "expected target dim 0 to be 1 for one row, got {0}", {a.target.dim(0)}))
    return;
  if (rank == 2 && !m.check(3, Condition::eq(a.self.dim(0), a.target.dim(0)),
                            "expected self dim 0 to equal target dim 0 (rows), got {0} and {1}",
                            {a.self.dim(0), a.target.dim(0)}))
    return;
  if (a.weight) {
    Dim classes = a.self.dim(rank - 1);
    if (!m.check(4, a.weight.rank() == 1, "expected weight to have rank 1, got rank {0}",
                 {a.weight.rank()}) ||
        !m.check(4, Condition::eq(a.weight.dim(0), classes),
                 "expected weight to have {0} elements (classes), got {1}",
                 {classes, a.weight.dim(0)}))
      return;
  }
  if (!m.check(5, a.reduction >= 0 && a.reduction <= 2,
               "expected reduction to be 0, 1 or 2, got {0}", {a.reduction}))
    return;
  if (a.reduction == 0 && rank == 2)
    m.setOutput(0, {a.self.dim(0)}, dtype);
  else
    m.setOutput(0, {}, dtype);
  m.setOutput(1, {}, dtype);
}

static void nllLossBackward(const NllLossBackwardArgs &a, MetaContext &m) {
  Type dtype = a.grad_output.dtype;
  if (!m.check(1, isa<FloatType>(dtype), "expected grad_output to be of a float dtype, got {0}",
               {dtype}) ||
      !m.check(1, a.total_weight.dtype == dtype,
               "expected total_weight to have the dtype of grad_output, got {0} and {1}",
               {a.total_weight.dtype, dtype}))
    return;
  int64_t rank = a.size.size();
  bool listOfOne = rank == 1 && a.target.rank() == 1 && a.target.dim(0).isConstant(1);
  if (!m.check(2, rank == 1 || rank == 2, "expected size to have rank 1 or 2, got rank {0}",
               {rank}) ||
      !m.check(2, listOfOne || a.target.rank() == rank - 1,
               "expected target to have rank {0}, got rank {1}", {rank - 1, a.target.rank()}))
    return;
  m.setOutput(0, a.size, dtype);
}

} // namespace quern::meta

namespace quern::derivative {

static void nllLoss(NllLossOp op, DerivativeBuilder &b) {
  if (!b.wants(0) || b.isZero(0))
    return;
  OpBuilder &builder = b.getBuilder();
  Value weight = op.getWeight();
  b.set(0, Term(b.create(
               "nll_loss_backward", {b.grad(0), op.getTarget(), weight, op.getTotalWeight()},
               {builder.getNamedAttr("size", b.attr(b.shape(op.getSelf()))),
                builder.getNamedAttr("reduction", b.attr(int64_t(op.getReduction()))),
                builder.getNamedAttr("ignore_index", b.attr(int64_t(op.getIgnoreIndex())))})));
}

} // namespace quern::derivative

#define GET_STRUCTURED_DEFS
#include "quern/Dialect/Quern/IR/Ops/Loss.structured.inc"

#define GET_OP_CLASSES
#include "quern/Dialect/Quern/IR/Ops/Loss.cpp.inc"
