//===- ScalarBuilder.cpp - Scalar bodies as arith and math ops ------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Dialect/Quern/IR/ScalarBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/APSInt.h"
#include <cmath>

using namespace mlir;

namespace quern {

Scalar::Scalar(TypedAttr attr) {
  if (auto f = dyn_cast<FloatAttr>(attr)) {
    number = f.getValueAsDouble();
    return;
  }
  auto i = cast<IntegerAttr>(attr);
  integer =
      i.getType().isInteger(1) ? int64_t(i.getValue().getZExtValue()) : i.getValue().getSExtValue();
  number = double(*integer);
}

Type ScalarBuilder::computeType(Type dtype) {
  if (auto f = dyn_cast<FloatType>(dtype); f && f.getWidth() < 32)
    return Float32Type::get(dtype.getContext());
  return dtype;
}

Type ScalarBuilder::signless(Type dtype) {
  if (auto i = dyn_cast<IntegerType>(dtype); i && !i.isSignless())
    return IntegerType::get(dtype.getContext(), i.getWidth());
  return dtype;
}

static bool isFloat(Type t) { return isa<FloatType>(t); }
static bool isBool(Type t) { return t.isInteger(1); }
static bool isUnsigned(Type t) { return isBool(t) || t.isUnsignedInteger(); }
static unsigned width(Type t) { return t.getIntOrFloatBitWidth(); }

Scalar ScalarBuilder::materialize(Scalar x, Type to) {
  if (!x.isNumber())
    return x;
  Type type = signless(to);
  TypedAttr attr;
  if (auto f = dyn_cast<FloatType>(type)) {
    attr = b.getFloatAttr(f, x.integer ? double(*x.integer) : x.number);
  } else {
    // As `cast`: floats saturate and NaN gives 0, integers wrap.
    llvm::APSInt v(width(type), isUnsigned(to));
    if (isBool(type))
      v = x.integer ? *x.integer != 0 : x.number != 0;
    else if (x.integer)
      v = APInt(width(type), uint64_t(*x.integer), /*isSigned=*/true, /*implicitTrunc=*/true);
    else if (bool exact; !std::isnan(x.number))
      APFloat(x.number).convertToInteger(v, APFloat::rmTowardZero, &exact);
    attr = b.getIntegerAttr(type, v);
  }
  return Scalar(arith::ConstantOp::create(b, loc, attr), to);
}

void ScalarBuilder::unify(Scalar &x, Scalar &y) {
  Type type = !x.isNumber() ? x.dtype : !y.isNumber() ? y.dtype : dtype;
  x = materialize(x, type);
  y = materialize(y, type);
}

Scalar ScalarBuilder::cast(Scalar x, Type to) {
  if (x.isNumber())
    return materialize(x, to);
  Type from = x.dtype;
  if (from == to)
    return x;
  Type target = signless(to);
  Value v = x.value;
  if (isBool(to)) // nonzero; NaN is true
    return Scalar(ne(x, Scalar(0)).value, to);
  if (isFloat(from) && isFloat(to)) {
    if (width(from) < width(to))
      v = arith::ExtFOp::create(b, loc, target, v);
    else if (width(from) > width(to))
      v = arith::TruncFOp::create(b, loc, target, v);
    else // f16 and bf16
      v = arith::TruncFOp::create(b, loc, target, arith::ExtFOp::create(b, loc, b.getF32Type(), v));
    return Scalar(v, to);
  }
  if (isFloat(to)) {
    // Narrow floats are rounded once, from f32 (exact for what they can hold but i32 and wider,
    // which ATen rounds by way of f32 too).
    Type wide = computeType(target);
    v = isUnsigned(from) ? Value(arith::UIToFPOp::create(b, loc, wide, v))
                         : Value(arith::SIToFPOp::create(b, loc, wide, v));
    return wide == target ? Scalar(v, to) : cast(Scalar(v, wide), to);
  }
  if (isFloat(from)) {
    // Saturates, and NaN gives 0: clamp in float, convert, choose.
    Type wide = computeType(from);
    Scalar f = cast(x, wide);
    unsigned w = width(target);
    double low = isUnsigned(to) ? 0.0 : -std::ldexp(1.0, w - 1);
    double high = std::ldexp(1.0, isUnsigned(to) ? w : w - 1); // one past the largest
    Scalar aboveLow = ge(f, Scalar(low)), belowHigh = lt(f, Scalar(high));
    Scalar inside = and_(aboveLow, belowHigh);
    Scalar safe = select(inside, f, Scalar(0.0));
    Value converted = isUnsigned(to) ? Value(arith::FPToUIOp::create(b, loc, target, safe.value))
                                     : Value(arith::FPToSIOp::create(b, loc, target, safe.value));
    APInt max = isUnsigned(to) ? APInt::getMaxValue(w) : APInt::getSignedMaxValue(w);
    APInt min = isUnsigned(to) ? APInt::getMinValue(w) : APInt::getSignedMinValue(w);
    Value maxValue = arith::ConstantOp::create(b, loc, b.getIntegerAttr(target, max));
    Value minValue = arith::ConstantOp::create(b, loc, b.getIntegerAttr(target, min));
    Value r = arith::SelectOp::create(b, loc, ge(f, Scalar(high)).value, maxValue, converted);
    r = arith::SelectOp::create(b, loc, lt(f, Scalar(low)).value, minValue, r);
    return Scalar(r, to);
  }
  if (width(from) < width(target))
    v = isUnsigned(from) ? Value(arith::ExtUIOp::create(b, loc, target, v))
                         : Value(arith::ExtSIOp::create(b, loc, target, v));
  else if (width(from) > width(target))
    v = arith::TruncIOp::create(b, loc, target, v);
  return Scalar(v, to);
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

Scalar ScalarBuilder::add(Scalar x, Scalar y) {
  unify(x, y);
  if (isFloat(x.dtype))
    return Scalar(arith::AddFOp::create(b, loc, x.value, y.value), x.dtype);
  if (isBool(x.dtype)) // as in ATen: or
    return or_(x, y);
  return Scalar(arith::AddIOp::create(b, loc, x.value, y.value), x.dtype);
}

Scalar ScalarBuilder::sub(Scalar x, Scalar y) {
  unify(x, y);
  if (isFloat(x.dtype))
    return Scalar(arith::SubFOp::create(b, loc, x.value, y.value), x.dtype);
  return Scalar(arith::SubIOp::create(b, loc, x.value, y.value), x.dtype);
}

Scalar ScalarBuilder::mul(Scalar x, Scalar y) {
  // A factor of one, as in `alpha * other`, is no operation.
  if (x.isNumber() && !y.isNumber() && x.number == 1)
    return y;
  if (y.isNumber() && !x.isNumber() && y.number == 1)
    return x;
  unify(x, y);
  if (isFloat(x.dtype))
    return Scalar(arith::MulFOp::create(b, loc, x.value, y.value), x.dtype);
  if (isBool(x.dtype))
    return and_(x, y);
  return Scalar(arith::MulIOp::create(b, loc, x.value, y.value), x.dtype);
}

/// A number that no integer division goes wrong with.
static bool isPlainDivisor(const Scalar &y) { return y.isNumber() && y.integer && *y.integer > 0; }

// Integers truncate. Division by zero gives all bits set, MIN / -1 gives MIN: never a trap, so the
// divisor is replaced before the division.
Scalar ScalarBuilder::div(Scalar x, Scalar y) {
  bool plain = isPlainDivisor(y);
  unify(x, y);
  if (isFloat(x.dtype))
    return Scalar(arith::DivFOp::create(b, loc, x.value, y.value), x.dtype);
  if (plain)
    return Scalar(isUnsigned(x.dtype) ? Value(arith::DivUIOp::create(b, loc, x.value, y.value))
                                      : Value(arith::DivSIOp::create(b, loc, x.value, y.value)),
                  x.dtype);
  Scalar zero = eq(y, Scalar(0));
  Scalar ones = materialize(Scalar(-1), x.dtype);
  if (isUnsigned(x.dtype)) {
    Scalar safe = select(zero, Scalar(1), y);
    Value q = arith::DivUIOp::create(b, loc, x.value, safe.value);
    return select(zero, ones, Scalar(q, x.dtype));
  }
  Scalar minusOne = eq(y, Scalar(-1));
  Scalar safe = select(or_(zero, minusOne), Scalar(1), y);
  Scalar q(arith::DivSIOp::create(b, loc, x.value, safe.value), x.dtype);
  return select(zero, ones, select(minusOne, neg(x), q));
}

// The sign of the dividend, as C's % and fmod. Remainder by zero is the dividend.
Scalar ScalarBuilder::rem(Scalar x, Scalar y) {
  bool plain = isPlainDivisor(y);
  unify(x, y);
  if (isFloat(x.dtype))
    return Scalar(arith::RemFOp::create(b, loc, x.value, y.value), x.dtype);
  if (plain)
    return Scalar(isUnsigned(x.dtype) ? Value(arith::RemUIOp::create(b, loc, x.value, y.value))
                                      : Value(arith::RemSIOp::create(b, loc, x.value, y.value)),
                  x.dtype);
  Scalar zero = eq(y, Scalar(0));
  if (isUnsigned(x.dtype)) {
    Scalar safe = select(zero, Scalar(1), y);
    Scalar r(arith::RemUIOp::create(b, loc, x.value, safe.value), x.dtype);
    return select(zero, x, r);
  }
  Scalar minusOne = eq(y, Scalar(-1));
  Scalar safe = select(or_(zero, minusOne), Scalar(1), y);
  Scalar r(arith::RemSIOp::create(b, loc, x.value, safe.value), x.dtype);
  return select(zero, x, r);
}

Scalar ScalarBuilder::max(Scalar x, Scalar y) {
  unify(x, y);
  if (isFloat(x.dtype)) // propagates NaN
    return Scalar(arith::MaximumFOp::create(b, loc, x.value, y.value), x.dtype);
  if (isUnsigned(x.dtype))
    return Scalar(arith::MaxUIOp::create(b, loc, x.value, y.value), x.dtype);
  return Scalar(arith::MaxSIOp::create(b, loc, x.value, y.value), x.dtype);
}

Scalar ScalarBuilder::min(Scalar x, Scalar y) {
  unify(x, y);
  if (isFloat(x.dtype))
    return Scalar(arith::MinimumFOp::create(b, loc, x.value, y.value), x.dtype);
  if (isUnsigned(x.dtype))
    return Scalar(arith::MinUIOp::create(b, loc, x.value, y.value), x.dtype);
  return Scalar(arith::MinSIOp::create(b, loc, x.value, y.value), x.dtype);
}

Scalar ScalarBuilder::neg(Scalar x) {
  x = materialize(x, dtype);
  if (isFloat(x.dtype))
    return Scalar(arith::NegFOp::create(b, loc, x.value), x.dtype);
  return sub(materialize(Scalar(0), x.dtype), x);
}

Scalar ScalarBuilder::abs(Scalar x) {
  x = materialize(x, dtype);
  if (isFloat(x.dtype))
    return Scalar(math::AbsFOp::create(b, loc, x.value), x.dtype);
  if (isUnsigned(x.dtype))
    return x;
  return select(lt(x, Scalar(0)), neg(x), x);
}

//===----------------------------------------------------------------------===//
// Comparisons, logic
//===----------------------------------------------------------------------===//

Scalar ScalarBuilder::compare(int floatPredicate, int signedPredicate, int unsignedPredicate,
                              Scalar x, Scalar y) {
  unify(x, y);
  Value v;
  if (isFloat(x.dtype))
    v = arith::CmpFOp::create(b, loc, arith::CmpFPredicate(floatPredicate), x.value, y.value);
  else
    v = arith::CmpIOp::create(
        b, loc, arith::CmpIPredicate(isUnsigned(x.dtype) ? unsignedPredicate : signedPredicate),
        x.value, y.value);
  return Scalar(v, b.getI1Type());
}

using F = arith::CmpFPredicate;
using I = arith::CmpIPredicate;
Scalar ScalarBuilder::eq(Scalar x, Scalar y) {
  return compare(int(F::OEQ), int(I::eq), int(I::eq), x, y);
}
Scalar ScalarBuilder::ne(Scalar x, Scalar y) {
  return compare(int(F::UNE), int(I::ne), int(I::ne), x, y);
}
Scalar ScalarBuilder::lt(Scalar x, Scalar y) {
  return compare(int(F::OLT), int(I::slt), int(I::ult), x, y);
}
Scalar ScalarBuilder::le(Scalar x, Scalar y) {
  return compare(int(F::OLE), int(I::sle), int(I::ule), x, y);
}
Scalar ScalarBuilder::gt(Scalar x, Scalar y) {
  return compare(int(F::OGT), int(I::sgt), int(I::ugt), x, y);
}
Scalar ScalarBuilder::ge(Scalar x, Scalar y) {
  return compare(int(F::OGE), int(I::sge), int(I::uge), x, y);
}

Scalar ScalarBuilder::select(Scalar condition, Scalar x, Scalar y) {
  unify(x, y);
  condition = materialize(condition, b.getI1Type());
  return Scalar(arith::SelectOp::create(b, loc, condition.value, x.value, y.value), x.dtype);
}
Scalar ScalarBuilder::and_(Scalar x, Scalar y) {
  unify(x, y);
  return Scalar(arith::AndIOp::create(b, loc, x.value, y.value), x.dtype);
}
Scalar ScalarBuilder::or_(Scalar x, Scalar y) {
  unify(x, y);
  return Scalar(arith::OrIOp::create(b, loc, x.value, y.value), x.dtype);
}
Scalar ScalarBuilder::xor_(Scalar x, Scalar y) {
  unify(x, y);
  return Scalar(arith::XOrIOp::create(b, loc, x.value, y.value), x.dtype);
}
Scalar ScalarBuilder::not_(Scalar x) {
  x = materialize(x, dtype);
  return xor_(x, isBool(x.dtype) ? Scalar(1) : Scalar(-1));
}

// Shifts by the width or more give what shifting bit by bit would.
Scalar ScalarBuilder::shl(Scalar x, Scalar y) {
  unify(x, y);
  Scalar tooFar = or_(lt(y, Scalar(0)), ge(y, Scalar(int64_t(width(x.dtype)))));
  Scalar safe = select(tooFar, Scalar(0), y);
  Scalar r(arith::ShLIOp::create(b, loc, x.value, safe.value), x.dtype);
  return select(tooFar, Scalar(0), r);
}
Scalar ScalarBuilder::shr(Scalar x, Scalar y) {
  unify(x, y);
  int64_t w = width(x.dtype);
  Scalar tooFar = or_(lt(y, Scalar(0)), ge(y, Scalar(w)));
  Scalar safe = select(tooFar, Scalar(w - 1), y);
  if (isUnsigned(x.dtype)) {
    Scalar r(arith::ShRUIOp::create(b, loc, x.value, safe.value), x.dtype);
    return select(tooFar, Scalar(0), r);
  }
  return Scalar(arith::ShRSIOp::create(b, loc, x.value, safe.value), x.dtype);
}

//===----------------------------------------------------------------------===//
// Functions of floats
//===----------------------------------------------------------------------===//

template <typename OpTy> Scalar ScalarBuilder::unary(Scalar x) {
  x = materialize(x, dtype);
  return Scalar(OpTy::create(b, loc, x.value), x.dtype);
}

#define QUERN_UNARY(name, Op)                                                                      \
  Scalar ScalarBuilder::name(Scalar x) { return unary<math::Op>(x); }
QUERN_UNARY(exp, ExpOp)
QUERN_UNARY(exp2, Exp2Op)
QUERN_UNARY(expm1, ExpM1Op)
QUERN_UNARY(log, LogOp)
QUERN_UNARY(log1p, Log1pOp)
QUERN_UNARY(log2, Log2Op)
QUERN_UNARY(log10, Log10Op)
QUERN_UNARY(sin, SinOp)
QUERN_UNARY(cos, CosOp)
QUERN_UNARY(tan, TanOp)
QUERN_UNARY(asin, AsinOp)
QUERN_UNARY(acos, AcosOp)
QUERN_UNARY(atan, AtanOp)
QUERN_UNARY(sinh, SinhOp)
QUERN_UNARY(cosh, CoshOp)
QUERN_UNARY(tanh, TanhOp)
QUERN_UNARY(asinh, AsinhOp)
QUERN_UNARY(acosh, AcoshOp)
QUERN_UNARY(atanh, AtanhOp)
QUERN_UNARY(erf, ErfOp)
QUERN_UNARY(floor, FloorOp)
QUERN_UNARY(ceil, CeilOp)
QUERN_UNARY(round, RoundEvenOp)
QUERN_UNARY(trunc, TruncOp)
QUERN_UNARY(sqrt, SqrtOp)
#undef QUERN_UNARY

Scalar ScalarBuilder::rsqrt(Scalar x) { return div(Scalar(1), sqrt(x)); }

Scalar ScalarBuilder::sigmoid(Scalar x) {
  x = materialize(x, dtype);
  return div(Scalar(1), add(Scalar(1), exp(neg(x))));
}

Scalar ScalarBuilder::isnan(Scalar x) { return ne(x, x); }
Scalar ScalarBuilder::isinf(Scalar x) {
  return eq(abs(x), Scalar(std::numeric_limits<double>::infinity()));
}

Scalar ScalarBuilder::pow(Scalar x, Scalar y) {
  unify(x, y);
  return Scalar(math::PowFOp::create(b, loc, x.value, y.value), x.dtype);
}
Scalar ScalarBuilder::atan2(Scalar x, Scalar y) {
  unify(x, y);
  return Scalar(math::Atan2Op::create(b, loc, x.value, y.value), x.dtype);
}
Scalar ScalarBuilder::copysign(Scalar x, Scalar y) {
  unify(x, y);
  return Scalar(math::CopySignOp::create(b, loc, x.value, y.value), x.dtype);
}
Scalar ScalarBuilder::fma(Scalar x, Scalar y, Scalar z) {
  unify(x, y);
  z = materialize(z, x.dtype);
  return Scalar(math::FmaOp::create(b, loc, x.value, y.value, z.value), x.dtype);
}

} // namespace quern
