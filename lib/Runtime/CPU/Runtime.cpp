//===- Runtime.cpp - The runtime behind quern-c/Runtime.h -----------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// One translation unit: it is linked into the tools, and its object is carried
/// by quern-compile to be linked into artefacts. It needs libc only.
///
//===----------------------------------------------------------------------===//

#include "Builtins.h"
#include "CpuFeatures.h"
#include "Device.h"

#include <unistd.h>

using namespace quern::rt;

// A region is worth threads from here on; a chunk should not be smaller than this.
static constexpr int64_t kParallelNs = 5000, kChunkNs = 2500;

static int32_t countCores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0)
    return CPU_COUNT(&set);
  long n = sysconf(_SC_NPROCESSORS_ONLN);
  return n > 0 ? int32_t(n) : 1;
}

//===----------------------------------------------------------------------===//
// Context
//===----------------------------------------------------------------------===//

quern_context *quern_context_create(int32_t threads) {
  void *memory = nullptr;
  if (posix_memalign(&memory, alignof(quern_context), sizeof(quern_context)))
    return nullptr;
  quern_context *ctx = static_cast<quern_context *>(memory);
  const quern_context fresh = {};
  memcpy(memory, &fresh, sizeof(fresh));
  if (threads <= 0)
    threads = countCores();
  ctx->cpuFeatures = detectCpuFeatures();
  ctx->pool.init(threads < 256 ? threads : 256);
  return ctx;
}

void quern_context_destroy(quern_context *ctx) {
  if (!ctx)
    return;
  leaveDevice(ctx);
  ctx->pool.destroy();
  ctx->arena.release();
  ctx->scratch.release();
  free(ctx);
}

const char *quern_context_error(const quern_context *ctx) {
  return ctx ? ctx->error.get() : "invalid: expected a context, got null";
}

int64_t quern_context_peak_bytes(const quern_context *ctx) { return ctx->peak; }

void quern_context_set_profiler(quern_context *ctx, quern_profile_fn fn, void *self) {
  ctx->profile = fn;
  ctx->profileSelf = self;
}

void quern_context_set_poison(quern_context *ctx, int32_t on) { ctx->poison = on; }

quern_status quern_context_set_device(quern_context *ctx, const quern_device *device) {
  leaveDevice(ctx);
  ctx->device = device;
  return QUERN_OK;
}

