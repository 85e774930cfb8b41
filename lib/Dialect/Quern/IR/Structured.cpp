//===- Structured.cpp - What all structured ops share ---------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Parser, printer, type inference and creation, driven by the records.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Matchers.h"
#include "quern/Dialect/Quern/IR/Ops/Creation.h"
#include <cmath>

using namespace mlir;

namespace quern {

static constexpr StringLiteral segmentSizes = "operandSegmentSizes";

/// What is wrong with a call before its meta function can be asked; "" if nothing. `counts`: the
/// number of values for each declared operand.
static std::string checkCall(const OpRecord &record, ArrayRef<size_t> counts,
                             DictionaryAttr attrs) {
  auto text = [&](const Twine &message) { return ("'" + record.name + "' op " + message).str(); };
  if (counts.size() != record.operands.size())
    return text("expected " + Twine(record.operands.size()) + " operands, got " +
                Twine(counts.size()));
  for (auto [operand, count] : llvm::zip(record.operands, counts))
    if ((operand.arity == Arity::Required && count != 1) ||
        (operand.arity == Arity::Optional && count > 1))
      return text("expected one value for " + operand.name + ", got " + Twine(count));
  for (const AttrRecord &attr : record.attrs)
    if (!attr.optional && attr.defaultValue.empty() && !(attrs && attrs.get(attr.name)))
      return text("expected attribute " + attr.name);
  return "";
}

/// The same for a call in IR: also operands that are no tensors and attributes of a wrong kind.
static LogicalResult checkCall(const OpRecord &record, ArrayRef<ValueRange> groups,
                               OperationName name, NamedAttrList attrs,
                               llvm::function_ref<InFlightDiagnostic()> emitError) {
  SmallVector<size_t> counts;
  for (ValueRange group : groups.drop_back())
    counts.push_back(group.size());
  if (std::string error = checkCall(record, counts, attrs.getDictionary(name.getContext()));
      !error.empty())
    return emitError() << error;
  for (size_t i = 0; i < groups.size(); ++i)
    for (Value value : groups[i])
      if (!isa<RankedTensorType>(value.getType()))
        return emitError() << "'" << record.name << "' op expected "
                           << (i < counts.size() ? record.operands[i].name : "into")
                           << " to be a ranked tensor, got " << value.getType();
  return name.verifyInherentAttrs(attrs, emitError);
}

/// Whether the op stores its segment sizes: `into` is a list, so any other open number needs them.
static bool hasSegmentSizes(const OpRecord &record) {
  return llvm::any_of(record.operands,
                      [](const OperandRecord &o) { return o.arity != Arity::Required; });
}

//===----------------------------------------------------------------------===//
// Text: quern.cat [%a, %b] into %c {dim = 1} : (types) -> type
// An operand left out is `_`, a list stands in brackets.
//===----------------------------------------------------------------------===//

ParseResult detail::parseStructuredOp(const OpRecord &record, OpAsmParser &parser,
                                      OperationState &result) {
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  SmallVector<int32_t> segments;
  auto parseOne = [&]() -> ParseResult { return parser.parseOperand(operands.emplace_back()); };
  for (auto [i, operand] : llvm::enumerate(record.operands)) {
    if (i && parser.parseComma())
      return failure();
    size_t before = operands.size();
    if (operand.arity == Arity::Variadic) {
      if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseOne))
        return failure();
    } else if (operand.arity == Arity::Required || failed(parser.parseOptionalKeyword("_"))) {
      if (parseOne())
        return failure();
    }
    segments.push_back(operands.size() - before);
  }
  size_t before = operands.size();
  if (succeeded(parser.parseOptionalKeyword("into")) && parser.parseCommaSeparatedList(parseOne))
    return failure();
  segments.push_back(operands.size() - before);

  SMLoc loc = parser.getCurrentLocation();
  SmallVector<Type> types, resultTypes;
  if (parser.parseOptionalAttrDict(result.attributes) || parser.parseColon() ||
      parser.parseLParen())
    return failure();
  if (failed(parser.parseOptionalRParen()) && (parser.parseTypeList(types) || parser.parseRParen()))
    return failure();
  if (types.size() != operands.size())
    return parser.emitError(loc) << "expected " << operands.size() << " operand types, got "
                                 << types.size();
  if (parser.resolveOperands(operands, types, loc, result.operands))
    return failure();
  if (size_t into = segments.back(); into && into != record.results.size())
    return parser.emitError(loc) << "expected a destination for each of " << record.results.size()
                                 << " results, got " << into;
  if (hasSegmentSizes(record))
    result.addAttribute(segmentSizes, parser.getBuilder().getDenseI32ArrayAttr(segments));
  if (succeeded(parser.parseOptionalArrow())) {
    if (succeeded(parser.parseOptionalLParen())
            ? parser.parseTypeList(resultTypes) || parser.parseRParen()
            : failed(parser.parseType(resultTypes.emplace_back())))
      return failure();
    result.addTypes(resultTypes);
    return success();
  }
  // Result types may be left out: the meta function knows them.
  SmallVector<ValueRange> groups;
  ValueRange rest = result.operands;
  for (int32_t segment : segments) {
    groups.push_back(rest.take_front(segment));
    rest = rest.drop_front(segment);
  }
  MLIRContext *ctx = parser.getContext();
  if (failed(checkCall(record, groups, result.name, result.attributes,
                       [&] { return parser.emitError(parser.getNameLoc()); })))
    return failure();
  return inferStructuredOp(record, ctx, parser.getEncodedSourceLoc(parser.getNameLoc()), groups,
                           result.attributes.getDictionary(ctx), result.types);
}

