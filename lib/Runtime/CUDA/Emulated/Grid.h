//===- Grid.h - Runs the blocks of a launch ---------------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Every thread of a block is a fibre; blocks, and the runnable threads of a
/// block, go in random order. One launch at a time in a process: kernels know
/// their thread through variables of their unit.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_RUNTIME_CUDA_EMULATED_GRID_H
#define QUERN_RUNTIME_CUDA_EMULATED_GRID_H

#include "Interface.h"
#include <cstdint>
#include <string>

namespace quern::emulator {

class Memory;

/// The functions that a unit is attached with.
const Hooks &gridHooks();

struct Launch {
  Unit *unit;
  const Kernel *kernel;
  int64_t blocks;
  int threads; ///< of a block
  int sharedBytes;
  uint64_t seed;
  void **arguments;
};

/// Runs a launch. The first error found, with line of the text, block and thread; "": none.
std::string runGrid(Memory &memory, const Launch &launch);

} // namespace quern::emulator

#endif // QUERN_RUNTIME_CUDA_EMULATED_GRID_H
