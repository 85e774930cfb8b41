//===- Emit.cpp - Sizes and conditions as index arithmetic ----------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "quern/Shape/Condition.h"

using namespace mlir;

namespace quern {

namespace {
/// A size as it was computed, and whether it is exact: no step overflowed 64 bits or divided by
/// a number below 1. Null where that cannot happen.
struct Emitted {
  Value value, exact;
};

/// Emits each distinct subexpression once.
class Emitter {
public:
  /// `checked`: also emits what tells whether the values are exact.
  Emitter(OpBuilder &builder, Location loc, function_ref<Value(StringRef)> symbol, bool checked)
      : builder(builder), loc(loc), symbol(symbol), checked(checked) {}

  Emitted emit(Dim d) {
    if (auto known = cache.find(d); known != cache.end())
      return known->second;
    Emitted result = emitNew(d);
    cache[d] = result;
    return result;
  }

  /// A condition on sizes that are not exact does not hold.
  Value emit(const Condition &condition) {
    if (condition.kind() == Condition::Kind::Or) {
      Value any = emit(condition.alternatives().front());
      for (const Condition &other : condition.alternatives().drop_front())
        any = create<arith::OrIOp>(any, emit(other));
      return any;
    }
    Emitted a = emit(condition.lhs()), b = emit(condition.rhs());
    Value holds;
    switch (condition.kind()) {
    case Condition::Kind::Eq:
      holds = compare(arith::CmpIPredicate::eq, a.value, b.value);
      break;
    case Condition::Kind::Le:
      holds = compare(arith::CmpIPredicate::sle, a.value, b.value);
      break;
    case Condition::Kind::Divides: {
      // (a / b) * b = a also says the right thing of b = 0: only 0 is a multiple.
      Value quotient = floorDiv(a.value, divisor(condition.rhs()), mayBeNegative(condition.lhs()));
      Value multiple = create<arith::MulIOp>(quotient, b.value);
      holds = compare(arith::CmpIPredicate::eq, multiple, a.value);
      break;
    }
    case Condition::Kind::Exact:
      break;
    case Condition::Kind::Or:
      llvm_unreachable("handled above");
    }
    Value both = all(all(a.exact, b.exact), holds);
    return both ? both : arith::ConstantIntOp::create(builder, loc, 1, 1).getResult();
  }

private:
  template <typename OpTy, typename... Args> Value create(Args &&...args) {
    return builder.createOrFold<OpTy>(loc, std::forward<Args>(args)...);
  }
  Value constant(int64_t value) { return emit(Dim::constant(builder.getContext(), value)).value; }
  Value compare(arith::CmpIPredicate predicate, Value a, Value b) {
    return create<arith::CmpIOp>(predicate, a, b);
  }
  /// Null stands for true.
  Value all(Value a, Value b) { return !a ? b : !b ? a : create<arith::AndIOp>(a, b); }
  static bool mayBeNegative(Dim d) { return d.getMinimum() < 0; }

  bool mayOverflow(Dim d) { return checked && d.getMaxBits() > 63; }

  /// A divisor of 0 (only on a path that a guard refuses) divides by 1, so that the
  /// arithmetic may stand anywhere.
  Value divisor(Dim b) {
    Value value = emit(b).value;
    return b.getMinimum() >= 1 ? value : create<arith::MaxSIOp>(value, constant(1));
  }

  /// Unsigned division is cheaper, and right where the dividend cannot be negative.
  Value floorDiv(Value a, Value b, bool mayBeNegative) {
    if (!mayBeNegative)
      return create<arith::DivUIOp>(a, b);
    // floor(a / b) = ~(~a / b) where a is negative.
    Value minusOne = constant(-1);
    Value negative = compare(arith::CmpIPredicate::slt, a, constant(0));
    Value magnitude = create<arith::SelectOp>(negative, create<arith::XOrIOp>(a, minusOne), a);
    Value quotient = create<arith::DivUIOp>(magnitude, b);
    Value flipped = create<arith::XOrIOp>(quotient, minusOne);
    return create<arith::SelectOp>(negative, flipped, quotient);
  }

  /// a + b overflows when both have one sign and the sum has the other.
  Emitted add(Emitted a, Emitted b, bool mayOverflow) {
    Value sum = create<arith::AddIOp>(a.value, b.value);
    Value exact = all(a.exact, b.exact);
    if (mayOverflow) {
      Value changes = create<arith::AndIOp>(create<arith::XOrIOp>(a.value, sum),
                                            create<arith::XOrIOp>(b.value, sum));
      exact = all(exact, compare(arith::CmpIPredicate::sge, changes, constant(0)));
    }
    return {sum, exact};
  }

