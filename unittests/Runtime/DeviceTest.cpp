//===- DeviceTest.cpp - The device path, on a fake device -----------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "FakeFunction.h"

#include "gtest/gtest.h"
#include <cstring>
#include <set>

using namespace fake;

namespace {

// Memory of its own, every block known; launches run the kernel of FakeFunction.h.
struct FakeDevice {
  std::set<void *> blocks, modules;
  int allocs = 0, uploads = 0, downloads = 0, loads = 0, launches = 0;
  int failAlloc = -1;
  bool wrongChip = false, fault = false;
  quern_device table = {};

  static FakeDevice &of(void *self) { return *static_cast<FakeDevice *>(self); }
  FakeDevice() {
    table.name = "fake";
    table.self = this;
    table.alloc = [](void *self, uint64_t bytes, void **p) {
      FakeDevice &d = of(self);
      if (d.allocs++ == d.failAlloc)
        return 1;
      d.blocks.insert(*p = malloc(bytes));
      return 0;
    };
    table.free = [](void *self, void *p) {
      EXPECT_EQ(of(self).blocks.erase(p), 1u);
      free(p);
      return 0;
    };
    table.upload = [](void *self, void *dst, const void *src, uint64_t bytes) {
      ++of(self).uploads;
      memcpy(dst, src, bytes);
      return 0;
    };
    table.download = [](void *self, void *dst, const void *src, uint64_t bytes) {
      ++of(self).downloads;
      memcpy(dst, src, bytes);
      return 0;
    };
    table.load = [](void *self, const quern_image *image, void **module) {
      FakeDevice &d = of(self);
      ++d.loads;
      if (d.wrongChip)
        return int32_t(QUERN_UNSUPPORTED);
      d.modules.insert(*module = malloc(1));
      return 0;
    };
    table.unload = [](void *self, void *module) {
      EXPECT_EQ(of(self).modules.erase(module), 1u);
      free(module);
      return 0;
    };
    table.launch = [](void *self, void *module, const quern_kernel *k, int64_t blocks,
                      void *const *bufs, const int64_t *dims) {
      FakeDevice &d = of(self);
      ++d.launches;
      EXPECT_EQ(d.modules.count(module), 1u);
      for (int i = 0; i < k->num_bufs; ++i)
        EXPECT_EQ(d.blocks.count(bufs[i]), 1u) << "buffer " << i;
      addRows(bufs, dims, 0, blocks);
      return 0;
    };
    table.synchronize = [](void *self) { return int32_t(of(self).fault); };
    table.error = [](void *) { return "out of order"; };
  }
};

class Device : public testing::Test {
protected:
  FakeDevice device;
  quern_context *ctx = quern_context_create(1);
  quern_function fn = function();
  std::vector<float> in = std::vector<float>(16, 1.0f), out = std::vector<float>(16, -7.0f);
  Device() { quern_context_set_device(ctx, &device.table); }
  ~Device() override {
    quern_context_destroy(ctx);
    EXPECT_TRUE(device.blocks.empty());
    EXPECT_TRUE(device.modules.empty());
  }
  quern_status call(Tensor x, Tensor y) {
    const DLTensor *inputs[] = {&x.dl};
    DLTensor *outputs[] = {&y.dl};
    return quern_call(ctx, &fn, inputs, outputs);
  }
};

TEST_F(Device, CopiesTensorsAndKeepsConstants) {
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(call({in, {3, 4}}, {out, {3, 4}}), QUERN_OK) << quern_context_error(ctx);
    EXPECT_EQ(out[11], 9);
    EXPECT_EQ(out[12], -7);
  }
  EXPECT_EQ(device.uploads, 3); // the constant once, the input twice
  EXPECT_EQ(device.downloads, 2);
  EXPECT_EQ(device.loads, 1);
  EXPECT_EQ(device.launches, 4);
  EXPECT_EQ(device.blocks.size(), 2u); // the constant and the arena stay
  quern_context_release(ctx, &fn);
  EXPECT_EQ(device.blocks.size(), 1u);
  EXPECT_TRUE(device.modules.empty());
}

TEST_F(Device, TensorsInDeviceMemoryAreUsedWhereTheyAre) {
  device.table.memory = kDLCUDA;
  void *x, *y;
  device.table.alloc(&device, 48, &x);
  device.table.alloc(&device, 48, &y);
  memcpy(x, in.data(), 48);
  Tensor xt(x, {3, 4}), yt(y, {3, 4});
  xt.dl.device.device_type = yt.dl.device.device_type = kDLCUDA;
  EXPECT_EQ(call(std::move(xt), std::move(yt)), QUERN_OK) << quern_context_error(ctx);
  EXPECT_EQ(static_cast<float *>(y)[11], 9);
  EXPECT_EQ(device.uploads, 1);
  EXPECT_EQ(device.downloads, 0);
  device.table.free(&device, x);
  device.table.free(&device, y);
}

TEST_F(Device, AliasedOutputSharesTheBuffer) {
  int32_t alias[] = {0};
  uint8_t donated[] = {1};
  fn.output_alias = alias;
  fn.donated = donated;
  EXPECT_EQ(call({in, {3, 4}}, {in, {3, 4}}), QUERN_OK) << quern_context_error(ctx);
  EXPECT_EQ(in[11], 9);
}

TEST_F(Device, EveryFailedAllocationIsAnErrorAndLeaksNothing) {
  for (int i = 0; i < 4; ++i) {
    device.failAlloc = device.allocs + i;
    EXPECT_EQ(call({in, {3, 4}}, {out, {3, 4}}), QUERN_ERROR) << i;
    EXPECT_NE(std::string(quern_context_error(ctx)).find("fake: cannot "), std::string::npos)
        << quern_context_error(ctx);
    EXPECT_NE(std::string(quern_context_error(ctx)).find("'f': out of order"), std::string::npos);
    quern_context_set_device(ctx, &device.table); // forget what was placed
    EXPECT_TRUE(device.blocks.empty());
  }
}

TEST_F(Device, WrongChip) {
  device.wrongChip = true;
  EXPECT_EQ(call({in, {3, 4}}, {out, {3, 4}}), QUERN_UNSUPPORTED);
  EXPECT_STREQ(quern_context_error(ctx),
               "unsupported: fake: no code for this chip in kernel 'add'");
  EXPECT_EQ(out[0], -7);
}

TEST_F(Device, FaultAtTheEnd) {
  device.fault = true;
  EXPECT_EQ(call({in, {3, 4}}, {out, {3, 4}}), QUERN_ERROR);
  EXPECT_STREQ(quern_context_error(ctx), "fake: error while running 'f': out of order");
}

} // namespace
