//===- Runtime.h - C ABI of compiled Quern functions ------------*- C -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===--------------------------------------------------------------------===//
///
/// \file
/// What compiled code, its callers and Quern's runtime agree on. Plain C, no
/// LLVM, no C++ library. The same tables describe a JIT-compiled function and
/// one in an ahead-of-time artefact.
///
/// Life of a call: `quern_call` checks the arguments against the signature,
/// calls the generated `prepare` (guards, output sizes, arena size: nothing is
/// written), then `run`, which launches kernels.
///
/// Ownership: the caller owns all tensors, inputs and outputs. The context owns
/// the arena, the threads and the error text. A compiled function is immutable
/// and may be called from many threads, with one context for each.
///
//===--------------------------------------------------------------------===//
#ifndef QUERN_C_RUNTIME_H
#define QUERN_C_RUNTIME_H

#include <stdint.h>

#include <dlpack/dlpack.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QUERN_ABI_VERSION 1
/// The functions below are exported. The copy inside an artefact is weak, so that
/// several artefacts can be linked into one program.
#ifdef QUERN_RT_WEAK
#define QUERN_API __attribute__((weak, visibility("default")))
#else
#define QUERN_API __attribute__((visibility("default")))
#endif

/// Element types, as DLPack writes them: f16 f32 f64 are kDLFloat, bf16 kDLBfloat,
/// i8…i64 kDLInt, u8…u64 kDLUInt. A bool is one byte, 0 or 1: code 6 (kDLBool of
/// DLPack 0.8 and later) with 8 bits, which signatures use; kDLUInt with 1 bit is
/// accepted for it. kDLUInt with 8 bits is u8, never bool.
#define QUERN_DL_BOOL 6

/// The largest rank of a tensor.
#define QUERN_MAX_RANK 16

/// The most bytes of a tensor: what an address space has. So sizes of arguments are at most
/// this, and the sum of many tensors' bytes still fits 64 bits.
#define QUERN_MAX_BYTES (INT64_C(1) << 48)

/// Status of a call; also the exit codes of the tools.
typedef enum quern_status {
  QUERN_OK = 0,
  QUERN_ERROR = 1,       ///< run-time error (a data-dependent check, a device fault)
  QUERN_UNSUPPORTED = 2, ///< legal, but not handled yet
  QUERN_INVALID = 3,     ///< the caller's mistake: a wrong shape, dtype, count
  QUERN_INTERNAL = 4     ///< a fault in Quern
} quern_status;

/// Arena, thread pool, stream and last error. Not thread-safe: one for each
/// calling thread.
typedef struct quern_context quern_context;

/// One input or output of a function.
typedef struct quern_tensor_info {
  const char *name; ///< the model's own name for it, any UTF-8
  DLDataType dtype;
  int32_t rank;
  const int64_t *dims;          ///< -1 where the dim is free
  const char *const *dim_names; ///< symbol or expression of each dim; "" for a static one
} quern_tensor_info;

/// One compiled kernel. `bufs` are its ins, then its outs (pointers to the first
/// element); `dims` are its free sizes, then the strides of strided operands.
/// Both targets use the same description; `cpu` is null for a device kernel.
typedef struct quern_kernel {
  const char *name;
  /// Computes units [lo, hi) of the kernel's range.
  void (*cpu)(void *const *bufs, const int64_t *dims, int64_t lo, int64_t hi);
  /// CPU: the number of independent units (rows, or blocks of elements).
  /// Device: the number of thread blocks.
  int64_t (*range)(const int64_t *dims);
  /// CPU: rough cost of one unit in nanoseconds for these sizes, for choosing
  /// the grain; null means one unit is worth a thread of its own.
  int64_t (*unit_cost)(const int64_t *dims);
  int32_t num_bufs;
  int32_t num_dims;
  /// Device kernels: the kernel is in each of `image_count` consecutive images of
  /// the function from `image` on, and the first one that the device can load is
  /// used (a cubin for each chip, then PTX). Then the threads of a block and the
  /// bytes of dynamic shared memory.
  int32_t image;
  int32_t image_count;
  int32_t block_threads;
  int32_t shared_bytes;
} quern_kernel;

/// Code for a device: one cubin, PTX or CUDA C++ text.
typedef struct quern_image {
  const char *target; ///< "sm_80", "compute_80" (PTX), "cuda-emulated" (CUDA C++ text)
  const void *data;
  uint64_t size;
} quern_image;

/// A tensor that the function reads and the artefact stores.
typedef struct quern_constant {
  const void *data;
  uint64_t size; ///< bytes
} quern_constant;

/// Where the outputs and inputs of a function may share memory.
typedef struct quern_function {
  uint32_t abi_version;
  const char *name;
  int32_t num_inputs, num_outputs, num_constants, num_kernels, num_images;
  const quern_tensor_info *inputs;
  const quern_tensor_info *outputs;
  const quern_constant *constants;
  const quern_kernel *kernels;
  const quern_image *images;
  /// What its code needs of the CPU: the bits of CpuFeatures.def.
  uint64_t cpu_features;
  /// For each input: 1 when its buffer is donated (the call may overwrite it).
  const uint8_t *donated;
  /// For each output: the input whose buffer it always is (a contract of the
  /// function, as in `into`), or -1.
  const int32_t *output_alias;
  /// Number of free dims over all inputs, in order: the length of `dims` below.
  int32_t num_dims;
  /// Number of free dims over all outputs, in order: the length of `out_dims`.
  int32_t num_out_dims;
  /// Checks the guards and answers the sizes: free output dims and arena bytes.
  /// Launches nothing, writes nothing else.
  int32_t (*prepare)(quern_context *ctx, const int64_t *dims, int64_t *out_dims,
                     int64_t *arena_bytes);
  /// Runs. `bufs`: inputs, outputs, constants. `arena`: 64-byte aligned, of the
  /// size that prepare answered.
  int32_t (*run)(quern_context *ctx, void *const *bufs, const int64_t *dims, void *arena);
} quern_function;

