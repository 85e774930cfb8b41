//===- Reader.cpp - Reads ONNX files --------------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Import/ONNX/Reader.h"
#include "GraphCheck.h"
#include "TensorData.h"
#include "WireCheck.h"
#include "onnx_subset.pb.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace llvm;

namespace quern::onnx {
namespace {

/// What the storage of a model holds.
struct Storage {
  proto::ModelProto proto;
  std::shared_ptr<ExternalData::Files> externalFiles;
};

/// `ai.onnx` is another name of "".
StringRef canonicalDomain(StringRef domain) { return domain == "ai.onnx" ? "" : domain; }

std::string domainString(StringRef domain) { return domain.empty() ? "ai.onnx" : quoted(domain); }

/// Converts the messages of one model. Names in error texts are quoted; the file's
/// path is put in front by the caller.
class ModelReader {
public:
  ModelReader(std::shared_ptr<Storage> storage, StringRef path)
      : storage(storage), proto(storage->proto), external(path) {
    storage->externalFiles = external.files();
    model.path = path.str();
    model.storage = storage;
  }

  Expected<Model> read() {
    if (Error e = readVersions())
      return std::move(e);
    if (!proto.has_graph())
      return invalidInput("the model has no graph");
    if (Error e = readFunctions())
      return std::move(e);
    if (Error e = readGraph(proto.graph(), model.graph))
      return std::move(e);
    if (Error e = checkGraph(model.graph))
      return std::move(e);
    if (Error e = checkRecursion(model.functions))
      return std::move(e);
    return std::move(model);
  }

private:
  Error readVersions();
  Error readOpsets(const google::protobuf::RepeatedPtrField<proto::OperatorSetIdProto> &imports,
                   StringMap<int64_t> &opsets);
  Error readFunctions();
  Error readFunction(const proto::FunctionProto &from, Function &to);
  Error readGraph(const proto::GraphProto &from, Graph &to);
  Error readNode(const proto::NodeProto &from, Node &to);
  Error readAttributes(const google::protobuf::RepeatedPtrField<proto::AttributeProto> &from,
                       const Twine &where, std::vector<Attribute> &to);
  Error readAttribute(const proto::AttributeProto &from, const Twine &where, Attribute &to);
  Error readValueInfo(const proto::ValueInfoProto &from, StringRef kind, ValueInfo &to);