static DictionaryAttr getDefaults(Operation *op) {
  const OpRecord &record = cast<StructuredOp>(op).getOpRecord();
  return record.defaults ? cast<DictionaryAttr>(record.defaults(op->getName())) : DictionaryAttr();
}

void detail::printStructuredOp(Operation *op, OpAsmPrinter &printer) {
  auto structured = cast<StructuredOp>(op);
  const OpRecord &record = structured.getOpRecord();
  printer << ' ';
  for (auto [i, operand] : llvm::enumerate(record.operands)) {
    if (i)
      printer << ", ";
    OperandRange group = structured.getOperandGroup(i);
    if (operand.arity == Arity::Variadic)
      printer << '[' << group << ']';
    else if (group.empty())
      printer << '_';
    else
      printer << group;
  }
  if (!structured.getDestinations().empty())
    printer << " into " << structured.getDestinations();
  SmallVector<NamedAttribute> attrs;
  auto usual = getDefaults(op);
  for (NamedAttribute attr : op->getAttrDictionary())
    if (attr.getName() != segmentSizes && !(usual && usual.get(attr.getName()) == attr.getValue()))
      attrs.push_back(attr);
  printer.printOptionalAttrDict(attrs);
  printer << " : ";
  printer.printFunctionalType(op);
}

//===----------------------------------------------------------------------===//
// Folds
//===----------------------------------------------------------------------===//

/// Whether a value is this number everywhere.
static bool isNumber(Value value, double wanted) {
  TypedAttr number;
  if (auto full = value.getDefiningOp<FullOp>()) {
    number = full.getFillValue();
  } else {
    DenseElementsAttr dense;
    if (!matchPattern(value, m_Constant(&dense)) || !dense.isSplat())
      return false;
    number = dense.getSplatValue<TypedAttr>();
  }
  if (!isa<FloatType>(cast<RankedTensorType>(value.getType()).getElementType()))
    return Scalar(number).number == wanted;
  double found = Scalar(number).number;
  return found == wanted && std::signbit(found) == std::signbit(wanted);
}

static bool hasDefaults(Operation *op) {
  DictionaryAttr usual = getDefaults(op);
  return llvm::all_of(cast<StructuredOp>(op).getOpRecord().attrs, [&](const AttrRecord &attr) {
    return usual && op->getAttr(attr.name) == usual.get(attr.name);
  });
}

OpFoldResult detail::foldStructuredOp(Operation *op) {
  auto structured = cast<StructuredOp>(op);
  // `add %a, 0 into %d` must still write.
  if (!structured.getDestinations().empty())
    return {};
  const OpRecord &record = structured.getOpRecord();
  Type type = op->getResult(0).getType();
  auto known = [&] {
    return llvm::none_of(getDims(cast<RankedTensorType>(type)),
                         [](Dim d) { return d.isUnknown(); });
  };
  if (record.identityOnSameType && op->getOperand(0).getType() == type && known())
    return op->getOperand(0);
  for (const IdentityRecord &identity : record.identities) {
    Value same = structured.getOperandGroup(identity.same).front();
    Value other = structured.getOperandGroup(identity.other).front();
    // No check may get lost with the op.
    if (same.getType() != type || !hasDefaults(op) || !known())
      continue;
    if (isNumber(other, identity.number) && runMeta(op).undecided.empty())
      return same;
  }
  return record.folder ? OpFoldResult(record.folder(op)) : OpFoldResult();
}

