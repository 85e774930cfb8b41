//===- Inputs.cpp - Tensors for a call ------------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Inputs.h"

#include "quern/Import/ONNX/Reader.h"
#include "quern/Support/Error.h"
#include "quern/Support/Npy.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

#include <random>

using namespace llvm;

namespace quern {

Expected<StringMap<int64_t>> parseDims(ArrayRef<std::string> texts) {
  StringMap<int64_t> dims;
  for (StringRef text : texts) {
    auto [name, value] = text.rsplit('=');
    int64_t size;
    if (name.empty() || value.getAsInteger(10, size) || size < 0)
      return invalidInput("expected --dim NAME=SIZE, got '" + text + "'");
    if (!dims.try_emplace(name, size).second)
      return invalidInput("--dim gives '" + name + "' twice");
  }
  return dims;
}

Expected<std::vector<HostTensor>> randomInputs(const quern_function &fn, uint64_t seed,
                                               const StringMap<int64_t> &dims) {
  std::mt19937_64 random(seed);
  std::vector<HostTensor> inputs;
  SetVector<StringRef> names;
  for (int32_t i = 0; i < fn.num_inputs; ++i) {
    const quern_tensor_info &info = fn.inputs[i];
    SmallVector<int64_t> sizes;
    for (int32_t d = 0; d < info.rank; ++d) {
      StringRef name = info.dim_names[d];
      auto found = dims.find(name);
      if (info.dims[d] < 0)
        names.insert(name);
      sizes.push_back(info.dims[d] >= 0 ? info.dims[d] : found != dims.end() ? found->second : 1);
    }
    std::optional<DType> dtype = getDType(info.dtype);
    if (!dtype)
      return unsupported("the dtype of input '" + Twine(info.name) + "'");
    if (!HostTensor::countElements(*dtype, sizes))
      return invalidInput("input '" + Twine(info.name) + "' is too large");
    HostTensor t(*dtype, sizes);
    if (!t.data())
      return runtimeError("not enough memory for input '" + Twine(info.name) + "'");
    for (int64_t k = 0; k < t.numElements(); ++k) {
      uint64_t bits = random();
      if (isFloat(*dtype))
        t.set(k, double(bits >> 11) * 0x1p-52 - 1);
      else
        t.setInt(k, *dtype == DType::Bool ? int64_t(bits & 1) : int64_t(bits & 7));
    }
    inputs.push_back(std::move(t));
  }
  for (auto &dim : dims)
    if (!names.contains(dim.first()))
      return invalidInput("no input has a free dim '" + dim.first() + "' (there are " +
                          (names.empty() ? "none" : "'" + join(names, "', '") + "'") + ")");
  return inputs;
}

Expected<std::vector<HostTensor>> readInputs(ArrayRef<std::string> files) {
  std::vector<HostTensor> inputs;
  for (StringRef file : files) {
    Expected<HostTensor> t = file.ends_with(".npy") ? readNpy(file)
                             : file.ends_with(".pb")
                                 ? onnx::readTensor(file)
                                 : invalidInput(file + ": expected .npy or .pb");
    if (!t)
      return t.takeError();
    inputs.push_back(std::move(*t));
  }
  return inputs;
}

} // namespace quern
