//===- Program.cpp - Compiled functions -----------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Program.h"
#include "quern/Support/Error.h"
#include <cstring>

using namespace llvm;

namespace quern::conformance {

void loadDialects(mlir::MLIRContext &context) {
  mlir::DialectRegistry registry;
  registerCompilerDialects(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
}

Expected<std::unique_ptr<Program>> Program::compile(mlir::ModuleOp module, Target target,
                                                    unsigned threads) {
  CompileOptions options;
  options.threads = 1;
  options.cache = DiskCache();
  if (target == Target::CUDAEmulated)
    options.device = DeviceKind::CUDAEmulated;
  Expected<std::unique_ptr<Device>> device = Device::open(options.device);
  if (!device)
    return device.takeError();
  Expected<std::unique_ptr<CompiledModel>> model = compileModel(module, options);
  if (!model)
    return model.takeError();
  if (Error error = (*device)->prepare((*model)->functions()))
    return std::move(error);
  return std::unique_ptr<Program>(new Program(std::move(*device), std::move(*model), threads));
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
