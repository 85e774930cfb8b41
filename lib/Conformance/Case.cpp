//===- Case.cpp - Recorded calls of ATen operators ------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Case.h"
#include "quern/Support/Error.h"
#include "quern/Support/Safetensors.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace quern::conformance {

const CaseValue *OpCase::find(StringRef argument) const {
  for (const CaseArgument &candidate : arguments)
    if (candidate.name == argument)
      return &candidate.value;
  return nullptr;
}

namespace {
/// Reads one case. Malformed files are errors; what is well formed but cannot be
/// expressed makes the case `unreadable`.
class CaseReader {
public:
  CaseReader(const Safetensors &tensors, OpCase &result) : tensors(tensors), result(result) {}

  Error read(const json::Object &object);

private:
  Error malformed(const Twine &text) const {
    return invalidInput("case '" + result.id + "': " + text);
  }
  Expected<HostTensor> tensor(const json::Value &key);
  Expected<CaseValue> value(const json::Value &json);
  Expected<CaseValue> object(const json::Object &json);
  Expected<CaseValue> list(const json::Array &json);
  Error readOutputs(const json::Array &outputs);
  Error readGradients(const json::Object &object);

  const Safetensors &tensors;
  OpCase &result;
};
} // namespace

/// A JSON number, or one of the three that JSON lacks.
static std::optional<double> readFloat(const json::Value &json) {
  if (std::optional<double> number = json.getAsNumber())
    return number;
  std::optional<StringRef> text = json.getAsString();
  double number;
  if (text && (*text == "nan" || *text == "inf" || *text == "-inf") && !text->getAsDouble(number))
    return number;
  return std::nullopt;
}

Expected<HostTensor> CaseReader::tensor(const json::Value &key) {
  std::optional<StringRef> name = key.getAsString();
  if (!name)
    return malformed("expected a tensor's key");
  return tensors.get(*name);
}

Expected<CaseValue> CaseReader::object(const json::Object &json) {
  if (const json::Value *key = json.get("tensor")) {
    if (json.getBoolean("complex").value_or(false))
      result.unreadable = "complex numbers";
    Expected<HostTensor> found = tensor(*key);
    if (!found)
      return found.takeError();
    return CaseValue(*found);
  }
  if (const json::Value *number = json.get("int"))
    if (std::optional<int64_t> integer = number->getAsInteger())
      return CaseValue(aten::Scalar::integer(*integer));
  if (const json::Value *number = json.get("float"))
    if (std::optional<double> real = readFloat(*number))
      return CaseValue(aten::Scalar::number(*real));
  if (std::optional<bool> boolean = json.getBoolean("bool"))
    return CaseValue(aten::Scalar::boolean(*boolean));
  if (std::optional<StringRef> name = json.getString("dtype")) {
    if (std::optional<DType> dtype = parseTorchDType(*name))
      return CaseValue(*dtype);
    result.unreadable = ("dtype " + *name).str();
    return CaseValue();
  }
  if (std::optional<StringRef> format = json.getString("memory_format"))
    return CaseValue(format->str());
  result.unreadable = "an argument of an unknown kind";
  return CaseValue();
}

Expected<CaseValue> CaseReader::list(const json::Array &json) {
  SmallVector<int64_t> integers;
  std::vector<HostTensor> elements;
  for (const json::Value &element : json) {
    if (std::optional<int64_t> integer = element.getAsInteger()) {
      integers.push_back(*integer);
      continue;
    }
    if (std::optional<bool> boolean = element.getAsBoolean()) {
      integers.push_back(*boolean);
      continue;
    }
    Expected<CaseValue> read = value(element);
    if (!read)
      return read.takeError();
    if (auto *found = std::get_if<HostTensor>(&*read))
      elements.push_back(*found);
    else
      result.unreadable = "a list with elements of other kinds than tensors or integers";
  }
  if (!elements.empty())
    return CaseValue(elements);
  return CaseValue(integers);
}

Expected<CaseValue> CaseReader::value(const json::Value &json) {
  if (json.getAsNull())
    return CaseValue();
  if (const json::Object *members = json.getAsObject())
    return object(*members);
  if (const json::Array *elements = json.getAsArray())
    return list(*elements);
  if (std::optional<bool> boolean = json.getAsBoolean())
    return CaseValue(aten::Scalar::boolean(*boolean));
  if (std::optional<int64_t> integer = json.getAsInteger()) {
    // 1e-5 is a float, 5 an integer, and 5.0 is written as 5.0.
    return CaseValue(aten::Scalar::integer(*integer));
  }
  if (std::optional<double> number = json.getAsNumber())
    return CaseValue(aten::Scalar::number(*number));
  return CaseValue(json.getAsString()->str());
}

