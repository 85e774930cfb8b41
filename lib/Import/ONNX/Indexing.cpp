//===- Indexing.cpp - ONNX ops that make or choose elements ---------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Fold.h"
#include "NodeImport.h"

using namespace mlir;

namespace quern::onnx {

//===----------------------------------------------------------------------===//
// Constants and sizes
//===----------------------------------------------------------------------===//

static void importConstant(NodeImport &n) {
  if (n.node.attributes.size() != 1) {
    n.fail("has " + Twine(n.node.attributes.size()) + " attributes, expected one value");
    return;
  }
  const Attribute &value = n.node.attributes.front();
  auto integers = [&](ArrayRef<int64_t> numbers, bool isVector) {
    Contents contents;
    if (isVector)
      contents.dims.push_back(numbers.size());
    for (int64_t number : numbers)
      contents.values.push_back(n.dim(number));
    n.setOutput(0, std::move(contents));
  };
  auto floats = [&](ArrayRef<float> numbers, ArrayRef<int64_t> dims) {
    HostTensor tensor(DType::F32, dims);
    std::copy(numbers.begin(), numbers.end(), tensor.as<float>());
    n.setOutput(0, n.constant(tensor));
  };
  if (value.name == "value")
    return n.setOutput(0, value.tensors.front());
  if (value.name == "value_int")
    return integers(value.i, false);
  if (value.name == "value_ints")
    return integers(value.ints, true);
  if (value.name == "value_float")
    return floats(value.f, {});
  if (value.name == "value_floats")
    return floats(value.floats, {int64_t(value.floats.size())});
  n.refuse("attribute '" + value.name + "'");
}

static void importConstantOfShape(NodeImport &n) {
  SmallVector<Dim> dims = n.sizes(0, "input");
  for (Dim d : dims)
    if (d.isConstant() && d.getConstant() < 0)
      n.fail("input has the size " + Twine(d.getConstant()));
  const Attribute *value = n.node.getAttribute("value");
  if (n.failed())
    return;
  if (!value) {
    n.setOutput(0, n.full(HostTensor(DType::F32, {}), dims));
    return;
  }
  const Tensor &fill = value->tensors.front();
  if (!fill.type->dtype) {
    n.refuse("elements of type " + fill.type->name);
    return;
  }
  if (fill.data.numElements() != 1) {
    n.fail("attribute 'value' has " + Twine(fill.data.numElements()) + " elements, expected 1");
    return;
  }
  n.setOutput(0, n.full(fill.data, dims));
}

/// The known ones of ConstantOfShape: shapes of ones, as PyTorch's exporter writes them.
static bool foldConstantOfShape(NodeImport &n) {
  const Attribute *value = n.node.getAttribute("value");
  std::optional<SmallVector<int64_t>> dims = n.contents(0)->asConstants();
  if (!value || !dims || n.contents(0)->rank() != 1)
    return false;
  const Tensor &fill = value->tensors.front();
  if (!fill.type->dtype || !isInteger(*fill.type->dtype) || fill.data.numElements() != 1)
    return false;
  std::optional<int64_t> count = HostTensor::countElements(*fill.type->dtype, *dims);
  if (!count || *count > 64)
    return false;
  Contents contents;
  contents.dtype = *fill.type->dtype;
  contents.dims = *dims;
  contents.values.assign(*count, n.dim(fill.data.getInt(0)));
  n.setOutput(0, std::move(contents));
  return true;
}

/// Shape and Size need only the type of their input.
static void importShape(NodeImport &n) {
  SmallVector<Dim> dims = n.inputDims(0);
  int64_t rank = dims.size();
  auto clamp = [&](int64_t bound) {
    return std::clamp<int64_t>(bound < 0 ? bound + rank : bound, 0, rank);
  };
  int64_t start = clamp(n.intAttr("start", 0)), end = clamp(n.intAttr("end", rank));
  Contents contents;
  for (int64_t i = start; i < end; ++i)
    contents.values.push_back(dims[i]);
  contents.dims.push_back(contents.values.size());
  n.setOutput(0, std::move(contents));
}
static void importSize(NodeImport &n) {
  Contents contents;
  contents.values.push_back(Dim::product(n.getContext(), n.inputDims(0)));
  n.setOutput(0, std::move(contents));
}

/// Stored numbers: start, start + delta, …
static void importKnownRange(NodeImport &n) {
  DType dtype = n.storedTensor(0)->data.dtype();
  SmallVector<NamedAttribute> attrs;
  for (auto [i, name] : {std::pair(0u, "start"), std::pair(1u, "end"), std::pair(2u, "step")}) {
    const HostTensor &number = n.storedTensor(i)->data;
    if (number.numElements() != 1 || number.dtype() != dtype) {
      n.fail("start, limit and delta are not scalars of one type");
      return;
    }
    attrs.push_back(isFloat(dtype) ? n.attr(name, number.getDouble(0))
                                   : n.attr(name, number.getInt(0)));
  }
  attrs.push_back(n.attr("dtype", getElementType(n.getContext(), dtype)));
  n.setOutput(0, n.op("arange", {}, attrs));
}

/// From a number, by a positive number, to a size.
static void importRange(NodeImport &n) {
  if (n.storedTensor(0) && n.storedTensor(1) && n.storedTensor(2))
    return importKnownRange(n);
  for (unsigned i = 0; i < 3; ++i)
    if (const Tensor *number = n.storedTensor(i); number && isFloat(number->data.dtype())) {
      n.refuse("floats that are known only at run time");
      return;
    }
  SmallVector<Dim> start = n.sizes(0, "start"), limit = n.sizes(1, "limit"),
                   delta = n.sizes(2, "delta");
  if (n.failed())
    return;
  if (start.size() != 1 || limit.size() != 1 || delta.size() != 1) {
    n.fail("start, limit and delta are not scalars");
    return;
  }
  if (!start[0].isConstant() || !delta[0].isConstant() || delta[0].getConstant() <= 0) {
    n.refuse("from " + start[0].str() + " to " + limit[0].str() + " by " + delta[0].str());
    return;
  }
  Type dtype = getElementType(n.getContext(), n.contents(0)->dtype);
  Dim count = Dim::ceilDiv(limit[0] - start[0], delta[0]);
  if (std::optional<int64_t> least = Facts().lowerBound(count); !least || *least < 0)
    count = Dim::max(count, n.dim(0));
  Value numbers = n.op("iota", {}, {n.attr("size", count), n.attr("dtype", dtype)});
  if (!delta[0].isConstant(1))
    numbers = n.op("mul", {numbers, n.scalarLike(delta[0].getConstant(), numbers)});
  if (!start[0].isConstant(0))
    numbers = n.op("add", {numbers, n.scalarLike(start[0].getConstant(), numbers)});
  n.setOutput(0, numbers);
}

//===----------------------------------------------------------------------===//
// Gather
//===----------------------------------------------------------------------===//

/// Indices into a dim of this size with negative ones counted from the end.
static Value wrapIndices(NodeImport &n, Value indices, Dim size) {
  if (n.failed())
    return {};
  Value count = size.isConstant()
                    ? n.scalarLike(size.getConstant(), indices)
                    : n.op("dim_value", {},
                           {n.attr("value", size), n.attr("dtype", NodeImport::dtypeOf(indices))});
  Value isNegative = n.op("lt", {indices, n.scalarLike(0, indices)});
  return n.op("where", {isNegative, n.op("add", {indices, count}), indices});
}

/// The indices of input 1 for a dim of this size; known ones are checked here.
static Value getIndices(NodeImport &n, Dim size) {
  const Contents *known = n.contents(1);
  if (std::optional<SmallVector<int64_t>> numbers = known ? known->asConstants() : std::nullopt;
      numbers && size.isConstant()) {
    int64_t count = size.getConstant();
    HostTensor wrapped(known->dtype, known->dims);
    for (auto [i, number] : llvm::enumerate(*numbers)) {
      if (number < -count || number >= count)
        return n.fail("index " + Twine(number) + " is out of range for a dim of size " +
                      Twine(count));
      wrapped.setInt(i, number < 0 ? number + count : number);
    }
    return n.constant(wrapped);
  }
  return wrapIndices(n, n.input(1), size);
}

static void importGather(NodeImport &n) {
  Value x = n.input(0);
  if (n.failed())
    return;
  SmallVector<Dim> dims = NodeImport::dimsOf(x);
  int64_t axis = n.wrapAxis(n.intAttr("axis", 0), dims.size());
  if (n.failed())
    return;
  Value indices = getIndices(n, dims[axis]);
  if (n.failed())
    return;
  SmallVector<Dim> shape = NodeImport::dimsOf(indices);
  Value flat = n.reshape(indices, {Dim::product(n.getContext(), shape)});
  Value chosen = n.op("index_select", {x, flat}, {n.attr("dim", axis)});
  SmallVector<Dim> result(dims.begin(), dims.begin() + axis);
  llvm::append_range(result, shape);
  result.append(dims.begin() + axis + 1, dims.end());
  n.setOutput(0, n.reshape(chosen, result));
}

static void importGatherElements(NodeImport &n) {
  Value x = n.input(0);
  if (n.failed())
    return;
  int64_t axis = n.wrapAxis(n.intAttr("axis", 0), NodeImport::rankOf(x));
  if (n.failed())
    return;
  Value indices = getIndices(n, NodeImport::dimsOf(x)[axis]);
  n.setOutput(0, n.op("gather", {x, indices}, {n.attr("dim", axis)}));
}

llvm::ArrayRef<OpEntry> getIndexingEntries() {
  static const OpEntry table[] = {
      {"Constant", 1, 10, 0, 0, 1, "value:tensor!", importConstant},
      {"Constant", 11, 11, 0, 0, 1, "value:tensor sparse_value:sparse_tensor", importConstant},
      {"Constant", 12, latest, 0, 0, 1,
       "value:tensor sparse_value:sparse_tensor value_float:float value_floats:floats "
       "value_int:int value_ints:ints value_string:string value_strings:strings",
       importConstant},
      {"ConstantOfShape", 9, latest, 1, 1, 1, "value:tensor", importConstantOfShape,
       foldConstantOfShape},
      {"Shape", 1, 14, 1, 1, 1, "", importShape},
      {"Shape", 15, latest, 1, 1, 1, "start:int end:int", importShape},
      {"Size", 1, latest, 1, 1, 1, "", importSize},
      {"Range", 11, 26, 3, 3, 1, "", importRange, foldRange},
      {"Gather", 1, latest, 2, 2, 1, "axis:int", importGather, foldGather},
      {"GatherElements", 11, latest, 2, 2, 1, "axis:int", importGatherElements},
  };
  return table;
}

} // namespace quern::onnx
