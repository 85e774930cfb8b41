//===- Program.cpp - Compiled functions -----------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Program.h"
#include "quern-c/Cuda.h"
#include "quern/Pipelines/Registry.h"
#include "quern/Support/Error.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/DynamicLibrary.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <cstring>

using namespace llvm;

namespace quern::conformance {

void loadDialects(mlir::MLIRContext &context) {
  mlir::DialectRegistry registry;
  registerDialects(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
}

/// The emulated device of this process; its library stands beside the tools, in ../lib.
static Expected<const quern_device *> openEmulatedDevice() {
  static quern_device device;
  static bool isOpen = false;
  if (isOpen)
    return &device;
  SmallString<128> path(sys::fs::getMainExecutable(nullptr, nullptr));
  sys::path::remove_filename(path);
  sys::path::append(path, "..", "lib", "libquern-cuda-emulated.so");
  std::string problem;
  auto library = sys::DynamicLibrary::getPermanentLibrary(path.c_str(), &problem);
  if (!library.isValid())
    return unsupported("cuda-emulated: " + problem);
  auto open = reinterpret_cast<decltype(&quern_cuda_emulated_open)>(
      library.getAddressOfSymbol("quern_cuda_emulated_open"));
  if (!open || open(nullptr, &device) != QUERN_OK)
    return runtimeError(path + ": the emulated device cannot be opened");
  isOpen = true;
  return &device;
}

Expected<std::unique_ptr<Program>> Program::compile(mlir::ModuleOp module, Target target,
                                                    unsigned threads) {
  CompileOptions options;
  options.threads = 1;
  options.cache = DiskCache();
  const quern_device *device = nullptr;
  if (target == Target::CUDAEmulated) {
    options.device = DeviceKind::CUDAEmulated;
    Expected<const quern_device *> opened = openEmulatedDevice();
    if (!opened)
      return opened.takeError();
    device = *opened;
  }
  Expected<std::unique_ptr<CompiledModel>> model = compileModel(module, options);
  if (!model)
    return model.takeError();
  return std::unique_ptr<Program>(new Program(std::move(*model), device, threads));
}

Expected<std::vector<HostTensor>> Program::call(StringRef name,
                                                MutableArrayRef<HostTensor> inputs) {
  const quern_function *function = lookup(name);
  if (!function)
    return make_error<StatusError>(QUERN_INTERNAL, "no compiled function '" + name + "'");
  std::vector<HostTensor> before;
  for (const HostTensor &input : inputs)
    before.push_back(input.clone());
  Expected<std::vector<HostTensor>> outputs = runner.allocateOutputs(*function, inputs);
  if (!outputs)
    return outputs.takeError();
  std::vector<bool> writable(inputs.size());
  for (auto [i, output] : enumerate(*outputs)) {
    if (int32_t alias = function->output_alias[i]; alias >= 0)
      writable[alias] = true;
    else
      std::memset(output.data(), 0xa5, output.numBytes());
  }
  if (Error error = runner.call(*function, inputs, *outputs))
    return std::move(error);
  for (auto [i, input] : enumerate(inputs))
    if (!writable[i] && !function->donated[i] && !input.sameBytes(before[i]))
      return runtimeError("the call changed input " + Twine(i) + ", which is not donated");
  return outputs;
}

} // namespace quern::conformance
