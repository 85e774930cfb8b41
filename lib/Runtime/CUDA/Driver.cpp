//===- Driver.cpp - The CUDA driver as a device ---------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// libcuda is opened at run time, so that nothing links against it. One stream for
/// each device table; copies and launches are in its order, `synchronize` waits.
/// Needs libc only.
///
//===----------------------------------------------------------------------===//

#include "quern-c/Cuda.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace {

using Result = int;
using Address = unsigned long long;

// Values of cuda.h.
constexpr int attributeMajor = 75, attributeMinor = 76; // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*
constexpr int attributeDynamicShared = 8; // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
constexpr int defaultShared = 48 << 10;   // more has to be asked for

/// The part of cuda.h that is used.
struct Functions {
  Result (*init)(unsigned);
  Result (*deviceGetCount)(int *);
  Result (*deviceGet)(int *, int);
  Result (*deviceGetAttribute)(int *, int, int);
  Result (*contextRetain)(void **, int);
  Result (*contextRelease)(int);
  Result (*contextSetCurrent)(void *);
  Result (*streamCreate)(void **, unsigned);
  Result (*streamDestroy)(void *);
  Result (*streamSynchronize)(void *);
  Result (*memAlloc)(Address *, size_t);
  Result (*memFree)(Address);
  Result (*copyToDevice)(Address, const void *, size_t, void *);
  Result (*copyToHost)(void *, Address, size_t, void *);
  Result (*moduleLoad)(void **, const void *);
  Result (*moduleUnload)(void *);
  Result (*moduleGetFunction)(void **, void *, const char *);
  Result (*functionSetAttribute)(void *, int, int);
  Result (*launchKernel)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                         unsigned, void *, void **, void **);
  Result (*getErrorName)(Result, const char **);
  Result (*getErrorString)(Result, const char **);

  /// The first name that is missing, or null.
  const char *load(void *library) {
    struct {
      void **function;
      const char *name;
    } table[] = {
        {(void **)&init, "cuInit"},
        {(void **)&deviceGetCount, "cuDeviceGetCount"},
        {(void **)&deviceGet, "cuDeviceGet"},
        {(void **)&deviceGetAttribute, "cuDeviceGetAttribute"},
        {(void **)&contextRetain, "cuDevicePrimaryCtxRetain"},
        {(void **)&contextRelease, "cuDevicePrimaryCtxRelease_v2"},
        {(void **)&contextSetCurrent, "cuCtxSetCurrent"},
        {(void **)&streamCreate, "cuStreamCreate"},
        {(void **)&streamDestroy, "cuStreamDestroy_v2"},
        {(void **)&streamSynchronize, "cuStreamSynchronize"},
        {(void **)&memAlloc, "cuMemAlloc_v2"},
        {(void **)&memFree, "cuMemFree_v2"},
        {(void **)&copyToDevice, "cuMemcpyHtoDAsync_v2"},
        {(void **)&copyToHost, "cuMemcpyDtoHAsync_v2"},
        {(void **)&moduleLoad, "cuModuleLoadData"},
        {(void **)&moduleUnload, "cuModuleUnload"},
        {(void **)&moduleGetFunction, "cuModuleGetFunction"},
        {(void **)&functionSetAttribute, "cuFuncSetAttribute"},
        {(void **)&launchKernel, "cuLaunchKernel"},
        {(void **)&getErrorName, "cuGetErrorName"},
        {(void **)&getErrorString, "cuGetErrorString"},
    };
    for (auto &entry : table)
      if (!(*entry.function = dlsym(library, entry.name)))
        return entry.name;
    return nullptr;
  }
};

struct Function {
  const char *name;
  void *handle;
  Function *next;
};

struct Module {
  void *handle;
  Function *functions;
};

struct Driver {
  Functions cuda;
  void *library;
  void *context;
  void *stream;
  int ordinal;
  int architecture;
  char error[512];

  [[gnu::format(printf, 3, 4)]] int32_t fail(quern_status status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error, sizeof(error), format, arguments);
    va_end(arguments);
    return status;
  }

  /// QUERN_OK, or the driver's text for what failed.
  int32_t check(Result result, const char *what) {
    if (!result)
      return QUERN_OK;
    const char *name = nullptr, *text = nullptr;
    cuda.getErrorName(result, &name);
    cuda.getErrorString(result, &text);
    return fail(QUERN_ERROR, "%s failed: %s (%s)", what, text ? text : "no text",
                name ? name : "no name");
  }

  /// The driver's functions work on the context that is current in the calling thread.
  int32_t enter() { return check(cuda.contextSetCurrent(context), "setting the context"); }
};

Driver &get(void *self) { return *static_cast<Driver *>(self); }
Address address(const void *p) { return reinterpret_cast<Address>(p); }

