//===- Context.h - What a context owns --------------------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_LIB_RUNTIME_CPU_CONTEXT_H
#define QUERN_LIB_RUNTIME_CPU_CONTEXT_H

#include "Pool.h"
#include "Text.h"

namespace quern::rt {

/// A block of host memory that only grows. 64-byte aligned.
struct Block {
  void *data = nullptr;
  uint64_t size = 0;

  /// Its old content is lost. False when there is no memory.
  bool reserve(uint64_t bytes) {
    if (bytes <= size)
      return true;
    free(data);
    data = nullptr;
    size = 0;
    if (bytes > uint64_t(INT64_MAX) - 64 || posix_memalign(&data, 64, bytes))
      return false;
    size = bytes;
    return true;
  }
  void release() { free(data); }
};

/// What a device holds for a function: the addresses of its constants, and its
/// images, loaded when first launched.
struct Resident {
  const quern_function *fn;
  void **constants;
  void **modules;
  bool loaded; ///< every kernel's code was asked for
  Resident *next;
};

} // namespace quern::rt

struct quern_context {
  quern::rt::Text error;
  quern::rt::Pool pool;
  quern::rt::Block arena, scratch;
  uint64_t cpuFeatures = 0;
  int64_t peak = 0;
  bool poison = false;
  quern_profile_fn profile = nullptr;
  void *profileSelf = nullptr;

  const quern_device *device = nullptr;
  void *deviceArena = nullptr;
  uint64_t deviceArenaSize = 0;
  quern::rt::Resident *residents = nullptr;
  /// The one whose launches are running.
  quern::rt::Resident *running = nullptr;
};

namespace quern::rt {

/// Starts an error text of the user's mistake.
inline Text &invalid(quern_context *ctx) { return ctx->error.clear() << "invalid: "; }

inline quern_status noMemory(quern_context *ctx, const char *what, int64_t bytes) {
  ((ctx->error.clear() << "not enough memory for " << what << ": ") << bytes) << " bytes";
  return QUERN_ERROR;
}

} // namespace quern::rt

#endif // QUERN_LIB_RUNTIME_CPU_CONTEXT_H
