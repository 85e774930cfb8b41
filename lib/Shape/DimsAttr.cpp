//===- DimsAttr.cpp - Sizes in types and as text --------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The text form of sizes (printed and parsed), and sizes as the encoding of a
/// ranked tensor type.
///
//===----------------------------------------------------------------------===//

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Diagnostics.h"
#include "quern/Shape/Dim.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace quern {

//===----------------------------------------------------------------------===//
// Names of the opaque ops
//===----------------------------------------------------------------------===//

namespace {
struct OpaqueOp {
  DimKind kind;
  StringLiteral name;
  Dim (*build)(Dim, Dim);
  bool variadic;
};
} // namespace

static constexpr OpaqueOp opaqueOps[] = {
    {DimKind::FloorDiv, "floordiv", Dim::floorDiv, false},
    {DimKind::CeilDiv, "ceildiv", Dim::ceilDiv, false},
    {DimKind::Mod, "mod", Dim::mod, false},
    {DimKind::Min, "min", Dim::min, true},
    {DimKind::Max, "max", Dim::max, true},
    {DimKind::Bcast, "bcast", Dim::bcast, true},
};

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

/// `_` alone is the unknown size, so a symbol of that name is quoted.
static void printName(raw_ostream &os, StringRef name) {
  auto inner = [](char c) { return llvm::isAlnum(c) || c == '_' || c == '$' || c == '.'; };
  if (!name.empty() && name != "_" && (llvm::isAlpha(name[0]) || name[0] == '_') &&
      llvm::all_of(name, inner)) {
    os << name;
    return;
  }
  os << '"';
  llvm::printEscapedString(name, os);
  os << '"';
}

void Dim::print(raw_ostream &os) const {
  switch (kind()) {
  case DimKind::Unknown:
    os << '_';
    return;
  case DimKind::Constant:
    os << getConstant();
    return;
  case DimKind::Symbol:
    return printName(os, getSymbol());
  case DimKind::Product: {
    ArrayRef<Dim> factors = operands();
    if (factors.front().isConstant(-1)) {
      os << '-';
      factors = factors.drop_front();
    }
    llvm::interleave(factors, os, "*");
    return;
  }
  case DimKind::Sum:
    // A negative term prints its sign as the operator: `S - 1`, `B - 2*S`.
    for (auto [i, term] : llvm::enumerate(operands())) {
      std::string text = term.str();
      StringRef rest = text;
      if (i)
        os << (rest.consume_front("-") ? " - " : " + ");
      os << rest;
    }
    return;
  default:
    os << llvm::find_if(opaqueOps, [&](const OpaqueOp &op) { return op.kind == kind(); })->name;
    os << '(';
    llvm::interleaveComma(operands(), os);
    os << ')';
  }
}

std::string Dim::str() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(os);
  return text;
}

void printDimsAttr(DimsAttr attr, AsmPrinter &printer) {
  printer << '<';
  llvm::interleaveComma(attr.getDims(), printer.getStream());
  printer << '>';
}

//===----------------------------------------------------------------------===//
// Parsing
//===----------------------------------------------------------------------===//

namespace {
/// sum     ::= product ((`+` | `-`) product)*
/// product ::= factor (`*` factor)*
/// factor  ::= `-` factor | integer | `_` | name | op `(` sum (`,` sum)* `)` | `(` sum `)`
class DimParser {
public:
  explicit DimParser(AsmParser &parser) : parser(parser), ctx(parser.getContext()) {}

  FailureOr<Dim> parseSum() {
    SMLoc loc = parser.getCurrentLocation();
    FailureOr<Dim> result = parseProduct();
    while (succeeded(result)) {
      bool minus = succeeded(parser.parseOptionalMinus());
      if (!minus && failed(parser.parseOptionalPlus()))
        break;
      FailureOr<Dim> next = parseProduct();
      if (failed(next))
        return failure();
      result = checked(loc, minus ? *result - *next : *result + *next, {*result, *next});
    }
    return result;
  }

private:
  /// What becomes unknown without an unknown operand has no value.
  FailureOr<Dim> checked(SMLoc loc, Dim result, ArrayRef<Dim> operands) {
    if (!result.isUnknown() || llvm::any_of(operands, [](Dim d) { return d.isUnknown(); }))
      return result;
    return parser.emitError(loc, "expected a size whose numbers fit 64 bits and whose divisors are "
                                 "at least 1, in at most ")
           << Dim::maxNodes << " parts";
  }

