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

/// Checks of the targets and class weights for rows of scores [N, C] or [C], as nll_loss numbers
/// them; `scores` names the scores.
static bool checkTargets(MetaContext &m, StringRef scores, ArrayRef<Dim> dims, Type dtype,
                         const TensorMeta &target, const TensorMeta &weight, int64_t reduction) {
  int64_t rank = dims.size();
  if (!m.check(1, target.dtype.isSignlessInteger(64) || target.dtype.isUnsignedInteger(8),
               "expected target to be i64 or u8, got {0}", {target.dtype}) ||
      (weight && !m.check(1, weight.dtype == dtype,
                          "expected weight to have the dtype of the scores, got {0} and {1}",
                          {weight.dtype, dtype})) ||
      !m.check(2, rank == 1 || rank == 2,
               ("expected " + scores + " to have rank 1 or 2, got rank {0}").str(), {rank}))
    return false;
  // A single row may have its target in a list of one.
  bool listOfOne = rank == 1 && target.rank() == 1;
  if (!m.check(2, listOfOne || target.rank() == rank - 1,
               "expected target to have rank {0}, got rank {1}", {rank - 1, target.rank()}))
    return false;
  if (listOfOne && !m.check(3, Condition::eq(target.dim(0), m.constant(1)),
                            "expected target dim 0 to be 1 for one row, got {0}", {target.dim(0)}))
    return false;
  if (rank == 2 &&
      !m.check(
          3, Condition::eq(dims[0], target.dim(0)),
          ("expected " + scores + " dim 0 to equal target dim 0 (rows), got {0} and {1}").str(),
          {dims[0], target.dim(0)}))
    return false;
  Dim classes = dims[rank - 1];
  if (weight && (!m.check(4, weight.rank() == 1, "expected weight to have rank 1, got rank {0}",
                          {weight.rank()}) ||
                 !m.check(4, Condition::eq(weight.dim(0), classes),
                          "expected weight to have {0} elements (classes), got {1}",
                          {classes, weight.dim(0)})))
    return false;
  return m.check(5, reduction >= 0 && reduction <= 2, "expected reduction to be 0, 1 or 2, got {0}",
                 {reduction});
}

static void nllLoss(const NllLossArgs &a, MetaContext &m) {
  Type dtype = a.self.dtype;
  int64_t rank = a.self.rank();
  if (!m.check(1, isa<FloatType>(dtype), "expected self to be of a float dtype, got {0}",
               {dtype}) ||
      !checkTargets(m, "self", a.self.dims, dtype, a.target, a.weight, a.reduction))
    return;
  Condition hasClass = Condition::le(m.constant(1), a.self.dim(rank - 1));
  if (!m.check(6,
               rank == 1
                   ? hasClass
                   : Condition::anyOf({hasClass, Condition::eq(a.self.dim(0), m.constant(0))}),
               "expected self to have a class to choose, got {0}", {a.self.dim(rank - 1)}))
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
               {a.total_weight.dtype, dtype}) ||
      !m.checkSizes(2, a.size, "size") ||
      !checkTargets(m, "size", a.size, dtype, a.target, a.weight, a.reduction) ||
      !m.check(2, a.total_weight.rank() == 0, "expected total_weight to have rank 0, got rank {0}",
               {a.total_weight.rank()}))
    return;
  int64_t rank = a.reduction == 0 && a.size.size() == 2;
  if (!m.check(6, a.grad_output.rank() == rank,
               "expected grad_output to have rank {0}, got rank {1}",
               {rank, a.grad_output.rank()}) ||
      (rank && !m.check(6, Condition::eq(a.grad_output.dim(0), a.size[0]),
                        "expected grad_output dim 0 to equal size 0 (rows), got {0} and {1}",
                        {a.grad_output.dim(0), a.size[0]})))
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
