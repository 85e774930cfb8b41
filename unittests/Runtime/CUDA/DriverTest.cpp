//===- DriverTest.cpp - The CUDA driver as a device -----------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern-c/Cuda.h"

#include "gtest/gtest.h"
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

namespace {

class Driver : public testing::Test {
protected:
  quern_device device = {};
  char error[200] = "";

  void SetUp() override { setenv("QUERN_CUDA_DRIVER", QUERN_FAKE_CUDA, 1); }
  void TearDown() override {
    if (device.self)
      quern_cuda_close(&device);
    unsetenv("QUERN_CUDA_DRIVER");
    unsetenv("FAKE_CUDA_BROKEN");
  }
  void open() { ASSERT_EQ(quern_cuda_open(0, &device, error, sizeof error), QUERN_OK) << error; }
  static std::string log() {
    void *library = dlopen(QUERN_FAKE_CUDA, RTLD_NOW);
    return reinterpret_cast<const char *(*)()>(dlsym(library, "fakeLog"))();
  }
  int32_t load(const char *target, const char *data, void **module) {
    quern_image image = {target, data, strlen(data)};
    return device.load(device.self, &image, module);
  }
  const char *text() { return device.error(device.self); }
};

TEST_F(Driver, NoDriverNoGpu) {
  setenv("QUERN_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1);
  EXPECT_EQ(quern_cuda_open(0, &device, error, sizeof error), QUERN_UNSUPPORTED);
  EXPECT_STREQ(error, "this machine has no CUDA driver (libcuda.so.1 cannot be opened)");
  setenv("QUERN_CUDA_DRIVER", QUERN_FAKE_CUDA, 1);
  EXPECT_EQ(quern_cuda_open(1, &device, error, sizeof error), QUERN_UNSUPPORTED);
  EXPECT_STREQ(error, "this machine has 1 GPUs, asked for number 1");
  setenv("FAKE_CUDA_BROKEN", "1", 1);
  EXPECT_EQ(quern_cuda_open(0, &device, error, sizeof error), QUERN_UNSUPPORTED);
  EXPECT_STREQ(error, "starting the CUDA driver failed: no CUDA-capable device (CUDA_ERROR_FAKE)");
  EXPECT_EQ(device.self, nullptr);
}

TEST_F(Driver, LaunchesWithBuffersThenDims) {
  open();
  EXPECT_EQ(quern_cuda_architecture(&device), 86);
  void *buffer = nullptr, *module = nullptr;
  float value = 1.5f, back = 0.0f;
  ASSERT_EQ(device.alloc(device.self, sizeof value, &buffer), QUERN_OK);
  ASSERT_EQ(device.upload(device.self, buffer, &value, sizeof value), QUERN_OK);
  ASSERT_EQ(load("sm_80", "code", &module), QUERN_OK) << text();
  quern_kernel kernel = {};
  kernel.name = "k", kernel.num_bufs = 1, kernel.num_dims = 1;
  kernel.block_threads = 64, kernel.shared_bytes = 50000;
  int64_t dims[] = {1ll << 40};
  std::string before = log();
  for (int i = 0; i < 2; ++i)
    ASSERT_EQ(device.launch(device.self, module, &kernel, 3, &buffer, dims), QUERN_OK) << text();
  EXPECT_EQ(log().substr(before.size()), "find k\nattribute 8 50000\n"
                                         "launch k 3,1,1 64,1,1 50000 1.5 1099511627776\n"
                                         "launch k 3,1,1 64,1,1 50000 1.5 1099511627776\n");
  ASSERT_EQ(device.download(device.self, &back, buffer, sizeof back), QUERN_OK);
  EXPECT_EQ(back, 1.5f);
  EXPECT_EQ(device.launch(device.self, module, &kernel, 0, &buffer, dims), QUERN_ERROR);
  EXPECT_STREQ(text(), "cannot launch 0 blocks");
  kernel.name = "missing";
  EXPECT_EQ(device.launch(device.self, module, &kernel, 1, &buffer, dims), QUERN_ERROR);
  EXPECT_STREQ(text(), "finding a kernel in its code failed: fake (CUDA_ERROR_FAKE)");
  device.unload(device.self, module);
  device.free(device.self, buffer);
}

TEST_F(Driver, ImagesForThisChip) {
  open();
  void *module = nullptr;
  for (const char *target : {"sm_80", "sm_86", "compute_80", "compute_86", "compute_75"}) {
    EXPECT_EQ(load(target, "code", &module), QUERN_OK) << target;
    device.unload(device.self, module);
  }
  for (const char *target : {"sm_75", "sm_89", "sm_90", "sm_90a", "compute_90", "cuda-emulated"})
    EXPECT_EQ(load(target, "code", &module), QUERN_UNSUPPORTED) << target;
  EXPECT_STREQ(text(), "the GPU is sm_86, the code is for cuda-emulated");
  EXPECT_EQ(load("sm_80", "broken", &module), QUERN_ERROR);
  EXPECT_STREQ(text(), "loading device code failed: fake (CUDA_ERROR_FAKE)");
}

TEST_F(Driver, OutOfMemory) {
  open();
  void *p = nullptr;
  EXPECT_EQ(device.alloc(device.self, 1 << 30, &p), QUERN_ERROR);
  EXPECT_STREQ(text(), "allocating device memory failed: out of memory (CUDA_ERROR_FAKE)");
}

} // namespace