  FailureOr<Dim> parseProduct() {
    SMLoc loc = parser.getCurrentLocation();
    FailureOr<Dim> result = parseFactor();
    while (succeeded(result) && succeeded(parser.parseOptionalStar())) {
      FailureOr<Dim> next = parseFactor();
      if (failed(next))
        return failure();
      result = checked(loc, *result * *next, {*result, *next});
    }
    return result;
  }

  FailureOr<Dim> parseFactor() {
    SMLoc loc = parser.getCurrentLocation();
    if (depth >= 64)
      return parser.emitError(loc, "expected a size with at most 64 levels of nesting");
    ++depth;
    FailureOr<Dim> result = parseUnlimitedFactor(loc);
    --depth;
    return result;
  }

  FailureOr<Dim> parseUnlimitedFactor(SMLoc loc) {
    if (succeeded(parser.parseOptionalMinus())) {
      FailureOr<Dim> operand = parseFactor();
      if (succeeded(operand))
        operand = checked(loc, *operand * -1, *operand);
      return operand;
    }
    if (succeeded(parser.parseOptionalLParen())) {
      FailureOr<Dim> inner = parseSum();
      if (failed(inner) || parser.parseRParen())
        return failure();
      return inner;
    }
    std::string quoted;
    if (succeeded(parser.parseOptionalString(&quoted)))
      return Dim::symbol(ctx, quoted);
    // Names come before numbers: MLIR reads `true` as a number, too.
    StringRef name;
    if (succeeded(parser.parseOptionalKeyword(&name))) {
      if (name == "_")
        return Dim::unknown(ctx);
      return succeeded(parser.parseOptionalLParen()) ? parseCall(loc, name)
                                                     : FailureOr<Dim>(Dim::symbol(ctx, name));
    }
    int64_t value;
    OptionalParseResult integer = parser.parseOptionalInteger(value);
    if (integer.has_value()) {
      if (failed(*integer))
        return failure();
      return Dim::constant(ctx, value);
    }
    return parser.emitError(loc, "expected a size: a number, a name, `_` or an expression");
  }

  FailureOr<Dim> parseCall(SMLoc loc, StringRef name) {
    const OpaqueOp *op =
        llvm::find_if(opaqueOps, [&](const OpaqueOp &candidate) { return candidate.name == name; });
    if (op == std::end(opaqueOps))
      return parser.emitError(loc, "expected floordiv, ceildiv, mod, min, max or bcast, got ")
             << name;
    SmallVector<Dim> operands;
    do {
      FailureOr<Dim> operand = parseSum();
      if (failed(operand))
        return failure();
      operands.push_back(*operand);
    } while (succeeded(parser.parseOptionalComma()));
    if (parser.parseRParen())
      return failure();
    if (operands.size() < 2 || (operands.size() > 2 && !op->variadic))
      return parser.emitError(loc, "expected ")
             << (op->variadic ? "two or more" : "two") << " operands of " << name << ", got "
             << operands.size();
    Dim result = operands.front();
    for (Dim d : ArrayRef<Dim>(operands).drop_front())
      result = op->build(result, d);
    return checked(loc, result, operands);
  }

  AsmParser &parser;
  MLIRContext *ctx;
  unsigned depth = 0;
};
} // namespace

FailureOr<Dim> parseDim(AsmParser &parser) { return DimParser(parser).parseSum(); }

