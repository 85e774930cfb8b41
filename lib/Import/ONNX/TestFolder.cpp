//===- TestFolder.cpp - ONNX's backend tests ------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Import/ONNX/TestFolder.h"
#include "quern/Import/ONNX/Reader.h"
#include "quern/Support/Compare.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace llvm;

namespace quern::onnx {

static std::string join(StringRef folder, const Twine &name) {
  SmallString<256> path(folder);
  sys::path::append(path, name);
  return std::string(path);
}

/// The folders test_data_set_N, by N.
static std::vector<std::string> listDataSets(StringRef folder) {
  std::vector<std::pair<unsigned, std::string>> sets;
  std::error_code ec;
  for (sys::fs::directory_iterator it(folder, ec), end; it != end && !ec; it.increment(ec)) {
    StringRef name = sys::path::filename(it->path()), number = name;
    unsigned n;
    if (number.consume_front("test_data_set_") && !number.getAsInteger(10, n))
      sets.emplace_back(n, name.str());
  }
  llvm::sort(sets);
  std::vector<std::string> names;
  for (auto &[n, name] : sets)
    names.push_back(name);
  return names;
}

/// Reads `<prefix>_0.pb`, … for each declared value.
static Expected<std::vector<HostTensor>> readTensors(StringRef folder, StringRef prefix,
                                                     ArrayRef<const ValueInfo *> values) {
  std::vector<HostTensor> tensors;
  for (auto [k, value] : enumerate(values)) {
    Expected<HostTensor> tensor = readTensor(join(folder, prefix + "_" + Twine(k) + ".pb"));
    if (!tensor)
      return tensor.takeError();
    // ONNX 1.12 stored bf16 data as u16.
    if (value->elementType && value->elementType->dtype == DType::BF16 &&
        tensor->dtype() == DType::U16)
      tensor = HostTensor::view(DType::BF16, tensor->dims(), tensor->data(),
                                std::make_shared<HostTensor>(*tensor));
    tensors.push_back(std::move(*tensor));
  }
  return tensors;
}

Expected<TestOutcome> runTestFolder(StringRef folder, Compile compile, StringRef writeOutputs) {
  Expected<Tolerance> tolerance = readOnnxTolerance(join(folder, "data.json"));
  if (!tolerance)
    return tolerance.takeError();
  Expected<Model> model = readModel(join(folder, "model.onnx"));
  if (!model)
    return model.takeError();
  Expected<Callable> function = compile(*model);
  if (!function)
    return function.takeError();

  StringSet<> initializers;
  for (const Tensor &tensor : model->graph.initializers)
    initializers.insert(tensor.name);
  std::vector<const ValueInfo *> inputs, outputs;
  for (const ValueInfo &input : model->graph.inputs)
    if (!initializers.contains(input.name))
      inputs.push_back(&input);
  for (const ValueInfo &output : model->graph.outputs)
    outputs.push_back(&output);

  TestOutcome outcome;
  for (const std::string &set : listDataSets(folder)) {
    std::string setFolder = join(folder, set);
    Expected<std::vector<HostTensor>> given = readTensors(setFolder, "input", inputs);
    if (!given)
      return given.takeError();
    Expected<std::vector<HostTensor>> wanted = readTensors(setFolder, "output", outputs);
    if (!wanted)
      return wanted.takeError();
    Expected<std::vector<HostTensor>> got = (*function)(std::move(*given));
    if (!got)
      return withContext(got.takeError(), set + ": ");
    ++outcome.dataSets;
    for (auto [k, output] : enumerate(outputs)) {
      if (k >= got->size()) {
        outcome.mismatch = set + ": there is no output " + std::to_string(k);
        outcome.maxError = INFINITY;
        break;
      }
      if (!writeOutputs.empty()) {
        std::string to = join(writeOutputs, set);
        if (std::error_code ec = sys::fs::create_directories(to))
          return runtimeError(to + ": cannot be made: " + ec.message());
        if (Error e = writeTensor(join(to, "output_" + Twine(k) + ".pb"), (*got)[k], output->name))
          return std::move(e);
      }
      Comparison comparison = compare((*got)[k], (*wanted)[k], *tolerance);
      outcome.maxError = std::max(outcome.maxError, comparison.maxError);
      if (!comparison.ok && outcome.mismatch.empty())
        outcome.mismatch = set + ": output " + std::to_string(k) + " " + quoted(output->name) +
                           ": " + comparison.message;
    }
  }
  if (outcome.dataSets == 0)
    return invalidInput(folder + ": no test_data_set_0");
  return outcome;
}

int runTestFolderCommand(StringRef folder, Compile compile, StringRef writeOutputs) {
  Expected<TestOutcome> outcome = runTestFolder(folder, compile, writeOutputs);
  if (!outcome)
    return reportError(outcome.takeError());
  outs() << "data_sets=" << outcome->dataSets
         << " max_error=" << formatv("{0:e}", outcome->maxError) << '\n';
  if (outcome->mismatch.empty())
    return QUERN_OK;
  errs() << "error: " << outcome->mismatch << '\n';
  return QUERN_ERROR;
}

} // namespace quern::onnx
