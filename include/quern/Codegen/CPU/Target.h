//===- Target.h - Which CPU code is generated for ---------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_CODEGEN_CPU_TARGET_H
#define QUERN_CODEGEN_CPU_TARGET_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/LogicalResult.h"

#include <memory>
#include <string>

namespace llvm {
class TargetMachine;
} // namespace llvm

namespace quern {

/// A CPU as LLVM names it. Schedules follow from its features, never from the
/// model's name.
struct CpuTarget {
  std::string triple;
  std::string cpu;
  /// Comma-separated `+feature`/`-feature`, on top of what `cpu` implies.
  std::string features;

  /// The CPU that this process runs on.
  static CpuTarget native();
  /// `native`, or a CPU name of LLVM with features after it:
  /// `x86-64-v3`, `skylake-avx512`, `znver4,+avx512fp16`, `x86-64,+avx2,+fma`.
  /// An unknown CPU or feature is an error (`invalid: …`), given to `error`.
  static llvm::FailureOr<CpuTarget> parse(llvm::StringRef text,
                                          llvm::function_ref<void(const llvm::Twine &)> error);

  /// Whether the CPU has an LLVM feature: `avx2`, `fma`, `avx512f`, `avx512bf16`.
  bool has(llvm::StringRef feature) const;
  /// All that it has of quern-c/CpuFeatures.def.
  uint64_t featureBits() const;
  /// Widest vector register in bits that is worth using: 512, 256, 128.
  unsigned vectorBits() const;
  /// One line for keys and reports: triple, CPU and features.
  std::string str() const;

  /// LLVM's machine, position-independent, with FP fusion strict: contraction is
  /// said by flags on operations and never decided by the code generator.
  std::unique_ptr<llvm::TargetMachine> createMachine() const;
};

} // namespace quern

#endif // QUERN_CODEGEN_CPU_TARGET_H