Attribute parseDimAttr(AsmParser &parser) {
  if (parser.parseLess())
    return {};
  FailureOr<Dim> dim = parseDim(parser);
  if (failed(dim) || parser.parseGreater())
    return {};
  return dim->getAttr();
}

Attribute parseDimsAttr(AsmParser &parser) {
  SmallVector<Dim> dims;
  auto parseOne = [&]() -> ParseResult {
    FailureOr<Dim> dim = parseDim(parser);
    if (succeeded(dim))
      dims.push_back(*dim);
    return success(succeeded(dim));
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, parseOne))
    return {};
  return DimsAttr::get(parser.getContext(), dims);
}

FailureOr<Dim> parseDim(MLIRContext *ctx, StringRef text) {
  // The caller has its own words for a bad text.
  ScopedDiagnosticHandler quiet(ctx, [](Diagnostic &) { return success(); });
  auto attr = dyn_cast_or_null<DimAttr>(parseAttribute(("#quern.dim<" + text + ">").str(), ctx));
  if (!attr)
    return failure();
  return Dim(attr);
}

//===----------------------------------------------------------------------===//
// Tensor types
//===----------------------------------------------------------------------===//

/// The names of a shape's dynamic dims in order; none when the entries do not tell which is whose.
static SmallVector<Dim> namesOf(ArrayRef<int64_t> shape, ArrayRef<Dim> entries) {
  size_t numDynamic = llvm::count_if(shape, ShapedType::isDynamic);
  bool byPosition = entries.size() == shape.size();
  SmallVector<Dim> names;
  if (byPosition || entries.size() == numDynamic)
    for (auto [i, size] : llvm::enumerate(shape))
      if (ShapedType::isDynamic(size))
        names.push_back(entries[byPosition ? i : names.size()]);
  return names;
}

LogicalResult DimsAttr::verifyEncoding(ArrayRef<int64_t> shape, Type,
                                       llvm::function_ref<InFlightDiagnostic()> emitError) const {
  size_t numDynamic = llvm::count_if(shape, ShapedType::isDynamic);
  if (getDims().size() < numDynamic || getDims().size() > shape.size())
    return emitError() << "expected " << numDynamic
                       << " sizes in #quern.dims, one for each `?`, got " << getDims().size();
  for (Dim name : namesOf(shape, getDims()))
    if (name.isConstant())
      return emitError() << "expected the size of a `?` in #quern.dims to be no number, got "
                         << name << "; write it in place of the `?`";
  return success();
}

SmallVector<Dim> getDims(RankedTensorType type) {
  MLIRContext *ctx = type.getContext();
  SmallVector<Dim> names;
  if (auto encoding = dyn_cast_or_null<DimsAttr>(type.getEncoding()))
    names = namesOf(type.getShape(), encoding.getDims());
  SmallVector<Dim> dims;
  unsigned next = 0;
  for (int64_t size : type.getShape()) {
    if (!ShapedType::isDynamic(size))
      dims.push_back(Dim::constant(ctx, size));
    else
      dims.push_back(names.empty() ? Dim::unknown(ctx) : names[next++]);
  }
  return dims;
}

RankedTensorType getTensorType(ArrayRef<Dim> dims, Type elementType) {
  SmallVector<int64_t> shape;
  SmallVector<Dim> names;
  for (Dim d : dims) {
    // A negative size is a fault that a check reports; the type can only say `?`.
    bool fixed = d.isConstant() && d.getConstant() >= 0;
    shape.push_back(fixed ? d.getConstant() : ShapedType::kDynamic);
    if (!fixed)
      names.push_back(d.isConstant() ? Dim::unknown(d.getContext()) : d);
  }
  DimsAttr encoding;
  if (!llvm::all_of(names, [](Dim d) { return d.isUnknown(); }))
    encoding = DimsAttr::get(elementType.getContext(), names);
  return RankedTensorType::get(shape, elementType, encoding);
}

RankedTensorType stripEncoding(RankedTensorType type) {
  return RankedTensorType::get(type.getShape(), type.getElementType());
}

} // namespace quern
