//===- FakeDriver.cpp - A libcuda that only remembers ---------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Device memory is host memory; a launch is written down as text, for the test to
// read through `fakeLog`. An sm_86 GPU.
//
//===----------------------------------------------------------------------===//

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

static std::string written;
static std::string loadedText;

#pragma GCC visibility push(default)
extern "C" {
const char *fakeLog() { return written.c_str(); }
int cuInit(unsigned) { return getenv("FAKE_CUDA_BROKEN") ? 100 : 0; }
int cuDeviceGetCount(int *count) { return *count = 1, 0; }
int cuDeviceGet(int *device, int) { return *device = 5, 0; }
int cuDeviceGetAttribute(int *value, int attribute, int) {
  *value = attribute == 75 ? 8 : 6;
  return 0;
}
int cuDevicePrimaryCtxRetain(void **context, int) { return *context = &written, 0; }
int cuDevicePrimaryCtxRelease_v2(int device) {
  written += "release " + std::to_string(device) + "\n";
  return 0;
}
int cuCtxSetCurrent(void *context) { return context == &written ? 0 : 201; }
int cuStreamCreate(void **stream, unsigned) { return *stream = &loadedText, 0; }
int cuStreamDestroy_v2(void *) { return 0; }
int cuStreamSynchronize(void *) { return 0; }
int cuMemAlloc_v2(unsigned long long *p, size_t bytes) {
  if (bytes > 1 << 20)
    return 2;
  *p = reinterpret_cast<unsigned long long>(malloc(bytes));
  return 0;
}
int cuMemFree_v2(unsigned long long p) { return free(reinterpret_cast<void *>(p)), 0; }
int cuMemcpyHtoDAsync_v2(unsigned long long to, const void *from, size_t bytes, void *) {
  return memcpy(reinterpret_cast<void *>(to), from, bytes), 0;
}
int cuMemcpyDtoHAsync_v2(void *to, unsigned long long from, size_t bytes, void *) {
  return memcpy(to, reinterpret_cast<void *>(from), bytes), 0;
}
int cuModuleLoadData(void **module, const void *data) {
  loadedText = static_cast<const char *>(data);
  *module = &loadedText;
  return loadedText == "broken" ? 218 : 0;
}
int cuModuleUnload(void *) { return 0; }
int cuModuleGetFunction(void **function, void *, const char *name) {
  written += std::string("find ") + name + "\n";
  *function = const_cast<char *>(name);
  return strcmp(name, "missing") ? 0 : 500;
}
int cuFuncSetAttribute(void *, int attribute, int value) {
  written += "attribute " + std::to_string(attribute) + " " + std::to_string(value) + "\n";
  return 0;
}
int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *, void **parameters, void **) {
  char line[200];
  snprintf(line, sizeof line, "launch %s %u,%u,%u %u,%u,%u %u %g %lld\n", (const char *)function, x,
           y, z, bx, by, bz, shared, **static_cast<float **>(parameters[0]),
           *static_cast<long long *>(parameters[1]));
  written += line;
  return 0;
}
int cuGetErrorName(int, const char **text) { return *text = "CUDA_ERROR_FAKE", 0; }
int cuGetErrorString(int code, const char **text) {
  *text = code == 2 ? "out of memory" : code == 100 ? "no CUDA-capable device" : "fake";
  return 0;
}
}
