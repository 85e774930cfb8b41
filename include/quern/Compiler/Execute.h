//===- Execute.h - Compiled functions on host tensors -----------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_COMPILER_EXECUTE_H
#define QUERN_COMPILER_EXECUTE_H

#include "quern-c/Cuda.h"
#include "quern/Compiler/DeviceKind.h"
#include "quern/Support/HostTensor.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <vector>

namespace quern {

/// The functions of the runtime that calls go through: this program's, or those that
/// an artefact brings with it.
struct RuntimeTable {
  decltype(&quern_context_create) create = &quern_context_create;
  decltype(&quern_context_destroy) destroy = &quern_context_destroy;
  decltype(&quern_context_error) error = &quern_context_error;
  decltype(&quern_context_peak_bytes) peakBytes = &quern_context_peak_bytes;
  decltype(&quern_context_set_profiler) setProfiler = &quern_context_set_profiler;
  decltype(&quern_context_set_poison) setPoison = &quern_context_set_poison;
  decltype(&quern_context_set_device) setDevice = &quern_context_set_device;
  decltype(&quern_context_release) release = &quern_context_release;
  decltype(&quern_query) query = &quern_query;
  decltype(&quern_call) call = &quern_call;
};

/// A device of this machine.
class Device {
public:
  /// The first GPU, or the emulator, which is a library of the tests:
  /// `libquern-cuda-emulated.so` beside this program's `lib` folder, or
  /// $QUERN_CUDA_EMULATED. An `unsupported:` error where there is none.
  static llvm::Expected<std::unique_ptr<Device>> open(DeviceKind kind);
  ~Device();
  Device(const Device &) = delete;
  /// Null for the CPU.
  const quern_device *get() const { return kind == DeviceKind::CPU ? nullptr : &table; }
  /// The emulated device compiles the code of all of these in one go; without this, that of each
  /// at its first call. Others have nothing to do.
  llvm::Error prepare(llvm::ArrayRef<const quern_function *> functions);

private:
  Device() = default;
  DeviceKind kind = DeviceKind::CPU;
  quern_device table = {};
  decltype(&quern_cuda_close) close = nullptr;
  decltype(&quern_cuda_emulated_compile) compile = nullptr;
};

/// A context, and calls with tensors that are allocated as needed.
class Runner {
public:
  /// `threads` as in quern_context_create. `device`: null for the CPU; it must outlive
  /// the runner.
  explicit Runner(int32_t threads = 0, const quern_device *device = nullptr,
                  const RuntimeTable &runtime = {});
  ~Runner();
  Runner(const Runner &) = delete;

  /// Output sizes and dtypes for these inputs, and the bytes of the arena.
  llvm::Expected<std::vector<HostTensor>> allocateOutputs(const quern_function &fn,
                                                          llvm::ArrayRef<HostTensor> inputs,
                                                          int64_t *arenaBytes = nullptr);
  /// Calls the function. An output that is an input's buffer is that tensor: donated
  /// inputs are overwritten. Errors have the call's status and text.
  llvm::Expected<std::vector<HostTensor>> call(const quern_function &fn,
                                               llvm::ArrayRef<HostTensor> inputs);
  /// The same into tensors that the caller has.
  llvm::Error call(const quern_function &fn, llvm::ArrayRef<HostTensor> inputs,
                   llvm::MutableArrayRef<HostTensor> outputs);

  quern_context *context() { return ctx; }
  const RuntimeTable &runtime() const { return table; }

private:
  llvm::Error toError(quern_status status);

  RuntimeTable table;
  quern_context *ctx;
};

/// An artefact (`.so`) loaded into this process, with its own runtime.
class Artefact {
public:
  static llvm::Expected<std::unique_ptr<Artefact>> load(llvm::StringRef path);
  ~Artefact();
  llvm::ArrayRef<const quern_function *> functions() const { return table; }
  const RuntimeTable &runtime() const { return calls; }

private:
  Artefact() = default;
  void *handle = nullptr;
  std::vector<const quern_function *> table;
  RuntimeTable calls;
};

} // namespace quern

#endif // QUERN_COMPILER_EXECUTE_H
