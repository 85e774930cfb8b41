//===- NodeImport.cpp - One node being imported ---------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "NodeImport.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace quern::onnx {

/// Larger tensors of integers are data, not sizes.
static constexpr int64_t maxContents = 1024;
/// Weights up to this size are written into the IR itself.
static constexpr uint64_t maxInlineBytes = 256;
/// Larger results are refused at once (1 TiB).
static constexpr int64_t maxResultBytes = int64_t(1) << 40;

std::optional<SmallVector<int64_t>> Contents::asConstants() const {
  SmallVector<int64_t> numbers;
  for (Dim d : values) {
    if (!d.isConstant())
      return std::nullopt;
    numbers.push_back(d.getConstant());
  }
  return numbers;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

const Contents *GraphState::getContents(Imported &imported) {
  if (imported.contents)
    return &*imported.contents;
  if (!imported.constant || !imported.constant->data)
    return nullptr;
  const HostTensor &data = imported.constant->data;
  bool isInteger = quern::isInteger(data.dtype()) || data.dtype() == DType::Bool;
  if (!isInteger || data.numElements() > maxContents || data.rank() > 8)
    return nullptr;
  Contents &contents = imported.contents.emplace();
  contents.dtype = data.dtype();
  contents.dims.assign(data.dims().begin(), data.dims().end());
  for (int64_t i = 0; i < data.numElements(); ++i)
    contents.values.push_back(Dim::constant(builder.getContext(), data.getInt(i)));
  return &contents;
}

Value GraphState::makeConstant(const HostTensor &tensor, StringRef name) {
  auto type =
      RankedTensorType::get(tensor.dims(), getElementType(builder.getContext(), tensor.dtype()));
  ArrayRef<char> bytes(static_cast<const char *>(tensor.data()), tensor.numBytes());
  ElementsAttr attr;
  if (tensor.dtype() == DType::Bool) {
    attr = DenseElementsAttr::get(type, ArrayRef(tensor.as<bool>(), tensor.numElements()));
  } else if (bytes.size() <= maxInlineBytes) {
    attr = DenseElementsAttr::getFromRawBuffer(type, bytes);
  } else {
    // The blob holds the tensor, and so the memory that it is a view of.
    AsmResourceBlob blob(
        bytes, sizeOf(tensor.dtype()), [keep = tensor](void *, size_t, size_t) {},
        /*dataIsMutable=*/false);
    attr = DenseResourceElementsAttr::get(type, name.empty() ? "weights" : name, std::move(blob));
  }
  return arith::ConstantOp::create(builder, NameLoc::get(builder.getStringAttr(name)), attr);
}

Value GraphState::getValue(Imported &imported) {
  if (imported.value)
    return imported.value;
  if (imported.constant)
    return imported.value = makeConstant(imported.constant->data, imported.constant->name);
  if (!imported.contents)
    return nullptr;
  std::optional<SmallVector<int64_t>> numbers = imported.contents->asConstants();
  if (!numbers)
    return imported.value = makeSizes(*imported.contents);
  HostTensor tensor(imported.contents->dtype, imported.contents->dims);
  for (auto [i, number] : llvm::enumerate(*numbers))
    tensor.setInt(i, number);
  return imported.value = makeConstant(tensor, "");
}

Value GraphState::makeSizes(const Contents &contents) {
  MLIRContext *ctx = builder.getContext();
  Location loc = builder.getUnknownLoc();
  Type dtype = getElementType(ctx, contents.dtype);
  auto create = [&](StringRef mnemonic, ArrayRef<OperandGroup> operands,
                    ArrayRef<NamedAttribute> attrs) -> Value {
    FailureOr<Operation *> op = tryCreate(builder, loc, mnemonic, operands, attrs);
    return succeeded(op) ? (*op)->getResult(0) : Value();
  };
  auto sizeAttr = [&](ArrayRef<Dim> dims) {
    return builder.getNamedAttr("size", DimsAttr::get(ctx, dims));
  };
  OperandGroup elements;
  for (Dim d : contents.values) {
    Value scalar = create("dim_value", {},
                          {builder.getNamedAttr("value", d.getAttr()),
                           builder.getNamedAttr("dtype", TypeAttr::get(dtype))});
    if (!scalar || contents.rank() == 0)
      return scalar;
    elements.push_back(create("view", {scalar}, {sizeAttr(Dim::constant(ctx, 1))}));
  }
  Value list = elements.size() == 1 ? elements[0] : create("cat", {elements}, {});
  if (!list || contents.rank() == 1)
    return list;
  auto dims = llvm::map_to_vector(contents.dims, [&](int64_t d) { return Dim::constant(ctx, d); });
  return create("view", {list}, {sizeAttr(dims)});
}

//===----------------------------------------------------------------------===//
// Inputs and attributes
//===----------------------------------------------------------------------===//

Value NodeImport::report(quern_status newStatus, const Twine &text) {
  if (!failed()) {
    status = newStatus;
    message = text.str();
  }
  return {};
}

Imported *NodeImport::find(unsigned i) {
  if (!hasInput(i)) {
    fail("input " + Twine(i) + " is missing");
    return nullptr;
  }
  return &state.values[node.inputs[i]];
}

Value NodeImport::input(unsigned i) {
  if (failed())
    return {};
  Imported *imported = find(i);
  if (!imported)
    return {};
  Value value = state.getValue(*imported);
  return value ? value
               : refuse("input " + Twine(i) + ", " + quoted(node.inputs[i]) +
                        ", is made of sizes that are free, and needed as a tensor");
}

SmallVector<Dim> NodeImport::inputDims(unsigned i) {
  Imported *imported = failed() ? nullptr : find(i);
  if (!imported)
    return {};
  if (imported->value)
    return dimsOf(imported->value);
  ArrayRef<int64_t> known = imported->constant ? ArrayRef<int64_t>(imported->constant->dims)
                                               : ArrayRef<int64_t>(imported->contents->dims);
  return llvm::map_to_vector(known, [&](int64_t d) { return dim(d); });
}

const Tensor *NodeImport::storedTensor(unsigned i) {
  return hasInput(i) ? state.values[node.inputs[i]].constant : nullptr;
}

const Contents *NodeImport::contents(unsigned i) {
  return hasInput(i) ? state.getContents(state.values[node.inputs[i]]) : nullptr;
}

SmallVector<Dim> NodeImport::sizes(unsigned i, StringRef what) {
  Imported *imported = failed() ? nullptr : find(i);
  if (!imported)
    return {};
  if (imported->constant && !state.getContents(*imported)) {
    fail("input " + Twine(i) + " (" + what + ") is of type " + imported->constant->type->name +
         dimsString(imported->constant->dims) + ", expected a few integers");
    return {};
  }
  const Contents *known = state.getContents(*imported);
  if (!known) {
    refuse("input " + Twine(i) + " (" + what + ") is known only at run time");
    return {};
  }
  if (known->rank() > 1) {
    fail("input " + Twine(i) + " (" + what + ") has rank " + Twine(known->rank()) +
         ", expected a vector");
    return {};
  }
  return known->values;
}

SmallVector<int64_t> NodeImport::integers(unsigned i, StringRef what) {
  SmallVector<int64_t> numbers;
  for (Dim d : sizes(i, what)) {
    if (!d.isConstant()) {
      refuse("input " + Twine(i) + " (" + what + ") depends on free sizes: " + d.str());
      return {};
    }
    numbers.push_back(d.getConstant());
  }
  return numbers;
}

int64_t NodeImport::intAttr(StringRef name, int64_t otherwise) const {
  const Attribute *attribute = node.getAttribute(name);
  return attribute ? attribute->i : otherwise;
}

double NodeImport::floatAttr(StringRef name, double otherwise) const {
  const Attribute *attribute = node.getAttribute(name);
  return attribute ? attribute->f : otherwise;
}

StringRef NodeImport::stringAttr(StringRef name, StringRef otherwise) const {
  const Attribute *attribute = node.getAttribute(name);
  return attribute ? attribute->s : otherwise;
}

ArrayRef<int64_t> NodeImport::intsAttr(StringRef name) const {
  const Attribute *attribute = node.getAttribute(name);
  return attribute ? ArrayRef<int64_t>(attribute->ints) : ArrayRef<int64_t>();
}

int64_t NodeImport::wrapAxis(int64_t axis, int64_t rank, StringRef what) {
  if (axis < -rank || axis >= rank) {
    fail(what + " is " + Twine(axis) + ", expected one of [" + Twine(-rank) + ", " + Twine(rank) +
         ") for rank " + Twine(rank));
    return 0;
  }
  return axis < 0 ? axis + rank : axis;
}

SmallVector<int64_t> NodeImport::wrapAxes(ArrayRef<int64_t> axes, int64_t rank) {
  SmallVector<int64_t> wrapped;
  for (int64_t axis : axes) {
    wrapped.push_back(wrapAxis(axis, rank, "axes: an entry"));
    if (llvm::is_contained(ArrayRef(wrapped).drop_back(), wrapped.back()))
      fail("axes names " + Twine(wrapped.back()) + " twice");
  }
  return wrapped;
}

SmallVector<Dim> NodeImport::matrixAtAxis(Value x) {
  if (failed())
    return {};
  SmallVector<Dim> dims = dimsOf(x);
  // axis = rank is allowed: one column.
  int64_t axis = intAttr("axis", 1), rank = dims.size();
  if (axis != rank)
    axis = wrapAxis(axis, rank);
  if (failed())
    return {};
  return {Dim::product(getContext(), ArrayRef(dims).take_front(axis)),
          Dim::product(getContext(), ArrayRef(dims).drop_front(axis))};
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// Bytes of the static part of a type, or nothing when they do not fit 63 bits.
static std::optional<int64_t> staticBytes(RankedTensorType type) {
  if (llvm::is_contained(type.getShape(), 0))
    return 0;
  int64_t bytes = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  for (int64_t d : type.getShape())
    if (!ShapedType::isDynamic(d) && llvm::MulOverflow(bytes, d, bytes))
      return std::nullopt;
  return bytes;
}

Value NodeImport::op(StringRef mnemonic, ArrayRef<OperandGroup> operands,
                     ArrayRef<NamedAttribute> attrs) {
  if (failed())
    return {};
  if (!lookupOpRecord(mnemonic))
    return refuse("needs quern." + mnemonic + ", which is not there yet");
  FailureOr<Operation *> created = tryCreate(state.builder, loc, mnemonic, operands, attrs);
  if (mlir::failed(created))
    return fail(state.lastDiagnostic);
  Value result = (*created)->getResult(0);
  if (std::optional<int64_t> bytes = staticBytes(typeOf(result)); !bytes || *bytes > maxResultBytes)
    return refuse("a result of dims " + dimsString(typeOf(result).getShape()) +
                  " is too large: over " + Twine(maxResultBytes) + " bytes");
  return result;
}

NamedAttribute NodeImport::attr(StringRef name, mlir::Attribute value) {
  return state.builder.getNamedAttr(name, value);
}
NamedAttribute NodeImport::attr(StringRef name, int64_t value) {
  return attr(name, state.builder.getI64IntegerAttr(value));
}
NamedAttribute NodeImport::attr(StringRef name, bool value) {
  return attr(name, state.builder.getBoolAttr(value));
}
NamedAttribute NodeImport::attr(StringRef name, double value) {
  return attr(name, state.builder.getF64FloatAttr(value));
}
NamedAttribute NodeImport::attr(StringRef name, StringRef value) {
  return attr(name, state.builder.getStringAttr(value));
}
NamedAttribute NodeImport::attr(StringRef name, Type value) {
  return attr(name, TypeAttr::get(value));
}
NamedAttribute NodeImport::attr(StringRef name, ArrayRef<int64_t> value) {
  return attr(name, state.builder.getDenseI64ArrayAttr(value));
}
NamedAttribute NodeImport::attr(StringRef name, Dim value) { return attr(name, value.getAttr()); }
NamedAttribute NodeImport::attr(StringRef name, ArrayRef<Dim> value) {
  return attr(name, DimsAttr::get(getContext(), value));
}

Value NodeImport::constant(const HostTensor &tensor) {
  return failed() ? Value() : state.makeConstant(tensor, "");
}

Value NodeImport::scalar(double value, Type dtype) {
  if (failed())
    return {};
  auto type = RankedTensorType::get({}, dtype);
  mlir::Attribute element;
  if (auto floatType = dyn_cast<FloatType>(dtype)) {
    element = FloatAttr::get(floatType, value);
  } else {
    unsigned width = dtype.getIntOrFloatBitWidth();
    element = IntegerAttr::get(dtype, APInt(64, uint64_t(int64_t(value))).trunc(width));
  }
  return arith::ConstantOp::create(state.builder, loc, DenseElementsAttr::get(type, element));
}

Value NodeImport::scalarLike(double value, Value like) {
  return failed() ? Value() : scalar(value, dtypeOf(like));
}

Value NodeImport::convert(Value value, Type dtype) {
  if (failed() || dtypeOf(value) == dtype)
    return value;
  return op("convert", {value}, {attr("dtype", dtype)});
}

Value NodeImport::reshape(Value value, ArrayRef<Dim> dims) {
  if (failed() || dimsOf(value) == dims)
    return value;
  return op("view", {value}, {attr("size", dims)});
}

Value NodeImport::expand(Value value, ArrayRef<Dim> dims) {
  if (failed() || dimsOf(value) == dims)
    return value;
  return op("expand", {value}, {attr("size", dims)});
}

Value NodeImport::permute(Value value, ArrayRef<int64_t> dims) {
  if (failed() || llvm::equal(dims, llvm::seq<int64_t>(0, dims.size())))
    return value;
  return op("permute", {value}, {attr("dims", dims)});
}

Value NodeImport::full(const HostTensor &value, ArrayRef<Dim> dims) {
  NamedAttribute fill = isFloat(value.dtype()) ? attr("fill_value", value.getDouble(0))
                                               : attr("fill_value", value.getInt(0));
  Type dtype = getElementType(getContext(), value.dtype());
  return op("full", {}, {attr("size", dims), fill, attr("dtype", dtype)});
}

//===----------------------------------------------------------------------===//
// Outputs
//===----------------------------------------------------------------------===//

void NodeImport::setOutput(unsigned i, Value value) {
  if (!failed() && wantsOutput(i))
    state.values[node.outputs[i]].value = value;
}

void NodeImport::setOutput(unsigned i, Contents contents) {
  if (!failed() && wantsOutput(i))
    state.values[node.outputs[i]].contents = std::move(contents);
}

void NodeImport::setOutput(unsigned i, const Tensor &stored) {
  if (!failed() && wantsOutput(i))
    state.values[node.outputs[i]].constant = &stored;
}

void NodeImport::forward(unsigned i) {
  Imported *imported = failed() ? nullptr : find(i);
  if (imported && wantsOutput(0)) {
    Imported copy = *imported; // the map may move its entries
    state.values[node.outputs[0]] = std::move(copy);
  }
}

} // namespace quern::onnx
