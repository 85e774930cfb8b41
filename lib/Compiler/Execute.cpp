//===- Execute.cpp - Compiled functions on host tensors -------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Compiler/Execute.h"

#include "quern/Support/Error.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <dlfcn.h>

using namespace llvm;

namespace quern {

//===----------------------------------------------------------------------===//
// Device
//===----------------------------------------------------------------------===//

Expected<std::unique_ptr<Device>> Device::open(DeviceKind kind) {
  std::unique_ptr<Device> device(new Device);
  device->kind = kind;
  if (kind == DeviceKind::CUDA) {
    char text[512] = "";
    if (quern_status status = quern_cuda_open(0, &device->table, text, sizeof(text))) {
      StringRef detail(text);
      for (StringRef prefix : {"invalid: ", "unsupported: "})
        detail.consume_front(prefix);
      return make_error<StatusError>(status, detail);
    }
    device->close = quern_cuda_close;
  } else if (kind == DeviceKind::CUDAEmulated) {
    SmallString<128> path;
    if (const char *file = std::getenv("QUERN_CUDA_EMULATED")) {
      path = file;
    } else {
      path = sys::fs::getMainExecutable(nullptr, reinterpret_cast<void *>(&quern_call));
      sys::path::remove_filename(path);
      sys::path::append(path, "..", "lib", "libquern-cuda-emulated.so");
    }
    // Never closed: its kernels may have been used by other devices.
    void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    decltype(&quern_cuda_emulated_open) open = nullptr;
    decltype(&quern_cuda_emulated_close) close = nullptr;
    auto find = [&](auto &function, const char *name) {
      if (library)
        function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
    };
    find(open, "quern_cuda_emulated_open");
    find(close, "quern_cuda_emulated_close");
    find(device->compile, "quern_cuda_emulated_compile");
    if (!open || !close || !device->compile)
      return unsupported("no emulated CUDA device: " + Twine(dlerror()));
    if (open(nullptr, &device->table))
      return runtimeError("the emulated CUDA device cannot be opened");
    device->close = close;
  }
  return std::move(device);
}

Error Device::prepare(ArrayRef<const quern_function *> functions) {
  if (!compile)
    return Error::success();
  for (const quern_function *function : functions)
    for (int32_t i = 0; i < function->num_images; ++i) {
      void *module = nullptr; // what cannot be loaded is reported by its launch
      table.load(table.self, &function->images[i], &module);
    }
  if (quern_status status = compile(&table)) {
    StringRef text(table.error(table.self));
    return make_error<StatusError>(status, text);
  }
  return Error::success();
}

Device::~Device() {
  if (close)
    close(&table);
}

//===----------------------------------------------------------------------===//
// Runner
//===----------------------------------------------------------------------===//

Runner::Runner(int32_t threads, const quern_device *device, const RuntimeTable &runtime)
    : table(runtime), ctx(table.create(threads)) {
  if (ctx && device)
    table.setDevice(ctx, device);
}

Runner::~Runner() { table.destroy(ctx); }

Error Runner::toError(quern_status status) {
  if (status == QUERN_OK)
    return Error::success();
  StringRef text = table.error(ctx);
  for (StringRef prefix : {"invalid: ", "unsupported: "})
    text.consume_front(prefix);
  return make_error<StatusError>(status, text);
}

// The tensors of a call. `storage` keeps what the pointers point to.
static std::vector<DLTensor *> pointers(MutableArrayRef<DLTensor> storage) {
  std::vector<DLTensor *> result;
  for (DLTensor &t : storage)
    result.push_back(&t);
  return result;
}

Expected<std::vector<HostTensor>> Runner::allocateOutputs(const quern_function &fn,
                                                          ArrayRef<HostTensor> inputs,
                                                          int64_t *arenaBytes) {
  if (!ctx)
    return runtimeError("not enough memory for a context");
  if (inputs.size() != size_t(fn.num_inputs))
    return invalidInput("expected " + Twine(fn.num_inputs) + " inputs of '" + fn.name + "', got " +
                        Twine(inputs.size()));
  std::vector<DLTensor> storage;
  for (const HostTensor &t : inputs)
    storage.push_back(t.toDLPack());
  std::vector<int64_t> dims(size_t(fn.num_outputs) * QUERN_MAX_RANK);
  if (Error error =
          toError(table.query(ctx, &fn, pointers(storage).data(), dims.data(), arenaBytes)))
    return std::move(error);
  std::vector<HostTensor> outputs;
  for (int32_t o = 0; o < fn.num_outputs; ++o) {
    const quern_tensor_info &info = fn.outputs[o];
    if (fn.output_alias && fn.output_alias[o] >= 0) {
      outputs.push_back(inputs[fn.output_alias[o]]);
      continue;
    }
    std::optional<DType> dtype = getDType(info.dtype);
    if (!dtype)
      return unsupported("the dtype of output '" + Twine(info.name) + "'");
    ArrayRef<int64_t> sizes(dims.data() + o * QUERN_MAX_RANK, info.rank);
    if (HostTensor::countElements(*dtype, sizes))
      outputs.emplace_back(*dtype, sizes);
    if (outputs.size() != size_t(o) + 1 || !outputs.back().data())
      return runtimeError("not enough memory for output '" + Twine(info.name) + "'");
  }
  return outputs;
}

Error Runner::call(const quern_function &fn, ArrayRef<HostTensor> inputs,
                   MutableArrayRef<HostTensor> outputs) {
  if (inputs.size() != size_t(fn.num_inputs) || outputs.size() != size_t(fn.num_outputs))
    return invalidInput("expected " + Twine(fn.num_inputs) + " inputs and " +
                        Twine(fn.num_outputs) + " outputs of '" + fn.name + "', got " +
                        Twine(inputs.size()) + " and " + Twine(outputs.size()));
  std::vector<DLTensor> in, out;
  for (const HostTensor &t : inputs)
    in.push_back(t.toDLPack());
  for (const HostTensor &t : outputs)
    out.push_back(t.toDLPack());
  return toError(table.call(ctx, &fn, pointers(in).data(), pointers(out).data()));
}

Expected<std::vector<HostTensor>> Runner::call(const quern_function &fn,
                                               ArrayRef<HostTensor> inputs) {
  Expected<std::vector<HostTensor>> outputs = allocateOutputs(fn, inputs);
  if (!outputs)
    return outputs;
  if (Error error = call(fn, inputs, *outputs))
    return std::move(error);
  return outputs;
}

//===----------------------------------------------------------------------===//
// Artefacts
//===----------------------------------------------------------------------===//

Expected<std::unique_ptr<Artefact>> Artefact::load(StringRef path) {
  if (!sys::fs::exists(path))
    return invalidInput(path + ": no such file");
  // A library that ends before its last section would fault while it is loaded.
  auto bytes = MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!bytes)
    return invalidInput(path + ": cannot be read: " + bytes.getError().message());
  auto *header = reinterpret_cast<const ELF::Elf64_Ehdr *>((*bytes)->getBufferStart());
  if ((*bytes)->getBufferSize() < sizeof(*header) || !header->checkMagic() ||
      header->e_shoff > (*bytes)->getBufferSize() ||
      uint64_t(header->e_shnum) * header->e_shentsize > (*bytes)->getBufferSize() - header->e_shoff)
    return invalidInput(path + ": no whole shared library");
  // A name without a folder would be looked for in the system's folders.
  std::string file = path.contains('/') ? path.str() : "./" + path.str();
  std::unique_ptr<Artefact> artefact(new Artefact);
  artefact->handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!artefact->handle)
    return invalidInput(path + ": cannot be loaded: " + dlerror());
  auto *list = static_cast<const quern_artefact *>(dlsym(artefact->handle, "quern_artefact_table"));
  if (!list)
    return invalidInput(path + ": expected an artefact of quern-compile");
  if (list->abi_version != QUERN_ABI_VERSION)
    return invalidInput(path + ": expected ABI version " + Twine(QUERN_ABI_VERSION) + ", got " +
                        Twine(list->abi_version));
  artefact->table.assign(list->functions, list->functions + list->num_functions);
  bool complete = true;
  auto find = [&](auto &function, const char *name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(artefact->handle, name));
    complete &= function != nullptr;
  };
  RuntimeTable &t = artefact->calls;
  find(t.create, "quern_context_create");
  find(t.destroy, "quern_context_destroy");
  find(t.error, "quern_context_error");
  find(t.peakBytes, "quern_context_peak_bytes");
  find(t.setProfiler, "quern_context_set_profiler");
  find(t.setPoison, "quern_context_set_poison");
  find(t.setDevice, "quern_context_set_device");
  find(t.release, "quern_context_release");
  find(t.query, "quern_query");
  find(t.call, "quern_call");
  if (!complete)
    return invalidInput(path + ": expected an artefact with its runtime");
  return std::move(artefact);
}

Artefact::~Artefact() {
  if (handle)
    dlclose(handle);
}

} // namespace quern
