//===- EmulatedTest.cpp - What the emulated device finds ------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern-c/Cuda.h"

#include "gtest/gtest.h"
#include <cstdlib>
#include <dlfcn.h>
#include <string>
#include <vector>

namespace {

struct Plugin {
  decltype(&quern_cuda_emulated_open) open;
  decltype(&quern_cuda_emulated_compile) compile;
  decltype(&quern_cuda_emulated_close) close;
};

const Plugin &plugin() {
  static const Plugin loaded = [] {
    void *library = dlopen(QUERN_CUDA_EMULATED, RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(library, nullptr) << dlerror();
    Plugin plugin;
    plugin.open =
        reinterpret_cast<decltype(plugin.open)>(dlsym(library, "quern_cuda_emulated_open"));
    plugin.compile =
        reinterpret_cast<decltype(plugin.compile)>(dlsym(library, "quern_cuda_emulated_compile"));
    plugin.close =
        reinterpret_cast<decltype(plugin.close)>(dlsym(library, "quern_cuda_emulated_close"));
    return plugin;
  }();
  return loaded;
}

class Emulated : public testing::Test {
protected:
  quern_device device = {};

  void SetUp() override { open(true, 0); }
  void TearDown() override { plugin().close(&device); }
  void open(bool checked, uint64_t seed) {
    quern_cuda_emulated_options options = {checked, seed, nullptr};
    ASSERT_EQ(plugin().open(&options, &device), QUERN_OK);
  }
  void reopen(bool checked, uint64_t seed) {
    plugin().close(&device);
    open(checked, seed);
  }

  void *load(const std::string &text) {
    quern_image image = {"cuda-emulated", text.data(), text.size()};
    void *module = nullptr;
    EXPECT_EQ(device.load(device.self, &image, &module), QUERN_OK);
    return module;
  }

  template <class T> T *upload(const std::vector<T> &values) {
    void *p = nullptr;
    EXPECT_EQ(device.alloc(device.self, values.size() * sizeof(T), &p), QUERN_OK);
    EXPECT_EQ(device.upload(device.self, p, values.data(), values.size() * sizeof(T)), QUERN_OK);
    return static_cast<T *>(p);
  }
  template <class T> T *allocate(size_t count) {
    void *p = nullptr;
    EXPECT_EQ(device.alloc(device.self, count * sizeof(T), &p), QUERN_OK);
    return static_cast<T *>(p);
  }
  template <class T> std::vector<T> download(const T *p, size_t count) {
    std::vector<T> values(count);
    EXPECT_EQ(device.download(device.self, values.data(), p, count * sizeof(T)), QUERN_OK)
        << device.error(device.self);
    return values;
  }

  int32_t launch(void *module, const char *name, int64_t blocks, int threads,
                 std::vector<void *> bufs, std::vector<int64_t> dims) {
    quern_kernel kernel = {};
    kernel.name = name, kernel.block_threads = threads;
    kernel.num_bufs = bufs.size(), kernel.num_dims = dims.size();
    return device.launch(device.self, module, &kernel, blocks, bufs.data(), dims.data());
  }

  /// Runs `body` over in (64 numbers) and out (64), one block of 64 threads. The error's text.
  std::string run(const std::string &body) {
    void *module = load("#include \"quern.cuh\"\n\n"
                        "extern \"C\" __global__ void __launch_bounds__(64)\n"
                        "    k(const float *in, float *out, long long n) {\n"
                        "  const int i = threadIdx.x;\n" +
                        body + "\n}\n");
    std::vector<float> values(64);
    for (int i = 0; i < 64; ++i)
      values[i] = 0.5f * i;
    float *in = upload(values);
    out = allocate<float>(64);
    int32_t status = launch(module, "k", 1, 64, {in, out}, {64});
    std::string error = status ? device.error(device.self) : "";
    EXPECT_EQ(status, error.empty() ? QUERN_OK : QUERN_ERROR);
    return error;
  }
  float *out = nullptr;
};

TEST_F(Emulated, ComputesAndKeepsTheOrderOfArguments) {
  EXPECT_EQ(run("  out[i] = in[n - 1 - i] + 1.0f;"), "");
  std::vector<float> result = download(out, 64);
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(result[i], 0.5f * (63 - i) + 1.0f);
}

TEST_F(Emulated, BlockReductionIsTheSameInEveryOrder) {
  std::string body = "  __shared__ float scratch[2];\n"
                     "  out[i] = quern::blockReduce<quern::Add>(in[i], scratch);";
  for (uint64_t seed = 0; seed < 5; ++seed) {
    reopen(seed % 2, seed);
    EXPECT_EQ(run(body), "");
    for (float value : download(out, 64))
      EXPECT_EQ(value, 1008.0f);
  }
}

TEST_F(Emulated, VectorsReadOnlyWhatExists) {
  std::string body =
      "  if (i >= 16) return;\n"
      "  const quern::vec<float, 4> v = quern::load<4>(in + i * 4 + 1, 63 - i * 4);\n"
      "  quern::store<4>(out + i * 4, v, n - i * 4);";
  EXPECT_EQ(run(body), "");
  std::vector<float> result = download(out, 64);
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(result[i], i == 63 ? 0.0f : 0.5f * (i + 1));
}

TEST_F(Emulated, NamesKernelLineBlockAndThread) {
  EXPECT_EQ(run("  out[i == 7 ? 64 : i] = 0.0f;"),
            "kernel k: out of bounds: write of 4 bytes at offset 256 of 256 (global memory) at "
            "k.cu:6, block 0, thread 7");
}

struct Fault {
  const char *body, *message;
};
class EmulatedFault : public Emulated, public testing::WithParamInterface<Fault> {};

TEST_P(EmulatedFault, IsFoundInEveryOrder) {
  for (uint64_t seed = 0; seed < 3; ++seed) {
    reopen(true, seed);
    std::string error = run(GetParam().body);
    EXPECT_NE(error.find(GetParam().message), std::string::npos) << "got: " << error;
  }
  // The next launch is unaffected.
  EXPECT_EQ(run("  out[i] = in[i];"), "");
}

INSTANTIATE_TEST_SUITE_P(
    All, EmulatedFault,
    testing::Values(
        Fault{"  out[i] = in[i + 1];", "out of bounds: read of 4 bytes"},
        Fault{"  out[i / 2] = in[i];", "race on global memory"},
        Fault{"  out[i] = in[i];\n  if (i == 0) out[1] = in[63];", "race on global memory"},
        Fault{"  out[i] = out[i] + in[i];", "uninitialised global memory read"},
        Fault{"  __shared__ float s[64];\n  s[i] = in[i];\n  out[i] = s[63 - i];", "shared memory"},
        Fault{"  __shared__ float s[64];\n  s[i] = in[i];\n  __syncwarp();\n  out[i] = s[63 - i];",
              "race on shared memory"},
        Fault{"  __shared__ float s[64];\n  if (i) s[i] = in[i];\n  __syncthreads();\n"
              "  out[i] = s[63 - i];",
              "uninitialised shared memory read"},
        Fault{
            "  __shared__ float s[64];\n  s[i] = in[i];\n  __syncthreads();\n  out[i] = s[i + n];",
            "out of"},
        Fault{"  if (i < 32) return;\n  __syncthreads();\n  out[i] = in[i];", "barrier divergence"},
        Fault{"  if (i < 32) __syncthreads(); else\n  __syncthreads();\n  out[i] = in[i];",
              "barrier divergence"},
        Fault{"  if (i % 2) out[i] = quern::warpReduce<quern::Add>(in[i]);", "barrier divergence"},
        Fault{"  using two = quern::vec<float, 2>;\n"
              "  *reinterpret_cast<two *>(out + i) = *reinterpret_cast<const two *>(in + i);",
              "misaligned"},
        Fault{"  const int big = 1 << (20 + i / 32 * 10);\n  out[i] = in[i] + big * 8;",
              "signed overflow"},
        Fault{"  out[i] = in[i / static_cast<int>(n - 64)];", "division by zero"}));

TEST_F(Emulated, SyncWarpOrdersAWarp) {
  EXPECT_EQ(
      run("  __shared__ float s[64];\n  s[i] = in[i];\n  __syncwarp();\n  out[i] = s[i ^ 31];"),
      "");
}

TEST_F(Emulated, RacesBetweenBlocks) {
  void *module = load("#include \"quern.cuh\"\nextern \"C\" __global__ void __launch_bounds__(32)\n"
                      "    k(float *out) { out[blockIdx.x / 2 * 32 + threadIdx.x] = 1.0f; }\n");
  float *out = allocate<float>(64);
  EXPECT_EQ(launch(module, "k", 2, 32, {out}, {}), QUERN_ERROR);
  EXPECT_NE(std::string(device.error(device.self)).find("after a write by another block"),
            std::string::npos);
}

TEST_F(Emulated, ElementsOfOneByteAreApart) {
  void *module = load("#include \"quern.cuh\"\nextern \"C\" __global__ void __launch_bounds__(32)\n"
                      "    k(signed char *out) { out[threadIdx.x] = threadIdx.x; }\n");
  signed char *out = allocate<signed char>(32);
  EXPECT_EQ(launch(module, "k", 1, 32, {out}, {}), QUERN_OK) << device.error(device.self);
  EXPECT_EQ(download(out, 32)[31], 31);
}

TEST_F(Emulated, ReportsWhatNoKernelWrote) {
  EXPECT_EQ(run("  if (i != 5) out[i] = in[i];"), "");
  float values[64];
  EXPECT_EQ(device.download(device.self, values, out, sizeof values), QUERN_ERROR);
  EXPECT_STREQ(device.error(device.self),
               "download of 256 bytes, of which no kernel wrote offset 20");
}

TEST_F(Emulated, ABadTextSpoilsNoOther) {
  std::string head = "#include \"quern.cuh\"\nextern \"C\" __global__ void __launch_bounds__(32)\n";
  void *good = load(head + "    k(float *out) { out[threadIdx.x] = 2.0f; }\n");
  void *bad = load(head + "    k(float *out) { out[threadIdx.x] = nonsense; }\n");
  EXPECT_EQ(plugin().compile(&device), QUERN_OK);
  float *out = allocate<float>(32);
  EXPECT_EQ(launch(good, "k", 1, 32, {out}, {}), QUERN_OK) << device.error(device.self);
  EXPECT_EQ(launch(bad, "k", 1, 32, {out}, {}), QUERN_INTERNAL);
  EXPECT_NE(std::string(device.error(device.self)).find("nonsense"), std::string::npos);
}

TEST_F(Emulated, RefusesWrongUse) {
  quern_image image = {"sm_90", "", 0};
  void *module = nullptr;
  EXPECT_EQ(device.load(device.self, &image, &module), QUERN_UNSUPPORTED);
  EXPECT_STREQ(device.error(device.self),
               "the emulated device runs images for 'cuda-emulated', got 'sm_90'");
  module = load("#include \"quern.cuh\"\nextern \"C\" __global__ void k(float *out) {}\n");
  EXPECT_EQ(launch(module, "k", 1, 32, {}, {}), QUERN_INTERNAL);
  EXPECT_EQ(launch(module, "other", 1, 32, {nullptr}, {}), QUERN_INTERNAL);
  EXPECT_EQ(launch(module, "k", 0, 32, {nullptr}, {}), QUERN_ERROR);
  EXPECT_EQ(launch(module, "k", 1, 33, {nullptr}, {}), QUERN_ERROR);
}

} // namespace
