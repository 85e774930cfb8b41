//===- Memory.cpp - Device memory and its shadow --------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Memory.h"
#include <algorithm>
#include <cstring>
#include <dlfcn.h>
#include <sys/mman.h>

namespace quern::emulator {

static constexpr size_t arenaBytes = 64ull << 30, pageShift = 12;
/// `Record::thread`: more than one thread, atomics only, threads of one warp (its low bits).
static constexpr uint16_t many = 0xffff, atomicThreads = 0xfffe, manyOfWarp = 0x8000;

char *reserve(size_t bytes) {
  void *p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? nullptr : static_cast<char *>(p);
}
void release(void *p, size_t bytes) { munmap(p, bytes); }

static size_t pagesOf(size_t bytes) { return (bytes >> pageShift) + 2; } // one to spare: a fence

Memory::Memory()
    : arena(reserve(arenaBytes)), dynamicBase(reserve(maxShared)),
      pages(reinterpret_cast<Region **>(reserve((arenaBytes >> pageShift) * sizeof(Region *)))) {
  dynamicRegion.begin = dynamicRegion.end = dynamicBase;
  dynamicRegion.shared = true;
  dynamicRegion.shift = 0;
  dynamicRegion.cells = reinterpret_cast<Cell *>(reserve(maxShared * sizeof(Cell)));
}

Memory::~Memory() {
  for (auto *owned : {&regions, &sharedSections})
    for (auto &entry : *owned)
      release(entry.second.cells, entry.second.numCells() * sizeof(Cell));
  release(dynamicRegion.cells, maxShared * sizeof(Cell));
  release(dynamicBase, maxShared);
  release(pages, (arenaBytes >> pageShift) * sizeof(Region *));
  release(arena, arenaBytes);
}

void *Memory::allocate(size_t bytes) {
  if (!arena || !pages || bytes > arenaBytes)
    return nullptr;
  size_t numPages = pagesOf(bytes);
  char *begin;
  if (auto reuse = freed.find(numPages); reuse != freed.end()) {
    begin = reuse->second;
    freed.erase(reuse);
  } else {
    if (arenaUsed + (numPages << pageShift) > arenaBytes)
      return nullptr;
    begin = arena + arenaUsed;
    arenaUsed += numPages << pageShift;
  }
  Region &region = regions[begin];
  region.begin = begin, region.end = begin + bytes, region.shift = 2, region.shared = false;
  region.cells = reinterpret_cast<Cell *>(reserve(region.numCells() * sizeof(Cell)));
  if (!region.cells) {
    regions.erase(begin);
    return nullptr;
  }
  std::fill_n(pages + ((begin - arena) >> pageShift), numPages, &region);
  // NaN in floats, for kernels that are compiled without checks.
  std::memset(begin, 0xff, std::min<size_t>(bytes, 64 << 20));
  return begin;
}

bool Memory::free(void *p) {
  auto found = regions.find(static_cast<char *>(p));
  if (found == regions.end())
    return false;
  Region &region = found->second;
  size_t numPages = pagesOf(region.end - region.begin);
  release(region.cells, region.numCells() * sizeof(Cell));
  madvise(region.begin, numPages << pageShift, MADV_DONTNEED);
  std::fill_n(pages + ((region.begin - arena) >> pageShift), numPages, nullptr);
  freed.emplace(numPages, region.begin);
  regions.erase(found);
  return true;
}

Memory::Region *Memory::find(const char *p) const {
  if (size_t offset = p - arena; offset < arenaBytes)
    return pages[offset >> pageShift];
  if (staticRegion && p >= staticRegion->begin && p < staticRegion->end)
    return staticRegion;
  if (p >= dynamicBase && p < dynamicBase + maxShared)
    return const_cast<Region *>(&dynamicRegion);
  return nullptr;
}

bool Memory::contains(const void *p, size_t bytes) const {
  Region *region = find(static_cast<const char *>(p));
  return region && !region->shared && p >= region->begin &&
         static_cast<const char *>(p) + bytes <= region->end;
}

void Memory::markInitialised(void *p, size_t bytes) {
  Region *region = find(static_cast<char *>(p));
  size_t offset = static_cast<char *>(p) - region->begin;
  if (region->shift &&
      (offset % 4 || (bytes % 4 && offset + bytes != size_t(region->end - region->begin))))
    refine(*region);
  if (bytes)
    for (size_t i = offset >> region->shift; i <= (offset + bytes - 1) >> region->shift; ++i)
      region->cells[i].write.interval = std::max(region->cells[i].write.interval, 1u);
}

size_t Memory::firstUninitialised(const void *p, size_t bytes) const {
  Region *region = find(static_cast<const char *>(p));
  size_t offset = static_cast<const char *>(p) - region->begin;
  if (bytes)
    for (size_t i = offset >> region->shift; i <= (offset + bytes - 1) >> region->shift; ++i)
      if (!region->cells[i].write.interval)
        return std::max(i << region->shift, offset) - offset;
  return bytes;
}

void Memory::refine(Region &region) {
  size_t coarse = region.numCells();
  Cell *old = region.cells;
  int shift = region.shift;
  region.shift = 0;
  region.cells = reinterpret_cast<Cell *>(reserve(region.numCells() * sizeof(Cell)));
  for (size_t i = 0; i < coarse; ++i)
    if (old[i].write.interval || old[i].read.interval)
      for (size_t j = i << shift; j < std::min((i + 1) << shift, region.numCells()); ++j)
        region.cells[j] = old[i];
  release(old, coarse * sizeof(Cell));
}

void Memory::beginLaunch(char *sharedBegin, char *sharedEnd, size_t dynamicBytes, uint32_t first) {
  launchFirst = blockFirst = first;
  dynamicRegion.end = dynamicBase + dynamicBytes;
  staticRegion = nullptr;
  if (sharedBegin == sharedEnd)
    return;
  Region &section = sharedSections[sharedBegin];
  if (!section.begin) {
    section.begin = sharedBegin, section.end = sharedEnd, section.shared = true;
    section.cells = reinterpret_cast<Cell *>(reserve(section.numCells() * sizeof(Cell)));
  }
  staticRegion = &section;
}

bool Memory::ordered(const Record &earlier, const Accessor &now, bool shared) const {
  if (earlier.interval != now.interval)
    return shared || earlier.interval < launchFirst || earlier.interval >= blockFirst;
  if (earlier.thread == now.thread)
    return true;
  if (earlier.thread >= atomicThreads)
    return false;
  unsigned warp = earlier.thread & manyOfWarp ? earlier.thread & ~manyOfWarp : earlier.thread / 32;
  return warp == now.thread / 32u && earlier.step < warpSteps[warp];
}

std::string Memory::describe(const Record &record) const {
  if (record.interval < blockFirst)
    return "another block";
  if (record.thread == atomicThreads)
    return "atomics";
  if (record.thread & manyOfWarp)
    return "other threads";
  return "thread " + std::to_string(record.thread);
}

bool Memory::access(const void *address, size_t bytes, Access kind, const Accessor &who,
                    std::string &error) {
  const char *p = static_cast<const char *>(address);
  const char *verb = kind == Access::Read ? "read" : kind == Access::Write ? "write" : "atomic";
  Region *region = find(p);
  if (!region) {
    // A constant of the unit, threadIdx and the like lie in the unit's image.
    static uintptr_t known[64];
    uintptr_t page = reinterpret_cast<uintptr_t>(p) >> pageShift;
    Dl_info info;
    if (kind == Access::Read && page && (known[page % 64] == page || dladdr(p, &info))) {
      known[page % 64] = page;
      return true;
    }
    error = std::string(verb) + " of " + std::to_string(bytes) + " bytes outside of any memory";
    return false;
  }
  const char *space = region->shared ? "shared" : "global";
  if (p < region->begin || p + bytes > region->end) {
    error = std::string("out of bounds: ") + verb + " of " + std::to_string(bytes) +
            " bytes at offset " + std::to_string(p - region->begin) + " of " +
            std::to_string(region->end - region->begin) + " (" + space + " memory)";
    return false;
  }
  if (bytes < 4 && region->shift)
    refine(*region);
  size_t first = static_cast<size_t>(p - region->begin) >> region->shift;
  size_t last = static_cast<size_t>(p - region->begin + bytes - 1) >> region->shift;
  Record now{who.interval, who.thread, who.step};
  auto race = [&](const char *after, const Record &other) {
    error = std::string("race on ") + space + " memory: " + verb + " after a " + after + " by " +
            (other.interval ? describe(other) : "another block") + ", offset " +
            std::to_string(p - region->begin);
    return false;
  };
  for (size_t i = first; i <= last; ++i) {
    Cell &cell = region->cells[i];
    bool bothAtomic = kind == Access::Atomic && cell.write.thread == atomicThreads;
    if (kind != Access::Write &&
        (region->shared ? cell.write.interval < blockFirst : cell.write.interval == 0)) {
      error = std::string("uninitialised ") + space + " memory read, offset " +
              std::to_string(p - region->begin);
      return false;
    }
    if (!bothAtomic && !ordered(cell.write, who, region->shared))
      return race("write", cell.write);
    if (kind == Access::Read) {
      Record &read = cell.read;
      if (read.interval == who.interval && read.thread != now.thread &&
          !ordered(read, who, region->shared)) {
        unsigned warp = read.thread == many        ? ~0u
                        : read.thread & manyOfWarp ? read.thread & ~manyOfWarp
                                                   : read.thread / 32;
        read.thread = warp == now.thread / 32u ? static_cast<uint16_t>(manyOfWarp | warp) : many;
        read.step = now.step;
      } else {
        if (!region->shared && read.interval >= launchFirst && read.interval < blockFirst)
          cell.otherBlock = read.interval;
        read = now;
      }
      continue;
    }
    if (!ordered(cell.read, who, region->shared))
      return race("read", cell.read);
    if (!region->shared && cell.otherBlock >= launchFirst && cell.otherBlock < blockFirst)
      return race("read", Record());
    cell.write = now;
    if (kind == Access::Atomic)
      cell.write.thread = atomicThreads;
  }
  return true;
}

} // namespace quern::emulator
