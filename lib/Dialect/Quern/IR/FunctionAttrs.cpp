//===- FunctionAttrs.cpp - What a function promises its callers -----------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Dialect/Quern/IR/FunctionAttrs.h"
#include "quern/Dialect/Quern/IR/Quern.h"
#include "quern/Shape/Condition.h"

using namespace mlir;

namespace quern {

namespace {
enum Place : unsigned { OnFunction, OnArgument, OnResult };

/// An attribute that a function may have at a place, and the values it takes.
struct FunctionAttr {
  StringRef name;
  Place place;
  StringLiteral expected;
  bool (*accepts)(Attribute value, FunctionOpInterface func);
};
} // namespace

static constexpr StringLiteral placeNames[] = {"functions", "arguments", "results"};

template <typename T> static bool isA(Attribute value, FunctionOpInterface) {
  return isa<T>(value);
}

static bool isIndex(Attribute value, int64_t end) {
  auto number = dyn_cast<IntegerAttr>(value);
  return number && number.getType().isInteger(64) && number.getInt() >= 0 && number.getInt() < end;
}

static bool isRanges(Attribute value, FunctionOpInterface) {
  auto ranges = dyn_cast<DictionaryAttr>(value);
  return ranges &&
         llvm::all_of(ranges, [](NamedAttribute r) { return isa<RangeAttr>(r.getValue()); });
}

static bool isNames(Attribute value, FunctionOpInterface) {
  auto names = dyn_cast<ArrayAttr>(value);
  return names && llvm::all_of(names, llvm::IsaPred<StringAttr>);
}

static const FunctionAttr functionAttrs[] = {
    {nameAttrName, OnFunction, "a string", isA<StringAttr>},
    {nameAttrName, OnArgument, "a string", isA<StringAttr>},
    {nameAttrName, OnResult, "a string", isA<StringAttr>},
    {donatedAttrName, OnArgument, "no value", isA<UnitAttr>},
    {resultIntoAttrName, OnResult, "the number of an argument, as i64",
     [](Attribute value, FunctionOpInterface func) {
       return isIndex(value, func.getNumArguments());
     }},
    {dimRangesAttrName, OnFunction, "a dictionary of #quern.range by names of sizes", isRanges},
    {dimsAttrName, OnArgument, "#quern.dims", isA<DimsAttr>},
    {resultAttrName, OnArgument, "the number of a result, as i64",
     [](Attribute value, FunctionOpInterface func) {
       return isIndex(value, func.getNumArguments());
     }},
    {outAttrName, OnArgument, "no value", isA<UnitAttr>},
    {constantAttrName, OnArgument, "elements", isA<ElementsAttr>},
    {resultNamesAttrName, OnFunction, "a list of strings", isNames},
    {functionalBytesAttrName, OnFunction, "#quern.dim", isA<DimAttr>},
    {unplannedBytesAttrName, OnFunction, "#quern.dim", isA<DimAttr>},
    {arenaBytesAttrName, OnFunction, "#quern.dim", isA<DimAttr>},
};

/// `where` tells an argument or a result by its number.
static LogicalResult verify(Operation *op, NamedAttribute attr, Place place, const Twine &where) {
  // Those of the bodies that kernels become are between passes.
  if (op->getName().getStringRef() != "func.func")
    return success();
  StringRef name = attr.getName();
  std::string places;
  for (const FunctionAttr &known : functionAttrs) {
    if (known.name != name)
      continue;
    if (known.place == place) {
      if (known.accepts(attr.getValue(), cast<FunctionOpInterface>(op)))
        return success();
      return op->emitError("invalid: ")
             << name << where << ": expected " << known.expected << ", got " << attr.getValue();
    }
    places += (places.empty() ? "" : " and ") + placeNames[known.place].str();
  }
  if (places.empty())
    return op->emitError("invalid: unknown attribute ") << name << where;
  return op->emitError("invalid: ") << name << " is for " << places << ", got it" << where;
}

LogicalResult QuernDialect::verifyOperationAttribute(Operation *op, NamedAttribute attr) {
  return verify(op, attr, OnFunction, " on the function");
}

LogicalResult QuernDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned i,
                                                     NamedAttribute attr) {
  return verify(op, attr, OnArgument, " on argument " + Twine(i));
}

LogicalResult QuernDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned i,
                                                        NamedAttribute attr) {
  return verify(op, attr, OnResult, " on result " + Twine(i));
}

} // namespace quern
