//===- Indexing.cpp - Gathers and scatters as linalg ----------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A scatter is written from the result's side, as a sum over the index: no write
// goes to a place that is only known at run time, so the order of the sum is fixed.
//
//===----------------------------------------------------------------------===//

#include "quern/Conversion/QuernToLinalg/LoweringBuilder.h"

using namespace mlir;

namespace quern::lowering {

using Results = FailureOr<SmallVector<Value>>;

/// The dim that a call means; -1 for a scalar, which has none.
static int64_t wrappedDim(Operation *op, int64_t rank) {
  int64_t dim = op->getAttrOfType<IntegerAttr>("dim").getInt();
  return rank == 0 ? -1 : dim < 0 ? dim + rank : dim;
}

/// The element of `tensor` at these coordinates, where coordinate `dim` is an index that was read:
/// NaN (0 for integers) where it is out of range. Dim -1: a scalar.
static Scalar extractChecked(LoweringBuilder &b, ScalarBuilder &s, Value tensor, Type dtype,
                             SmallVector<Value> at, int64_t dim, Scalar index) {
  index = s.cast(index, b.b.getI64Type());
  Value size = dim < 0 ? b.constantIndex(1) : b.dim(b.dims(tensor)[dim]);
  Scalar inside = s.and_(s.ge(index, Scalar(0)), s.lt(index, b.fromIndex(size)));
  if (dim >= 0)
    at[dim] = b.toIndex(s.select(inside, index, Scalar(0)));
  Scalar element = b.extract(tensor, dtype, at);
  return s.select(inside, element,
                  isa<FloatType>(element.dtype) ? Scalar(std::numeric_limits<double>::quiet_NaN())
                                                : Scalar(0));
}

Results embedding(Operation *, LoweringBuilder &b) {
  Value weight = b.operand(0), indices = b.operand(1);
  Type dtype = b.resultDtype();
  SmallVector<Dim> dims = b.resultDims();
  unsigned last = dims.size() - 1;
  // (getMajorSubMap answers null for no result: an index of rank 0.)
  AffineMap map = AffineMap::get(
      dims.size(), 0, b.identityMap(dims.size()).getResults().take_front(last), b.b.getContext());
  return SmallVector<Value>{b.pointwise(
      dims, dtype, indices, b.dtype(1), map, [&](ScalarBuilder &s, ArrayRef<Scalar> in) {
        return extractChecked(b, s, weight, dtype, {Value(), b.index(last)}, 0, in[0]);
      })};
}

Results index_select(Operation *op, LoweringBuilder &b) {
  Value self = b.operand(0), index = b.operand(1);
  Type dtype = b.resultDtype();
  SmallVector<Dim> dims = b.resultDims();
  int64_t dim = wrappedDim(op, dims.size());
  unsigned rank = dims.size();
  AffineMap map = b.dims(index).empty() ? AffineMap::get(rank, 0, b.b.getContext())
                  : dim < 0             ? AffineMap::get(0, 0, b.b.getAffineConstantExpr(0))
                                        : AffineMap::get(rank, 0, b.b.getAffineDimExpr(dim));
  return SmallVector<Value>{
      b.pointwise(dims, dtype, index, b.dtype(1), map, [&](ScalarBuilder &s, ArrayRef<Scalar> in) {
        SmallVector<Value> at;
        for (unsigned i = 0; i < rank; ++i)
          at.push_back(b.index(i));
        return extractChecked(b, s, self, dtype, at, dim, in[0]);
      })};
}

/// An index of another rank has no elements (a scalar counts as one).
static bool isOfOtherRank(LoweringBuilder &b, Value index, Value self) {
  return std::max<size_t>(b.dims(index).size(), 1) != std::max<size_t>(b.dims(self).size(), 1);
}

Results gather(Operation *op, LoweringBuilder &b) {
  Value self = b.operand(0), index = b.operand(1);
  Type dtype = b.resultDtype();
  SmallVector<Dim> dims = b.resultDims();
  if (isOfOtherRank(b, index, self))
    return SmallVector<Value>{b.fill(dims, dtype, Scalar(0))};
  int64_t dim = wrappedDim(op, b.dims(self).size());
  return SmallVector<Value>{b.pointwise(dims, dtype, index, b.dtype(1), b.identityMap(dims.size()),
                                        [&](ScalarBuilder &s, ArrayRef<Scalar> in) {
                                          SmallVector<Value> at;
                                          for (unsigned i = 0; i < b.dims(self).size(); ++i)
                                            at.push_back(i < dims.size() ? b.index(i)
                                                                         : b.constantIndex(0));
                                          return extractChecked(b, s, self, dtype, at, dim, in[0]);
                                        })};
}

/// The number of positions along `dim` of an index tensor, none when it has no elements.
static Dim positions(LoweringBuilder &b, Value index, int64_t dim) {
  SmallVector<Dim> dims = b.dims(index);
  if (dims.empty())
    return Dim::constant(b.b.getContext(), 1);
  return Dim::min(dims[dim], Dim::product(b.b.getContext(), dims));
}

static Value sumAlong(LoweringBuilder &b, ArrayRef<Dim> dims, Dim count, Type dtype,
                      llvm::function_ref<Scalar(ScalarBuilder &, Value)> term) {
  SmallVector<Dim> loops(dims);
  loops.push_back(count);
  SmallVector<bool> reduced(dims.size(), false);
  reduced.push_back(true);
  unsigned k = dims.size();
  return b.reduce(loops, reduced, b.accumulatorType(dtype), Scalar(0), {}, {}, {},
                  [&](ScalarBuilder &s, Scalar acc, ArrayRef<Scalar>) {
                    return s.add(acc, term(s, b.index(k)));
                  });
}

static Value addTo(LoweringBuilder &b, ArrayRef<Dim> dims, Type dtype, Value self, Value sum) {
  return b.broadcast(dims, dtype, {self, sum}, {dtype, b.accumulatorType(dtype)},
                     [](ScalarBuilder &s, ArrayRef<Scalar> in) { return s.add(in[0], in[1]); });
}

Results scatter_add(Operation *op, LoweringBuilder &b) {
  Value self = b.operand(0), index = b.operand(1), src = b.operand(2);
  Type dtype = b.resultDtype();
  SmallVector<Dim> dims = b.resultDims(), indexDims = b.dims(index);
  if (isOfOtherRank(b, index, self))
    return SmallVector<Value>{b.broadcast(
        dims, dtype, self, dtype, [](ScalarBuilder &, ArrayRef<Scalar> in) { return in[0]; })};
  int64_t dim = wrappedDim(op, dims.size());
  Value sum = sumAlong(b, dims, positions(b, index, dim < 0 ? 0 : dim), dtype,
                       [&](ScalarBuilder &s, Value k) {
                         // The index may be smaller than self: places outside it get nothing.
                         Scalar counts = s.materialize(Scalar(true), b.b.getI1Type());
                         SmallVector<Value> at;
                         for (unsigned i = 0; i < indexDims.size(); ++i) {
                           if (int64_t(i) == dim || dims.empty()) {
                             at.push_back(k);
                             continue;
                           }
                           Scalar place = b.fromIndex(b.index(i));
                           Scalar inside = s.lt(place, b.fromIndex(b.dim(indexDims[i])));
                           counts = s.and_(counts, inside);
                           at.push_back(b.toIndex(s.select(inside, place, Scalar(0))));
                         }
                         Scalar chosen = s.cast(b.extract(index, b.dtype(1), at), b.b.getI64Type());
                         Scalar here = dims.empty() ? s.eq(chosen, Scalar(0))
                                                    : s.eq(chosen, b.fromIndex(b.index(dim)));
                         SmallVector<Value> srcAt(at);
                         srcAt.resize(b.dims(src).size());
                         Scalar element = b.extract(src, dtype, srcAt);
                         return s.select(s.and_(counts, here), element, Scalar(0));
                       });
  return SmallVector<Value>{addTo(b, dims, dtype, self, sum)};
}

Results index_add(Operation *op, LoweringBuilder &b) {
  Value self = b.operand(0), index = b.operand(1), source = b.operand(2);
  Type dtype = b.resultDtype();
  SmallVector<Dim> dims = b.resultDims();
  int64_t dim = wrappedDim(op, dims.size());
  Value sum = sumAlong(b, dims, positions(b, index, 0), dtype, [&](ScalarBuilder &s, Value k) {
    SmallVector<Value> indexAt(b.dims(index).size(), k), at;
    for (unsigned i = 0; i < dims.size(); ++i)
      at.push_back(int64_t(i) == dim ? k : b.index(i));
    at.resize(b.dims(source).size(), k);
    Scalar chosen = s.cast(b.extract(index, b.dtype(1), indexAt), b.b.getI64Type());
    Scalar here = dims.empty() ? s.eq(chosen, Scalar(0)) : s.eq(chosen, b.fromIndex(b.index(dim)));
    return s.select(here, b.extract(source, dtype, at), Scalar(0));
  });
  return SmallVector<Value>{addTo(b, dims, dtype, self, sum)};
}

Results embedding_dense_backward(Operation *op, LoweringBuilder &b) {
  Value grad = b.operand(0), indices = b.operand(1);
  Type dtype = b.resultDtype(), wide = b.accumulatorType(dtype), i64 = b.b.getI64Type();
  SmallVector<Dim> dims = b.resultDims(), indexDims = b.dims(indices);
  int64_t padding = op->getAttrOfType<IntegerAttr>("padding_idx").getInt();
  bool byFrequency = op->getAttrOfType<BoolAttr>("scale_grad_by_freq").getValue();
  // Loops: the weight's row and column, then the dims of the indices.
  unsigned n = indexDims.size();
  SmallVector<Dim> loops(dims);
  loops.append(indexDims);
  SmallVector<bool> reduced{false, false};
  reduced.append(n, true);
  SmallVector<AffineExpr> indexExprs, gradExprs;
  for (unsigned i = 0; i < n; ++i)
    indexExprs.push_back(b.b.getAffineDimExpr(2 + i));
  gradExprs = indexExprs;
  gradExprs.push_back(b.b.getAffineDimExpr(1));
  MLIRContext *ctx = b.b.getContext();
  AffineMap indexMap = AffineMap::get(2 + n, 0, indexExprs, ctx);
  AffineMap gradMap = AffineMap::get(2 + n, 0, gradExprs, ctx);
  auto isRow = [&](ScalarBuilder &s, Scalar index) {
    Scalar row = b.fromIndex(b.index(0));
    Scalar here = s.eq(s.cast(index, i64), row);
    return s.and_(here, s.ne(row, Scalar(padding)));
  };
  Value sum = b.reduce(loops, reduced, wide, Scalar(0), {indices, grad}, {b.dtype(1), dtype},
                       {indexMap, gradMap}, [&](ScalarBuilder &s, Scalar acc, ArrayRef<Scalar> in) {
                         return s.add(acc, s.select(isRow(s, in[0]), in[1], Scalar(0)));
                       });
  if (!byFrequency)
    return SmallVector<Value>{b.convert(sum, wide, dtype)};
  Value count = b.reduce(loops, reduced, wide, Scalar(0), {indices}, {b.dtype(1)}, {indexMap},
                         [&](ScalarBuilder &s, Scalar acc, ArrayRef<Scalar> in) {
                           return s.add(acc, s.cast(isRow(s, in[0]), wide));
                         });
  return SmallVector<Value>{b.broadcast(
      dims, dtype, {sum, count}, {wide, wide},
      [](ScalarBuilder &s, ArrayRef<Scalar> in) { return s.div(in[0], s.max(in[1], Scalar(1))); })};
}

} // namespace quern::lowering