/// What an artefact holds. A shared library has it under the name
/// `quern_artefact_table`, so that programs can find its functions.
typedef struct quern_artefact {
  uint32_t abi_version;
  int32_t num_functions;
  const quern_function *const *functions;
} quern_artefact;

//===--------------------------------------------------------------------===//
// For callers
//===--------------------------------------------------------------------===//

/// A context with `threads` threads (0: one for each core), or null when there is no
/// memory. Threads start at the first launch that is worth them.
QUERN_API quern_context *quern_context_create(int32_t threads);
QUERN_API void quern_context_destroy(quern_context *ctx);
/// Text of the last error in this context, "" after a call that succeeded.
QUERN_API const char *quern_context_error(const quern_context *ctx);
/// Bytes of the largest arena so far.
QUERN_API int64_t quern_context_peak_bytes(const quern_context *ctx);

/// Called after each launch, with its kernel, its sizes, and when it began and
/// ended (nanoseconds of the monotonic clock; on a device, of the submission).
typedef void (*quern_profile_fn)(void *self, const quern_kernel *kernel, const int64_t *dims,
                                 int64_t begin_ns, int64_t end_ns);
/// Reports every launch of this context; null: none.
QUERN_API void quern_context_set_profiler(quern_context *ctx, quern_profile_fn fn, void *self);

/// When on, arena and outputs are filled with 0xff bytes (NaN) before each run, so
/// that a read of memory nobody wrote shows in the results.
QUERN_API void quern_context_set_poison(quern_context *ctx, int32_t on);

/// Checks `inputs` against the signature and the guards, and writes the dims of
/// every output: output i's rank dims at out_dims + i * QUERN_MAX_RANK.
QUERN_API quern_status quern_query(quern_context *ctx, const quern_function *fn,
                                   const DLTensor *const *inputs, int64_t *out_dims,
                                   int64_t *arena_bytes);

/// Runs the function. Inputs and outputs are row-major contiguous (null strides, or
/// strides that say so) and aligned to their element size; `data` may be null when
/// there are no elements. Outputs are the caller's, with exactly the inferred dims
/// and dtype. No memory that the call writes (outputs, donated inputs) may overlap
/// another tensor, except an output with the input that it aliases, which must be
/// the same buffer. Tensors are in host memory, or in the memory of the context's
/// device. When a check fails nothing has been written.
QUERN_API quern_status quern_call(quern_context *ctx, const quern_function *fn,
                                  const DLTensor *const *inputs, DLTensor *const *outputs);

//===--------------------------------------------------------------------===//
// For compiled code
//===--------------------------------------------------------------------===//

/// Launches a kernel over its whole range. Returns a quern_status.
QUERN_API int32_t quern_rt_launch(quern_context *ctx, const quern_kernel *kernel, void *const *bufs,
                                  const int64_t *dims);

/// Records that a guard failed: `text` with {0}, {1}, … replaced by the values.
/// Returns QUERN_INVALID.
QUERN_API int32_t quern_rt_guard_failed(quern_context *ctx, const char *text, const int64_t *values,
                                        int32_t num_values);

//===--------------------------------------------------------------------===//
// Devices
//===--------------------------------------------------------------------===//

/// A device is a table of functions: the CUDA driver, or the emulator that runs
/// the same CUDA text on the CPU. Null in a context means the CPU.
typedef struct quern_device {
  const char *name;
  /// DLPack type of its memory (kDLCUDA): tensors there are used where they are,
  /// tensors in host memory are copied there and back. 0: all are copied.
  int32_t memory;
  void *self;
  int32_t (*alloc)(void *self, uint64_t bytes, void **ptr);
  int32_t (*free)(void *self, void *ptr);
  int32_t (*upload)(void *self, void *dst, const void *src, uint64_t bytes);
  int32_t (*download)(void *self, void *dst, const void *src, uint64_t bytes);
  /// Loads an image, answers a handle. QUERN_UNSUPPORTED: it is for another chip.
  int32_t (*load)(void *self, const quern_image *image, void **module);
  int32_t (*unload)(void *self, void *module);
  /// Launches `blocks` thread blocks of kernel->block_threads threads. The
  /// kernel's parameters are its buffers, then its dims as 64-bit integers.
  int32_t (*launch)(void *self, void *module, const quern_kernel *kernel, int64_t blocks,
                    void *const *bufs, const int64_t *dims);
  int32_t (*synchronize)(void *self);
  /// Text of the device's last error.
  const char *(*error)(void *self);
} quern_device;

/// Runs this context's launches on a device; null: the CPU.
QUERN_API quern_status quern_context_set_device(quern_context *ctx, const quern_device *device);

/// Frees what the context keeps for a function on its device: uploaded constants and
/// loaded images. To be called before a function is unloaded, unless the context
/// goes first.
QUERN_API void quern_context_release(quern_context *ctx, const quern_function *fn);

#ifdef __cplusplus
}
#endif

#endif // QUERN_C_RUNTIME_H
