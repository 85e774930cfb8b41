//===- ScalarBuilder.h - Scalar bodies as arith and math ops ----*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What the scalar expressions of records become: arith and math ops on one
/// element, with Quern's numerics (docs/numerics.md): integer division never
/// traps, float to int saturates, max and min propagate NaN, f16 and bf16 are
/// computed in f32 and rounded once for each op.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_DIALECT_QUERN_IR_SCALARBUILDER_H
#define QUERN_DIALECT_QUERN_IR_SCALARBUILDER_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Value.h"
#include <optional>

namespace quern {

/// One element: a value with its dtype (which knows the sign: `ui8` where the value
/// is `i8`), or a number that takes the dtype of its partner.
class Scalar {
public:
  Scalar() = default;
  Scalar(mlir::Value value, mlir::Type dtype) : value(value), dtype(dtype) {}
  explicit Scalar(double number) : number(number) {}
  explicit Scalar(int number) : number(number), integer(number) {}
  explicit Scalar(bool number) : number(number), integer(number) {}
  explicit Scalar(int64_t number) : number(double(number)), integer(number) {}
  /// A number from an attribute (integer, float or bool).
  explicit Scalar(mlir::TypedAttr attr);

  bool isNumber() const { return !value; }

  mlir::Value value;
  mlir::Type dtype;
  double number = 0;
  /// The number as an integer, where it was written as one: i64 is wider than a double.
  std::optional<int64_t> integer;
};

class ScalarBuilder {
public:
  /// `dtype`: what pure numbers become.
  ScalarBuilder(mlir::OpBuilder &b, mlir::Location loc, mlir::Type dtype)
      : b(b), loc(loc), dtype(dtype) {}

  /// The dtype that an element of this dtype is computed in: f32 for f16 and bf16.
  static mlir::Type computeType(mlir::Type dtype);
  /// The dtype as arith knows it: no sign.
  static mlir::Type signless(mlir::Type dtype);

  /// The same element in another dtype, by the rules of `convert`.
  Scalar cast(Scalar x, mlir::Type to);
  /// Makes a value of a number.
  Scalar materialize(Scalar x, mlir::Type dtype);

  // The functions of the expression language (see scalarFunctionArity).
  Scalar add(Scalar x, Scalar y);
  Scalar sub(Scalar x, Scalar y);
  Scalar mul(Scalar x, Scalar y);
  Scalar div(Scalar x, Scalar y);
  Scalar rem(Scalar x, Scalar y);
  Scalar max(Scalar x, Scalar y);
  Scalar min(Scalar x, Scalar y);
  Scalar pow(Scalar x, Scalar y);
  Scalar atan2(Scalar x, Scalar y);
  Scalar copysign(Scalar x, Scalar y);
  Scalar fma(Scalar x, Scalar y, Scalar z);
  Scalar eq(Scalar x, Scalar y);
  Scalar ne(Scalar x, Scalar y);
  Scalar lt(Scalar x, Scalar y);
  Scalar le(Scalar x, Scalar y);
  Scalar gt(Scalar x, Scalar y);
  Scalar ge(Scalar x, Scalar y);
  Scalar select(Scalar condition, Scalar x, Scalar y);
  Scalar and_(Scalar x, Scalar y);
  Scalar or_(Scalar x, Scalar y);
  Scalar xor_(Scalar x, Scalar y);
  Scalar not_(Scalar x);
  Scalar shl(Scalar x, Scalar y);
  Scalar shr(Scalar x, Scalar y);
  Scalar neg(Scalar x);
  Scalar abs(Scalar x);
  Scalar sqrt(Scalar x);
  Scalar rsqrt(Scalar x);
  Scalar sigmoid(Scalar x);
  Scalar isnan(Scalar x);
  Scalar isinf(Scalar x);
  Scalar convert(Scalar x) { return cast(x, dtype); }
  Scalar exp(Scalar x);
  Scalar exp2(Scalar x);
  Scalar expm1(Scalar x);
  Scalar log(Scalar x);
  Scalar log1p(Scalar x);
  Scalar log2(Scalar x);
  Scalar log10(Scalar x);
  Scalar sin(Scalar x);
  Scalar cos(Scalar x);
  Scalar tan(Scalar x);
  Scalar asin(Scalar x);
  Scalar acos(Scalar x);
  Scalar atan(Scalar x);
  Scalar sinh(Scalar x);
  Scalar cosh(Scalar x);
  Scalar tanh(Scalar x);
  Scalar asinh(Scalar x);
  Scalar acosh(Scalar x);
  Scalar atanh(Scalar x);
  Scalar erf(Scalar x);
  Scalar floor(Scalar x);
  Scalar ceil(Scalar x);
  Scalar round(Scalar x);
  Scalar trunc(Scalar x);

private:
  mlir::OpBuilder &b;
  mlir::Location loc;
  mlir::Type dtype;

  /// Gives both the dtype of the one that has a value.
  void unify(Scalar &x, Scalar &y);
  template <typename OpTy> Scalar unary(Scalar x);
  Scalar compare(int floatPredicate, int signedPredicate, int unsignedPredicate, Scalar x,
                 Scalar y);
};

} // namespace quern
#endif // QUERN_DIALECT_QUERN_IR_SCALARBUILDER_H
