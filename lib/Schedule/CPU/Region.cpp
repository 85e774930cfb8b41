//===- Region.cpp - Scalar regions on vectors -----------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace quern;
using namespace quern::cpu;

static unsigned lanesOf(Value v) {
  auto type = dyn_cast<VectorType>(v.getType());
  return type ? type.getNumElements() : 1;
}

bool Emitter::isVectorizable(linalg::GenericOp op) {
  return llvm::all_of(op.getBody()->without_terminator(), [](Operation &o) {
    return OpTrait::hasElementwiseMappableTraits(&o) || o.hasTrait<OpTrait::ConstantLike>() ||
           isa<linalg::IndexOp, tensor::ExtractOp, tensor::DimOp, kernel::DimOp>(o);
  });
}

static bool isDivision(Operation *op) {
  return isa<arith::DivSIOp, arith::RemSIOp, arith::DivUIOp, arith::RemUIOp, arith::FloorDivSIOp,
             arith::CeilDivSIOp>(op);
}

/// Integer division that never traps: by zero it gives -1 (all bits set) and the
/// remainder is the dividend; MIN / -1 is MIN with remainder 0.
static Value safeDivision(Emitter &e, Operation *op, ValueRange in) {
  OpBuilder &b = e.b;
  Location loc = op->getLoc();
  Value x = in[0], y = in[1];
  Type type = x.getType();
  auto number = [&](APInt v) {
    return e.splat(e.constant(b.getIntegerAttr(getElementTypeOrSelf(type), v)), lanesOf(x));
  };
  unsigned bits = getElementTypeOrSelf(type).isIndex()
                      ? 64
                      : getElementTypeOrSelf(type).getIntOrFloatBitWidth();
  Value zero = number(APInt(bits, 0)), one = number(APInt(bits, 1)),
        ones = number(APInt::getAllOnes(bits));
  auto equal = [&](Value u, Value v) -> Value {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, u, v);
  };
  auto select = [&](Value c, Value u, Value v) -> Value {
    return arith::SelectOp::create(b, loc, c, u, v);
  };
  Value byZero = equal(y, zero);
  if (isa<arith::DivUIOp>(op))
    return select(byZero, ones, arith::DivUIOp::create(b, loc, x, select(byZero, one, y)));
  if (isa<arith::RemUIOp>(op))
    return select(byZero, x, arith::RemUIOp::create(b, loc, x, select(byZero, one, y)));
  // By -1 the quotient is 0 - x, which wraps for MIN; the divisor is made 1.
  Value byMinusOne = equal(y, ones);
  Value divisor = select(arith::OrIOp::create(b, loc, byZero, byMinusOne), one, y);
  Value r = arith::RemSIOp::create(b, loc, x, divisor);
  if (isa<arith::RemSIOp>(op))
    return select(byZero, x, r);
  Value q = arith::DivSIOp::create(b, loc, x, divisor);
  if (!isa<arith::DivSIOp>(op)) {
    bool floor = isa<arith::FloorDivSIOp>(op);
    // Inexact, and the quotient was cut in the wrong direction.
    Value inexact = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, r, zero);
    Value differ =
        arith::CmpIOp::create(b, loc, floor ? arith::CmpIPredicate::slt : arith::CmpIPredicate::sge,
                              arith::XOrIOp::create(b, loc, r, divisor), zero);
    q = arith::AddIOp::create(
        b, loc, q,
        select(arith::AndIOp::create(b, loc, inexact, differ), floor ? ones : one, zero));
  }
  q = select(byMinusOne, arith::SubIOp::create(b, loc, zero, x), q);
  return select(byZero, ones, q);
}

Value Emitter::cloneOp(Operation *op, ValueRange operands, int accumulator, bool reciprocal) {
  bool vectors = !operands.empty() && isa<VectorType>(operands[0].getType());
  if (vectors && !options.strict && !options.reference)
    if (Value v = expandMath(*this, op, operands))
      return v;
  if (vectors)
    if (Value v = expandMinMax(*this, op, operands, accumulator))
      return v;
  if (isDivision(op))
    return safeDivision(*this, op, operands);
  OperationState state(loc, op->getName());
  state.addOperands(operands);
  for (Value result : op->getResults())
    state.addTypes(vec(result.getType(), operands.empty() ? 1 : lanesOf(operands[0])));
  if (auto select = dyn_cast<arith::SelectOp>(op)) // its lanes are those of the values
    state.types[0] = vec(op->getResult(0).getType(), lanesOf(operands[1]));
  state.addAttributes(op->getAttrs());
  Operation *clone = b.create(state);
  // Contraction is said here, operation by operation, and nowhere else.
  if (auto fast = dyn_cast<arith::ArithFastMathInterface>(clone);
      fast && !options.strict && !options.reference) {
    auto flags = fast.getFastMathFlagsAttr() ? fast.getFastMathFlagsAttr().getValue()
                                             : arith::FastMathFlags::none;
    flags = flags | arith::FastMathFlags::contract;
    if (reciprocal && isa<arith::DivFOp>(clone))
      flags = flags | arith::FastMathFlags::arcp;
    clone->setAttr(fast.getFastMathAttrName(), arith::FastMathFlagsAttr::get(ctx, flags));
  }
  return clone->getResult(0);
}

