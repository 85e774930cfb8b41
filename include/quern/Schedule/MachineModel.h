//===- MachineModel.h - What schedules need to know of a CPU ----*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Facts about a CPU from which schedules follow: vector width, registers,
/// features, cache sizes. Never a model name.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_SCHEDULE_MACHINEMODEL_H
#define QUERN_SCHEDULE_MACHINEMODEL_H

#include "quern/Codegen/CPU/Target.h"

#include <algorithm>
#include <cstdint>
#include <string>

namespace quern {

/// Plain data; the defaults are a machine with 16-byte vectors and nothing else.
struct MachineModel {
  bool x86 = false;
  unsigned vectorBytes = 16;
  /// Architectural vector registers (32 with AVX-512).
  unsigned vectorRegisters = 16;
  bool fma = false;
  bool avx = false;
  bool avx2 = false;
  bool avx512f = false;
  /// Masked loads and stores of 8- and 16-bit elements.
  bool avx512bw = false;
  /// Vector conversions between f16 and f32.
  bool f16c = false;
  /// Whether streams are fetched by software ahead of their use. Measured: 1.1 to 1.4
  /// times faster row kernels with AVX2, up to 1.3 times slower ones with AVX-512 that
  /// runs as two halves.
  bool prefetchStreams = false;
  /// Bytes. Of this machine when the target is this machine's CPU, else typical.
  int64_t l1Bytes = 32 << 10, l2Bytes = 512 << 10, l3Bytes = 16 << 20;
  /// Results of at least so many bytes are stored past the caches: none of it would be
  /// there any more for who reads it next. Spares reading lines that are overwritten.
  int64_t streamBytes() const { return std::min<int64_t>(l3Bytes, 32 << 20); }

  static MachineModel get(const CpuTarget &target);

  /// Lanes of a vector whose lanes are 32 bits wide: what schedules count in.
  unsigned lanes() const { return vectorBytes / 4; }
  /// Whether a masked load or store of lanes this wide is an instruction.
  bool hasMaskedAccess(unsigned bits) const { return bits >= 32 ? avx2 : avx512bw; }
  /// One line, for reports and keys.
  std::string str() const;
};

} // namespace quern

#endif // QUERN_SCHEDULE_MACHINEMODEL_H
