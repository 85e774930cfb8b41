//===- Cuda.h - The devices that run CUDA kernels -----------------*- C -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Two devices with one interface: the CUDA driver, and an emulator that runs the
/// same CUDA C++ on the CPU and judges every access. Neither is linked against:
/// the driver is opened at run time, the emulator is a library built with the
/// tests (`libquern-cuda-emulated.so`).
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_C_CUDA_H
#define QUERN_C_CUDA_H

#include "quern-c/Runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Opens GPU `ordinal` through the CUDA driver. On failure `device` is untouched and
/// `error` says why (QUERN_UNSUPPORTED: this machine has no driver or no GPU). Images:
/// cubins ("sm_90") and PTX ("compute_80"). One for each context; close it with
/// `quern_cuda_close`.
quern_status quern_cuda_open(int32_t ordinal, quern_device *device, char *error,
                             uint64_t error_size);
void quern_cuda_close(quern_device *device);
/// The architecture of an open device: 90 for sm_90.
int32_t quern_cuda_architecture(const quern_device *device);

/// How the emulated device runs.
typedef struct quern_cuda_emulated_options {
  /// 1: judge races, bounds, initialisation, alignment, overflow; of a launch the
  /// first 16 million reads, in random order, and all writes. 0: numbers only.
  int32_t checked;
  /// Order of blocks and threads.
  uint64_t seed;
  /// Where compiled kernels are kept; null: $QUERN_CACHE_DIR (nowhere when it is empty),
  /// without that variable the system's folder for temporary files.
  const char *cache_dir;
} quern_cuda_emulated_options;

/// What `libquern-cuda-emulated.so` exports. Images: "cuda-emulated", a CUDA C++ text.
/// `load` only takes the text; the first launch compiles all that have been loaded,
/// many in one unit. Launches of a process run one at a time.
///
/// `options` null: checked, seed 0.
quern_status quern_cuda_emulated_open(const quern_cuda_emulated_options *options,
                                      quern_device *device);
/// Compiles all that is loaded now, so that processes forked from here on share it.
/// A text that the compiler refuses is reported by its first launch.
quern_status quern_cuda_emulated_compile(const quern_device *device);
void quern_cuda_emulated_close(quern_device *device);

#ifdef __cplusplus
}
#endif

#endif // QUERN_C_CUDA_H
