//===- LoweringBuilder.cpp - From ops to linalg on tensors ----------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Conversion/QuernToLinalg/LoweringBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "quern/Dialect/Kernel/IR/Kernel.h"

using namespace mlir;

namespace quern {

//===----------------------------------------------------------------------===//
// The op's own facts
//===----------------------------------------------------------------------===//

Value LoweringBuilder::operand(unsigned i, unsigned j) const {
  OperandRange group = cast<StructuredOp>(op).getOperandGroup(i);
  return j < group.size() ? operands[group.getBeginOperandIndex() + j] : Value();
}
unsigned LoweringBuilder::numElements(unsigned i) const {
  return cast<StructuredOp>(op).getOperandGroup(i).size();
}
Type LoweringBuilder::dtype(unsigned i) const {
  OperandRange group = cast<StructuredOp>(op).getOperandGroup(i);
  return group.empty() ? Type() : cast<RankedTensorType>(group[0].getType()).getElementType();
}
Type LoweringBuilder::resultDtype(unsigned i) const {
  return cast<RankedTensorType>(op->getResult(i).getType()).getElementType();
}
SmallVector<Dim> LoweringBuilder::resultDims(unsigned i) const {
  return getDims(cast<RankedTensorType>(op->getResult(i).getType()));
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

Value LoweringBuilder::dim(Dim d) {
  if (d.isConstant())
    return arith::ConstantIndexOp::create(b, loc, d.getConstant());
  return kernel::DimOp::create(b, loc, b.getIndexType(), d.getAttr());
}

Value LoweringBuilder::empty(ArrayRef<Dim> dims, Type dtype) {
  SmallVector<Value> sizes;
  for (Dim d : dims)
    if (!d.isConstant())
      sizes.push_back(dim(d));
  return tensor::EmptyOp::create(b, loc, getTensorType(dims, elementType(dtype)), sizes);
}

Value LoweringBuilder::fill(ArrayRef<Dim> dims, Type dtype, Scalar number) {
  Value init = empty(dims, dtype);
  Value scalar = ScalarBuilder(b, loc, dtype).materialize(number, dtype).value;
  return linalg::FillOp::create(b, loc, scalar, init).getResult(0);
}

Value LoweringBuilder::view(Value v, ArrayRef<Dim> dims) {
  auto from = cast<RankedTensorType>(v.getType());
  RankedTensorType to = getTensorType(dims, from.getElementType());
  if (from == to)
    return v;
  SmallVector<Value> sizes;
  for (Dim d : dims)
    if (!d.isConstant())
      sizes.push_back(dim(d));
  return kernel::ViewOp::create(b, loc, to, v, sizes);
}

AffineMap LoweringBuilder::identityMap(unsigned rank) { return b.getMultiDimIdentityMap(rank); }

AffineMap LoweringBuilder::broadcastMap(Value operand, ArrayRef<Dim> dims) {
  SmallVector<Dim> own = LoweringBuilder::dims(operand);
  SmallVector<AffineExpr> exprs;
  size_t lead = dims.size() - own.size();
  for (auto [i, d] : llvm::enumerate(own))
    exprs.push_back(d.isConstant(1) && !dims[lead + i].isConstant(1)
                        ? b.getAffineConstantExpr(0)
                        : b.getAffineDimExpr(lead + i));
  return AffineMap::get(dims.size(), 0, exprs, b.getContext());
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// The elements of a region as scalars: sign from the dtypes, narrow floats widened.
static SmallVector<Scalar> regionInputs(ScalarBuilder &s, ValueRange args, ArrayRef<Type> dtypes) {
  SmallVector<Scalar> scalars;
  for (auto [arg, dtype] : llvm::zip(args, dtypes))
    scalars.push_back(s.cast(Scalar(arg, dtype), ScalarBuilder::computeType(dtype)));
  return scalars;
}

Value LoweringBuilder::pointwise(ArrayRef<Dim> dims, Type dtype, ValueRange inputs,
                                 ArrayRef<Type> dtypes, ArrayRef<AffineMap> maps, Region region) {
  SmallVector<AffineMap> all(maps);
  all.push_back(identityMap(dims.size()));
  SmallVector<utils::IteratorType> iterators(dims.size(), utils::IteratorType::parallel);
  Value init = empty(dims, dtype);
  auto generic =
      linalg::GenericOp::create(b, loc, init.getType(), inputs, init, all, iterators,
                                [&](OpBuilder &inner, Location l, ValueRange args) {
                                  OpBuilder::InsertionGuard guard(b);
                                  b.restoreInsertionPoint(inner.saveInsertionPoint());
                                  ScalarBuilder s(b, l, ScalarBuilder::computeType(dtype));
                                  Scalar value = region(s, regionInputs(s, args, dtypes));
                                  linalg::YieldOp::create(b, l, s.cast(value, dtype).value);
                                });
  return generic.getResult(0);
}

Value LoweringBuilder::broadcast(ArrayRef<Dim> dims, Type dtype, ValueRange inputs,
                                 ArrayRef<Type> dtypes, Region region) {
  // An operand with a size that may be 1 or the result's has no map: it is read where it has
  // elements, by the size that it turns out to have.
  auto isUndecided = [&](Value v) {
    SmallVector<Dim> own = LoweringBuilder::dims(v);
    for (auto [d, whole] : llvm::zip(own, dims.take_back(own.size())))
      if (!d.isConstant(1) && d != whole)
        return true;
    return false;
  };
  SmallVector<Value> mapped;
  SmallVector<Type> mappedDtypes;
  SmallVector<AffineMap> maps;
  for (auto [v, type] : llvm::zip(inputs, dtypes)) {
    if (isUndecided(v))
      continue;
    mapped.push_back(v);
    mappedDtypes.push_back(type);
    maps.push_back(broadcastMap(v, dims));
  }
  return pointwise(
      dims, dtype, mapped, mappedDtypes, maps, [&](ScalarBuilder &s, ArrayRef<Scalar> in) {
        SmallVector<Scalar> all;
        for (auto [v, type] : llvm::zip(inputs, dtypes)) {
          if (!isUndecided(v)) {
            all.push_back(in.front());
            in = in.drop_front();
            continue;
          }
          SmallVector<Dim> own = LoweringBuilder::dims(v);
          unsigned lead = dims.size() - own.size();
          SmallVector<Value> at;
          for (auto [i, d] : llvm::enumerate(own)) {
            Value zero = constantIndex(0), here = index(lead + i);
            if (d == dims[lead + i]) {
              at.push_back(here);
              continue;
            }
            Value isOne =
                arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, dim(d), constantIndex(1));
            at.push_back(arith::SelectOp::create(b, loc, isOne, zero, here));
          }
          all.push_back(extract(v, type, at));
        }
        return region(s, all);
      });
}

Value LoweringBuilder::reduce(
    ArrayRef<Dim> loops, ArrayRef<bool> reduced, Type accumulatorDtype, Scalar init,
    ValueRange inputs, ArrayRef<Type> dtypes, ArrayRef<AffineMap> maps,
    llvm::function_ref<Scalar(ScalarBuilder &, Scalar, ArrayRef<Scalar>)> combine) {
  SmallVector<Dim> outDims;
  SmallVector<AffineExpr> outExprs;
  SmallVector<utils::IteratorType> iterators;
  for (auto [i, loop] : llvm::enumerate(loops)) {
    iterators.push_back(reduced[i] ? utils::IteratorType::reduction
                                   : utils::IteratorType::parallel);
    if (reduced[i])
      continue;
    outDims.push_back(loop);
    outExprs.push_back(b.getAffineDimExpr(i));
  }
  // linalg takes a loop's size from an operand: loops that no map has as such get an operand that
  // is only a shape.
  SmallVector<AffineMap> all(maps);
  AffineMap outMap = AffineMap::get(loops.size(), 0, outExprs, b.getContext());
  SmallVector<Value> operands(inputs);
  SmallVector<Dim> shapeDims;
  SmallVector<AffineExpr> shapeExprs;
  for (auto [i, loop] : llvm::enumerate(loops)) {
    AffineExpr expr = b.getAffineDimExpr(i);
    if (llvm::is_contained(outMap.getResults(), expr) ||
        llvm::any_of(maps, [&](AffineMap m) { return llvm::is_contained(m.getResults(), expr); }))
      continue;
    shapeDims.push_back(loop);
    shapeExprs.push_back(expr);
  }
  if (!shapeDims.empty()) {
    operands.push_back(empty(shapeDims, b.getI8Type()));
    all.push_back(AffineMap::get(loops.size(), 0, shapeExprs, b.getContext()));
  }
  all.push_back(outMap);
  Value start = fill(outDims, accumulatorDtype, init);
  auto generic = linalg::GenericOp::create(
      b, loc, start.getType(), operands, start, all, iterators,
      [&](OpBuilder &inner, Location l, ValueRange args) {
        OpBuilder::InsertionGuard guard(b);
        b.restoreInsertionPoint(inner.saveInsertionPoint());
        ScalarBuilder s(b, l, accumulatorDtype);
        Scalar accumulator(args.back(), accumulatorDtype);
        Scalar value =
            combine(s, accumulator, regionInputs(s, args.take_front(dtypes.size()), dtypes));
        linalg::YieldOp::create(b, l, s.cast(value, accumulatorDtype).value);
      });
  return generic.getResult(0);
}

Value LoweringBuilder::convert(Value v, Type from, Type to) {
  if (from == to)
    return v;
  return broadcast(dims(v), to, v, from,
                   [&](ScalarBuilder &s, ArrayRef<Scalar> in) { return s.cast(in[0], to); });
}

//===----------------------------------------------------------------------===//
// Inside regions
//===----------------------------------------------------------------------===//

Value LoweringBuilder::index(unsigned loop) { return linalg::IndexOp::create(b, loc, loop); }

Scalar LoweringBuilder::extract(Value tensor, Type dtype, ValueRange indices) {
  Value element = tensor::ExtractOp::create(b, loc, tensor, indices);
  Type compute = ScalarBuilder::computeType(dtype);
  return ScalarBuilder(b, loc, compute).cast(Scalar(element, dtype), compute);
}

Scalar LoweringBuilder::fromIndex(Value index, Type dtype) {
  if (!dtype)
    dtype = b.getI64Type();
  return Scalar(arith::IndexCastOp::create(b, loc, elementType(dtype), index), dtype);
}
Value LoweringBuilder::toIndex(Scalar s) {
  if (s.dtype.isUnsignedInteger())
    return arith::IndexCastUIOp::create(b, loc, b.getIndexType(), s.value);
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), s.value);
}
Value LoweringBuilder::constantIndex(int64_t v) {
  return arith::ConstantIndexOp::create(b, loc, v);
}
Value LoweringBuilder::addIndex(Value x, Value y) {
  return b.createOrFold<arith::AddIOp>(loc, x, y);
}
Value LoweringBuilder::subIndex(Value x, Value y) {
  return b.createOrFold<arith::SubIOp>(loc, x, y);
}
Value LoweringBuilder::mulIndex(Value x, Value y) {
  return b.createOrFold<arith::MulIOp>(loc, x, y);
}

Scalar LoweringBuilder::choose(Value condition, llvm::function_ref<Scalar()> then,
                               llvm::function_ref<Scalar()> otherwise) {
  Type dtype;
  auto side = [&](llvm::function_ref<Scalar()> make) {
    return [&, make](OpBuilder &inner, Location) {
      OpBuilder::InsertionGuard guard(b);
      b.restoreInsertionPoint(inner.saveInsertionPoint());
      Scalar value = make();
      dtype = value.dtype;
      scf::YieldOp::create(b, loc, value.value);
    };
  };
  auto choice = scf::IfOp::create(b, loc, condition, side(then), side(otherwise));
  return Scalar(choice.getResult(0), dtype);
}

} // namespace quern
