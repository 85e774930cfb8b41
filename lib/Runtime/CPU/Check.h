//===- Check.h - Tensors against a signature --------------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_LIB_RUNTIME_CPU_CHECK_H
#define QUERN_LIB_RUNTIME_CPU_CHECK_H

#include "Context.h"

namespace quern::rt {

/// Checks one call's tensors. Every function answers false after it has written the
/// error text.
class Checker {
public:
  Checker(quern_context *ctx, const quern_function *fn) : ctx(ctx), fn(fn) {}

  /// Dtype, rank, static dims, layout, memory; appends the free dims to `free`.
  bool input(int32_t i, const DLTensor *t, int64_t *&free) {
    const quern_tensor_info &info = fn->inputs[i];
    if (!tensor("input", i, info, t))
      return false;
    for (int32_t d = 0; d < info.rank; ++d) {
      if (t->shape[d] < 0)
        return (at("input", i, info) << "expected dim " << int64_t(d) << " to be at least 0, got ")
                   << t->shape[d],
               false;
      if (t->shape[d] > QUERN_MAX_BYTES)
        return (((at("input", i, info) << "expected dim " << int64_t(d) << " to be at most ")
                 << QUERN_MAX_BYTES)
                << ", got ")
                   << t->shape[d],
               false;
      if (info.dims[d] >= 0 && t->shape[d] != info.dims[d])
        return ((at("input", i, info) << "expected dim " << int64_t(d) << " to be ")
                << info.dims[d] << ", got ")
                   << t->shape[d],
               false;
      if (info.dims[d] < 0)
        *free++ = t->shape[d];
    }
    return layout("input", i, info, t);
  }

  /// The same for an output whose dims have been inferred.
  bool output(int32_t i, const DLTensor *t, const int64_t *dims) {
    const quern_tensor_info &info = fn->outputs[i];
    if (!tensor("output", i, info, t))
      return false;
    for (int32_t d = 0; d < info.rank; ++d)
      if (t->shape[d] != dims[d]) {
        at("output", i, info) << "expected dims ";
        (ctx->error.list(dims, info.rank) << ", got ").list(t->shape, info.rank);
        return false;
      }
    return layout("output", i, info, t);
  }

  /// Memory that is written belongs to one tensor only. `scratch` has room for
  /// `spanBytes(fn)`.
  bool overlap(const DLTensor *const *inputs, DLTensor *const *outputs, void *scratch) {
    Span *spans = static_cast<Span *>(scratch);
    int32_t count = 0;
    for (int32_t i = 0; i < fn->num_inputs; ++i)
      addSpan(spans, count, inputs[i], i, fn->donated && fn->donated[i]);
    for (int32_t o = 0; o < fn->num_outputs; ++o) {
      int32_t alias = fn->output_alias ? fn->output_alias[o] : -1;
      if (alias < 0) {
        addSpan(spans, count, outputs[o], fn->num_inputs + o, true);
      } else if (address(outputs[o]) != address(inputs[alias])) {
        at("output", o, fn->outputs[o]) << "expected the buffer of ";
        name("input", alias, fn->inputs[alias]) << ", which it overwrites";
        return false;
      }
    }
    qsort(spans, size_t(count), sizeof(Span), [](const void *a, const void *b) {
      uintptr_t x = static_cast<const Span *>(a)->begin, y = static_cast<const Span *>(b)->begin;
      return x < y ? -1 : int(x > y);
    });
    // Of the spans before, those that reach furthest: among all, and among the written ones.
    const Span *any = nullptr, *written = nullptr;
    for (const Span *s = spans; s != spans + count; ++s) {
      const Span *before = s->written ? any : written;
      if (before && s->begin < before->end)
        return overlapError(*before, *s);
      if (!any || s->end > any->end)
        any = s;
      if (s->written && (!written || s->end > written->end))
        written = s;
    }
    return true;
  }
  static uint64_t spanBytes(const quern_function *fn) {
    return sizeof(Span) * uint64_t(fn->num_inputs + fn->num_outputs);
  }

  static char *address(const DLTensor *t) { return static_cast<char *>(t->data) + t->byte_offset; }
  static uint64_t bytes(const DLTensor *t) {
    uint64_t n = elementBytes(t->dtype);
    for (int32_t d = 0; d < t->ndim; ++d)
      n *= uint64_t(t->shape[d]);
    return n;
  }
  /// In memory that the host reads.
  static bool onHost(const DLTensor *t) {
    return t->device.device_type == kDLCPU || t->device.device_type == kDLCUDAHost;
  }

private:
  struct Span {
    uintptr_t begin, end;
    int32_t which; // an input, or num_inputs + an output
    bool written;
  };

