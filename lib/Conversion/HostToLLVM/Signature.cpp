//===- Signature.cpp - Inputs, outputs, constants -------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Conversion/HostToLLVM/Signature.h"

#include "quern/Dialect/Quern/IR/FunctionAttrs.h"

using namespace mlir;

namespace quern {

static std::optional<DLDataType> dlpackType(Type type) {
  auto make = [](DLDataTypeCode code, unsigned bits) {
    return DLDataType{uint8_t(code), uint8_t(bits), 1};
  };
  if (type.isBF16())
    return make(kDLBfloat, 16);
  if (isa<Float16Type, Float32Type, Float64Type>(type))
    return make(kDLFloat, type.getIntOrFloatBitWidth());
  auto integer = dyn_cast<IntegerType>(type);
  if (!integer)
    return std::nullopt;
  if (integer.getWidth() == 1)
    return make(DLDataTypeCode(QUERN_DL_BOOL), 8);
  if (!llvm::is_contained({8u, 16u, 32u, 64u}, integer.getWidth()))
    return std::nullopt;
  return make(integer.isUnsigned() ? kDLUInt : kDLInt, integer.getWidth());
}

FailureOr<Signature> Signature::get(func::FuncOp func) {
  Signature s;
  s.name = func.getSymName().str();
  if (auto name = func->getAttrOfType<StringAttr>(nameAttrName))
    s.name = name.str();
  if (func.getNumResults())
    return func.emitError("invalid: expected a function on buffers, as quern-bufferize makes it, "
                          "without results");
  if (!llvm::hasSingleElement(func.getBody()))
    return func.emitError("unsupported: control flow in the host function");
  auto names = func->getAttrOfType<ArrayAttr>(resultNamesAttrName);
  unsigned numOutputs = 0;
  for (BlockArgument arg : func.getArguments())
    numOutputs += bool(func.getArgAttr(arg.getArgNumber(), resultAttrName));
  s.outputs.resize(numOutputs);

  for (BlockArgument arg : func.getArguments()) {
    unsigned n = arg.getArgNumber();
    auto type = dyn_cast<MemRefType>(arg.getType());
    if (!type || !type.getLayout().isIdentity())
      return func.emitError("invalid: expected a function on buffers, as quern-bufferize makes it, "
                            "got argument ")
             << n << " of type " << arg.getType();
    if (type.getRank() > QUERN_MAX_RANK)
      return func.emitError("unsupported: argument ")
             << n << " of rank " << type.getRank() << " (at most " << QUERN_MAX_RANK << ")";
    if (auto value = func.getArgAttrOfType<ElementsAttr>(n, constantAttrName)) {
      s.constants.push_back({arg, value});
      continue;
    }
    std::optional<DLDataType> dtype = dlpackType(type.getElementType());
    if (!dtype)
      return func.emitError("unsupported: element type ")
             << type.getElementType() << " of argument " << n;
    SignatureTensor t{arg, type, {}, *dtype, "", -1};
    Attribute encoding = func.getArgAttr(n, dimsAttrName);
    t.dims = getDims(RankedTensorType::get(type.getShape(), type.getElementType(), encoding));
    if (auto name = func.getArgAttrOfType<StringAttr>(n, nameAttrName))
      t.name = name.str();
    auto result = func.getArgAttrOfType<IntegerAttr>(n, resultAttrName);
    bool isInput = !func.getArgAttr(n, outAttrName);
    if (isInput) {
      if (t.name.empty())
        t.name = "arg" + std::to_string(n);
      s.inputs.push_back(t);
      s.donated.push_back(bool(func.getArgAttr(n, donatedAttrName)) || result);
    }
    if (result) {
      int64_t r = result.getInt();
      if (r < 0 || r >= int64_t(numOutputs) || s.outputs[r].arg)
        return func.emitError("invalid: expected each result to have one buffer, got result ") << r;
      SignatureTensor out = t;
      if (names && size_t(r) < names.size())
        out.name = cast<StringAttr>(names[r]).str();
      else if (isInput || out.name.empty())
        out.name = "result" + std::to_string(r);
      out.alias = isInput ? int32_t(s.inputs.size()) - 1 : -1;
      s.outputs[r] = out;
    } else if (!isInput) {
      return func.emitError("invalid: out buffer ") << n << " is no result's";
    }
  }
  return s;
}

} // namespace quern
