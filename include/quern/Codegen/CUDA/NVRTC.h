//===- NVRTC.h - CUDA C++ text to device code -------------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// NVIDIA's run-time compiler, opened when it is first needed: Quern builds and
/// installs without it. It needs no GPU and no toolkit, only its own library.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_CODEGEN_CUDA_NVRTC_H
#define QUERN_CODEGEN_CUDA_NVRTC_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace quern {

/// Code for a device, as in `quern_image`.
struct CudaBinary {
  std::string target; ///< "sm_90": a cubin; "compute_90": PTX
  std::string data;
  std::string log; ///< the compiler's warnings; empty for what Quern's emitter prints
};

class Nvrtc {
public:
  /// The library: $QUERN_NVRTC, else the usual names and places. An `unsupported:`
  /// error when there is none.
  static llvm::Expected<const Nvrtc &> get();

  const std::string &version() const { return versionText; } ///< "13.0"
  /// What it can compile for, ascending: 75, 80, …
  llvm::ArrayRef<int> architectures() const { return supported; }

  /// Compiles a text whose one include is "quern.cuh". `target`: "sm_90" for a cubin,
  /// "compute_90" for PTX; `name` stands in messages. Thread-safe. When the text is
  /// refused the error shows the lines around the fault, the log, and where the text
  /// was dumped.
  llvm::Expected<CudaBinary> compile(llvm::StringRef text, llvm::StringRef name,
                                     llvm::StringRef target) const;

  /// The target to compile for so that `chip` ("sm_90") can run it: the chip itself, or
  /// PTX of the newest older architecture when the library does not know the chip.
  llvm::Expected<std::string> targetFor(llvm::StringRef chip) const;

private:
  struct Functions;
  Nvrtc() = default;
  const Functions *functions = nullptr;
  std::string versionText;
  std::vector<int> supported;
};

/// The number of "sm_90" or "compute_90": 90. An `invalid:` error for anything else.
llvm::Expected<int> parseCudaArchitecture(llvm::StringRef target);

} // namespace quern

#endif // QUERN_CODEGEN_CUDA_NVRTC_H
