//===- MachineModel.cpp - What schedules need to know of a CPU ------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Schedule/MachineModel.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/TargetParser/Triple.h"

#include <unistd.h>

using namespace quern;

/// What the C library knows of this machine's caches; 0 where it does not.
static int64_t cacheBytes(int name) {
  long size = sysconf(name);
  return size > 0 ? size : 0;
}

MachineModel MachineModel::get(const CpuTarget &target) {
  MachineModel m;
  llvm::Triple triple(target.triple);
  m.x86 = triple.getArch() == llvm::Triple::x86_64;
  m.fma = m.x86 ? target.has("fma") : triple.isAArch64();
  m.avx = target.has("avx");
  m.avx2 = target.has("avx2");
  m.avx512f = target.has("avx512f");
  m.avx512bw = target.has("avx512bw") && target.has("avx512vl");
  m.f16c = target.has("f16c");
  m.prefetchStreams = m.avx2 && !m.avx512f;
  m.vectorBytes = m.avx512f ? 64 : m.avx2 ? 32 : 16;
  m.vectorRegisters = m.avx512f || triple.isAArch64() ? 32 : 16;
#if defined(_SC_LEVEL1_DCACHE_SIZE)
  if (target.cpu == CpuTarget::native().cpu) {
    if (int64_t bytes = cacheBytes(_SC_LEVEL1_DCACHE_SIZE))
      m.l1Bytes = bytes;
    if (int64_t bytes = cacheBytes(_SC_LEVEL2_CACHE_SIZE))
      m.l2Bytes = bytes;
    if (int64_t bytes = cacheBytes(_SC_LEVEL3_CACHE_SIZE))
      m.l3Bytes = bytes;
  }
#endif
  return m;
}

std::string MachineModel::str() const {
  return llvm::formatv("{0}-byte vectors, {1} registers{2}{3}{4}{5}; caches {6}, {7}, {8} bytes",
                       vectorBytes, vectorRegisters, fma ? ", fma" : "", f16c ? ", f16c" : "",
                       avx512bw ? ", avx512bw" : "", prefetchStreams ? ", prefetch" : "", l1Bytes,
                       l2Bytes, l3Bytes);
}
