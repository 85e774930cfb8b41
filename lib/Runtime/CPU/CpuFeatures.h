//===- CpuFeatures.h - What this CPU has ------------------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_LIB_RUNTIME_CPU_CPUFEATURES_H
#define QUERN_LIB_RUNTIME_CPU_CPUFEATURES_H

#include <stdint.h>
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

namespace quern::rt {

#if defined(__x86_64__) || defined(__i386__)

/// The registers that the system saves for a thread (XCR0); 0 where it says nothing.
inline uint64_t savedState() {
  unsigned r[4];
  constexpr unsigned osxsave = 1u << 27;
  if (!__get_cpuid(1, &r[0], &r[1], &r[2], &r[3]) || !(r[2] & osxsave))
    return 0;
  uint32_t low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t(high) << 32 | low;
}

/// The registers of one CPUID leaf at a time: the instruction is slow in virtual machines, and
/// the features stand in the order of their leaves.
class Cpuid {
public:
  bool bit(uint32_t leaf, uint32_t subleaf, unsigned reg, unsigned bit) {
    if (leaf != this->leaf || subleaf != this->subleaf)
      read(leaf, subleaf);
    return r[reg] >> bit & 1;
  }

private:
  uint32_t leaf = 0, subleaf = 0;
  unsigned r[4] = {};

  void read(uint32_t wanted, uint32_t wantedSub) {
    // A subleaf that the CPU does not have may repeat another; leaf 7 tells how many it has.
    bool known = !wantedSub ||
                 (__get_cpuid_count(wanted, 0, &r[0], &r[1], &r[2], &r[3]) && r[0] >= wantedSub);
    if (!known || !__get_cpuid_count(wanted, wantedSub, &r[0], &r[1], &r[2], &r[3]))
      r[0] = r[1] = r[2] = r[3] = 0;
    leaf = wanted;
    subleaf = wantedSub;
  }
};

/// The bits of CpuFeatures.def.
inline uint64_t detectCpuFeatures() {
  const uint64_t saved = savedState();
  Cpuid cpuid;
  uint64_t features = 0;
#define QUERN_CPU_FEATURE(number, name, leaf, subleaf, reg, bitNumber, state)                      \
  if ((saved & (state)) == (state) && cpuid.bit(leaf, subleaf, reg, bitNumber))                    \
    features |= uint64_t(1) << (number);
#include "quern-c/CpuFeatures.def"
  return features;
}

#else

/// Other CPUs are not asked: code for them says that it needs nothing.
inline uint64_t detectCpuFeatures() { return 0; }

#endif

} // namespace quern::rt

#endif // QUERN_LIB_RUNTIME_CPU_CPUFEATURES_H
