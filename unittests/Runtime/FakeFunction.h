//===- FakeFunction.h - Hand-written compiled functions ---------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What the compiler would generate for `y = x + w` over `x: <B, 4>` and a constant
/// `w: <4>`, with a guard `B <= 100`, and the tensors to call it with.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_UNITTESTS_RUNTIME_FAKEFUNCTION_H
#define QUERN_UNITTESTS_RUNTIME_FAKEFUNCTION_H

#include "quern-c/Runtime.h"

#include <vector>

namespace fake {

inline constexpr DLDataType f32{kDLFloat, 32, 1};

struct Tensor {
  DLTensor dl;
  std::vector<int64_t> dims;
  Tensor(void *data, std::vector<int64_t> sizes, DLDataType type = f32) : dims(std::move(sizes)) {
    dl = {data, {kDLCPU, 0}, int32_t(dims.size()), type, dims.data(), nullptr, 0};
  }
  Tensor(std::vector<float> &data, std::vector<int64_t> sizes) : Tensor(data.data(), sizes) {}
};

inline void addRows(void *const *bufs, const int64_t *dims, int64_t lo, int64_t hi) {
  auto *x = static_cast<const float *>(bufs[0]), *w = static_cast<const float *>(bufs[1]);
  auto *y = static_cast<float *>(bufs[2]);
  for (int64_t i = lo; i < hi; ++i)
    for (int j = 0; j < 4; ++j)
      y[i * 4 + j] = x[i * 4 + j] + w[j];
}
inline int64_t firstDim(const int64_t *dims) { return dims[0]; }
inline int64_t oneMicrosecond(const int64_t *) { return 1000; }

inline const quern_kernel kernel = {"add", addRows, firstDim, oneMicrosecond, 3, 1, 0, 0, 128, 0};

inline int32_t prepare(quern_context *ctx, const int64_t *dims, int64_t *outDims, int64_t *arena) {
  if (dims[0] > 100)
    return quern_rt_guard_failed(ctx, "'quern.add' op add_c9: expected B <= {1}, got {0}",
                                 std::vector<int64_t>{dims[0], 100}.data(), 2);
  outDims[0] = dims[0];
  *arena = dims[0] * 16;
  return 0;
}
inline int32_t run(quern_context *ctx, void *const *bufs, const int64_t *dims, void *arena) {
  // In two steps, through the arena: (x + w), then + w again.
  void *first[] = {bufs[0], bufs[2], arena};
  if (int32_t status = quern_rt_launch(ctx, &kernel, first, dims))
    return status;
  void *second[] = {arena, bufs[2], bufs[1]};
  return quern_rt_launch(ctx, &kernel, second, dims);
}

inline const int64_t dims[] = {-1, 4};
inline const char *const names[] = {"B", ""};
inline const quern_tensor_info x = {"x", f32, 2, dims, names};
inline const quern_tensor_info y = {"y", f32, 2, dims, names};
inline const float weights[] = {1, 2, 3, 4};
inline const quern_constant constant = {weights, sizeof(weights)};
inline const quern_image image = {"fake", "code", 4};

inline quern_function function() {
  quern_function f = {};
  f.abi_version = QUERN_ABI_VERSION;
  f.name = "f";
  f.num_inputs = f.num_outputs = f.num_constants = f.num_kernels = f.num_images = 1;
  f.inputs = &x;
  f.outputs = &y;
  f.constants = &constant;
  f.kernels = &kernel;
  f.images = &image;
  f.num_dims = f.num_out_dims = 1;
  f.prepare = prepare;
  f.run = run;
  return f;
}

} // namespace fake

#endif // QUERN_UNITTESTS_RUNTIME_FAKEFUNCTION_H
