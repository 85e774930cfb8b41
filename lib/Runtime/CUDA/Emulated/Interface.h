//===- Interface.h - What a compiled unit and the emulator share -*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Seen by two programs: the emulator, and the units of kernel texts that it
/// compiles at run time. Includes nothing, so that a unit compiles quickly.
/// A unit exports one function, `quern_unit_attach`; nothing is resolved by
/// symbol between the two, whatever else is loaded (a sanitizer's runtime, a
/// second emulator).
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_RUNTIME_CUDA_EMULATED_INTERFACE_H
#define QUERN_RUNTIME_CUDA_EMULATED_INTERFACE_H

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};

namespace quern::emulator {

/// Barriers and warp-wide operations.
enum class Op : int {
  Barrier,
  BarrierAnd,
  BarrierOr,
  SyncWarp,
  Shuffle,
  ShuffleUp,
  ShuffleDown,
  ShuffleXor,
  Ballot,
};

enum class Access : int { Read, Write, Atomic };

/// One lane's part of a warp-wide operation.
struct Operand {
  unsigned long long value, result;
  int argument, width;
};

/// What a unit calls. `pc` is an address in the kernel's code, for the line of its text.
struct Hooks {
  void (*access)(const void *p, unsigned long bytes, Access kind, void *pc);
  void (*misaligned)(const void *p, unsigned long bytes, void *pc);
  void (*undefined)(const char *what, long value, const char *file, unsigned line);
  /// Waits for the block. The answer of the votes.
  int (*barrier)(Op op, int line, int predicate);
  /// Waits for the lanes of `mask`; the last one runs the operation for all of them.
  void (*collective)(Op op, unsigned mask, int line, Operand &operand);
  void *(*dynamicShared)();
};

/// One kernel of a unit.
struct Kernel {
  const char *text; ///< hash of its text
  const char *name;
  void *function;
  /// Calls `function` with the values that `arguments` point to.
  void (*call)(void *function, void **arguments);
  int parameters;
  Kernel *next;
};

struct Unit {
  Kernel *kernels;
  uint3 *threadIdx, *blockIdx;
  dim3 *blockDim, *gridDim;
  char *sharedBegin, *sharedEnd; ///< the `__shared__` variables of all its kernels
  bool checked;                  ///< its accesses are reported
  bool skipsReads;               ///< but no reads any more
};

} // namespace quern::emulator

#endif // QUERN_RUNTIME_CUDA_EMULATED_INTERFACE_H
