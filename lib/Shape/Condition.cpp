//===- Condition.cpp - Conditions on sizes --------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Shape/Condition.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "quern/Shape/DimStorage.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using llvm::raw_ostream;

MLIR_DEFINE_EXPLICIT_TYPE_ID(quern::RangeAttr)

namespace quern {

Condition Condition::anyOf(ArrayRef<Condition> conditions) {
  assert(!conditions.empty() && "a choice of nothing never holds");
  if (conditions.size() == 1)
    return conditions.front();
  Condition result(Kind::Or, Dim(), Dim());
  for (const Condition &condition : conditions) {
    ArrayRef<Condition> parts = condition.kind() == Kind::Or ? condition.alternatives() : condition;
    for (const Condition &part : parts)
      if (!llvm::is_contained(result.parts, part))
        result.parts.push_back(part);
  }
  return result.parts.size() == 1 ? result.parts.front() : result;
}

Condition Condition::broadcastable(Dim a, Dim b) {
  if (Dim::before(b, a))
    std::swap(a, b);
  Dim one = Dim::constant(a.getContext(), 1);
  return anyOf({eq(a, b), eq(a, one), eq(b, one)});
}

std::optional<std::pair<Dim, Dim>> Condition::getBroadcast() const {
  if (k != Kind::Or || parts.front().k != Kind::Eq)
    return std::nullopt;
  Dim x = parts.front().a, y = parts.front().b;
  if (!(*this == broadcastable(x, y)))
    return std::nullopt;
  return std::pair(x, y);
}

Condition Condition::map(function_ref<Dim(Dim)> fn) const {
  if (k != Kind::Or)
    return Condition(k, fn(a), fn(b));
  SmallVector<Condition> mapped;
  for (const Condition &part : parts)
    mapped.push_back(part.map(fn));
  return anyOf(mapped);
}

Condition Condition::substitute(function_ref<Dim(StringRef)> fn) const {
  return map([&](Dim d) { return d.substitute(fn); });
}

void Condition::walkSymbols(function_ref<void(StringRef)> fn) const {
  for (const Condition &part : parts)
    part.walkSymbols(fn);
  if (k != Kind::Or) {
    a.walkSymbols(fn);
    b.walkSymbols(fn);
  }
}

bool Condition::isCheckable() const {
  if (k == Kind::Or)
    return llvm::all_of(parts, [](const Condition &part) { return part.isCheckable(); });
  return !a.isUnknown() && !b.isUnknown();
}

void Condition::print(raw_ostream &os) const {
  switch (k) {
  case Kind::Eq:
    os << a << " == " << b;
    return;
  case Kind::Le:
    os << a << " <= " << b;
    return;
  case Kind::Divides:
    os << a << " mod " << b << " == 0";
    return;
  case Kind::Exact:
    os << "exact(" << a << ")";
    return;
  case Kind::Or:
    llvm::interleave(parts, os, [&](const Condition &part) { part.print(os); }, " or ");
    return;
  }
}

std::string Condition::str() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(os);
  return text;
}

static StringLiteral kindName(Condition::Kind kind) {
  switch (kind) {
  case Condition::Kind::Eq:
    return "eq";
  case Condition::Kind::Le:
    return "le";
  case Condition::Kind::Divides:
    return "divides";
  case Condition::Kind::Exact:
    return "exact";
  case Condition::Kind::Or:
    return "or";
  }
  llvm_unreachable("unknown kind of condition");
}

Attribute Condition::toAttribute(MLIRContext *ctx) const {
  SmallVector<Attribute> elements{StringAttr::get(ctx, kindName(k))};
  for (const Condition &part : parts)
    elements.push_back(part.toAttribute(ctx));
  if (k != Kind::Or)
    llvm::append_values(elements, Attribute(a.getAttr()), Attribute(b.getAttr()));
  return ArrayAttr::get(ctx, elements);
}

FailureOr<Condition> Condition::fromAttribute(Attribute attr) {
  auto array = dyn_cast_or_null<ArrayAttr>(attr);
  auto name = array && !array.empty() ? dyn_cast<StringAttr>(array[0]) : StringAttr();
  if (!name)
    return failure();
  ArrayRef<Attribute> operands = array.getValue().drop_front();
  for (Kind kind : {Kind::Eq, Kind::Le, Kind::Divides, Kind::Exact}) {
    if (name.getValue() != kindName(kind))
      continue;
    if (operands.size() != 2 || !isa<DimAttr>(operands[0]) || !isa<DimAttr>(operands[1]))
      return failure();
    return Condition(kind, Dim(cast<DimAttr>(operands[0])), Dim(cast<DimAttr>(operands[1])));
  }
  SmallVector<Condition> parts;
  for (Attribute operand : operands) {
    FailureOr<Condition> part = fromAttribute(operand);
    if (failed(part))
      return failure();
    parts.push_back(*part);
  }
  if (name.getValue() != kindName(Kind::Or) || parts.empty())
    return failure();
  return anyOf(parts);
}

//===----------------------------------------------------------------------===//
// Ranges
//===----------------------------------------------------------------------===//

RangeAttr RangeAttr::get(MLIRContext *ctx, const Facts::Range &range) {
  return Base::get(ctx, std::tuple(range.min, range.max, range.divisor));
}

Facts::Range RangeAttr::getRange() const {
  auto [min, max, divisor] = getImpl()->key;
  return {min, max, divisor};
}

Attribute parseRangeAttr(AsmParser &parser) {
  Facts::Range range;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseInteger(range.min))
    return {};
  bool hasMax = false;
  while (succeeded(parser.parseOptionalComma())) {
    if (succeeded(parser.parseOptionalKeyword("mod"))) {
      if (parser.parseInteger(range.divisor))
        return {};
      break;
    }
    if (hasMax ||
        (failed(parser.parseOptionalKeyword("_")) && parser.parseInteger(range.max.emplace())))
      return {};
    hasMax = true;
  }
  if (parser.parseGreater())
    return {};
  if (range.min < 0 || range.divisor < 1 || (range.max && *range.max < range.min)) {
    parser.emitError(loc, "expected 0 <= least <= greatest and a divisor of at least 1");
    return {};
  }
  return RangeAttr::get(parser.getContext(), range);
}

void printRangeAttr(RangeAttr attr, AsmPrinter &printer) {
  Facts::Range range = attr.getRange();
  printer << '<' << range.min;
  if (range.max)
    printer << ", " << *range.max;
  if (range.divisor != 1)
    printer << ", mod " << range.divisor;
  printer << '>';
}

} // namespace quern