int32_t driverAlloc(void *self, uint64_t bytes, void **p) {
  Driver &driver = get(self);
  if (int32_t status = driver.enter())
    return status;
  Address result = 0;
  int32_t status =
      driver.check(driver.cuda.memAlloc(&result, bytes ? bytes : 1), "allocating device memory");
  *p = reinterpret_cast<void *>(result);
  return status;
}

int32_t driverFree(void *self, void *p) {
  Driver &driver = get(self);
  if (int32_t status = driver.enter())
    return status;
  return driver.check(driver.cuda.memFree(address(p)), "freeing device memory");
}

int32_t driverUpload(void *self, void *to, const void *from, uint64_t bytes) {
  Driver &driver = get(self);
  if (int32_t status = driver.enter())
    return status;
  return driver.check(driver.cuda.copyToDevice(address(to), from, bytes, driver.stream),
                      "copying to the device");
}

int32_t driverSynchronize(void *self) {
  Driver &driver = get(self);
  if (int32_t status = driver.enter())
    return status;
  return driver.check(driver.cuda.streamSynchronize(driver.stream), "running kernels");
}

int32_t driverDownload(void *self, void *to, const void *from, uint64_t bytes) {
  Driver &driver = get(self);
  if (int32_t status = driver.enter())
    return status;
  if (int32_t status = driver.check(driver.cuda.copyToHost(to, address(from), bytes, driver.stream),
                                    "copying from the device"))
    return status;
  return driverSynchronize(self);
}

/// Whether this device can run an image: a cubin of its own generation that is not newer,
/// or PTX that is not newer.
bool canRun(const Driver &driver, const char *target, bool &isPtx) {
  isPtx = !strncmp(target, "compute_", 8);
  if (!isPtx && strncmp(target, "sm_", 3))
    return false;
  char *end;
  long architecture = strtol(strchr(target, '_') + 1, &end, 10);
  if (*end == 'a') // for exactly this chip
    return architecture == driver.architecture;
  if (*end || architecture > driver.architecture)
    return false;
  return isPtx || architecture / 10 == driver.architecture / 10;
}

int32_t driverLoad(void *self, const quern_image *image, void **result) {
  Driver &driver = get(self);
  bool isPtx;
  if (!canRun(driver, image->target, isPtx))
    return driver.fail(QUERN_UNSUPPORTED, "the GPU is sm_%d, the code is for %s",
                       driver.architecture, image->target);
  if (int32_t status = driver.enter())
    return status;
  Module *loaded = static_cast<Module *>(calloc(1, sizeof(Module)));
  // PTX is a text with a final zero.
  char *copy = isPtx ? static_cast<char *>(malloc(image->size + 1)) : nullptr;
  if (!loaded || (isPtx && !copy)) {
    free(loaded);
    return driver.fail(QUERN_ERROR, "no memory for %llu bytes of code",
                       static_cast<unsigned long long>(image->size));
  }
  if (copy) {
    memcpy(copy, image->data, image->size);
    copy[image->size] = 0;
  }
  int32_t status = driver.check(driver.cuda.moduleLoad(&loaded->handle, copy ? copy : image->data),
                                "loading device code");
  free(copy);
  if (status)
    free(loaded);
  else
    *result = loaded;
  return status;
}

int32_t driverUnload(void *self, void *handle) {
  Driver &driver = get(self);
  Module *loaded = static_cast<Module *>(handle);
  int32_t status = driver.enter();
  if (!status)
    status = driver.check(driver.cuda.moduleUnload(loaded->handle), "unloading device code");
  while (Function *function = loaded->functions) {
    loaded->functions = function->next;
    free(function);
  }
  free(loaded);
  return status;
}

int32_t findFunction(Driver &driver, Module &loaded, const quern_kernel *kernel, void *&handle) {
  for (Function *f = loaded.functions; f; f = f->next)
    if (!strcmp(f->name, kernel->name)) {
      handle = f->handle;
      return QUERN_OK;
    }
  if (int32_t status =
          driver.check(driver.cuda.moduleGetFunction(&handle, loaded.handle, kernel->name),
                       "finding a kernel in its code"))
    return status;
  if (kernel->shared_bytes > defaultShared)
    if (int32_t status = driver.check(
            driver.cuda.functionSetAttribute(handle, attributeDynamicShared, kernel->shared_bytes),
            "asking for shared memory"))
      return status;
  Function *function = static_cast<Function *>(malloc(sizeof(Function)));
  if (function) { // else it is looked up again
    *function = {kernel->name, handle, loaded.functions};
    loaded.functions = function;
  }
  return QUERN_OK;
}

