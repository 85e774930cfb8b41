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
/// Emits each distinct subexpression once.
class Emitter {
public:
  Emitter(OpBuilder &builder, Location loc, function_ref<Value(StringRef)> symbol)
      : builder(builder), loc(loc), symbol(symbol) {}

  Value emit(Dim d) {
    if (Value known = cache.lookup(d))
      return known;
    Value value = emitNew(d);
    cache[d] = value;
    return value;
  }

  Value emit(const Condition &condition) {
    Dim a = condition.lhs(), b = condition.rhs();
    switch (condition.kind()) {
    case Condition::Kind::Eq:
      return compare(arith::CmpIPredicate::eq, emit(a), emit(b));
    case Condition::Kind::Le:
      return compare(arith::CmpIPredicate::sle, emit(a), emit(b));
    case Condition::Kind::Divides: {
      // (a / b) * b = a also says the right thing of b = 0: only 0 is a multiple.
      Value multiple = create<arith::MulIOp>(floorDiv(a, b), emit(b));
      return compare(arith::CmpIPredicate::eq, multiple, emit(a));
    }
    case Condition::Kind::Or: {
      Value any = emit(condition.alternatives().front());
      for (const Condition &other : condition.alternatives().drop_front())
        any = create<arith::OrIOp>(any, emit(other));
      return any;
    }
    }
    llvm_unreachable("unknown kind of condition");
  }

private:
  template <typename OpTy, typename... Args> Value create(Args &&...args) {
    return builder.createOrFold<OpTy>(loc, std::forward<Args>(args)...);
  }
  Value constant(int64_t value) { return emit(Dim::constant(builder.getContext(), value)); }
  Value compare(arith::CmpIPredicate predicate, Value a, Value b) {
    return create<arith::CmpIOp>(predicate, a, b);
  }

  /// A divisor of 0 (only on a path that a guard refuses) divides by 1, so that the
  /// arithmetic may stand anywhere.
  Value divisor(Dim b) {
    return b.getMinimum() >= 1 ? emit(b) : create<arith::MaxSIOp>(emit(b), constant(1));
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
  Value floorDiv(Dim a, Dim b) { return floorDiv(emit(a), divisor(b), a.getMinimum() < 0); }

  Value emitNew(Dim d) {
    ArrayRef<Dim> ops = d.operands();
    switch (d.kind()) {
    case DimKind::Constant:
      return arith::ConstantIndexOp::create(builder, loc, d.getConstant());
    case DimKind::Symbol:
      return symbol(d.getSymbol());
    case DimKind::Sum:
      return fold(ops, [&](Value a, Value b) { return create<arith::AddIOp>(a, b); });
    case DimKind::Product:
      return fold(ops, [&](Value a, Value b) { return create<arith::MulIOp>(a, b); });
    case DimKind::FloorDiv:
      return floorDiv(ops[0], ops[1]);
    case DimKind::CeilDiv: {
      Value by = divisor(ops[1]);
      Value slack = create<arith::SubIOp>(by, constant(1));
      Value dividend = create<arith::AddIOp>(emit(ops[0]), slack);
      return floorDiv(dividend, by, ops[0].getMinimum() < 0);
    }
    case DimKind::Mod: {
      if (ops[0].getMinimum() >= 0 && ops[1].getMinimum() >= 1)
        return create<arith::RemUIOp>(emit(ops[0]), emit(ops[1]));
      Value multiple = create<arith::MulIOp>(floorDiv(ops[0], ops[1]), emit(ops[1]));
      return create<arith::SubIOp>(emit(ops[0]), multiple);
    }
    case DimKind::Min:
      return fold(ops, [&](Value a, Value b) { return create<arith::MinSIOp>(a, b); });
    case DimKind::Max:
      return fold(ops, [&](Value a, Value b) { return create<arith::MaxSIOp>(a, b); });
    case DimKind::Bcast:
      return fold(ops, [&](Value a, Value b) {
        return create<arith::SelectOp>(compare(arith::CmpIPredicate::eq, a, constant(1)), b, a);
      });
    case DimKind::Unknown:
      break;
    }
    llvm_unreachable("an unknown size has no value");
  }

  Value fold(ArrayRef<Dim> ops, function_ref<Value(Value, Value)> fn) {
    Value result = emit(ops.front());
    for (Dim d : ops.drop_front())
      result = fn(result, emit(d));
    return result;
  }

  OpBuilder &builder;
  Location loc;
  function_ref<Value(StringRef)> symbol;
  llvm::DenseMap<Dim, Value> cache;
};
} // namespace

Value emitDim(OpBuilder &builder, Location loc, Dim dim, function_ref<Value(StringRef)> symbol) {
  return Emitter(builder, loc, symbol).emit(dim);
}

Value Condition::emit(OpBuilder &builder, Location loc,
                      function_ref<Value(StringRef)> symbol) const {
  return Emitter(builder, loc, symbol).emit(*this);
}

} // namespace quern
