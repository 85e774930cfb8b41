//===- Call.cpp - One call under construction -----------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Call.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using llvm::ArrayRef;
using llvm::StringRef;

namespace quern::aten {

Value Call::report(StringRef prefix, const Twine &text) {
  if (!hasFailed)
    emitError(loc) << prefix << name << ": " << text;
  hasFailed = true;
  return {};
}

const Argument *Call::find(StringRef argument) const {
  auto it = arguments.find(argument);
  if (it == arguments.end() || std::holds_alternative<std::monostate>(it->second))
    return nullptr;
  return &it->second;
}

bool Call::has(StringRef argument) const { return find(argument) != nullptr; }

template <typename T> const T *Call::get(StringRef argument) {
  const Argument *found = find(argument);
  if (!found)
    return nullptr;
  if (const T *value = std::get_if<T>(found))
    return value;
  fail("argument " + argument + " is of the wrong kind");
  return nullptr;
}

Value Call::optionalTensor(StringRef argument) {
  const Value *value = get<Value>(argument);
  return value ? *value : Value();
}

Value Call::tensor(StringRef argument) {
  Value value = optionalTensor(argument);
  return value ? value : fail("argument " + argument + " is missing");
}

SmallVector<Value> Call::tensors(StringRef argument) {
  // An empty list has no element that would tell its kind.
  if (const Argument *found = find(argument))
    if (const auto *list = std::get_if<SmallVector<int64_t>>(found); list && list->empty())
      return {};
  const auto *values = get<SmallVector<Value>>(argument);
  return values ? *values : SmallVector<Value>();
}

Scalar Call::scalar(StringRef argument, Scalar otherwise) {
  const Scalar *value = get<Scalar>(argument);
  return value ? *value : otherwise;
}

int64_t Call::integer(StringRef argument, int64_t otherwise) {
  Scalar value = scalar(argument, Scalar::integer(otherwise));
  if (value.isFloat())
    fail("argument " + argument + " is no integer");
  return value.asInt;
}

bool Call::boolean(StringRef argument, bool otherwise) {
  return scalar(argument, Scalar::boolean(otherwise)).asInt != 0;
}

SmallVector<int64_t> Call::integers(StringRef argument) {
  const auto *values = get<SmallVector<int64_t>>(argument);
  return values ? *values : SmallVector<int64_t>();
}

std::string Call::string(StringRef argument, StringRef otherwise) {
  const std::string *value = get<std::string>(argument);
  return value ? *value : otherwise.str();
}

Type Call::dtype(StringRef argument) {
  const Type *value = get<Type>(argument);
  return value ? *value : Type();
}

bool Call::hasBool(ArrayRef<StringRef> names) const {
  return llvm::any_of(names, [&](StringRef argument) {
    const Argument *found = find(argument);
    if (const Scalar *number = found ? std::get_if<Scalar>(found) : nullptr)
      return number->kind == Scalar::Kind::Bool;
    const Value *value = found ? std::get_if<Value>(found) : nullptr;
    return value && isBool(dtypeOf(*value));
  });
}

Results Call::ops(StringRef mnemonic, ArrayRef<OperandGroup> operands,
                  ArrayRef<NamedAttribute> attrs) {
  if (hasFailed)
    return {};
  if (!lookupOpRecord(mnemonic)) {
    unsupported("no op 'quern." + mnemonic + "'");
    return {};
  }
  FailureOr<Operation *> op = tryCreate(builder, loc, mnemonic, operands, attrs);
  if (mlir::failed(op)) {
    hasFailed = true;
    return {};
  }
  return Results((*op)->getResults());
}

Value Call::op(StringRef mnemonic, ArrayRef<OperandGroup> operands,
               ArrayRef<NamedAttribute> attrs) {
  Results results = ops(mnemonic, operands, attrs);
  return results.empty() ? Value() : results.front();
}

Value Call::convert(Value value, Type dtype) {
  if (!value || !dtype || dtypeOf(value) == dtype)
    return value;
  return op("convert", {value}, {attr("dtype", dtype)});
}

Value Call::full(Scalar value, Type dtype, ArrayRef<int64_t> sizes) {
  return op("full", {},
            {sizesAttr("size", sizes), attr("fill_value", value), attr("dtype", dtype)});
}

SmallVector<Value> Call::promoted(ArrayRef<StringRef> names, Type (*adjust)(Type)) {
  SmallVector<PromotionOperand> operands;
  for (StringRef argument : names) {
    const Argument *found = find(argument);
    if (const Scalar *number = found ? std::get_if<Scalar>(found) : nullptr) {
      Type dtype = Float32Type::get(getContext());
      if (!number->isFloat())
        dtype = IntegerType::get(getContext(), number->kind == Scalar::Kind::Bool ? 1 : 64);
      operands.push_back({dtype, Category::Number});
    } else if (Value value = tensor(argument)) {
      operands.push_back(
          {dtypeOf(value), rankOf(value) == 0 ? Category::ScalarTensor : Category::Tensor});
    }
  }
  SmallVector<Value> values(names.size());
  if (hasFailed)
    return values;
  Type common = promote(operands);
  if (!common) {
    fail("no dtype holds all operands");
    return values;
  }
  if (adjust)
    common = adjust(common);
  for (auto [value, argument] : llvm::zip(values, names)) {
    const Argument *found = find(argument);
    if (const Scalar *number = std::get_if<Scalar>(found))
      value = full(*number, common);
    else
      value = convert(tensor(argument), common);
  }
  return values;
}

NamedAttribute Call::attr(StringRef name, Attribute value) {
  return builder.getNamedAttr(name, value);
}
NamedAttribute Call::attr(StringRef name, int64_t value) {
  return attr(name, builder.getI64IntegerAttr(value));
}
NamedAttribute Call::attr(StringRef name, bool value) {
  return attr(name, builder.getBoolAttr(value));
}
NamedAttribute Call::attr(StringRef name, double value) {
  return attr(name, builder.getF64FloatAttr(value));
}
NamedAttribute Call::attr(StringRef name, StringRef value) {
  return attr(name, builder.getStringAttr(value));
}
NamedAttribute Call::attr(StringRef name, ArrayRef<int64_t> value) {
  return attr(name, builder.getDenseI64ArrayAttr(value));
}
NamedAttribute Call::attr(StringRef name, Type value) { return attr(name, TypeAttr::get(value)); }
NamedAttribute Call::attr(StringRef name, Scalar value) {
  switch (value.kind) {
  case Scalar::Kind::Bool:
    return attr(name, value.asInt != 0);
  case Scalar::Kind::Int:
    return attr(name, value.asInt);
  case Scalar::Kind::Float:
    return attr(name, value.asDouble);
  }
  llvm_unreachable("every kind is handled");
}
NamedAttribute Call::sizeAttr(StringRef name, int64_t size) {
  return attr(name, Dim::constant(getContext(), size).getAttr());
}
NamedAttribute Call::sizesAttr(StringRef name, ArrayRef<int64_t> sizes) {
  SmallVector<Dim> dims;
  for (int64_t size : sizes)
    dims.push_back(Dim::constant(getContext(), size));
  return attr(name, DimsAttr::get(getContext(), dims));
}

ArrayRef<const Overload *> getOverloads() {
  static const std::vector<const Overload *> all = [] {
    std::vector<const Overload *> list;
    for (ArrayRef<Overload> family :
         {getPointwiseOverloads(), getReductionOverloads(), getContractionOverloads(),
          getRowOverloads(), getViewOverloads(), getIndexingOverloads(), getCreationOverloads()})
      for (const Overload &overload : family)
        list.push_back(&overload);
    return list;
  }();
  return all;
}

const Overload *lookupOverload(StringRef name) {
  static const llvm::StringMap<const Overload *> byName = [] {
    llvm::StringMap<const Overload *> map;
    for (const Overload *overload : getOverloads())
      map[overload->name] = overload;
    return map;
  }();
  return byName.lookup(name);
}

FailureOr<SmallVector<Value>> buildCall(OpBuilder &builder, Location loc, StringRef name,
                                        const Arguments &arguments) {
  const Overload *overload = lookupOverload(name);
  if (!overload)
    return emitError(loc) << "unsupported: ATen overload " << name;
  Call call(builder, loc, overload->name, arguments);
  Results results = overload->build(call);
  if (call.failed())
    return failure();
  return results;
}

} // namespace quern::aten