  /// A product fits when its high half only repeats the sign of the low one.
  Emitted multiply(Emitted a, Emitted b, bool mayOverflow) {
    Value exact = all(a.exact, b.exact);
    if (!mayOverflow)
      return {create<arith::MulIOp>(a.value, b.value), exact};
    SmallVector<Value> halves;
    builder.createOrFold<arith::MulSIExtendedOp>(halves, loc, a.value, b.value);
    Value sign = create<arith::ShRSIOp>(halves[0], constant(63));
    return {halves[0], all(exact, compare(arith::CmpIPredicate::eq, halves[1], sign))};
  }

  template <typename OpTy> auto simple() {
    return [this](Emitted a, Emitted b) -> Emitted {
      return {create<OpTy>(a.value, b.value), all(a.exact, b.exact)};
    };
  }

  Emitted emitNew(Dim d) {
    ArrayRef<Dim> ops = d.operands();
    switch (d.kind()) {
    case DimKind::Constant:
      return {arith::ConstantIndexOp::create(builder, loc, d.getConstant()), {}};
    case DimKind::Symbol:
      return {symbol(d.getSymbol()), {}};
    case DimKind::Sum:
      return fold(ops, [&](Emitted a, Emitted b) { return add(a, b, mayOverflow(d)); });
    case DimKind::Product:
      return fold(ops, [&](Emitted a, Emitted b) { return multiply(a, b, mayOverflow(d)); });
    case DimKind::FloorDiv:
    case DimKind::CeilDiv:
    case DimKind::Mod:
      return emitDivision(d);
    case DimKind::Min:
      return fold(ops, simple<arith::MinSIOp>());
    case DimKind::Max:
      return fold(ops, simple<arith::MaxSIOp>());
    case DimKind::Bcast:
      return fold(ops, [&](Emitted a, Emitted b) -> Emitted {
        Value isOne = compare(arith::CmpIPredicate::eq, a.value, constant(1));
        return {create<arith::SelectOp>(isOne, b.value, a.value), all(a.exact, b.exact)};
      });
    case DimKind::Unknown:
      break;
    }
    llvm_unreachable("an unknown size has no value");
  }

  Emitted emitDivision(Dim d) {
    Dim dividend = d.operands()[0], by = d.operands()[1];
    Emitted a = emit(dividend), b = emit(by);
    if (checked && by.getMinimum() < 1)
      b.exact = all(b.exact, compare(arith::CmpIPredicate::sge, b.value, constant(1)));
    b.value = divisor(by);
    Value exact = all(a.exact, b.exact);
    if (d.kind() == DimKind::FloorDiv)
      return {floorDiv(a.value, b.value, mayBeNegative(dividend)), exact};
    if (d.kind() == DimKind::CeilDiv) {
      Value slack = create<arith::SubIOp>(b.value, constant(1));
      Emitted sum = add({a.value, exact}, {slack, {}}, mayOverflow(d));
      return {floorDiv(sum.value, b.value, mayBeNegative(dividend)), sum.exact};
    }
    if (!mayBeNegative(dividend) && by.getMinimum() >= 1)
      return {create<arith::RemUIOp>(a.value, b.value), exact};
    Value quotient = floorDiv(a.value, b.value, mayBeNegative(dividend));
    Value multiple = create<arith::MulIOp>(quotient, emit(by).value);
    return {create<arith::SubIOp>(a.value, multiple), exact};
  }

  Emitted fold(ArrayRef<Dim> ops, function_ref<Emitted(Emitted, Emitted)> fn) {
    Emitted result = emit(ops.front());
    for (Dim d : ops.drop_front())
      result = fn(result, emit(d));
    return result;
  }

  OpBuilder &builder;
  Location loc;
  function_ref<Value(StringRef)> symbol;
  bool checked;
  llvm::DenseMap<Dim, Emitted> cache;
};
} // namespace

Value emitDim(OpBuilder &builder, Location loc, Dim dim, function_ref<Value(StringRef)> symbol) {
  return Emitter(builder, loc, symbol, /*checked=*/false).emit(dim).value;
}

Value Condition::emit(OpBuilder &builder, Location loc,
                      function_ref<Value(StringRef)> symbol) const {
  return Emitter(builder, loc, symbol, /*checked=*/true).emit(*this);
}

} // namespace quern