TypedAttr detail::numberAttr(Builder builder, int64_t value) {
  return builder.getI64IntegerAttr(value);
}
TypedAttr detail::numberAttr(Builder builder, int value) {
  return builder.getI64IntegerAttr(value);
}
TypedAttr detail::numberAttr(Builder builder, double value) {
  return builder.getF64FloatAttr(value);
}
TypedAttr detail::numberAttr(Builder builder, bool value) {
  return cast<TypedAttr>(builder.getBoolAttr(value));
}

//===----------------------------------------------------------------------===//
// Attributes of meta functions
//===----------------------------------------------------------------------===//

template <typename AttrTy, typename T, typename Fn>
static void readAs(DictionaryAttr attrs, StringRef name, T &value, Fn read) {
  if (attrs)
    if (auto attr = attrs.getAs<AttrTy>(name))
      value = read(attr);
}
void detail::readAttr(DictionaryAttr attrs, StringRef name, int64_t &value) {
  readAs<IntegerAttr>(attrs, name, value, [](IntegerAttr a) { return a.getInt(); });
}
void detail::readAttr(DictionaryAttr attrs, StringRef name, bool &value) {
  readAs<BoolAttr>(attrs, name, value, [](BoolAttr a) { return a.getValue(); });
}
void detail::readAttr(DictionaryAttr attrs, StringRef name, double &value) {
  readAs<FloatAttr>(attrs, name, value, [](FloatAttr a) { return a.getValueAsDouble(); });
}
void detail::readAttr(DictionaryAttr attrs, StringRef name, StringRef &value) {
  readAs<StringAttr>(attrs, name, value, [](StringAttr a) { return a.getValue(); });
}
void detail::readAttr(DictionaryAttr attrs, StringRef name, Type &value) {
  readAs<TypeAttr>(attrs, name, value, [](TypeAttr a) { return a.getValue(); });
}
void detail::readAttr(DictionaryAttr attrs, StringRef name, ArrayRef<int64_t> &value) {
  readAs<DenseI64ArrayAttr>(attrs, name, value, [](DenseI64ArrayAttr a) { return a.asArrayRef(); });
}
void detail::readAttr(DictionaryAttr attrs, StringRef name, TypedAttr &value) {
  readAs<TypedAttr>(attrs, name, value, [](TypedAttr a) { return a; });
}
void detail::readAttr(DictionaryAttr attrs, StringRef name, Dim &value) {
  readAs<DimAttr>(attrs, name, value, [](DimAttr a) { return Dim(a); });
}
void detail::readAttr(DictionaryAttr attrs, StringRef name, ArrayRef<Dim> &value) {
  readAs<DimsAttr>(attrs, name, value, [](DimsAttr a) { return a.getDims(); });
}

//===----------------------------------------------------------------------===//
// Inference
//===----------------------------------------------------------------------===//

static TensorMeta getTensorMeta(StringRef name, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return TensorMeta{name, getDims(type), type.getElementType()};
}

static MetaInputs getMetaInputs(const OpRecord &record, ArrayRef<ValueRange> groups,
                                DictionaryAttr attrs) {
  MetaInputs inputs;
  inputs.attrs = attrs;
  for (auto [operand, group] : llvm::zip(record.operands, groups)) {
    auto &metas = inputs.operands.emplace_back();
    for (Value value : group)
      metas.push_back(getTensorMeta(operand.name, value));
  }
  return inputs;
}

/// A destination must have exactly the inferred shape and dtype.
static std::string checkDestinations(const OpRecord &record, const MetaResult &result,
                                     ValueRange into) {
  for (auto [output, value] : llvm::zip(result.outputs, into)) {
    TensorMeta destination = getTensorMeta("into", value);
    std::string text;
    llvm::raw_string_ostream os(text);
    os << "'" << record.name << "' op ";
    if (destination.dtype != output.dtype) {
      os << "expected into to have the dtype of the result, got " << dtypeName(destination.dtype)
         << " and " << dtypeName(output.dtype);
      return text;
    }
    if (destination.rank() != output.rank()) {
      os << "expected into to have the rank of the result, got " << destination.rank() << " and "
         << output.rank();
      return text;
    }
    Facts facts;
    for (int64_t i = 0; i < output.rank(); ++i)
      if (facts.decide(Condition::eq(destination.dim(i), output.dim(i))) == Truth::False) {
        os << "expected into dim " << i << " to equal the result's, got " << destination.dim(i)
           << " and " << output.dim(i);
        return text;
      }
  }
  return "";
}

