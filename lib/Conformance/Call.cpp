//===- Call.cpp - Calls through the C ABI ---------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Program.h"
#include "quern/Support/Error.h"
#include <cstring>

using namespace llvm;

namespace quern::conformance {

Expected<std::vector<HostTensor>> Program::call(StringRef name,
                                                MutableArrayRef<HostTensor> inputs) {
  const quern_function *function = lookup(name);
  if (!function)
    return make_error<StatusError>(QUERN_INTERNAL, "no compiled function '" + name + "'");
  if (size_t(function->num_inputs) != inputs.size())
    return make_error<StatusError>(QUERN_INTERNAL, "'" + name + "' has " +
                                                       Twine(function->num_inputs) +
                                                       " inputs, expected " + Twine(inputs.size()));
  auto fail = [&](quern_status status) {
    return make_error<StatusError>(status, quern_context_error(context()));
  };
  std::vector<DLTensor> inputTensors;
  std::vector<HostTensor> before;
  for (HostTensor &input : inputs) {
    inputTensors.push_back(input.toDLPack());
    before.push_back(input.clone());
  }
  std::vector<const DLTensor *> inputPointers;
  for (DLTensor &tensor : inputTensors)
    inputPointers.push_back(&tensor);

  std::vector<int64_t> dims(size_t(function->num_outputs) * QUERN_MAX_RANK);
  int64_t arenaBytes = 0;
  if (quern_status status =
          quern_query(context(), function, inputPointers.data(), dims.data(), &arenaBytes))
    return fail(status);
  std::vector<HostTensor> outputs;
  for (int32_t i = 0; i < function->num_outputs; ++i) {
    const quern_tensor_info &info = function->outputs[i];
    ArrayRef<int64_t> sizes(&dims[size_t(i) * QUERN_MAX_RANK], info.rank);
    std::optional<DType> dtype = getDType(info.dtype);
    if (!dtype || !HostTensor::countElements(*dtype, sizes))
      return make_error<StatusError>(QUERN_INTERNAL, "'" + name + "' answers a bad output size");
    int32_t alias = function->output_alias[i];
    if (alias >= 0) {
      outputs.push_back(inputs[alias]);
      continue;
    }
    outputs.emplace_back(*dtype, sizes);
    std::memset(outputs.back().data(), 0xa5, outputs.back().numBytes());
  }
  std::vector<DLTensor> outputTensors;
  for (HostTensor &output : outputs)
    outputTensors.push_back(output.toDLPack());
  std::vector<DLTensor *> outputPointers;
  for (DLTensor &tensor : outputTensors)
    outputPointers.push_back(&tensor);
  if (quern_status status =
          quern_call(context(), function, inputPointers.data(), outputPointers.data()))
    return fail(status);

  for (auto [i, input] : enumerate(inputs)) {
    bool written = function->donated[i];
    for (int32_t k = 0; k < function->num_outputs; ++k)
      written |= function->output_alias[k] == int32_t(i);
    if (!written && !input.sameBytes(before[i]))
      return runtimeError("the call changed input " + Twine(i) + ", which is not donated");
  }
  return outputs;
}

} // namespace quern::conformance
