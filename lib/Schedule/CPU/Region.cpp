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
  // Contraction is said here, operation by operation, and nowhere else. Not of conversions: a pair
  // of them would fold, and some readers of a low-precision value would see it before its rounding.
  if (auto fast = dyn_cast<arith::ArithFastMathInterface>(clone);
      fast && !options.strict && !options.reference &&
      !isa<arith::ExtFOp, arith::TruncFOp>(clone)) {
    auto flags = fast.getFastMathFlagsAttr() ? fast.getFastMathFlagsAttr().getValue()
                                             : arith::FastMathFlags::none;
    flags = flags | arith::FastMathFlags::contract;
    if (reciprocal && isa<arith::DivFOp>(clone))
      flags = flags | arith::FastMathFlags::arcp;
    clone->setAttr(fast.getFastMathAttrName(), arith::FastMathFlagsAttr::get(ctx, flags));
  }
  return clone->getResult(0);
}

/// Remembers index vectors that count up by one: a counting vector, plus a scalar.
void Emitter::trackLanes(Operation *op, ValueRange operands, Value result) {
  if (!isa<VectorType>(result.getType()) || counting.empty())
    return;
  auto scalarOf = [](Value v) -> Value {
    if (auto splat = v.getDefiningOp<vector::BroadcastOp>())
      return splat.getSource();
    return {};
  };
  auto first = [&](Value v) { return counting.lookup(v); };
  Value x = first(operands[0]), y = operands.size() > 1 ? operands[1] : Value();
  if (isa<arith::IndexCastOp, arith::ExtSIOp>(op) && x) {
    Type type = getElementTypeOrSelf(result.getType());
    counting[result] = isa<arith::ExtSIOp>(op)
                           ? arith::ExtSIOp::create(b, loc, type, x).getResult()
                           : arith::IndexCastOp::create(b, loc, type, x).getResult();
    return;
  }
  if (!isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op))
    return;
  auto constantLanes = [&](Value v) -> Value {
    DenseElementsAttr value;
    if (matchPattern(v, m_Constant(&value)) && value.isSplat())
      return constant(cast<TypedAttr>(value.getSplatValue<Attribute>()));
    return scalarOf(v);
  };
  if (!x && y && !isa<arith::SubIOp>(op)) {
    x = first(y);
    y = operands[0];
  }
  Value other = x ? constantLanes(y) : Value();
  if (!other)
    return;
  if (isa<arith::MulIOp>(op)) {
    if (matchPattern(other, m_One()))
      counting[result] = x;
  } else if (isa<arith::AddIOp>(op)) {
    counting[result] = arith::AddIOp::create(b, loc, x, other);
  } else {
    counting[result] = arith::SubIOp::create(b, loc, x, other);
  }
}

/// tensor.extract: a scalar, consecutive elements where the last index counts up, or an
/// element for each lane.
Value Emitter::extract(Operation *op, IRMapping &map, const Place &place) {
  auto extract = cast<tensor::ExtractOp>(op);
  const Buffer *buffer = place.buffer(extract.getTensor());
  unsigned lanes = 1;
  SmallVector<Value> indices;
  for (Value i : extract.getIndices()) {
    Value x = map.contains(i) ? map.lookup(i) : scalar(i);
    lanes = std::max(lanes, lanesOf(x));
    indices.push_back(x);
  }
  bool consecutive = lanes > 1 && buffer->strides.back().isConstant(1) &&
                     counting.count(indices.back()) &&
                     llvm::all_of(llvm::drop_end(indices), [](Value i) { return lanesOf(i) == 1; });
  if (consecutive) {
    indices.back() = counting.lookup(indices.back());
    lanes = 1;
  }
  Value at = lanes == 1 ? i64(0) : Value();
  for (auto [i, stride] : llvm::zip(indices, buffer->strides)) {
    Value x = arith::IndexCastOp::create(b, loc, vec(i64Type, lanesOf(i)), i);
    if (lanes == 1) {
      at = add(at, mul(x, size(stride)));
      continue;
    }
    if (!stride.isConstant(1))
      x = arith::MulIOp::create(b, loc, x, splat(size(stride), lanesOf(i)));
    x = splat(x, lanes);
    at = at ? arith::AddIOp::create(b, loc, at, x).getResult() : x;
  }
  if (lanes > 1)
    return gather(*buffer, at, place.lanes);
  return load(*buffer, at, consecutive ? place.lanes : Lanes());
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
    Value cast = arith::IndexCastOp::create(b, loc, vec(b.getIndexType(), lanesOf(i)), i);
    if (lanesOf(i) > 1)
      if (Value first = place.firstIndex(dim))
        counting[cast] = arith::IndexCastOp::create(b, loc, b.getIndexType(), first);
    return cast;
  };
  for (Operation &o : body->without_terminator()) {
    if (auto index = dyn_cast<linalg::IndexOp>(o)) {
      map.map(index.getResult(), indexValue(index.getDim()));
      continue;
    }
    if (isa<tensor::ExtractOp>(o)) {
      map.map(o.getResult(0), extract(&o, map, place));
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
        } else if (isa<tensor::ExtractOp>(inner)) {
          IRMapping same;
          for (Value i : inner->getOperands())
            same.map(i, i);
          v = extract(inner, same, place);
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
    Value result = cloneOp(&o, operands, accumulator, place.reciprocal);
    trackLanes(&o, operands, result);
    map.map(o.getResult(0), result);
  }
  counting.clear();
  SmallVector<Value> results;
  for (Value v : body->getTerminator()->getOperands())
    results.push_back(lookup(v));
  return results;
}
