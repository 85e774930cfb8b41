//===- Memory.h - Device memory and its shadow ------------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Device memory is address space of this process; beside each element stands a
/// shadow cell with its last write and readers. Both exist only where touched.
///
/// Order is one counter: every block and every barrier starts a new interval.
/// Two accesses of one block in different intervals are ordered, those of two
/// blocks of one launch never are; within an interval only a `__syncwarp` orders
/// the lanes of its warp, by steps. Shuffles order nothing, as CUDA says.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_RUNTIME_CUDA_EMULATED_MEMORY_H
#define QUERN_RUNTIME_CUDA_EMULATED_MEMORY_H

#include "Interface.h"
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace quern::emulator {

/// Who accesses: filled by the block scheduler.
struct Accessor {
  uint32_t interval;
  uint16_t thread;
  uint16_t step; ///< of its warp: how many __syncwarp since the interval began
};

class Memory {
public:
  static constexpr size_t maxShared = 228 << 10;

  Memory();
  ~Memory();
  Memory(const Memory &) = delete;

  /// Device memory of exactly that size, aligned to 256 bytes; null when there is none.
  void *allocate(size_t bytes);
  /// False when `p` is no allocation's begin.
  bool free(void *p);
  /// True when [p, p + bytes) lies in one allocation.
  bool contains(const void *p, size_t bytes) const;
  void markInitialised(void *p, size_t bytes);
  /// Offset of the first byte that was never written, or `bytes`.
  size_t firstUninitialised(const void *p, size_t bytes) const;
  void *dynamicShared() const { return dynamicBase; }

  /// The shared memory of the next launch, whose first interval is `first`.
  void beginLaunch(char *sharedBegin, char *sharedEnd, size_t dynamicBytes, uint32_t first);
  void beginBlock(uint32_t first, const uint16_t *steps) { blockFirst = first, warpSteps = steps; }

  /// Judges an access. True when it is legal; else `error` says what is wrong.
  bool access(const void *p, size_t bytes, Access kind, const Accessor &who, std::string &error);

private:
  struct Record {
    uint32_t interval = 0;
    uint16_t thread = 0, step = 0;
  };
  struct Cell {
    Record write, read;
    uint32_t otherBlock = 0; ///< interval of a read by another block of this launch
  };
  struct Region {
    char *begin = nullptr, *end = nullptr;
    int shift = 2; ///< log2 of the bytes of a cell
    bool shared = false;
    Cell *cells = nullptr;
    size_t numCells() const { return (static_cast<size_t>(end - begin) >> shift) + 1; }
  };

  Region *find(const char *p) const;
  bool ordered(const Record &earlier, const Accessor &now, bool shared) const;
  std::string describe(const Record &record) const;
  /// Makes the cells of a region bytes: it holds elements of less than 4 bytes.
  void refine(Region &region);

  char *arena, *dynamicBase;
  Region **pages; ///< of the arena
  size_t arenaUsed = 0;
  std::map<char *, Region> regions;
  std::multimap<size_t, char *> freed; ///< by pages
  std::map<char *, Region> sharedSections;
  Region dynamicRegion;
  Region *staticRegion = nullptr;
  uint32_t launchFirst = 1, blockFirst = 1;
  const uint16_t *warpSteps = nullptr;
};

/// Address space; the system gives zeroed pages when they are touched.
char *reserve(size_t bytes);
void release(void *p, size_t bytes);

} // namespace quern::emulator

#endif // QUERN_RUNTIME_CUDA_EMULATED_MEMORY_H
