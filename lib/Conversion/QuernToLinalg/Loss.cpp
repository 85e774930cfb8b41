//===- Loss.cpp - Losses as linalg ----------------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Conversion/QuernToLinalg/LoweringBuilder.h"

using namespace mlir;

namespace quern::lowering {

using Results = FailureOr<SmallVector<Value>>;

namespace {
/// A row's target: its number, whether it counts, whether it is a class.
struct Target {
  Scalar number;
  Scalar counts;  ///< it is not ignore_index
  Scalar isClass; ///< it is in [0, C)
  Value safe;     ///< an index that may be read
};
} // namespace

static Target readTarget(LoweringBuilder &b, ScalarBuilder &s, Scalar number, Value classes,
                         int64_t ignoreIndex) {
  Target t;
  t.number = s.cast(number, b.b.getI64Type());
  t.counts = s.ne(t.number, Scalar(ignoreIndex));
  t.isClass = s.and_(s.ge(t.number, Scalar(0)), s.lt(t.number, b.fromIndex(classes)));
  t.safe = b.toIndex(s.select(t.isClass, t.number, Scalar(0)));
  return t;
}

Results nll_loss(Operation *op, LoweringBuilder &b) {
  Value self = b.operand(0), target = b.operand(1), weight = b.operand(2);
  Type dtype = b.resultDtype(), wide = b.accumulatorType(dtype), targetType = b.dtype(1);
  int64_t reduction = op->getAttrOfType<IntegerAttr>("reduction").getInt();
  int64_t ignoreIndex = op->getAttrOfType<IntegerAttr>("ignore_index").getInt();
  SmallVector<Dim> dims = b.dims(self);
  bool oneRow = dims.size() == 1;
  Value classes = b.dim(dims.back());
  SmallVector<Dim> rows = b.dims(target);

  auto rowWeight = [&](ScalarBuilder &s, Target &t) {
    Scalar w = weight ? b.extract(weight, dtype, t.safe) : s.materialize(Scalar(1), wide);
    return s.select(t.counts, w, Scalar(0));
  };
  auto rowLoss = [&](ScalarBuilder &s, Scalar number) {
    Target t = readTarget(b, s, number, classes, ignoreIndex);
    SmallVector<Value> at;
    if (!oneRow)
      at.push_back(b.index(0));
    at.push_back(t.safe);
    Scalar loss = s.neg(s.mul(b.extract(self, dtype, at), rowWeight(s, t)));
    Scalar nan(std::numeric_limits<double>::quiet_NaN());
    loss = s.select(t.isClass, loss, nan);
    return s.select(t.counts, loss, Scalar(0));
  };
  auto onRows = [&](auto fn) {
    return b.pointwise(rows, wide, target, targetType, b.identityMap(rows.size()),
                       [&](ScalarBuilder &s, ArrayRef<Scalar> in) { return fn(s, in[0]); });
  };
  Value losses = onRows(rowLoss);
  Value weights = onRows([&](ScalarBuilder &s, Scalar number) {
    Target t = readTarget(b, s, number, classes, ignoreIndex);
    return rowWeight(s, t);
  });
  auto sum = [&](Value v) -> Value {
    if (rows.empty())
      return v;
    return b.reduce(
        rows, SmallVector<bool>(rows.size(), true), wide, Scalar(0), v, wide,
        b.identityMap(rows.size()),
        [](ScalarBuilder &s, Scalar acc, ArrayRef<Scalar> in) { return s.add(acc, in[0]); });
  };
  if (reduction == 0 && !oneRow)
    return SmallVector<Value>{b.convert(losses, wide, dtype), b.fill({}, dtype, Scalar(0))};
  Value total = sum(weights), loss = sum(losses);
  if (reduction == 1)
    loss = b.broadcast({}, wide, {loss, total}, {wide, wide},
                       [](ScalarBuilder &s, ArrayRef<Scalar> in) { return s.div(in[0], in[1]); });
  return SmallVector<Value>{b.convert(loss, wide, dtype), b.convert(total, wide, dtype)};
}

Results nll_loss_backward(Operation *op, LoweringBuilder &b) {
  Value grad = b.operand(0), target = b.operand(1), weight = b.operand(2), total = b.operand(3);
  Type dtype = b.resultDtype();
  int64_t reduction = op->getAttrOfType<IntegerAttr>("reduction").getInt();
  int64_t ignoreIndex = op->getAttrOfType<IntegerAttr>("ignore_index").getInt();
  SmallVector<Dim> dims = b.resultDims();
  unsigned rank = dims.size();
  Value classes = b.dim(dims.back());
  MLIRContext *ctx = b.b.getContext();
  AffineMap scalar = AffineMap::get(rank, 0, ctx);
  AffineMap row = rank == 2 ? AffineMap::get(2, 0, b.b.getAffineDimExpr(0)) : scalar;
  // A single row's target may stand in a list of one.
  AffineMap targetMap = rank == 1 && b.dims(target).size() == 1
                            ? AffineMap::get(1, 0, b.b.getAffineConstantExpr(0))
                            : row;
  return SmallVector<Value>{
      b.pointwise(dims, dtype, {grad, target, total}, {dtype, b.dtype(1), dtype},
                  {b.dims(grad).empty() ? scalar : row, targetMap, scalar},
                  [&](ScalarBuilder &s, ArrayRef<Scalar> in) {
                    Target t = readTarget(b, s, in[1], classes, ignoreIndex);
                    Scalar g = s.neg(in[0]);
                    if (weight)
                      g = s.mul(g, b.extract(weight, dtype, t.safe));
                    if (reduction == 1)
                      g = s.div(g, in[2]);
                    Scalar here = s.eq(t.number, b.fromIndex(b.index(rank - 1)));
                    return s.select(s.and_(here, t.counts), g, Scalar(0));
                  })};
}

} // namespace quern::lowering
