//===- CallTest.cpp - Calls and their checks ------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "FakeFunction.h"

#include "gtest/gtest.h"
#include <cstring>

using namespace fake;

// Memory that is not there is an answer, not a fault, under the sanitizers too (for asan:
// cmake/Sanitizers.cpp).
extern "C" const char *__tsan_default_options() { return "allocator_may_return_null=1"; }

namespace {

class Call : public testing::Test {
protected:
  quern_context *ctx = quern_context_create(1);
  quern_function fn = function();
  std::vector<float> in = std::vector<float>(64, 1.0f), out = std::vector<float>(64, -7.0f);
  ~Call() override { quern_context_destroy(ctx); }

  quern_status call(const Tensor &x, const Tensor &y) {
    const DLTensor *inputs[] = {&x.dl};
    DLTensor yCopy = y.dl, *outputs[] = {&yCopy};
    return quern_call(ctx, &fn, inputs, outputs);
  }
  // The call is refused with this text, and wrote nothing.
  void refused(const char *text, const Tensor &x, const Tensor &y) {
    std::vector<float> before = out;
    EXPECT_EQ(call(x, y), QUERN_INVALID);
    EXPECT_STREQ(quern_context_error(ctx), text);
    EXPECT_EQ(before, out);
  }
};

TEST_F(Call, CodeForAnotherCpu) {
  fn.cpu_features = uint64_t(1) << 34; // xop: of AMD's CPUs until 2017
  Tensor x(in, {2, 4}), y(out, {2, 4});
  EXPECT_EQ(call(x, y), QUERN_UNSUPPORTED);
  EXPECT_STREQ(quern_context_error(ctx),
               "unsupported: 'f' was compiled for another CPU; this one lacks xop");
  EXPECT_EQ(out[0], -7.0f);
}

TEST_F(Call, Runs) {
  EXPECT_EQ(call({in, {3, 4}}, {out, {3, 4}}), QUERN_OK) << quern_context_error(ctx);
  EXPECT_EQ(std::vector<float>(out.begin(), out.begin() + 5), (std::vector<float>{3, 5, 7, 9, 3}));
  EXPECT_EQ(out[12], -7);
  EXPECT_STREQ(quern_context_error(ctx), "");
  EXPECT_EQ(quern_context_peak_bytes(ctx), 48);
}

TEST_F(Call, EmptyWithNullData) {
  EXPECT_EQ(call({nullptr, {0, 4}}, {nullptr, {0, 4}}), QUERN_OK) << quern_context_error(ctx);
}

TEST_F(Call, Query) {
  Tensor x(in, {5, 4});
  const DLTensor *inputs[] = {&x.dl};
  int64_t sizes[QUERN_MAX_RANK], arena = 0;
  EXPECT_EQ(quern_query(ctx, &fn, inputs, sizes, &arena), QUERN_OK);
  EXPECT_EQ(sizes[0], 5);
  EXPECT_EQ(sizes[1], 4);
  EXPECT_EQ(arena, 80);
}

TEST_F(Call, GuardText) {
  std::vector<float> big(404);
  refused("invalid: 'quern.add' op add_c9: expected B <= 100, got 101", {big, {101, 4}},
          {out, {1, 4}});
  // The next call is not affected.
  EXPECT_EQ(call({in, {1, 4}}, {out, {1, 4}}), QUERN_OK);
  EXPECT_STREQ(quern_context_error(ctx), "");
}

TEST_F(Call, Signature) {
  Tensor y(out, {3, 4});
  refused("invalid: input 0 'x' of 'f': expected dtype f32, got f64",
          {in.data(), {3, 4}, {kDLFloat, 64, 1}}, y);
  refused("invalid: input 0 'x' of 'f': expected dtype f32, got bf16",
          {in.data(), {3, 4}, {kDLBfloat, 16, 1}}, y);
  refused("invalid: input 0 'x' of 'f': expected dtype f32, got f32x4",
          {in.data(), {3, 4}, {kDLFloat, 32, 4}}, y);
  refused("invalid: input 0 'x' of 'f': expected rank 2, got 3", {in, {3, 4, 1}}, y);
  refused("invalid: input 0 'x' of 'f': expected dim 1 to be 4, got 5", {in, {3, 5}}, y);
  refused("invalid: input 0 'x' of 'f': expected dim 0 to be at least 0, got -3", {in, {-3, 4}}, y);
  refused("invalid: output 0 'y' of 'f': expected dims [2, 4], got [3, 4]", {in, {2, 4}}, y);
  refused("invalid: output 0 'y' of 'f': expected dtype f32, got bool", {in, {3, 4}},
          {out.data(), {3, 4}, {QUERN_DL_BOOL, 8, 1}});
  refused("invalid: input 0 'x' of 'f': expected data of 48 bytes, got null", {nullptr, {3, 4}}, y);
  refused("invalid: input 0 'x' of 'f': expected dim 0 to be at most 281474976710656, got "
          "4611686018427387904",
          {in, {int64_t(1) << 62, 4}}, y);
  refused("invalid: input 0 'x' of 'f': expected at most 281474976710656 bytes, got dims "
          "[35184372088832, 4]",
          {in, {int64_t(1) << 45, 4}}, y);
  const DLTensor *none[] = {nullptr};
  DLTensor *outputs[] = {&y.dl};
  EXPECT_EQ(quern_call(ctx, &fn, none, outputs), QUERN_INVALID);
  EXPECT_STREQ(quern_context_error(ctx),
               "invalid: input 0 'x' of 'f': expected a tensor, got null");
  EXPECT_EQ(quern_call(ctx, &fn, nullptr, outputs), QUERN_INVALID);
  EXPECT_STREQ(quern_context_error(ctx), "invalid: expected the inputs of 'f', got null");
  EXPECT_EQ(quern_call(ctx, nullptr, none, outputs), QUERN_INVALID);
  EXPECT_EQ(quern_call(nullptr, &fn, none, outputs), QUERN_INVALID);
  fn.abi_version = 77;
  refused("invalid: expected a function of ABI version 1, got 77", {in, {3, 4}}, y);
}

TEST_F(Call, Layout) {
  Tensor x(in, {3, 4}), y(out, {3, 4});
  int64_t strides[] = {4, 1};
  x.dl.strides = strides;
  EXPECT_EQ(call(x, y), QUERN_OK);
  strides[0] = 8;
  refused("invalid: input 0 'x' of 'f': expected contiguous strides [4, 1], got [8, 1]", x, y);
  // The stride of a dim of size 1 says nothing.
  Tensor one(in, {1, 4}), oneOut(out, {1, 4});
  one.dl.strides = strides;
  EXPECT_EQ(call(one, oneOut), QUERN_OK);
  x.dl.strides = nullptr;
  x.dl.byte_offset = 2;
  refused("invalid: input 0 'x' of 'f': expected an address that is a multiple of 4, got "
          "remainder 2",
          x, y);
  in[4] = 100;
  x.dl.byte_offset = 16;
  EXPECT_EQ(call(x, y), QUERN_OK);
  EXPECT_EQ(out[0], 102);
  x.dl.device.device_type = kDLCUDA;
  refused("invalid: input 0 'x' of 'f': expected a tensor in host memory, got DLPack device type 2",
          x, y);
}

TEST_F(Call, Overlap) {
  Tensor x(in, {3, 4}), y(in.data() + 8, {3, 4}), apart(in.data() + 12, {3, 4});
  const char *text = "invalid: output 0 'y' of 'f': expected memory of its own, but it overlaps "
                     "input 0 'x' and the call writes there";
  refused(text, x, y);
  refused(text, x, x);
  EXPECT_EQ(call(x, apart), QUERN_OK);
  // A donated input is written too, and an output is not the input unless it says so.
  uint8_t donated[] = {1};
  fn.donated = donated;
  refused(text, x, x);
  int32_t alias[] = {0};
  fn.output_alias = alias;
  EXPECT_EQ(call(x, x), QUERN_OK) << quern_context_error(ctx);
  refused("invalid: output 0 'y' of 'f': expected the buffer of input 0 'x', which it overwrites",
          x, y);
}

TEST_F(Call, OverlapOfOutputs) {
  quern_tensor_info infos[] = {y, y};
  infos[1].name = "z";
  fn.num_outputs = fn.num_out_dims = 2;
  fn.outputs = infos;
  fn.prepare = [](quern_context *, const int64_t *dims, int64_t *outDims, int64_t *) {
    outDims[0] = outDims[1] = 2;
    return 0;
  };
  fn.run = [](quern_context *, void *const *, const int64_t *, void *) { return 0; };
  Tensor x(in, {1, 4}), a(out.data() + 4, {2, 4}), b(out, {2, 4});
  const DLTensor *inputs[] = {&x.dl};
  DLTensor *outputs[] = {&a.dl, &b.dl};
  EXPECT_EQ(quern_call(ctx, &fn, inputs, outputs), QUERN_INVALID);
  EXPECT_STREQ(quern_context_error(ctx),
               "invalid: output 1 'z' of 'f': expected memory of its own, but it overlaps output 0 "
               "'y' and the call writes there");
  b.dl.byte_offset = 48;
  EXPECT_EQ(quern_call(ctx, &fn, inputs, outputs), QUERN_OK) << quern_context_error(ctx);
}

TEST_F(Call, OverlapBehindANarrowerTensor) {
  // In order of address: a wide input, a narrow one in it (both only read), the output.
  quern_tensor_info infos[] = {x, x};
  fn.num_inputs = fn.num_dims = 2;
  fn.inputs = infos;
  fn.prepare = [](quern_context *, const int64_t *dims, int64_t *outDims, int64_t *) {
    outDims[0] = 1;
    return 0;
  };
  fn.run = [](quern_context *, void *const *, const int64_t *, void *) { return 0; };
  Tensor wide(in, {4, 4}), narrow(in.data() + 4, {1, 4}), y(in.data() + 12, {1, 4});
  const DLTensor *inputs[] = {&wide.dl, &narrow.dl};
  DLTensor *outputs[] = {&y.dl};
  EXPECT_EQ(quern_call(ctx, &fn, inputs, outputs), QUERN_INVALID);
  y.dl.byte_offset = 16;
  EXPECT_EQ(quern_call(ctx, &fn, inputs, outputs), QUERN_OK) << quern_context_error(ctx);
}

TEST_F(Call, DonatedInputsAreApart) {
  quern_tensor_info infos[] = {x, x};
  infos[1].name = "z";
  uint8_t donated[] = {0, 0};
  fn.num_inputs = 2;
  fn.num_dims = 2;
  fn.inputs = infos;
  fn.donated = donated;
  fn.run = [](quern_context *, void *const *, const int64_t *, void *) { return 0; };
  Tensor a(in, {2, 4}), b(in.data() + 4, {2, 4}), o(out, {2, 4});
  const DLTensor *inputs[] = {&a.dl, &b.dl};
  DLTensor *outputs[] = {&o.dl};
  EXPECT_EQ(quern_call(ctx, &fn, inputs, outputs), QUERN_OK); // both are only read
  donated[0] = 1;
  EXPECT_EQ(quern_call(ctx, &fn, inputs, outputs), QUERN_INVALID);
  EXPECT_STREQ(quern_context_error(ctx),
               "invalid: input 1 'z' of 'f': expected memory of its own, but it overlaps input 0 "
               "'x' and the call writes there");
}

TEST_F(Call, Bool) {
  quern_tensor_info info = x;
  info.dtype = {QUERN_DL_BOOL, 8, 1};
  fn.inputs = &info;
  fn.run = [](quern_context *, void *const *, const int64_t *, void *) { return 0; };
  Tensor y(out, {3, 4});
  EXPECT_EQ(call({in.data(), {3, 4}, {QUERN_DL_BOOL, 8, 1}}, y), QUERN_OK);
  EXPECT_EQ(call({in.data(), {3, 4}, {kDLUInt, 1, 1}}, y), QUERN_OK);
  refused("invalid: input 0 'x' of 'f': expected dtype bool, got u8",
          {in.data(), {3, 4}, {kDLUInt, 8, 1}}, y);
}

TEST_F(Call, LongNamesAreCut) {
  std::string name(10000, 'n');
  quern_tensor_info info = x;
  info.name = name.c_str();
  fn.inputs = &info;
  EXPECT_EQ(call({in, {3, 5}}, {out, {3, 4}}), QUERN_INVALID);
  std::string text = quern_context_error(ctx);
  EXPECT_NE(text.find("n...' of 'f': expected dim 1 to be 4, got 5"), std::string::npos) << text;
}

TEST_F(Call, ArenaThatDoesNotFit) {
  fn.prepare = [](quern_context *, const int64_t *dims, int64_t *outDims, int64_t *arena) {
    outDims[0] = dims[0];
    *arena = int64_t(1) << 60;
    return 0;
  };
  EXPECT_EQ(call({in, {3, 4}}, {out, {3, 4}}), QUERN_ERROR);
  EXPECT_STREQ(quern_context_error(ctx),
               "not enough memory for the arena: 1152921504606846976 bytes");
  fn = function();
  EXPECT_EQ(call({in, {3, 4}}, {out, {3, 4}}), QUERN_OK);
}

TEST_F(Call, PoisonShows) {
  fn.run = [](quern_context *, void *const *, const int64_t *, void *) { return 0; };
  quern_context_set_poison(ctx, 1);
  EXPECT_EQ(call({in, {3, 4}}, {out, {3, 4}}), QUERN_OK);
  EXPECT_NE(out[0], out[0]);
  EXPECT_NE(out[11], out[11]);
  EXPECT_EQ(out[12], -7);
}

TEST_F(Call, DeviceKernelOnTheCpu) {
  static quern_kernel device;
  device = kernel;
  device.cpu = nullptr;
  fn.run = [](quern_context *ctx, void *const *bufs, const int64_t *dims, void *) {
    return quern_rt_launch(ctx, &device, bufs, dims);
  };
  EXPECT_EQ(call({in, {3, 4}}, {out, {3, 4}}), QUERN_INVALID);
  EXPECT_STREQ(quern_context_error(ctx),
               "invalid: kernel 'add' has no code for the CPU: the context has no device");
}

} // namespace
