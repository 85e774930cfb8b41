//===- Device.cpp - The emulated CUDA device ------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Compile.h"
#include "Grid.h"
#include "Memory.h"
#include <cstring>
#include <mutex>
#include <vector>

// What the library exports.
#pragma GCC visibility push(default)
#include "quern-c/Cuda.h"
#pragma GCC visibility pop

using namespace quern::emulator;

namespace {
/// Kernels know their thread by variables of their unit, so one launch at a time.
std::mutex launching;

struct Device {
  Device(bool checked, uint64_t seed, const char *cacheDir)
      : checked(checked), seed(seed), compiler(checked, cacheDir ? cacheDir : "") {}

  bool checked;
  uint64_t seed;
  Memory memory;
  Compiler compiler;
  std::string error;

  int32_t fail(quern_status status, std::string text) {
    error = std::move(text);
    return status;
  }
};
} // namespace

static Device &get(void *self) { return *static_cast<Device *>(self); }

static int32_t deviceAlloc(void *self, uint64_t bytes, void **p) {
  *p = get(self).memory.allocate(bytes);
  return *p ? QUERN_OK
            : get(self).fail(QUERN_ERROR,
                             "no device memory for " + std::to_string(bytes) + " bytes");
}

static int32_t deviceFree(void *self, void *p) {
  return !p || get(self).memory.free(p)
             ? QUERN_OK
             : get(self).fail(QUERN_INTERNAL, "free of what is no allocation");
}

static int32_t deviceUpload(void *self, void *to, const void *from, uint64_t bytes) {
  Device &device = get(self);
  if (!device.memory.contains(to, bytes))
    return device.fail(QUERN_INTERNAL,
                       "upload of " + std::to_string(bytes) + " bytes outside of one allocation");
  std::memcpy(to, from, bytes);
  device.memory.markInitialised(to, bytes);
  return QUERN_OK;
}

static int32_t deviceDownload(void *self, void *to, const void *from, uint64_t bytes) {
  Device &device = get(self);
  if (!device.memory.contains(from, bytes))
    return device.fail(QUERN_INTERNAL,
                       "download of " + std::to_string(bytes) + " bytes outside of one allocation");
  if (device.checked)
    if (size_t first = device.memory.firstUninitialised(from, bytes); first < bytes)
      return device.fail(QUERN_ERROR, "download of " + std::to_string(bytes) +
                                          " bytes, of which no kernel wrote offset " +
                                          std::to_string(first));
  std::memcpy(to, from, bytes);
  return QUERN_OK;
}

static int32_t deviceLoad(void *self, const quern_image *image, void **module) {
  Device &device = get(self);
  if (std::strcmp(image->target, "cuda-emulated"))
    return device.fail(QUERN_UNSUPPORTED, std::string("the emulated device runs images for "
                                                      "'cuda-emulated', got '") +
                                              image->target + "'");
  *module = device.compiler.add(std::string(static_cast<const char *>(image->data), image->size));
  return QUERN_OK;
}

static int32_t deviceUnload(void *, void *) { return QUERN_OK; } // equal texts share one

static int32_t deviceLaunch(void *self, void *module, const quern_kernel *kernel, int64_t blocks,
                            void *const *bufs, const int64_t *dims) {
  Device &device = get(self);
  Text &text = *static_cast<Text *>(module);
  std::lock_guard<std::mutex> lock(launching);
  if (!text.unit && text.error.empty())
    if (std::string failure = device.compiler.compilePending(); !failure.empty())
      return device.fail(QUERN_UNSUPPORTED, failure);
  if (!text.error.empty())
    return device.fail(QUERN_INTERNAL, std::string("kernel ") + kernel->name + ": " + text.error);
  const Kernel *found = text.find(kernel->name);
  if (!found || found->parameters != kernel->num_bufs + kernel->num_dims)
    return device.fail(
        QUERN_INTERNAL,
        std::string("kernel ") + kernel->name +
            (found ? " takes other parameters than it is launched with" : " is not in its text"));
  std::vector<void *> arguments;
  for (int32_t i = 0; i < kernel->num_bufs; ++i)
    arguments.push_back(const_cast<void **>(bufs + i));
  for (int32_t i = 0; i < kernel->num_dims; ++i)
    arguments.push_back(const_cast<int64_t *>(dims + i));
  Launch launch{text.unit,   found,           blocks, kernel->block_threads, kernel->shared_bytes,
                device.seed, arguments.data()};
  std::string failure = runGrid(device.memory, launch);
  return failure.empty() ? QUERN_OK : device.fail(QUERN_ERROR, failure);
}

static int32_t deviceSynchronize(void *) { return QUERN_OK; }
static const char *deviceError(void *self) { return get(self).error.c_str(); }

extern "C" {
quern_status quern_cuda_emulated_open(const quern_cuda_emulated_options *options,
                                      quern_device *device) {
  quern_cuda_emulated_options defaults{1, 0, nullptr};
  if (!options)
    options = &defaults;
  auto *self = new Device(options->checked, options->seed, options->cache_dir);
  *device = {
      "cuda-emulated", 0,          self,         deviceAlloc,  deviceFree,        deviceUpload,
      deviceDownload,  deviceLoad, deviceUnload, deviceLaunch, deviceSynchronize, deviceError};
  return QUERN_OK;
}

quern_status quern_cuda_emulated_compile(const quern_device *device) {
  std::lock_guard<std::mutex> lock(launching);
  Device &self = get(device->self);
  std::string failure = self.compiler.compilePending();
  return failure.empty() ? QUERN_OK
                         : static_cast<quern_status>(self.fail(QUERN_UNSUPPORTED, failure));
}

void quern_cuda_emulated_close(quern_device *device) { delete &get(device->self); }
}