/// The element's number: the sum of index * stride.
Value Emitter::extractIndex(Value value, IRMapping &map, const Place &place) {
  auto extract = value.getDefiningOp<tensor::ExtractOp>();
  const Buffer *buffer = place.buffer(extract.getTensor());
  unsigned lanes = 1;
  SmallVector<Value> indices;
  for (Value i : extract.getIndices()) {
    Value x = map.lookupOrDefault(i);
    if (!map.contains(i))
      x = scalar(x);
    lanes = std::max(lanes, lanesOf(x));
    indices.push_back(x);
  }
  Value at;
  for (auto [i, stride] : llvm::zip(indices, buffer->strides)) {
    Value x = arith::IndexCastOp::create(b, loc, vec(i64Type, lanesOf(i)), i);
    if (!stride.isConstant(1))
      x = arith::MulIOp::create(b, loc, x, splat(size(stride), lanesOf(i)));
    x = splat(x, lanes);
    at = at ? arith::AddIOp::create(b, loc, at, x).getResult() : x;
  }
  return at ? at : i64(0);
}

SmallVector<Value> Emitter::cloneRegion(linalg::GenericOp op, ValueRange args, const Place &place) {
  IRMapping map;
  Block *body = op.getBody();
  for (auto [arg, value] : llvm::zip(body->getArguments(), args))
    if (value)
      map.map(arg, value);
  auto lookup = [&](Value v) -> Value {
    if (Value known = map.lookupOrNull(v))
      return known;
    return scalar(v);
  };
  auto indexValue = [&](unsigned dim) -> Value {
    Value i = place.index(dim);
    return arith::IndexCastOp::create(b, loc, vec(b.getIndexType(), lanesOf(i)), i);
  };
  for (Operation &o : body->without_terminator()) {
    if (auto index = dyn_cast<linalg::IndexOp>(o)) {
      map.map(index.getResult(), indexValue(index.getDim()));
      continue;
    }
    if (auto extract = dyn_cast<tensor::ExtractOp>(o)) {
      const Buffer *buffer = place.buffer(extract.getTensor());
      Value at = extractIndex(extract.getResult(), map, place);
      map.map(extract.getResult(), isa<VectorType>(at.getType()) ? gather(*buffer, at, place.lanes)
                                                                 : load(*buffer, at, {}));
      continue;
    }
    if (isa<tensor::DimOp, kernel::DimOp>(o)) {
      OpBuilder::InsertionGuard guard(b);
      Value n = isa<kernel::DimOp>(o)
                    ? size(Dim(cast<DimAttr>(cast<kernel::DimOp>(o).getDim())))
                    : size(getDims(cast<RankedTensorType>(
                          o.getOperand(0).getType()))[*cast<tensor::DimOp>(o).getConstantIndex()]);
      map.map(o.getResult(0), arith::IndexCastOp::create(b, loc, b.getIndexType(), n).getResult());
      continue;
    }
    if (o.getNumRegions()) { // scalars only: a branch with loads in it, say
      o.walk([&](Operation *inner) {
        for (Value v : inner->getOperands())
          if (!map.contains(v) && v.getDefiningOp() &&
              v.getDefiningOp()->getParentOp() == kernel.getOperation())
            if (!isa<TensorType>(v.getType()))
              map.map(v, scalar(v));
      });
      Operation *clone = b.clone(o, map);
      SmallVector<Operation *> done;
      clone->walk([&](Operation *inner) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPoint(inner);
        Value v;
        if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
          v = indexValue(index.getDim());
        } else if (auto extract = dyn_cast<tensor::ExtractOp>(inner)) {
          IRMapping none;
          for (Value i : extract.getIndices())
            none.map(i, i);
          v = load(*place.buffer(extract.getTensor()),
                   extractIndex(extract.getResult(), none, place), {});
        } else if (isDivision(inner))
          v = safeDivision(*this, inner, inner->getOperands());
        if (!v)
          return;
        inner->getResult(0).replaceAllUsesWith(v);
        done.push_back(inner);
      });
      for (Operation *inner : done)
        inner->erase();
      continue;
    }
    unsigned lanes = 1;
    SmallVector<Value> operands;
    int accumulator = -1;
    for (auto [n, operand] : llvm::enumerate(o.getOperands())) {
      operands.push_back(lookup(operand));
      lanes = std::max(lanes, lanesOf(operands.back()));
      if (llvm::is_contained(place.accumulators, operand))
        accumulator = n;
    }
    for (Value &v : operands)
      v = splat(v, lanes);
    if (operands.empty() || o.getNumResults() != 1) {
      b.clone(o, map);
      continue;
    }
    map.map(o.getResult(0), cloneOp(&o, operands, accumulator, place.reciprocal));
  }
  SmallVector<Value> results;
  for (Value v : body->getTerminator()->getOperands())
    results.push_back(lookup(v));
  return results;
}