Error CaseReader::readOutputs(const json::Array &outputs) {
  for (const json::Value &json : outputs) {
    CaseOutput output;
    if (json.getAsString()) {
      Expected<HostTensor> found = tensor(json);
      if (!found)
        return found.takeError();
      output.tensor = *found;
    } else if (const json::Object *object = json.getAsObject()) {
      const json::Array *shape = object->getArray("shape");
      std::optional<StringRef> name = object->getString("dtype");
      std::optional<DType> dtype = name ? parseTorchDType(*name) : std::nullopt;
      if (shape && dtype) {
        SmallVector<int64_t> dims;
        for (const json::Value &dim : *shape)
          dims.push_back(dim.getAsInteger().value_or(-1));
        if (!HostTensor::countElements(*dtype, dims))
          return malformed("an output with a bad shape");
        output.tensor = HostTensor(*dtype, dims);
        output.shapeOnly = true;
      } else {
        result.unreadable =
            object->get("complex") ? "complex numbers" : "an output that is no tensor";
      }
    } else {
      return malformed("an output that is no tensor, number or shape");
    }
    result.outputs.push_back(std::move(output));
  }
  return Error::success();
}

Error CaseReader::readGradients(const json::Object &object) {
  if (const json::Array *cotangents = object.getArray("cotangents")) {
    for (const json::Value &json : *cotangents) {
      result.cotangents.emplace_back();
      if (json.getAsNull())
        continue;
      Expected<HostTensor> found = tensor(json);
      if (!found)
        return found.takeError();
      result.cotangents.back() = *found;
    }
  }
  if (const json::Object *gradients = object.getObject("grads")) {
    for (const auto &[key, json] : *gradients) {
      CaseGradient gradient;
      auto [argument, element] = StringRef(key).split('.');
      gradient.argument = argument.str();
      if (!element.empty() && element.getAsInteger(10, gradient.element))
        return malformed("a gradient of '" + StringRef(key) + "'");
      Expected<HostTensor> found = tensor(json);
      if (!found)
        return found.takeError();
      gradient.want = *found;
      result.gradients.push_back(std::move(gradient));
    }
  }
  if (!result.gradients.empty() && result.cotangents.size() != result.outputs.size())
    return malformed("expected one cotangent for each output");
  return Error::success();
}

Error CaseReader::read(const json::Object &object) {
  result.id = object.getString("id").value_or("").str();
  std::optional<StringRef> op = object.getString("op");
  std::optional<StringRef> overload = object.getString("overload");
  const json::Object *arguments = object.getObject("args");
  if (result.id.empty() || !op || !overload || !arguments)
    return malformed("lacks id, op, overload or args");
  result.op = op->str();
  result.overload = (*op + "." + *overload).str();
  for (const auto &[key, json] : *arguments) {
    Expected<CaseValue> read = value(json);
    if (!read)
      return read.takeError();
    result.arguments.push_back({StringRef(key).str(), std::move(*read)});
  }
  // JSON objects have no order; ours is the same in every run.
  llvm::sort(result.arguments,
             [](const CaseArgument &a, const CaseArgument &b) { return a.name < b.name; });
  if (object.getString("level"))
    result.unreadable = "a function of several ATen calls";
  if (std::optional<StringRef> error = object.getString("error")) {
    result.error = error->str();
    result.refusal = object.getString("kind").value_or("").str();
    if (!is_contained({"shape", "dtype", "value"}, StringRef(result.refusal)))
      return malformed("an error of unknown kind '" + result.refusal + "'");
    return Error::success();
  }
  const json::Array *outputs = object.getArray("outputs");
  if (!outputs)
    return malformed("lacks outputs and error");
  if (object.get("written"))
    result.unreadable = "a call that overwrites its arguments";
  if (const json::Value *err64 = object.get("err64"))
    result.err64 = readFloat(*err64).value_or(0);
  if (Error error = readOutputs(*outputs))
    return error;
  return readGradients(object);
}

Expected<std::vector<OpCase>> readCases(StringRef jsonPath) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer = MemoryBuffer::getFile(jsonPath);
  if (!buffer)
    return invalidInput(jsonPath + ": " + buffer.getError().message());
  Expected<json::Value> root = json::parse((*buffer)->getBuffer());
  if (!root)
    return invalidInput(jsonPath + ": " + toString(root.takeError()));
  const json::Array *list = root->getAsArray();
  if (!list)
    return invalidInput(jsonPath + ": expected a list of cases");
  SmallString<128> tensorPath(jsonPath);
  sys::path::replace_extension(tensorPath, "safetensors");
  Expected<Safetensors> tensors = Safetensors::open(tensorPath);
  if (!tensors)
    return tensors.takeError();
  std::vector<OpCase> cases(list->size());
  for (auto [i, json] : enumerate(*list)) {
    const json::Object *object = json.getAsObject();
    if (!object)
      return invalidInput(jsonPath + ": case " + Twine(i) + " is no object");
    if (Error error = CaseReader(*tensors, cases[i]).read(*object)) {
      std::string text;
      quern_status status = takeError(std::move(error), text);
      StringRef bare(text);
      bare.consume_front("invalid: ");
      return make_error<StatusError>(status, jsonPath + ": " + bare);
    }
  }
  return cases;
}

} // namespace quern::conformance
