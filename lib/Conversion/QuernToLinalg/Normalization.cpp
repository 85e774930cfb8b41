//===- Normalization.cpp - Softmax and layer normalisation as linalg ------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Conversion/QuernToLinalg/LoweringBuilder.h"

using namespace mlir;

namespace quern::lowering {

using Results = FailureOr<SmallVector<Value>>;

namespace {
/// Reductions over some dims of tensors that all have these dims; what is reduced is read back by
/// the map that drops them.
struct Rows {
  LoweringBuilder &b;
  SmallVector<Dim> dims;
  SmallVector<bool> reduced;
  Type wide;

  AffineMap full() { return b.identityMap(dims.size()); }
  AffineMap row() {
    SmallVector<AffineExpr> exprs;
    for (auto [i, r] : llvm::enumerate(reduced))
      if (!r)
        exprs.push_back(b.b.getAffineDimExpr(i));
    return AffineMap::get(dims.size(), 0, exprs, b.b.getContext());
  }
  /// The loops' trailing dims only: weights of the normalised dims.
  AffineMap column() {
    SmallVector<AffineExpr> exprs;
    for (auto [i, r] : llvm::enumerate(reduced))
      if (r)
        exprs.push_back(b.b.getAffineDimExpr(i));
    return AffineMap::get(dims.size(), 0, exprs, b.b.getContext());
  }
  SmallVector<Dim> rowDims() {
    SmallVector<Dim> out;
    for (auto [d, r] : llvm::zip(dims, reduced))
      if (!r)
        out.push_back(d);
    return out;
  }
  template <typename Fn> Value reduce(Value v, Type dtype, Scalar init, Fn combine) {
    return b.reduce(
        dims, reduced, wide, init, v, dtype, full(),
        [&](ScalarBuilder &s, Scalar acc, ArrayRef<Scalar> in) { return combine(s, acc, in[0]); });
  }
};
} // namespace

/// exp(x - max) in wide dtype, and its sum along dim; `max` by row.
static void softmaxParts(Rows &rows, Value self, Type dtype, Value &max, Value &exps, Value &sum) {
  LoweringBuilder &b = rows.b;
  max = rows.reduce(self, dtype, Scalar(-std::numeric_limits<double>::infinity()),
                    [](ScalarBuilder &s, Scalar acc, Scalar x) { return s.max(acc, x); });
  exps =
      b.pointwise(rows.dims, rows.wide, {self, max}, {dtype, rows.wide}, {rows.full(), rows.row()},
                  [](ScalarBuilder &s, ArrayRef<Scalar> in) { return s.exp(s.sub(in[0], in[1])); });
  sum = rows.reduce(exps, rows.wide, Scalar(0),
                    [](ScalarBuilder &s, Scalar acc, Scalar x) { return s.add(acc, x); });
}

static Rows softmaxRows(Operation *op, LoweringBuilder &b) {
  Rows rows{b, b.resultDims(), {}, b.accumulatorType(b.resultDtype())};
  int64_t dim = op->getAttrOfType<IntegerAttr>("dim").getInt(), rank = rows.dims.size();
  rows.reduced.assign(rank, false);
  if (rank)
    rows.reduced[dim < 0 ? dim + rank : dim] = true;
  return rows;
}

Results softmax(Operation *op, LoweringBuilder &b) {
  Rows rows = softmaxRows(op, b);
  Type dtype = b.resultDtype();
  Value max, exps, sum;
  softmaxParts(rows, b.operand(0), dtype, max, exps, sum);
  return SmallVector<Value>{
      b.pointwise(rows.dims, dtype, {exps, sum}, {rows.wide, rows.wide}, {rows.full(), rows.row()},
                  [](ScalarBuilder &s, ArrayRef<Scalar> in) { return s.div(in[0], in[1]); })};
}

Results log_softmax(Operation *op, LoweringBuilder &b) {
  Rows rows = softmaxRows(op, b);
  Type dtype = b.resultDtype();
  Value max, exps, sum;
  softmaxParts(rows, b.operand(0), dtype, max, exps, sum);
  return SmallVector<Value>{
      b.pointwise(rows.dims, dtype, {b.operand(0), max, sum}, {dtype, rows.wide, rows.wide},
                  {rows.full(), rows.row(), rows.row()}, [](ScalarBuilder &s, ArrayRef<Scalar> in) {
                    return s.sub(s.sub(in[0], in[1]), s.log(in[2]));
                  })};
}

// Two passes, as the definition says: the mean, then the mean of squared distances from it.
Results layer_norm(Operation *op, LoweringBuilder &b) {
  Type dtype = b.resultDtype();
  Rows rows{b, b.resultDims(), {}, b.accumulatorType(dtype)};
  int64_t rank = rows.dims.size();
  int64_t n = op->getAttrOfType<DimsAttr>("normalized_shape").getDims().size();
  double eps = op->getAttrOfType<FloatAttr>("eps").getValueAsDouble();
  for (int64_t i = 0; i < rank; ++i)
    rows.reduced.push_back(i >= rank - n);
  Type wide = rows.wide;
  Value input = b.operand(0), weight = b.operand(1), bias = b.operand(2);

  Dim count = Dim::product(b.b.getContext(), ArrayRef(rows.dims).drop_front(rank - n));
  Value countValue = b.dim(count);
  auto divideByCount = [&](ScalarBuilder &s, Scalar x) {
    return s.div(x, s.cast(b.fromIndex(countValue), wide));
  };
  SmallVector<Dim> rowDims = rows.rowDims();
  auto add = [](ScalarBuilder &s, Scalar acc, Scalar x) { return s.add(acc, x); };
  Value sum = rows.reduce(input, dtype, Scalar(0), add);
  Value mean = b.broadcast(rowDims, wide, sum, wide, [&](ScalarBuilder &s, ArrayRef<Scalar> in) {
    return divideByCount(s, in[0]);
  });
  Value squares =
      b.reduce(rows.dims, rows.reduced, wide, Scalar(0), {input, mean}, {dtype, wide},
               {rows.full(), rows.row()}, [](ScalarBuilder &s, Scalar acc, ArrayRef<Scalar> in) {
                 Scalar distance = s.sub(in[0], in[1]);
                 return s.add(acc, s.mul(distance, distance));
               });
  Value rstd =
      b.broadcast(rowDims, wide, squares, wide, [&](ScalarBuilder &s, ArrayRef<Scalar> in) {
        return s.rsqrt(s.add(divideByCount(s, in[0]), Scalar(eps)));
      });

  SmallVector<Value> inputs{input, mean, rstd};
  SmallVector<Type> dtypes{dtype, wide, wide};
  SmallVector<AffineMap> maps{rows.full(), rows.row(), rows.row()};
  for (Value parameter : {weight, bias})
    if (parameter) {
      inputs.push_back(parameter);
      dtypes.push_back(dtype);
      maps.push_back(rows.column());
    }
  Value result = b.pointwise(rows.dims, dtype, inputs, dtypes, maps,
                             [&](ScalarBuilder &s, ArrayRef<Scalar> in) {
                               Scalar y = s.mul(s.sub(in[0], in[1]), in[2]);
                               unsigned next = 3;
                               if (weight)
                                 y = s.mul(y, in[next++]);
                               if (bias)
                                 y = s.add(y, in[next]);
                               return y;
                             });
  // The statistics with 1 in place of the normalised dims.
  auto statistic = [&](unsigned i, Value v) {
    return b.pointwise(b.resultDims(i), dtype, v, wide,
                       AffineMap::get(rank, 0,
                                      llvm::to_vector(llvm::map_range(
                                          llvm::seq<unsigned>(0, rank - n),
                                          [&](unsigned d) { return b.b.getAffineDimExpr(d); })),
                                      b.b.getContext()),
                       [](ScalarBuilder &, ArrayRef<Scalar> in) { return in[0]; });
  };
  return SmallVector<Value>{result, statistic(1, mean), statistic(2, rstd)};
}

} // namespace quern::lowering