  static uint64_t elementBytes(DLDataType type) { return Text::isBool(type) ? 1 : type.bits / 8; }

  Text &name(const char *role, int32_t i, const quern_tensor_info &info) {
    return (ctx->error << role << " " << int64_t(i) << " ").quoted(info.name);
  }
  // "invalid: input 0 'x' of 'f': "
  Text &at(const char *role, int32_t i, const quern_tensor_info &info) {
    invalid(ctx);
    return (name(role, i, info) << " of ").quoted(fn->name) << ": ";
  }

  bool tensor(const char *role, int32_t i, const quern_tensor_info &info, const DLTensor *t) {
    if (!t)
      return at(role, i, info) << "expected a tensor, got null", false;
    bool same = Text::isBool(info.dtype)
                    ? Text::isBool(t->dtype)
                    : t->dtype.code == info.dtype.code && t->dtype.bits == info.dtype.bits;
    if (!same || t->dtype.lanes != 1) {
      at(role, i, info) << "expected dtype ";
      (ctx->error.dtype(info.dtype) << ", got ").dtype(t->dtype);
      return false;
    }
    if (t->ndim != info.rank)
      return ((at(role, i, info) << "expected rank ") << int64_t(info.rank) << ", got ")
                 << int64_t(t->ndim),
             false;
    if (info.rank > 0 && !t->shape)
      return at(role, i, info) << "expected a shape, got null", false;
    return true;
  }

  // Strides, size, memory: the shape is right by now.
  bool layout(const char *role, int32_t i, const quern_tensor_info &info, const DLTensor *t) {
    uint64_t count = 1, element = elementBytes(info.dtype);
    bool none = false;
    for (int32_t d = 0; d < t->ndim; ++d)
      none |= t->shape[d] == 0;
    if (none)
      return true;
    for (int32_t d = t->ndim - 1; d >= 0; --d) {
      // The stride of a dim of one element is never used.
      if (t->strides && t->shape[d] != 1 && t->strides[d] != int64_t(count)) {
        int64_t expected[QUERN_MAX_RANK];
        int64_t stride = 1;
        for (int32_t k = t->ndim - 1; k >= 0; stride *= t->shape[k--])
          expected[k] = stride;
        at(role, i, info) << "expected contiguous strides ";
        (ctx->error.list(expected, t->ndim) << ", got ").list(t->strides, t->ndim);
        return false;
      }
      if (__builtin_mul_overflow(count, uint64_t(t->shape[d]), &count) ||
          count > uint64_t(QUERN_MAX_BYTES) / element) {
        at(role, i, info) << "expected at most " << QUERN_MAX_BYTES << " bytes, got dims ";
        ctx->error.list(t->shape, t->ndim);
        return false;
      }
    }
    if (!t->data)
      return (at(role, i, info) << "expected data of ")
                 << int64_t(count * element) << " bytes, got null",
             false;
    if (uint64_t(address(t)) % element)
      return ((at(role, i, info) << "expected an address that is a multiple of ")
              << int64_t(element) << ", got remainder ")
                 << int64_t(uint64_t(address(t)) % element),
             false;
    bool onDevice =
        ctx->device && ctx->device->memory && int32_t(t->device.device_type) == ctx->device->memory;
    if (!onHost(t) && !onDevice)
      return (at(role, i, info) << "expected a tensor in host memory"
                                << (ctx->device && ctx->device->memory ? " or on the device" : "")
                                << ", got DLPack device type ")
                 << int64_t(t->device.device_type),
             false;
    return true;
  }

  static void addSpan(Span *spans, int32_t &count, const DLTensor *t, int32_t which, bool written) {
    uint64_t size = bytes(t);
    uintptr_t begin = uintptr_t(address(t));
    if (size)
      spans[count++] = {begin, begin + size, which, written};
  }

  bool overlapError(const Span &a, const Span &b) {
    const Span &w = a.which > b.which ? a : b, &other = a.which > b.which ? b : a;
    bool output = w.which >= fn->num_inputs;
    int32_t i = output ? w.which - fn->num_inputs : w.which;
    at(output ? "output" : "input", i, output ? fn->outputs[i] : fn->inputs[i])
        << "expected memory of its own, but it overlaps ";
    output = other.which >= fn->num_inputs;
    i = output ? other.which - fn->num_inputs : other.which;
    name(output ? "output" : "input", i, output ? fn->outputs[i] : fn->inputs[i])
        << " and the call writes there";
    return false;
  }

  quern_context *ctx;
  const quern_function *fn;
};

} // namespace quern::rt

#endif // QUERN_LIB_RUNTIME_CPU_CHECK_H
