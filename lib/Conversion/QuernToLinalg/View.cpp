//===- View.cpp - Lowerings of views --------------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Dialect/Quern/IR/Ops/View.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "quern/Conversion/QuernToLinalg/LoweringBuilder.h"
#include "quern/Dialect/Quern/IR/Shapes.h"
#include <functional>

using namespace mlir;

namespace quern::lowering {

FailureOr<SmallVector<Value>> reshape(Operation *, LoweringBuilder &b) {
  return SmallVector<Value>{b.view(b.operand(0), b.resultDims())};
}

static Scalar same(ScalarBuilder &, ArrayRef<Scalar> in) { return in[0]; }

FailureOr<SmallVector<Value>> expand(Operation *, LoweringBuilder &b) {
  return SmallVector<Value>{
      b.broadcast(b.resultDims(), b.resultDtype(), b.operand(0), b.dtype(0), same)};
}

/// Elements of operand 0 at an affine map of the result's index.
static SmallVector<Value> mapped(LoweringBuilder &b, ArrayRef<AffineExpr> from) {
  SmallVector<Dim> dims = b.resultDims();
  return {b.pointwise(dims, b.resultDtype(), b.operand(0), b.dtype(0),
                      AffineMap::get(dims.size(), 0, from, b.b.getContext()), same)};
}

/// Elements made in the region from the result's index.
static SmallVector<Value>
indexed(LoweringBuilder &b,
        llvm::function_ref<Scalar(ScalarBuilder &, SmallVector<Value>)> element) {
  SmallVector<Dim> dims = b.resultDims();
  return {b.pointwise(dims, b.resultDtype(), {}, {}, {}, [&](ScalarBuilder &s, ArrayRef<Scalar>) {
    SmallVector<Value> index;
    for (size_t i = 0; i < dims.size(); ++i)
      index.push_back(b.index(i));
    return element(s, index);
  })};
}

FailureOr<SmallVector<Value>> permute(Operation *op, LoweringBuilder &b) {
  ArrayRef<int64_t> dims = cast<PermuteOp>(op).getDims();
  SmallVector<AffineExpr> from(dims.size());
  for (auto [i, d] : llvm::enumerate(dims))
    from[d < 0 ? d + dims.size() : d] = b.b.getAffineDimExpr(i);
  return mapped(b, from);
}

//===----------------------------------------------------------------------===//
// Slices
//===----------------------------------------------------------------------===//

static int64_t wrap(int64_t dim, int64_t rank) { return dim < 0 ? dim + rank : dim; }

FailureOr<SmallVector<Value>> slice(Operation *op, LoweringBuilder &b) {
  auto slice = cast<SliceOp>(op);
  SmallVector<Dim> own = b.dims(b.operand(0));
  int64_t dim = wrap(slice.getDim(), own.size()), step = slice.getStep();
  SliceBounds bounds = getSliceBounds(own[dim], slice.getStart(), slice.getEnd(), step);
  // A map is for slices that have elements: linalg checks it against static sizes. It also takes
  // a bare dim in a map to span the operand, which a slice from 0 by 1 does not.
  bool isBare = bounds.start.isConstant(0) && step == 1;
  if (bounds.start.isConstant() && !isBare && !b.resultDims()[dim].isConstant(0)) {
    SmallVector<AffineExpr> from;
    for (size_t i = 0; i < own.size(); ++i)
      from.push_back(b.b.getAffineDimExpr(i));
    from[dim] = from[dim] * step + bounds.start.getConstant();
    return mapped(b, from);
  }
  return indexed(b, [&](ScalarBuilder &, SmallVector<Value> index) {
    index[dim] = b.addIndex(b.mulIndex(index[dim], b.constantIndex(step)), b.dim(bounds.start));
    return b.extract(b.operand(0), b.dtype(0), index);
  });
}

static Value compare(LoweringBuilder &b, arith::CmpIPredicate predicate, Value x, Value y) {
  return arith::CmpIOp::create(b.b, b.loc, predicate, x, y);
}

FailureOr<SmallVector<Value>> sliceBackward(Operation *op, LoweringBuilder &b) {
  auto slice = cast<SliceBackwardOp>(op);
  SmallVector<Dim> dims = b.resultDims();
  int64_t dim = wrap(slice.getDim(), dims.size()), step = slice.getStep();
  SliceBounds bounds = getSliceBounds(dims[dim], slice.getStart(), slice.getEnd(), step);
  return indexed(b, [&](ScalarBuilder &s, SmallVector<Value> index) {
    Value at = b.subIndex(index[dim], b.dim(bounds.start)); // negative before the slice
    Value last = b.dim(bounds.end);
    Value inside = arith::AndIOp::create(
        b.b, b.loc, compare(b, arith::CmpIPredicate::sge, at, b.constantIndex(0)),
        compare(b, arith::CmpIPredicate::slt, index[dim], last));
    if (step != 1) {
      Value by = b.constantIndex(step);
      Value rest = arith::RemSIOp::create(b.b, b.loc, at, by);
      inside = arith::AndIOp::create(
          b.b, b.loc, inside, compare(b, arith::CmpIPredicate::eq, rest, b.constantIndex(0)));
      at = arith::DivSIOp::create(b.b, b.loc, at, by);
    }
    index[dim] = at;
    Type compute = ScalarBuilder::computeType(b.dtype(0));
    return b.choose(
        inside, [&] { return b.extract(b.operand(0), b.dtype(0), index); },
        [&] { return s.materialize(Scalar(0), compute); });
  });
}

/// The index of a selection from the front.
static Dim fromFront(Dim index, Dim size) {
  return index.isConstant() && index.getConstant() < 0 ? size + index : index;
}

FailureOr<SmallVector<Value>> select(Operation *op, LoweringBuilder &b) {
  auto select = cast<SelectOp>(op);
  SmallVector<Dim> own = b.dims(b.operand(0));
  int64_t dim = wrap(select.getDim(), own.size());
  Dim at = fromFront(select.getIndex(), own[dim]);
  if (at.isConstant()) {
    SmallVector<AffineExpr> from;
    for (size_t i = 0; i + 1 < own.size(); ++i)
      from.push_back(b.b.getAffineDimExpr(i));
    from.insert(from.begin() + dim, b.b.getAffineConstantExpr(at.getConstant()));
    return mapped(b, from);
  }
  return indexed(b, [&](ScalarBuilder &, SmallVector<Value> index) {
    index.insert(index.begin() + dim, b.dim(at));
    return b.extract(b.operand(0), b.dtype(0), index);
  });
}

FailureOr<SmallVector<Value>> selectBackward(Operation *op, LoweringBuilder &b) {
  auto select = cast<SelectBackwardOp>(op);
  SmallVector<Dim> dims = b.resultDims();
  int64_t dim = wrap(select.getDim(), dims.size());
  Dim at = fromFront(select.getIndex(), dims[dim]);
  return indexed(b, [&](ScalarBuilder &s, SmallVector<Value> index) {
    Value inside = compare(b, arith::CmpIPredicate::eq, index[dim], b.dim(at));
    index.erase(index.begin() + dim);
    Type compute = ScalarBuilder::computeType(b.dtype(0));
    return b.choose(
        inside, [&] { return b.extract(b.operand(0), b.dtype(0), index); },
        [&] { return s.materialize(Scalar(0), compute); });
  });
}

//===----------------------------------------------------------------------===//
// Several tensors, sums
//===----------------------------------------------------------------------===//

FailureOr<SmallVector<Value>> cat(Operation *op, LoweringBuilder &b) {
  int64_t dim = wrap(cast<CatOp>(op).getDim(), b.resultDims().size());
  Type dtype = b.resultDtype();
  SmallVector<Value> parts;
  for (unsigned i = 0; i < b.numElements(0); ++i)
    if (!b.dims(b.operand(0, i))[dim].isConstant(0))
      parts.push_back(b.operand(0, i));
  if (parts.empty())
    return SmallVector<Value>{b.fill(b.resultDims(), dtype, Scalar(0))};
  SmallVector<Value> sizes;
  for (Value part : parts)
    sizes.push_back(b.dim(b.dims(part)[dim]));
  return indexed(b, [&](ScalarBuilder &, SmallVector<Value> index) {
    // From the front: what is not in part i counts on from its end.
    std::function<Scalar(size_t, Value)> element = [&](size_t i, Value at) {
      auto read = [&] {
        SmallVector<Value> indices = index;
        indices[dim] = at;
        return b.extract(parts[i], dtype, indices);
      };
      if (i + 1 == parts.size())
        return read();
      return b.choose(compare(b, arith::CmpIPredicate::slt, at, sizes[i]), read,
                      [&] { return element(i + 1, b.subIndex(at, sizes[i])); });
    };
    return element(0, index[dim]);
  });
}

FailureOr<SmallVector<Value>> sumToSize(Operation *, LoweringBuilder &b) {
  SmallVector<Dim> own = b.dims(b.operand(0)), target = b.resultDims();
  size_t lead = own.size() - target.size();
  Dim one = Dim::constant(b.b.getContext(), 1);
  // Each dim of self is summed, kept, or, where that is only known at run time, split in two: the
  // target's size, then what is summed to one element of it (all of them, or one).
  SmallVector<Dim> loops;
  SmallVector<bool> reduced;
  for (auto [i, size] : llvm::enumerate(own)) {
    if (i < lead || target[i - lead].isConstant(1)) {
      loops.push_back(size);
      reduced.push_back(true);
      continue;
    }
    Dim wanted = target[i - lead];
    loops.push_back(wanted);
    reduced.push_back(false);
    Facts none;
    if (none.decide(Condition::eq(size, wanted)) == Truth::True)
      continue;
    // size is wanted or wanted is 1; both may be 0.
    loops.push_back(Dim::floorDiv(size, Dim::max(wanted, one)));
    reduced.push_back(true);
  }
  Value source = b.view(b.operand(0), loops);
  Type sum = b.accumulatorType(b.dtype(0));
  Value result = b.reduce(
      loops, reduced, sum, Scalar(0), source, b.dtype(0), b.identityMap(loops.size()),
      [](ScalarBuilder &s, Scalar total, ArrayRef<Scalar> in) { return s.add(total, in[0]); });
  return SmallVector<Value>{b.convert(b.view(result, target), sum, b.resultDtype())};
}

} // namespace quern::lowering