void quern_context_release(quern_context *ctx, const quern_function *fn) {
  for (Resident **at = &ctx->residents; *at; at = &(*at)->next)
    if ((*at)->fn == fn) {
      Resident *r = *at;
      *at = r->next;
      return freeResident(ctx, r);
    }
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

namespace {

/// The sizes of one call, in the context's scratch block.
struct Sizes {
  int64_t *dims;    ///< free input dims
  int64_t *outDims; ///< free output dims
  void **bufs;      ///< inputs, outputs, constants
  void *spans;
  int64_t arenaBytes;
};

} // namespace

static quern_status lacksFeatures(quern_context *ctx, const quern_function *fn, uint64_t lacking) {
  ((ctx->error.clear() << "unsupported: ").quoted(fn->name))
      << " was compiled for another CPU; this one lacks";
#define QUERN_CPU_FEATURE(number, name, leaf, subleaf, reg, bit, state)                            \
  if (lacking >> (number) & 1)                                                                     \
    ctx->error << " " name;
#include "quern-c/CpuFeatures.def"
  return QUERN_UNSUPPORTED;
}

// Checks the inputs and asks `prepare`. Writes no tensor.
static quern_status prepare(quern_context *ctx, const quern_function *fn,
                            const DLTensor *const *inputs, Sizes &sizes) {
  ctx->error.clear();
  if (!fn)
    return invalid(ctx) << "expected a function, got null", QUERN_INVALID;
  if (fn->abi_version != QUERN_ABI_VERSION)
    return (invalid(ctx) << "expected a function of ABI version " << int64_t(QUERN_ABI_VERSION)
                         << ", got ")
               << int64_t(fn->abi_version),
           QUERN_INVALID;
  if (uint64_t lacking = fn->cpu_features & ~ctx->cpuFeatures)
    return lacksFeatures(ctx, fn, lacking);
  if (fn->num_inputs > 0 && !inputs)
    return (invalid(ctx) << "expected the inputs of ").quoted(fn->name) << ", got null",
           QUERN_INVALID;
  uint64_t words = uint64_t(fn->num_dims) + uint64_t(fn->num_out_dims);
  uint64_t bufs =
      uint64_t(fn->num_inputs) + uint64_t(fn->num_outputs) + uint64_t(fn->num_constants);
  uint64_t bytes = words * sizeof(int64_t) + bufs * sizeof(void *) + Checker::spanBytes(fn);
  if (!ctx->scratch.reserve(bytes))
    return noMemory(ctx, "the sizes of a call", int64_t(bytes));
  sizes.dims = static_cast<int64_t *>(ctx->scratch.data);
  sizes.outDims = sizes.dims + fn->num_dims;
  sizes.bufs = reinterpret_cast<void **>(sizes.outDims + fn->num_out_dims);
  sizes.spans = sizes.bufs + bufs;

  Checker check(ctx, fn);
  int64_t *free = sizes.dims;
  for (int32_t i = 0; i < fn->num_inputs; ++i)
    if (!check.input(i, inputs[i], free))
      return QUERN_INVALID;
  sizes.arenaBytes = 0;
  if (int32_t status = fn->prepare(ctx, sizes.dims, sizes.outDims, &sizes.arenaBytes)) {
    if (ctx->error.empty())
      (ctx->error << "cannot prepare ").quoted(fn->name);
    return quern_status(status);
  }
  if (sizes.arenaBytes < 0)
    return noMemory(ctx, "the arena", sizes.arenaBytes);
  return QUERN_OK;
}

// The dims of output `info`, taking free ones from `free`.
static void outputDims(const quern_tensor_info &info, const int64_t *&free, int64_t *dims) {
  for (int32_t d = 0; d < info.rank; ++d)
    dims[d] = info.dims[d] >= 0 ? info.dims[d] : *free++;
}

quern_status quern_query(quern_context *ctx, const quern_function *fn,
                         const DLTensor *const *inputs, int64_t *out_dims, int64_t *arena_bytes) {
  if (!ctx)
    return QUERN_INVALID;
  Sizes sizes;
  if (quern_status status = prepare(ctx, fn, inputs, sizes))
    return status;
  const int64_t *free = sizes.outDims;
  if (out_dims)
    for (int32_t o = 0; o < fn->num_outputs; ++o)
      outputDims(fn->outputs[o], free, out_dims + o * QUERN_MAX_RANK);
  if (arena_bytes)
    *arena_bytes = sizes.arenaBytes;
  return QUERN_OK;
}

quern_status quern_call(quern_context *ctx, const quern_function *fn, const DLTensor *const *inputs,
                        DLTensor *const *outputs) {
  if (!ctx)
    return QUERN_INVALID;
  Sizes sizes;
  if (quern_status status = prepare(ctx, fn, inputs, sizes))
    return status;
  if (fn->num_outputs > 0 && !outputs)
    return (invalid(ctx) << "expected the outputs of ").quoted(fn->name) << ", got null",
           QUERN_INVALID;
  Checker check(ctx, fn);
  const int64_t *free = sizes.outDims;
  for (int32_t o = 0; o < fn->num_outputs; ++o) {
    int64_t dims[QUERN_MAX_RANK];
    outputDims(fn->outputs[o], free, dims);
    if (!check.output(o, outputs[o], dims))
      return QUERN_INVALID;
  }
  if (!check.overlap(inputs, outputs, sizes.spans))
    return QUERN_INVALID;

  void **bufs = sizes.bufs;
  for (int32_t i = 0; i < fn->num_inputs; ++i)
    *bufs++ = Checker::address(inputs[i]);
  for (int32_t o = 0; o < fn->num_outputs; ++o)
    *bufs++ = Checker::address(outputs[o]);
  for (int32_t i = 0; i < fn->num_constants; ++i)
    *bufs++ = const_cast<void *>(fn->constants[i].data);
  if (ctx->peak < sizes.arenaBytes)
    ctx->peak = sizes.arenaBytes;
  quern_status status;
  if (ctx->device) {
    status =
        runOnDevice(ctx, fn, inputs, outputs, sizes.dims, sizes.bufs, uint64_t(sizes.arenaBytes));
  } else {
    if (!ctx->arena.reserve(uint64_t(sizes.arenaBytes)))
      return noMemory(ctx, "the arena", sizes.arenaBytes);
    if (ctx->poison) {
      if (ctx->arena.data)
        memset(ctx->arena.data, 0xff, ctx->arena.size);
      for (int32_t o = 0; o < fn->num_outputs; ++o)
        if ((!fn->output_alias || fn->output_alias[o] < 0) && Checker::bytes(outputs[o]))
          memset(Checker::address(outputs[o]), 0xff, Checker::bytes(outputs[o]));
    }
    status = quern_status(fn->run(ctx, sizes.bufs, sizes.dims, ctx->arena.data));
  }
  if (status && ctx->error.empty())
    (ctx->error << "error while running ").quoted(fn->name);
  return status;
}

//===----------------------------------------------------------------------===//
// Called by compiled code
//===----------------------------------------------------------------------===//

// Runs the kernel here, or on as many threads as its work is worth.
static void launch(quern_context *ctx, const quern_kernel *kernel, void *const *bufs,
                   const int64_t *dims) {
  int64_t range = kernel->range ? kernel->range(dims) : 1;
  if (range <= 0)
    return;
  int64_t unit = kernel->unit_cost ? kernel->unit_cost(dims) : kParallelNs;
  if (unit < 1)
    unit = 1;
  int64_t total;
  if (__builtin_mul_overflow(range, unit, &total))
    total = INT64_MAX;
  if (range == 1 || total < kParallelNs)
    return kernel->cpu(bufs, dims, 0, range);
  int64_t threads = ctx->pool.size();
  if (threads > total / kChunkNs)
    threads = total / kChunkNs;
  if (threads > range)
    threads = range;
  if (threads <= 1)
    return kernel->cpu(bufs, dims, 0, range);
  // Four chunks for each thread even out units that take longer and cores that are busy.
  int64_t chunk = (range + threads * 4 - 1) / (threads * 4);
  int64_t least = (kChunkNs + unit - 1) / unit;
  if (chunk < least)
    chunk = least;
  ctx->pool.run(kernel, bufs, dims, range, chunk, int32_t(threads));
}

int32_t quern_rt_launch(quern_context *ctx, const quern_kernel *kernel, void *const *bufs,
                        const int64_t *dims) {
  int64_t begin = ctx->profile ? now() : 0;
  int32_t status = QUERN_OK;
  if (ctx->device) {
    status = launchOnDevice(ctx, kernel, bufs, dims);
  } else if (kernel->cpu) {
    launch(ctx, kernel, bufs, dims);
  } else {
    (ctx->error.clear() << "invalid: kernel ").quoted(kernel->name)
        << " has no code for the CPU: the context has no device";
    status = QUERN_INVALID;
  }
  if (ctx->profile)
    ctx->profile(ctx->profileSelf, kernel, dims, begin, now());
  return status;
}

int32_t quern_rt_guard_failed(quern_context *ctx, const char *text, const int64_t *values,
                              int32_t num_values) {
  invalid(ctx);
  for (const char *at = text; *at;) {
    int32_t index = at[0] == '{' && at[1] >= '0' && at[1] <= '9' ? at[1] - '0' : -1;
    int digits = 1;
    if (index >= 0 && at[2] >= '0' && at[2] <= '9') {
      index = index * 10 + (at[2] - '0');
      digits = 2;
    }
    if (index >= 0 && index < num_values && at[1 + digits] == '}') {
      ctx->error << values[index];
      at += digits + 2;
    } else {
      ctx->error.add(at++, 1);
    }
  }
  return QUERN_INVALID;
}
