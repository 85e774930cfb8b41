//===- EmitterOps.cpp - The expressions of CUDA C++ -----------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "EmitterImpl.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/Format.h"

using namespace mlir;

namespace quern::cuda {

static bool isNarrowFloat(Type type) { return type.isF16() || type.isBF16(); }
static bool isNarrowInteger(Type type) {
  return type.isInteger(8) || type.isInteger(16) || type.isInteger(1);
}

std::string Printer::typeName(Type type) {
  if (auto vector = dyn_cast<VectorType>(type))
    return "quern::vec<" + typeName(vector.getElementType()) + ", " +
           std::to_string(vector.getNumElements()) + ">";
  if (type.isIndex())
    return wideIndex ? "long long" : "int";
  if (type.isF32())
    return "float";
  if (type.isF64())
    return "double";
  if (type.isF16())
    return "quern::f16";
  if (type.isBF16())
    return "quern::bf16";
  if (auto integer = dyn_cast<IntegerType>(type))
    switch (integer.getWidth()) {
    case 1:
      return "bool";
    case 8:
      return "signed char";
    case 16:
      return "short";
    case 32:
      return "int";
    case 64:
      return "long long";
    }
  failed = true;
  function.emitError("unsupported: CUDA code with type ") << type;
  return "void";
}

std::string Printer::text(Value value, int atLeast) {
  Expression expression = operand(value);
  if (widen && isNarrowFloat(value.getType()))
    return "quern::toFloat(" + expression.text + ")";
  return expression.precedence < atLeast ? "(" + expression.text + ")" : expression.text;
}

Expression Printer::binary(StringRef sign, int precedence, Value a, Value b) {
  // Left to right: the right operand needs one level more.
  return {text(a, precedence) + " " + sign.str() + " " + text(b, precedence + 1), precedence};
}

Expression Printer::call(StringRef name, ValueRange arguments) {
  std::string result = name.str() + "(";
  for (auto [i, argument] : llvm::enumerate(arguments))
    result += (i ? ", " : "") + text(argument);
  return {result + ")", Primary};
}

static std::string quoted(StringRef function, const std::string &argument) {
  return function.str() + "(" + argument + ")";
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

static std::string hex(uint64_t bits) { return "0x" + llvm::utohexstr(bits, /*LowerCase=*/true); }

Expression Printer::constant(Attribute value, Type type) {
  if (auto integer = dyn_cast<IntegerAttr>(value)) {
    int64_t number =
        type.isInteger(1) ? integer.getValue().getZExtValue() : integer.getValue().getSExtValue();
    if (type.isInteger(1))
      return {number ? "true" : "false"};
    std::string suffix = type.isInteger(64) ? "ll" : "";
    bool isLong = type.isInteger(64) || (type.isIndex() && wideIndex);
    // The least number has no literal.
    if (isLong && number == INT64_MIN)
      return {"(-9223372036854775807ll - 1)"};
    if (type.isInteger(32) && number == INT32_MIN)
      return {"(-2147483647 - 1)"};
    if (isNarrowInteger(type))
      return {"static_cast<" + typeName(type) + ">(" + std::to_string(number) + ")"};
    return {std::to_string(number) + suffix, number < 0 ? Unary : Primary};
  }
  APFloat number = cast<FloatAttr>(value).getValue();
  uint64_t bits = number.bitcastToAPInt().getZExtValue();
  if (isNarrowFloat(type))
    return {typeName(type) + "{" + hex(bits) + "}"};
  bool isFloat = type.isF32();
  if (!number.isFinite())
    return {isFloat ? "__int_as_float(" + std::string(bits >> 31 ? "static_cast<int>(" : "") +
                          hex(bits) + (bits >> 31 ? "u)" : "") + ")"
                    : "__longlong_as_double(static_cast<long long>(" + hex(bits) + "ull))"};
  // Enough digits to come back exactly; fewer when they do, too.
  std::string digits;
  double plain = isFloat ? number.convertToFloat() : number.convertToDouble();
  for (int precision = 1; precision <= 17; ++precision) {
    llvm::raw_string_ostream(digits = "") << llvm::format("%.*g", precision, plain);
    double back = std::strtod(digits.c_str(), nullptr);
    if (isFloat ? float(back) == float(plain) : back == plain)
      break;
  }
  if (digits.find_first_of(".en") == std::string::npos)
    digits += ".0";
  return {digits + (isFloat ? "f" : ""), digits.front() == '-' ? Unary : Primary};
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

std::string Printer::element(Value memref, ValueRange indices) {
  std::string result = nameOf(memref);
  for (Value index : indices)
    result += "[" + text(index) + "]";
  return result;
}

std::string Printer::addressOf(Value memref, ValueRange indices) {
  auto type = cast<MemRefType>(memref.getType());
  if (type.getRank() != 1)
    return "&" + element(memref, indices);
  std::string index = text(indices.front(), Additive);
  return index == "0" ? nameOf(memref) : nameOf(memref) + " + " + index;
}

FailureOr<Expression> Printer::memory(Operation &op) {
  using Result = FailureOr<Expression>;
  return llvm::TypeSwitch<Operation *, Result>(&op)
      .Case([&](memref::LoadOp load) -> Result {
        return Expression{element(load.getMemRef(), load.getIndices())};
      })
      .Case([&](vector::MaskedLoadOp load) -> Result {
        return Expression{"quern::load<" + std::to_string(load.getVectorType().getNumElements()) +
                          ">(" + addressOf(load.getBase(), load.getIndices()) + ", " +
                          lefts.lookup(load.getMask()) + ")"};
      })
      .Case([&](vector::LoadOp load) -> Result {
        // A whole local array, or aligned shared memory.
        if (load.getBase().getDefiningOp<memref::AllocaOp>())
          return Expression{nameOf(load.getBase())};
        return Expression{"*reinterpret_cast<const " + typeName(load.getVectorType()) + " *>(" +
                              addressOf(load.getBase(), load.getIndices()) + ")",
                          Unary};
      })
      .Case([&](vector::BroadcastOp broadcast) -> Result {
        auto type = dyn_cast<VectorType>(broadcast.getSourceType());
        if (type)
          return refuse(op, "of a vector");
        return Expression{"quern::splat<" +
                          std::to_string(broadcast.getResultVectorType().getNumElements()) + ">(" +
                          text(broadcast.getSource()) + ")"};
      })
      .Case([&](vector::ExtractOp extract) -> Result {
        OpFoldResult lane = extract.getMixedPosition().front();
        std::string position = isa<Attribute>(lane) ? std::to_string(*getConstantIntValue(lane))
                                                    : text(cast<Value>(lane));
        return Expression{text(extract.getSource(), Primary) + "[" + position + "]"};
      })
      .Default([&](Operation *) -> Result { return refuse(op, ""); });
}

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

FailureOr<Expression> Printer::conversion(Operation &op) {
  Value from = op.getOperand(0);
  Type source = from.getType(), target = op.getResult(0).getType();
  std::string value = text(from), type = typeName(target);
  // Through f32 where the type has no arithmetic.
  std::string number = isNarrowFloat(source) ? quoted("quern::toFloat", value) : value;
  auto rounded = [&](const std::string &wide) -> Expression {
    if (target.isF16())
      return {quoted("quern::toF16", wide)};
    if (target.isBF16())
      return {quoted("quern::toBf16", wide)};
    return {"static_cast<" + type + ">(" + wide + ")"};
  };
  std::string bits =
      source.isInteger(1) || source.isIndex() ? value : quoted("quern::toUnsigned", value);
  using Result = FailureOr<Expression>;
  return llvm::TypeSwitch<Operation *, Result>(&op)
      .Case<arith::ExtFOp>(
          [&](auto) -> Result { return target.isF32() ? Expression{number} : rounded(number); })
      .Case<arith::TruncFOp>([&](auto) -> Result { return rounded(number); })
      .Case<arith::SIToFPOp>([&](auto) -> Result {
        std::string integer = source.isInteger(1) ? "(" + value + " ? -1 : 0)" : value;
        return rounded(isNarrowFloat(target) ? "static_cast<double>(" + integer + ")" : integer);
      })
      .Case<arith::UIToFPOp>([&](auto) -> Result {
        return rounded(isNarrowFloat(target) ? "static_cast<double>(" + bits + ")" : bits);
      })
      .Case<arith::FPToSIOp>([&](auto) -> Result {
        if (target.isInteger(1))
          return refuse(op, "to i1");
        return Expression{"quern::toSigned<" + type + ">(" + number + ")"};
      })
      .Case<arith::FPToUIOp>([&](auto) -> Result {
        if (target.isInteger(1))
          return refuse(op, "to i1");
        return Expression{"quern::toUnsignedBits<" + type + ">(" + number + ")"};
      })
      .Case<arith::ExtSIOp>([&](auto) -> Result {
        return Expression{"static_cast<" + type + ">(" +
                          (source.isInteger(1) ? value + " ? -1 : 0" : value) + ")"};
      })
      .Case<arith::ExtUIOp>(
          [&](auto) -> Result { return Expression{"static_cast<" + type + ">(" + bits + ")"}; })
      .Case<arith::TruncIOp>([&](auto) -> Result {
        if (target.isInteger(1))
          return Expression{"(" + text(from, BitAnd) + " & 1) != 0", Equality};
        return Expression{"static_cast<" + type + ">(" + value + ")"};
      })
      .Case<arith::IndexCastOp>(
          [&](auto) -> Result { return Expression{"static_cast<" + type + ">(" + value + ")"}; })
      .Case<arith::IndexCastUIOp>(
          [&](auto) -> Result { return Expression{"static_cast<" + type + ">(" + bits + ")"}; })
      .Case<arith::BitcastOp>([&](auto) -> Result {
        if (source.isF32() && target.isInteger(32))
          return Expression{quoted("__float_as_int", value)};
        if (source.isInteger(32) && target.isF32())
          return Expression{quoted("__int_as_float", value)};
        if (source.isF64() && target.isInteger(64))
          return Expression{quoted("__double_as_longlong", value)};
        if (source.isInteger(64) && target.isF64())
          return Expression{quoted("__longlong_as_double", value)};
        if (isNarrowFloat(source) && target.isInteger(16))
          return Expression{"static_cast<short>(" + text(from, Primary) + ".bits)"};
        if (source.isInteger(16) && isNarrowFloat(target))
          return Expression{type + "{static_cast<unsigned short>(" + value + ")}"};
        return refuse(op, "between these types");
      })
      .Default([&](Operation *) -> Result { return memory(op); });
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

/// The C function of a math op on f32 without its final f; null for others.
static const char *mathFunction(Operation &op) {
  return llvm::TypeSwitch<Operation *, const char *>(&op)
      .Case<math::AbsFOp>([](auto) { return "fabs"; })
      .Case<math::AcosOp>([](auto) { return "acos"; })
      .Case<math::AcoshOp>([](auto) { return "acosh"; })
      .Case<math::AsinOp>([](auto) { return "asin"; })
      .Case<math::AsinhOp>([](auto) { return "asinh"; })
      .Case<math::Atan2Op>([](auto) { return "atan2"; })
      .Case<math::AtanOp>([](auto) { return "atan"; })
      .Case<math::AtanhOp>([](auto) { return "atanh"; })
      .Case<math::CbrtOp>([](auto) { return "cbrt"; })
      .Case<math::CeilOp>([](auto) { return "ceil"; })
      .Case<math::CopySignOp>([](auto) { return "copysign"; })
      .Case<math::CosOp>([](auto) { return "cos"; })
      .Case<math::CoshOp>([](auto) { return "cosh"; })
      .Case<math::ErfOp>([](auto) { return "erf"; })
      .Case<math::ErfcOp>([](auto) { return "erfc"; })
      .Case<math::Exp2Op>([](auto) { return "exp2"; })
      .Case<math::ExpM1Op>([](auto) { return "expm1"; })
      .Case<math::ExpOp>([](auto) { return "exp"; })
      .Case<math::FloorOp>([](auto) { return "floor"; })
      .Case<math::FmaOp>([](auto) { return "fma"; })
      .Case<math::Log10Op>([](auto) { return "log10"; })
      .Case<math::Log1pOp>([](auto) { return "log1p"; })
      .Case<math::Log2Op>([](auto) { return "log2"; })
      .Case<math::LogOp>([](auto) { return "log"; })
      .Case<math::PowFOp>([](auto) { return "pow"; })
      .Case<math::RoundEvenOp>([](auto) { return "rint"; })
      .Case<math::RoundOp>([](auto) { return "round"; })
      .Case<math::RsqrtOp>([](auto) { return "rsqrt"; })
      .Case<math::SinOp>([](auto) { return "sin"; })
      .Case<math::SinhOp>([](auto) { return "sinh"; })
      .Case<math::SqrtOp>([](auto) { return "sqrt"; })
      .Case<math::TanOp>([](auto) { return "tan"; })
      .Case<math::TanhOp>([](auto) { return "tanh"; })
      .Case<math::TruncOp>([](auto) { return "trunc"; })
      .Case<arith::RemFOp>([](auto) { return "fmod"; })
      .Case<arith::MaxNumFOp>([](auto) { return "fmax"; })
      .Case<arith::MinNumFOp>([](auto) { return "fmin"; })
      .Default(static_cast<const char *>(nullptr));
}

Expression Printer::compare(Operation &op) {
  Value a = op.getOperand(0), b = op.getOperand(1);
  if (auto integers = dyn_cast<arith::CmpIOp>(op)) {
    using P = arith::CmpIPredicate;
    P predicate = integers.getPredicate();
    bool isUnsigned =
        predicate == P::ult || predicate == P::ule || predicate == P::ugt || predicate == P::uge;
    const char *sign = predicate == P::eq                           ? "=="
                       : predicate == P::ne                         ? "!="
                       : predicate == P::slt || predicate == P::ult ? "<"
                       : predicate == P::sle || predicate == P::ule ? "<="
                       : predicate == P::sgt || predicate == P::ugt ? ">"
                                                                    : ">=";
    int level = predicate == P::eq || predicate == P::ne ? Equality : Relational;
    if (isUnsigned && !a.getType().isInteger(1) && !a.getType().isIndex())
      return {quoted("quern::toUnsigned", text(a)) + " " + sign + " " +
                  quoted("quern::toUnsigned", text(b)),
              level};
    if (a.getType().isInteger(1) && !isUnsigned && level == Relational)
      return binary(sign, level, b, a); // true is -1
    return binary(sign, level, a, b);
  }
  using P = arith::CmpFPredicate;
  auto negated = [&](const char *sign) -> Expression {
    return {"!(" + binary(sign, Relational, a, b).text + ")", Unary};
  };
  auto apart = [&] {
    return binary("<", Relational, a, b).text + " || " + binary(">", Relational, a, b).text;
  };
  std::string x = text(a, Relational), y = text(b, Relational);
  switch (cast<arith::CmpFOp>(op).getPredicate()) {
  case P::AlwaysFalse:
    return {"false"};
  case P::AlwaysTrue:
    return {"true"};
  case P::OEQ:
    return binary("==", Equality, a, b);
  case P::OGT:
    return binary(">", Relational, a, b);
  case P::OGE:
    return binary(">=", Relational, a, b);
  case P::OLT:
    return binary("<", Relational, a, b);
  case P::OLE:
    return binary("<=", Relational, a, b);
  case P::UNE:
    return binary("!=", Equality, a, b);
  case P::ONE:
    return {apart(), LogicalOr};
  case P::UEQ:
    return {"!(" + apart() + ")", Unary};
  case P::UGT:
    return negated("<=");
  case P::UGE:
    return negated("<");
  case P::ULT:
    return negated(">=");
  case P::ULE:
    return negated(">");
  case P::ORD:
    return {x + " == " + x + " && " + y + " == " + y, LogicalAnd};
  case P::UNO:
    return {x + " != " + x + " || " + y + " != " + y, LogicalOr};
  }
  llvm_unreachable("unknown predicate");
}

FailureOr<Expression> Printer::arithmetic(Operation &op) {
  Value a = op.getNumOperands() > 0 ? op.getOperand(0) : Value();
  Value b = op.getNumOperands() > 1 ? op.getOperand(1) : Value();
  Type type = op.getNumResults() ? op.getResult(0).getType() : Type();
  std::string name = type ? typeName(type) : "";
  using Result = FailureOr<Expression>;
  // Integers of the body wrap; indices do not overflow.
  auto wrapping = [&](const char *sign, int level, const char *function) -> Expression {
    if (type.isIndex())
      return binary(sign, level, a, b);
    if (type.isInteger(1)) // modulo 2
      return binary(StringRef(sign) == "*" ? "&" : "^", StringRef(sign) == "*" ? BitAnd : BitXor, a,
                    b);
    return call(function, {a, b});
  };
  // Narrow integers are promoted: back to their type.
  auto narrowed = [&](Expression expression) -> Expression {
    if (!isNarrowInteger(type) || type.isInteger(1))
      return expression;
    return {"static_cast<" + name + ">(" + expression.text + ")"};
  };
  auto unsignedBits = [&](Value value) {
    return type.isIndex() || type.isInteger(1) ? text(value, Multiplicative + 1)
                                               : quoted("quern::toUnsigned", text(value));
  };
  auto onUnsigned = [&](const char *sign, int level) -> Expression {
    std::string result = unsignedBits(a) + " " + sign + " " + unsignedBits(b);
    return type.isIndex() ? Expression{result, level}
                          : Expression{"static_cast<" + name + ">(" + result + ")"};
  };
  auto typed = [&](const char *function) -> Expression {
    return call(std::string("quern::") + function + "<" + name + ">", {a, b});
  };
  if (const char *function = mathFunction(op))
    return call(std::string(function) + (type.isF64() ? "" : "f"), op.getOperands());
  return llvm::TypeSwitch<Operation *, Result>(&op)
      .Case<arith::AddFOp>([&](auto) { return binary("+", Additive, a, b); })
      .Case<arith::SubFOp>([&](auto) { return binary("-", Additive, a, b); })
      .Case<arith::MulFOp>([&](auto) { return binary("*", Multiplicative, a, b); })
      .Case<arith::DivFOp>([&](auto) { return binary("/", Multiplicative, a, b); })
      .Case<arith::NegFOp>([&](auto) { return Expression{"-" + text(a, Unary + 1), Unary}; })
      .Case<arith::MaximumFOp>([&](auto) { return call("quern::maximum", {a, b}); })
      .Case<arith::MinimumFOp>([&](auto) { return call("quern::minimum", {a, b}); })
      .Case<arith::AddIOp>([&](auto) { return wrapping("+", Additive, "quern::wrapAdd"); })
      .Case<arith::SubIOp>([&](auto) { return wrapping("-", Additive, "quern::wrapSub"); })
      .Case<arith::MulIOp>([&](auto) { return wrapping("*", Multiplicative, "quern::wrapMul"); })
      .Case<arith::DivSIOp>([&](auto) { return narrowed(binary("/", Multiplicative, a, b)); })
      .Case<arith::RemSIOp>([&](auto) { return narrowed(binary("%", Multiplicative, a, b)); })
      .Case<arith::DivUIOp>([&](auto) { return onUnsigned("/", Multiplicative); })
      .Case<arith::RemUIOp>([&](auto) { return onUnsigned("%", Multiplicative); })
      .Case<arith::FloorDivSIOp>([&](auto) { return typed("floorDiv"); })
      .Case<arith::CeilDivSIOp>([&](auto) { return typed("ceilDiv"); })
      .Case<arith::AndIOp>([&](auto) {
        return type.isInteger(1) ? binary("&&", LogicalAnd, a, b)
                                 : narrowed(binary("&", BitAnd, a, b));
      })
      .Case<arith::OrIOp>([&](auto) {
        return type.isInteger(1) ? binary("||", LogicalOr, a, b)
                                 : narrowed(binary("|", BitOr, a, b));
      })
      .Case<arith::XOrIOp>([&](auto) {
        return type.isInteger(1) ? binary("!=", Equality, a, b)
                                 : narrowed(binary("^", BitXor, a, b));
      })
      .Case<arith::ShLIOp>([&](auto) { return onUnsigned("<<", Shift); })
      .Case<arith::ShRUIOp>([&](auto) { return onUnsigned(">>", Shift); })
      .Case<arith::ShRSIOp>([&](auto) { return narrowed(binary(">>", Shift, a, b)); })
      .Case<arith::MaxSIOp>([&](auto) { return typed("MaxSigned::apply"); })
      .Case<arith::MinSIOp>([&](auto) { return typed("MinSigned::apply"); })
      .Case<arith::MaxUIOp>([&](auto) {
        return typed(type.isIndex() || type.isInteger(1) ? "MaxSigned::apply"
                                                         : "MaxUnsigned::apply");
      })
      .Case<arith::MinUIOp>([&](auto) {
        return typed(type.isIndex() || type.isInteger(1) ? "MinSigned::apply"
                                                         : "MinUnsigned::apply");
      })
      .Case<math::AbsIOp>([&](auto) { return call("quern::magnitude", a); })
      .Case<arith::CmpIOp, arith::CmpFOp>([&](auto) { return compare(op); })
      .Case<gpu::ThreadIdOp>([&](auto) { return Expression{"threadIdx.x"}; })
      .Case<gpu::BlockIdOp>([&](auto) { return Expression{"blockIdx.x"}; })
      .Case<gpu::SubgroupReduceOp, gpu::AllReduceOp>([&](auto reduce) -> Result {
        static const char *const functors[] = {
            "Add",    "Mul", "MinUnsigned", "MinSigned", "MinNum",  "MaxUnsigned", "MaxSigned",
            "MaxNum", "And", "Or",          "Xor",       "Minimum", "Maximum"};
        gpu::AllReduceOperation kind;
        int64_t team = 32;
        if constexpr (std::is_same_v<decltype(reduce), gpu::AllReduceOp>) {
          if (!reduce.getOp())
            return refuse(op, "with a body");
          kind = *reduce.getOp();
        } else {
          if (reduce.getClusterStride() != 1)
            return refuse(op, "of lanes that are not neighbours");
          kind = reduce.getOp();
          team = reduce.getClusterSize().value_or(team);
        }
        std::string functor = std::string("quern::") + functors[unsigned(kind)];
        if (auto found = scratch.find(op.getResult(0)); found != scratch.end())
          return Expression{"quern::blockReduce<" + functor + ">(" + text(a) + ", " +
                            found->second + ")"};
        return Expression{"quern::teamReduce<" + functor + ", " + std::to_string(team) + ">(" +
                          text(a) + ")"};
      })
      .Default([&](Operation *) -> Result { return conversion(op); });
}

FailureOr<Expression> Printer::expressionOf(Operation &op) {
  if (auto number = dyn_cast<arith::ConstantOp>(op)) {
    if (isa<VectorType>(number.getType())) // only the fill of a masked load
      return Expression{"0"};
    return constant(number.getValue(), number.getType());
  }
  // Selects move values: no conversion.
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return Expression{text(select.getCondition(), Conditional + 1) + " ? " +
                          text(select.getTrueValue(), Conditional + 1) + " : " +
                          text(select.getFalseValue(), Conditional + 1),
                      Conditional};
  // 16-bit floats are computed in f32 and rounded.
  bool narrow =
      isa<arith::ArithDialect, math::MathDialect>(op.getDialect()) && op.getNumOperands() &&
      isNarrowFloat(op.getOperand(0).getType()) &&
      !isa<arith::ExtFOp, arith::TruncFOp, arith::FPToSIOp, arith::FPToUIOp, arith::BitcastOp>(op);
  widen = narrow;
  FailureOr<Expression> result = arithmetic(op);
  widen = false;
  if (narrow && succeeded(result) && isNarrowFloat(op.getResult(0).getType()))
    return Expression{
        quoted(op.getResult(0).getType().isF16() ? "quern::toF16" : "quern::toBf16", result->text)};
  return result;
}

} // namespace quern::cuda