int32_t driverLaunch(void *self, void *handle, const quern_kernel *kernel, int64_t blocks,
                     void *const *bufs, const int64_t *dims) {
  Driver &driver = get(self);
  if (int32_t status = driver.enter())
    return status;
  void *function = nullptr;
  if (int32_t status = findFunction(driver, *static_cast<Module *>(handle), kernel, function))
    return status;
  if (blocks <= 0 || blocks > INT32_MAX)
    return driver.fail(QUERN_ERROR, "cannot launch %lld blocks", static_cast<long long>(blocks));
  constexpr int32_t maxParameters = 512; // 4 KiB, CUDA's limit
  void *parameters[maxParameters];
  if (kernel->num_bufs + kernel->num_dims > maxParameters)
    return driver.fail(QUERN_UNSUPPORTED, "a kernel with %d parameters, more than CUDA's %d",
                       kernel->num_bufs + kernel->num_dims, maxParameters);
  void **next = parameters;
  for (int32_t i = 0; i < kernel->num_bufs; ++i)
    *next++ = const_cast<void **>(bufs + i);
  for (int32_t i = 0; i < kernel->num_dims; ++i)
    *next++ = const_cast<int64_t *>(dims + i);
  return driver.check(driver.cuda.launchKernel(
                          function, unsigned(blocks), 1, 1, unsigned(kernel->block_threads), 1, 1,
                          unsigned(kernel->shared_bytes), driver.stream, parameters, nullptr),
                      "launching a kernel");
}

const char *driverError(void *self) { return get(self).error; }

} // namespace

extern "C" {

void quern_cuda_close(quern_device *device) {
  Driver *driver = static_cast<Driver *>(device->self);
  if (!driver)
    return;
  if (driver->stream && !driver->enter())
    driver->cuda.streamDestroy(driver->stream);
  if (driver->context)
    driver->cuda.contextRelease(driver->ordinal);
  // The library stays: it does not like to be unloaded.
  free(driver);
  device->self = nullptr;
}

int32_t quern_cuda_architecture(const quern_device *device) {
  return static_cast<const Driver *>(device->self)->architecture;
}

quern_status quern_cuda_open(int32_t ordinal, quern_device *device, char *error,
                             uint64_t error_size) {
  Driver *driver = static_cast<Driver *>(calloc(1, sizeof(Driver)));
  auto refuse = [&](quern_status status, const char *text) {
    snprintf(error, error_size, "%s", text);
    quern_device partial = {};
    partial.self = driver;
    quern_cuda_close(&partial);
    return status;
  };
  if (!driver)
    return refuse(QUERN_ERROR, "no memory");
  driver->ordinal = ordinal;
  const char *chosen = getenv("QUERN_CUDA_DRIVER");
  driver->library = dlopen(chosen ? chosen : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!driver->library)
    return refuse(QUERN_UNSUPPORTED,
                  "this machine has no CUDA driver (libcuda.so.1 cannot be opened)");
  if (const char *missing = driver->cuda.load(driver->library)) {
    driver->fail(QUERN_UNSUPPORTED, "the CUDA driver is too old: it has no %s", missing);
    return refuse(QUERN_UNSUPPORTED, driver->error);
  }
  Functions &cuda = driver->cuda;
  int count = 0, handle = 0, major = 0, minor = 0;
  if (driver->check(cuda.init(0), "starting the CUDA driver") ||
      driver->check(cuda.deviceGetCount(&count), "counting GPUs"))
    return refuse(QUERN_UNSUPPORTED, driver->error);
  if (ordinal < 0 || ordinal >= count) {
    driver->fail(QUERN_UNSUPPORTED, "this machine has %d GPUs, asked for number %d", count,
                 ordinal);
    return refuse(QUERN_UNSUPPORTED, driver->error);
  }
  if (driver->check(cuda.deviceGet(&handle, ordinal), "opening the GPU"))
    return refuse(QUERN_ERROR, driver->error);
  driver->ordinal = handle;
  if (driver->check(cuda.deviceGetAttribute(&major, attributeMajor, handle), "asking the GPU") ||
      driver->check(cuda.deviceGetAttribute(&minor, attributeMinor, handle), "asking the GPU") ||
      driver->check(cuda.contextRetain(&driver->context, handle), "opening a context") ||
      driver->enter() ||
      driver->check(cuda.streamCreate(&driver->stream, 1 /* non-blocking */), "making a stream"))
    return refuse(QUERN_ERROR, driver->error);
  driver->architecture = major * 10 + minor;
  *device = {
      "cuda",         kDLCUDA,    driver,       driverAlloc,  driverFree,        driverUpload,
      driverDownload, driverLoad, driverUnload, driverLaunch, driverSynchronize, driverError};
  return QUERN_OK;
}
}
