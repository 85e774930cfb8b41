//===- Pointwise.cpp - ATen's element-by-element overloads ----------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Call.h"

using namespace mlir;
using llvm::StringLiteral;
using llvm::StringRef;

namespace quern::aten {

/// `mnemonic` in the dtype of `self`.
template <const StringLiteral &mnemonic> static Results unary(Call &call) {
  return {call.op(mnemonic, {call.tensor("self")})};
}

/// Integers and bool become f32 first.
template <const StringLiteral &mnemonic> static Results floatUnary(Call &call) {
  Value self = call.tensor("self");
  if (call.failed())
    return {};
  return {call.op(mnemonic, {call.convert(self, toFloatType(Call::dtypeOf(self)))})};
}

template <const StringLiteral &mnemonic> static Results binary(Call &call) {
  auto operands = call.promoted({"self", "other"});
  return {call.op(mnemonic, {operands[0], operands[1]})};
}

/// True division: integers become f32 (at once: 300 does not wrap on the way beside an i8).
static Results divide(Call &call) {
  auto operands = call.promoted({"self", "other"}, toFloatType);
  return {call.op("div", {operands[0], operands[1]})};
}

/// self + alpha * other, or with minus.
template <const StringLiteral &mnemonic> static Results addScaled(Call &call) {
  auto operands = call.promoted({"self", "other"});
  if (call.failed())
    return {};
  if (StringRef(mnemonic) == "sub" && call.hasBool({"self", "other"}))
    return {call.fail("subtraction is not defined for bool, promoted or not")};
  Scalar alpha = call.scalar("alpha", Scalar::integer(1));
  if (alpha.kind == Scalar::Kind::Bool && !isBool(Call::dtypeOf(operands[0])))
    return {call.fail("alpha is a bool, the operands are not")};
  if (alpha.isFloat() && !isa<FloatType>(Call::dtypeOf(operands[0])))
    return {call.fail("alpha is a float, the operands are not")};
  // 1.0, 1 and True are the op's default.
  if (alpha.is(1))
    return {call.op(mnemonic, {operands[0], operands[1]})};
  return {call.op(mnemonic, {operands[0], operands[1]}, {call.attr("alpha", alpha)})};
}

static Results gelu(Call &call) {
  std::string approximate = call.string("approximate", "none");
  return {
      call.op("gelu", {call.tensor("self")}, {call.attr("approximate", StringRef(approximate))})};
}

/// A condition of u8 is an old form of bool.
static Results where(Call &call) {
  Value condition = call.tensor("condition");
  if (condition && Call::dtypeOf(condition).isUnsignedInteger(8))
    condition = call.convert(condition, IntegerType::get(call.getContext(), 1));
  auto operands = call.promoted({"self", "other"});
  return {call.op("where", {condition, operands[0], operands[1]})};
}

static Results toCopy(Call &call) { return {call.convert(call.tensor("self"), call.dtype())}; }

// The mnemonics as template arguments need linkage.
#define QUERN_MNEMONIC(name) static constexpr StringLiteral name##Name = #name
QUERN_MNEMONIC(neg);
QUERN_MNEMONIC(abs);
QUERN_MNEMONIC(relu);
QUERN_MNEMONIC(reciprocal);
QUERN_MNEMONIC(sqrt);
QUERN_MNEMONIC(rsqrt);
QUERN_MNEMONIC(exp);
QUERN_MNEMONIC(log);
QUERN_MNEMONIC(tanh);
QUERN_MNEMONIC(sigmoid);
QUERN_MNEMONIC(add);
QUERN_MNEMONIC(sub);
QUERN_MNEMONIC(mul);
QUERN_MNEMONIC(maximum);
QUERN_MNEMONIC(minimum);
QUERN_MNEMONIC(eq);
QUERN_MNEMONIC(ne);
QUERN_MNEMONIC(lt);
QUERN_MNEMONIC(le);
QUERN_MNEMONIC(gt);
QUERN_MNEMONIC(ge);
#undef QUERN_MNEMONIC

llvm::ArrayRef<Overload> getPointwiseOverloads() {
  constexpr Rounding exact = Rounding::Exact, rounded = Rounding::Pointwise;
  static const Overload table[] = {
      {"add.Tensor", addScaled<addName>},
      {"add.Scalar", addScaled<addName>},
      {"sub.Tensor", addScaled<subName>},
      {"sub.Scalar", addScaled<subName>},
      {"mul.Tensor", binary<mulName>},
      {"mul.Scalar", binary<mulName>},
      {"div.Tensor", divide, exact, Terms::One, rounded},
      {"div.Scalar", divide, exact, Terms::One, rounded},
      {"maximum.default", binary<maximumName>},
      {"minimum.default", binary<minimumName>},
      {"eq.Tensor", binary<eqName>},
      {"eq.Scalar", binary<eqName>},
      {"ne.Tensor", binary<neName>},
      {"ne.Scalar", binary<neName>},
      {"lt.Tensor", binary<ltName>},
      {"lt.Scalar", binary<ltName>},
      {"le.Tensor", binary<leName>},
      {"le.Scalar", binary<leName>},
      {"gt.Tensor", binary<gtName>},
      {"gt.Scalar", binary<gtName>},
      {"ge.Tensor", binary<geName>},
      {"ge.Scalar", binary<geName>},
      {"where.self", where},
      {"neg.default", unary<negName>},
      {"abs.default", unary<absName>},
      {"relu.default", unary<reluName>},
      {"reciprocal.default", floatUnary<reciprocalName>, exact, Terms::One, rounded},
      {"sqrt.default", floatUnary<sqrtName>, exact, Terms::One, rounded},
      {"rsqrt.default", floatUnary<rsqrtName>, rounded},
      {"exp.default", floatUnary<expName>, rounded},
      {"log.default", floatUnary<logName>, rounded},
      {"tanh.default", floatUnary<tanhName>, rounded},
      {"sigmoid.default", floatUnary<sigmoidName>, rounded},
      {"gelu.default", gelu, rounded},
      {"_to_copy.default", toCopy},
  };
  return table;
}

} // namespace quern::aten