LogicalResult detail::inferStructuredOp(const OpRecord &record, MLIRContext *ctx,
                                        std::optional<Location> loc, ArrayRef<ValueRange> groups,
                                        DictionaryAttr attrs, SmallVectorImpl<Type> &types) {
  MetaResult result = record.meta(ctx, getMetaInputs(record, groups, attrs), nullptr);
  if (result.ok)
    if (std::string error = checkDestinations(record, result, groups.back()); !error.empty()) {
      result.ok = false;
      result.error = error;
    }
  if (!result.ok)
    return emitOptionalError(loc, result.error);
  for (const TensorMeta &output : result.outputs)
    types.push_back(getTensorType(output.dims, output.dtype));
  return success();
}

bool detail::areCompatibleTypes(TypeRange inferred, TypeRange actual) {
  if (inferred.size() != actual.size())
    return false;
  for (auto [a, b] : llvm::zip(inferred, actual)) {
    auto x = dyn_cast<RankedTensorType>(a), y = dyn_cast<RankedTensorType>(b);
    if (!x || !y || x.getElementType() != y.getElementType() || x.getRank() != y.getRank())
      return false;
    for (auto [m, n] : llvm::zip(x.getShape(), y.getShape()))
      if (m != n && !ShapedType::isDynamic(m) && !ShapedType::isDynamic(n))
        return false;
  }
  return true;
}

Speculation::Speculatability detail::getSpeculatability(Operation *op) {
  // Without names nothing can be proved of dynamic dims: the check may stand in a guard.
  for (Type type : op->getOperandTypes())
    for (Dim d : getDims(cast<RankedTensorType>(type)))
      if (d.isUnknown())
        return Speculation::NotSpeculatable;
  return runMeta(op).undecided.empty() ? Speculation::Speculatable : Speculation::NotSpeculatable;
}

MetaInputs getMetaInputs(Operation *op) {
  auto structured = cast<StructuredOp>(op);
  const OpRecord &record = structured.getOpRecord();
  SmallVector<ValueRange> groups;
  for (unsigned i = 0; i < record.operands.size(); ++i)
    groups.push_back(structured.getOperandGroup(i));
  return getMetaInputs(record, groups, op->getAttrDictionary());
}

MetaResult runMeta(Operation *op, const Facts *facts) {
  return cast<StructuredOp>(op).getOpRecord().meta(op->getContext(), getMetaInputs(op), facts);
}

MetaResult meta::infer(MLIRContext *ctx, StringRef name, const MetaInputs &inputs,
                       const Facts *facts) {
  MetaResult result;
  result.ok = false;
  const OpRecord *record = lookupOpRecord(name);
  if (!record) {
    result.error = ("unknown op '" + name + "'").str();
    return result;
  }
  SmallVector<size_t> counts;
  for (const auto &group : inputs.operands)
    counts.push_back(group.size());
  result.error = checkCall(*record, counts, inputs.attrs);
  if (!result.error.empty())
    return result;
  return record->meta(ctx, inputs, facts);
}

//===----------------------------------------------------------------------===//
// Creation
//===----------------------------------------------------------------------===//

FailureOr<Operation *> tryCreate(OpBuilder &builder, Location loc, StringRef mnemonic,
                                 ArrayRef<OperandGroup> operands, ArrayRef<NamedAttribute> attrs,
                                 ValueRange into) {
  const OpRecord *record = lookupOpRecord(mnemonic);
  if (!record)
    return emitError(loc) << "unknown op 'quern." << mnemonic << "'";
  if (operands.size() > record->operands.size())
    return emitError(loc) << "'" << record->name << "' op expected " << record->operands.size()
                          << " operands, got " << operands.size();
  SmallVector<ValueRange> groups;
  SmallVector<Value> flat;
  SmallVector<int32_t> segments;
  for (size_t i = 0; i < record->operands.size(); ++i) {
    // Operands may be left out at the end.
    groups.push_back(i < operands.size() ? ValueRange(ArrayRef<Value>(operands[i])) : ValueRange());
    llvm::append_range(flat, groups.back());
    segments.push_back(groups.back().size());
  }
  groups.push_back(into);
  llvm::append_range(flat, into);
  segments.push_back(into.size());
  OperationState state(loc, record->name, flat, {}, attrs);
  if (hasSegmentSizes(*record))
    state.addAttribute(segmentSizes, builder.getDenseI32ArrayAttr(segments));
  if (failed(
          checkCall(*record, groups, state.name, state.attributes, [&] { return emitError(loc); })))
    return failure();

  if (failed(detail::inferStructuredOp(*record, builder.getContext(), loc, groups,
                                       state.attributes.getDictionary(builder.getContext()),
                                       state.types)))
    return failure();
  return builder.create(state);
}

} // namespace quern