  std::shared_ptr<Storage> storage;
  const proto::ModelProto &proto;
  ExternalData external;
  Model model;
  const StringMap<int64_t> *opsets = nullptr; ///< of the model, or of the function being read
  bool inFunction = false;
  StringSet<> functionNames; ///< domain, name and overload, joined by NUL
};

std::string functionKey(StringRef domain, StringRef name, StringRef overload) {
  return (domain + Twine('\0') + name + Twine('\0') + overload).str();
}

Error ModelReader::readVersions() {
  if (proto.ByteSizeLong() == 0)
    return invalidInput("the file is empty: no model, no graph");
  if (!proto.has_ir_version())
    return invalidInput("the model has no ir_version: not an ONNX model");
  model.irVersion = proto.ir_version();
  if (model.irVersion < minIrVersion || model.irVersion > maxIrVersion)
    return unsupported("IR version " + Twine(model.irVersion) + "; versions " +
                       Twine(minIrVersion) + " to " + Twine(maxIrVersion) + " are read");
  model.producer = proto.producer_name();
  if (Error e = readOpsets(proto.opset_import(), model.opsets))
    return e;
  if (model.opsets.empty())
    return invalidInput("the model has no opset_import");
  opsets = &model.opsets;
  return Error::success();
}

Error ModelReader::readOpsets(
    const google::protobuf::RepeatedPtrField<proto::OperatorSetIdProto> &imports,
    StringMap<int64_t> &to) {
  for (const proto::OperatorSetIdProto &import : imports) {
    StringRef domain = canonicalDomain(import.domain());
    if (Error e = checkUTF8(domain, "a domain of opset_import"))
      return e;
    int64_t version = import.version();
    if (version < 1)
      return invalidInput("opset " + Twine(version) + " of " + domainString(domain) +
                          ": the first is 1");
    if (domain.empty() && version > maxOpset)
      return unsupported("opset " + Twine(version) + " of ai.onnx; opsets " + Twine(minOpset) +
                         " to " + Twine(maxOpset) + " are read");
    auto [it, isNew] = to.try_emplace(domain, version);
    if (!isNew && it->second != version)
      return invalidInput("opset_import names " + domainString(domain) + " twice, with versions " +
                          Twine(it->second) + " and " + Twine(version));
  }
  return Error::success();
}

Error ModelReader::readFunctions() {
  for (const proto::FunctionProto &function : proto.functions()) {
    std::string key =
        functionKey(canonicalDomain(function.domain()), function.name(), function.overload());
    if (!functionNames.insert(key).second)
      return invalidInput("function " + quoted(function.name()) + " is defined twice");
  }
  model.functions.resize(proto.functions_size());
  inFunction = true;
  for (auto [from, to] : zip_equal(proto.functions(), model.functions))
    if (Error e = readFunction(from, to))
      return withContext(std::move(e), "function " + quoted(from.name()) + ": ");
  inFunction = false;
  opsets = &model.opsets;
  return Error::success();
}

Error ModelReader::readFunction(const proto::FunctionProto &from, Function &to) {
  StringMap<int64_t> imports;
  if (Error e = readOpsets(from.opset_import(), imports))
    return e;
  opsets = &imports;
  to.domain = canonicalDomain(from.domain());
  to.name = from.name();
  to.overload = from.overload();
  if (to.name.empty())
    return invalidInput("a function without a name");
  if (Error e = checkUTF8(to.name, "the name"))
    return e;
  if (Error e = readAttributes(from.attribute_proto(), "", to.defaults))
    return e;
  auto readNames = [&](const auto &names, StringRef kind, std::vector<ValueInfo> &values) -> Error {
    for (const std::string &name : names) {
      if (Error e = checkUTF8(name, "the name of an " + kind))
        return e;
      values.emplace_back().name = name;
    }
    return Error::success();
  };
  if (Error e = readNames(from.input(), "input", to.body.inputs))
    return e;
  if (Error e = readNames(from.output(), "output", to.body.outputs))
    return e;
  to.body.name = to.name;
  to.body.nodes.resize(from.node_size());
  for (auto [nodeProto, node] : zip_equal(from.node(), to.body.nodes))
    if (Error e = readNode(nodeProto, node))
      return e;
  return checkGraph(to.body);
}

Error ModelReader::readGraph(const proto::GraphProto &from, Graph &to) {
  to.name = from.name();
  if (from.sparse_initializer_size())
    return unsupported("sparse initializer " + quoted(from.sparse_initializer(0).values().name()));
  to.initializers.reserve(from.initializer_size());
  for (const proto::TensorProto &tensorProto : from.initializer()) {
    if (tensorProto.name().empty())
      return invalidInput("an initializer without a name");
    if (Error e = checkUTF8(tensorProto.name(), "the name of an initializer"))
      return e;
    Expected<Tensor> tensor = readTensorProto(
        tensorProto, "initializer " + quoted(tensorProto.name()), storage, &external);
    if (!tensor)
      return tensor.takeError();
    to.initializers.push_back(std::move(*tensor));
  }
  auto readValues = [&](const auto &protos, StringRef kind,
                        std::vector<ValueInfo> &values) -> Error {
    values.resize(protos.size());
    for (auto [valueProto, value] : zip_equal(protos, values))
      if (Error e = readValueInfo(valueProto, kind, value))
        return e;
    return Error::success();
  };
  if (Error e = readValues(from.input(), "input", to.inputs))
    return e;
  if (Error e = readValues(from.output(), "output", to.outputs))
    return e;
  if (Error e = readValues(from.value_info(), "value_info", to.valueInfo))
    return e;
  to.nodes.resize(from.node_size());
  for (auto [nodeProto, node] : zip_equal(from.node(), to.nodes))
    if (Error e = readNode(nodeProto, node))
      return e;
  return Error::success();
}

Error ModelReader::readNode(const proto::NodeProto &from, Node &to) {
  to.name = from.name();
  to.op = from.op_type();
  to.domain = canonicalDomain(from.domain());
  to.overload = from.overload();
  to.inputs.assign(from.input().begin(), from.input().end());
  to.outputs.assign(from.output().begin(), from.output().end());
  if (to.op.empty())
    return invalidInput(to.str() + " has no op_type");
  for (auto [text, what] :
       {std::pair(to.name, "the node's name"), std::pair(to.op, "the op_type"),
        std::pair(to.domain, "the domain"), std::pair(to.overload, "the overload")})
    if (Error e = checkUTF8(text, to.str() + ": " + what))
      return e;
  for (auto [names, kind] : {std::pair(ArrayRef<StringRef>(to.inputs), "input"),
                             std::pair(ArrayRef<StringRef>(to.outputs), "output")})
    for (auto [i, value] : enumerate(names))
      if (Error e = checkUTF8(value, to.str() + ": the name of " + kind + " " + Twine(i)))
        return e;
  to.isFunctionCall = functionNames.contains(functionKey(to.domain, to.op, to.overload));
  auto version = opsets->find(to.domain);
  if (version == opsets->end())
    return invalidInput(to.str() + " is of domain " + domainString(to.domain) +
                        ", for which there is no opset_import");
  to.version = version->second;
  return readAttributes(from.attribute(), to.str() + ": ", to.attributes);
}

Error ModelReader::readAttributes(
    const google::protobuf::RepeatedPtrField<proto::AttributeProto> &from, const Twine &where,
    std::vector<Attribute> &to) {
  to.resize(from.size());
  StringSet<> names;
  for (auto [attributeProto, attribute] : zip_equal(from, to)) {
    if (attributeProto.name().empty())
      return invalidInput(where + "an attribute without a name");
    std::string what = (where + "attribute " + quoted(attributeProto.name())).str();
    if (!names.insert(attributeProto.name()).second)
      return invalidInput(what + " is given twice");
    if (Error e = readAttribute(attributeProto, what, attribute))
      return e;
  }
  return Error::success();
}

Error ModelReader::readAttribute(const proto::AttributeProto &from, const Twine &where,
                                 Attribute &to) {
  to.name = from.name();
  if (Error e = checkUTF8(to.name, where + ": the name"))
    return e;
  if (from.type() < 1 || from.type() >= numAttributeTypes)
    return invalidInput(where + " has type " + Twine(from.type()) +
                        ", expected one of ONNX's types 1 to " + Twine(numAttributeTypes - 1));
  to.type = AttributeType(from.type());
  if (from.has_ref_attr_name()) {
    to.refName = from.ref_attr_name();
    if (!inFunction)
      return invalidInput(where + " has ref_attr_name " + quoted(to.refName) +
                          ", which means something only inside a function");
  }

  // What is stored must be what the type says; nothing stored is the default, 0 or empty.
  struct {
    bool isSet;
    AttributeType type;
  } stored[] = {{from.has_f(), AttributeType::Float},
                {from.has_i(), AttributeType::Int},
                {from.has_s(), AttributeType::String},
                {from.has_t(), AttributeType::Tensor},
                {from.has_g(), AttributeType::Graph},
                {from.floats_size() != 0, AttributeType::Floats},
                {from.ints_size() != 0, AttributeType::Ints},
                {from.strings_size() != 0, AttributeType::Strings},
                {from.tensors_size() != 0, AttributeType::Tensors},
                {from.graphs_size() != 0, AttributeType::Graphs},
                {from.has_sparse_tensor(), AttributeType::SparseTensor},
                {from.sparse_tensors_size() != 0, AttributeType::SparseTensors},
                {from.has_tp(), AttributeType::TypeProto},
                {from.type_protos_size() != 0, AttributeType::TypeProtos}};
  for (auto [isSet, type] : stored)
    if (isSet && (type != to.type || !to.refName.empty()))
      return invalidInput(where + " is of type " + name(to.type) +
                          (to.refName.empty() ? "" : " by reference") + ", but holds " +
                          name(type));
  if (to.type == AttributeType::Tensor && !from.has_t() && to.refName.empty())
    return invalidInput(where + " of type tensor holds none");
  if (to.type == AttributeType::Graph && !from.has_g() && to.refName.empty())
    return invalidInput(where + " of type graph holds none");

  to.f = from.f();
  to.i = from.i();
  to.s = from.s();
  to.floats.assign(from.floats().begin(), from.floats().end());
  to.ints.assign(from.ints().begin(), from.ints().end());
  to.strings.assign(from.strings().begin(), from.strings().end());
  auto addTensor = [&](const proto::TensorProto &tensorProto) -> Error {
    Expected<Tensor> tensor =
        readTensorProto(tensorProto, where + ": the tensor", storage, &external);
    if (!tensor)
      return tensor.takeError();
    to.tensors.push_back(std::move(*tensor));
    return Error::success();
  };
  if (from.has_t())
    if (Error e = addTensor(from.t()))
      return e;
  for (const proto::TensorProto &tensor : from.tensors())
    if (Error e = addTensor(tensor))
      return e;
  to.graphs.resize(from.graphs_size() + from.has_g());
  if (from.has_g())
    return readGraph(from.g(), to.graphs.front());
  for (auto [graphProto, graph] : zip_equal(from.graphs(), to.graphs))
    if (Error e = readGraph(graphProto, graph))
      return e;
  return Error::success();
}

Error ModelReader::readValueInfo(const proto::ValueInfoProto &from, StringRef kind, ValueInfo &to) {
  to.name = from.name();
  std::string what = (kind + " " + quoted(to.name)).str();
  if (to.name.empty())
    return invalidInput("an entry of " + kind + " without a name");
  if (Error e = checkUTF8(to.name, "the name of an " + kind))
    return e;
  const proto::TypeProto &type = from.type();
  const proto::TypeProto::Tensor *tensor = nullptr;
  switch (type.value_case()) {
  case proto::TypeProto::VALUE_NOT_SET:
    return Error::success();
  case proto::TypeProto::kSequenceType:
    to.kind = ValueInfo::Kind::Sequence;
    return Error::success();
  case proto::TypeProto::kMapType:
    to.kind = ValueInfo::Kind::Map;
    return Error::success();
  case proto::TypeProto::kOptionalType:
    to.kind = ValueInfo::Kind::Optional;
    return Error::success();
  case proto::TypeProto::kSparseTensorType:
    to.kind = ValueInfo::Kind::SparseTensor;
    tensor = &type.sparse_tensor_type();
    break;
  case proto::TypeProto::kTensorType:
    to.kind = ValueInfo::Kind::Tensor;
    tensor = &type.tensor_type();
    break;
  }
  if (int32_t number = tensor->elem_type()) {
    to.elementType = getElementType(number);
    if (!to.elementType)
      return unsupported(what + " has element type " + Twine(number) +
                         ", which is not one of ONNX's types 1 to 26");
  }
  to.hasShape = tensor->has_shape();
  if (tensor->shape().dim_size() > QUERN_MAX_RANK)
    return unsupported(what + " has rank " + Twine(tensor->shape().dim_size()) + "; at most " +
                       Twine(QUERN_MAX_RANK) + " dimensions are handled");
  for (const proto::TensorShapeProto::Dimension &dim : tensor->shape().dim()) {
    DimInfo &info = to.dims.emplace_back();
    // A negative size stands for an unknown one in some exporters' files.
    if (dim.has_dim_value())
      info.value = std::max<int64_t>(dim.dim_value(), -1);
    else if (dim.has_dim_param())
      info.param = dim.dim_param();
    if (Error e = checkUTF8(info.param, what + ": the name of a dim"))
      return e;
  }
  return Error::success();
}

} // namespace

Expected<Model> readModel(StringRef bytes, StringRef path) {
  auto storage = std::make_shared<Storage>();
  if (Error e = parseMessage(bytes, *proto::ModelProto::descriptor(), storage->proto))
    return withContext(std::move(e), path + ": ");
  Expected<Model> model = ModelReader(storage, path).read();
  if (!model)
    return withContext(model.takeError(), path + ": ");
  return model;
}

Expected<Model> readModel(StringRef path) {
  sys::fs::file_status status;
  if (std::error_code ec = sys::fs::status(path, status))
    return invalidInput(path + ": cannot be read: " + ec.message());
  if (!sys::fs::is_regular_file(status))
    return invalidInput(path + ": not a file");
  auto buffer = MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return invalidInput(path + ": cannot be read: " + buffer.getError().message());
  return readModel((*buffer)->getBuffer(), path);
}

} // namespace quern::onnx
