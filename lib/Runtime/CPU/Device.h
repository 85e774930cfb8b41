//===- Device.h - Launches on a device --------------------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_LIB_RUNTIME_CPU_DEVICE_H
#define QUERN_LIB_RUNTIME_CPU_DEVICE_H

#include "Check.h"

namespace quern::rt {

/// Writes the device's text after an operation failed.
inline quern_status deviceError(quern_context *ctx, const char *what, const char *name = nullptr) {
  ctx->error.clear() << ctx->device->name << ": " << what;
  if (name)
    (ctx->error << " ").quoted(name);
  const char *text = ctx->device->error(ctx->device->self);
  ctx->error << ": " << (text && *text ? text : "unknown error");
  return QUERN_ERROR;
}

inline void freeResident(quern_context *ctx, Resident *r) {
  const quern_device *d = ctx->device;
  for (int32_t i = 0; i < r->fn->num_constants; ++i)
    if (r->constants[i])
      d->free(d->self, r->constants[i]);
  for (int32_t i = 0; i < r->fn->num_images; ++i)
    if (r->modules[i])
      d->unload(d->self, r->modules[i]);
  free(r);
}

inline void leaveDevice(quern_context *ctx) {
  const quern_device *d = ctx->device;
  if (!d)
    return;
  while (Resident *r = ctx->residents) {
    ctx->residents = r->next;
    freeResident(ctx, r);
  }
  if (ctx->deviceArena)
    d->free(d->self, ctx->deviceArena);
  ctx->deviceArena = nullptr;
  ctx->deviceArenaSize = 0;
  ctx->device = nullptr;
}

/// What the device holds for `fn`; uploads the constants at the first call.
inline quern_status findResident(quern_context *ctx, const quern_function *fn, Resident *&found) {
  for (found = ctx->residents; found; found = found->next)
    if (found->fn == fn)
      return QUERN_OK;
  size_t pointers = size_t(fn->num_constants) + size_t(fn->num_images);
  Resident *r = static_cast<Resident *>(calloc(1, sizeof(Resident) + pointers * sizeof(void *)));
  if (!r)
    return noMemory(ctx, "a function on a device", int64_t(pointers * sizeof(void *)));
  r->fn = fn;
  r->constants = reinterpret_cast<void **>(r + 1);
  r->modules = r->constants + fn->num_constants;
  const quern_device *d = ctx->device;
  for (int32_t i = 0; i < fn->num_constants; ++i) {
    const quern_constant &c = fn->constants[i];
    if (!c.size)
      continue;
    if (d->alloc(d->self, c.size, &r->constants[i]) ||
        d->upload(d->self, r->constants[i], c.data, c.size)) {
      quern_status status = deviceError(ctx, "cannot upload a constant of", fn->name);
      freeResident(ctx, r);
      return status;
    }
  }
  r->next = ctx->residents;
  ctx->residents = found = r;
  return QUERN_OK;
}

/// The module of a kernel: the first of its images that this device can load.
inline quern_status findModule(quern_context *ctx, const quern_kernel *kernel, void *&module) {
  const quern_device *d = ctx->device;
  Resident *r = ctx->running;
  int32_t end = kernel->image + (kernel->image_count > 0 ? kernel->image_count : 1);
  if (!r || kernel->image < 0 || end > r->fn->num_images) {
    (ctx->error.clear() << "invalid: kernel ").quoted(kernel->name) << " has no code for a device";
    return QUERN_INVALID;
  }
  for (int32_t i = kernel->image; i < end; ++i)
    if ((module = r->modules[i]))
      return QUERN_OK;
  for (int32_t i = kernel->image; i < end; ++i) {
    int32_t status = d->load(d->self, &r->fn->images[i], &r->modules[i]);
    if (status == QUERN_OK) {
      module = r->modules[i];
      return QUERN_OK;
    }
    r->modules[i] = nullptr;
    if (status != QUERN_UNSUPPORTED)
      return deviceError(ctx, "cannot load the code of kernel", kernel->name);
  }
  (ctx->error.clear() << "unsupported: " << d->name << ": no code for this chip in kernel ")
      .quoted(kernel->name);
  return QUERN_UNSUPPORTED;
}

inline quern_status launchOnDevice(quern_context *ctx, const quern_kernel *kernel,
                                   void *const *bufs, const int64_t *dims) {
  void *module = nullptr;
  if (quern_status status = findModule(ctx, kernel, module))
    return status;
  int64_t blocks = kernel->range ? kernel->range(dims) : 1;
  if (blocks <= 0)
    return QUERN_OK;
  const quern_device *d = ctx->device;
  if (d->launch(d->self, module, kernel, blocks, bufs, dims))
    return deviceError(ctx, "cannot launch kernel", kernel->name);
  return QUERN_OK;
}

/// Runs `fn` with its tensors on the device. `bufs` holds host addresses of inputs
/// and outputs and has room for the constants.
inline quern_status runOnDevice(quern_context *ctx, const quern_function *fn,
                                const DLTensor *const *inputs, DLTensor *const *outputs,
                                const int64_t *dims, void **bufs, uint64_t arenaBytes) {
  const quern_device *d = ctx->device;
  Resident *resident = nullptr;
  if (quern_status status = findResident(ctx, fn, resident))
    return status;
  if (arenaBytes > ctx->deviceArenaSize) {
    if (ctx->deviceArena)
      d->free(d->self, ctx->deviceArena);
    ctx->deviceArenaSize = 0;
    ctx->deviceArena = nullptr;
    if (d->alloc(d->self, arenaBytes, &ctx->deviceArena))
      return deviceError(ctx, "cannot allocate the arena of", fn->name);
    ctx->deviceArenaSize = arenaBytes;
  }
  // A tensor is copied unless it is in the device's own memory.
  auto copied = [&](const DLTensor *t) { return Checker::onHost(t) && Checker::bytes(t) > 0; };
  auto alias = [&](int32_t o) { return fn->output_alias ? fn->output_alias[o] : -1; };
  quern_status status = QUERN_OK;
  int32_t first = fn->num_inputs, all = first + fn->num_outputs, owned = 0;
  for (; owned < all && !status; ++owned) {
    bool isInput = owned < first;
    const DLTensor *t = isInput ? inputs[owned] : outputs[owned - first];
    if (!isInput && alias(owned - first) >= 0) {
      bufs[owned] = bufs[alias(owned - first)];
    } else if (copied(t)) {
      bufs[owned] = nullptr;
      if (d->alloc(d->self, Checker::bytes(t), &bufs[owned]) ||
          (isInput && d->upload(d->self, bufs[owned], Checker::address(t), Checker::bytes(t))))
        status = deviceError(ctx, "cannot place a tensor of", fn->name);
    }
  }
  if (!status) {
    for (int32_t i = 0; i < fn->num_constants; ++i)
      bufs[all + i] = resident->constants[i];
    ctx->running = resident;
    // All code before the first launch: a device that compiles it does so in one go. What
    // cannot be loaded is reported by its launch.
    void *module = nullptr;
    for (int32_t i = 0; i < fn->num_kernels && !resident->loaded; ++i)
      if (!fn->kernels[i].cpu)
        findModule(ctx, &fn->kernels[i], module);
    resident->loaded = true;
    ctx->error.clear();
    status = quern_status(fn->run(ctx, bufs, dims, ctx->deviceArena));
    ctx->running = nullptr;
  }
  // A fault of a launch is seen here; also, nothing may be freed before it has ended.
  if (d->synchronize(d->self) && !status)
    status = deviceError(ctx, "error while running", fn->name);
  for (int32_t o = 0; o < fn->num_outputs && !status; ++o)
    if (copied(outputs[o]) && d->download(d->self, Checker::address(outputs[o]), bufs[first + o],
                                          Checker::bytes(outputs[o])))
      status = deviceError(ctx, "cannot download an output of", fn->name);
  for (int32_t i = 0; i < owned; ++i) {
    bool isInput = i < first;
    if (copied(isInput ? inputs[i] : outputs[i - first]) && bufs[i] &&
        (isInput || alias(i - first) < 0))
      d->free(d->self, bufs[i]);
  }
  return status;
}

} // namespace quern::rt

#endif // QUERN_LIB_RUNTIME_CPU_DEVICE_H
