//===- Cubin.h - What a cubin says about its kernels ------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Registers, spills and instructions of compiled kernels, read without a toolkit
/// and without a GPU: so that tests can gate on them anywhere.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_CODEGEN_CUDA_CUBIN_H
#define QUERN_CODEGEN_CUDA_CUBIN_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"
#include <map>
#include <string>

namespace quern {

/// One kernel.
struct CubinKernel {
  unsigned registers = 0; ///< of a thread
  unsigned stackBytes = 0;
  unsigned sharedBytes = 0; ///< static, with what the chip reserves
  /// Number of instructions by name, of those that tests ask about: LDG, STG, LDS, STS
  /// (with .64 or .128 when wider than 4 bytes), LDL and STL (spills and local arrays),
  /// LDGSTS, LDSM, HMMA, BAR, SHFL, FFMA.
  std::map<std::string, int> instructions;

  int count(llvm::StringRef instruction) const {
    auto found = instructions.find(instruction.str());
    return found == instructions.end() ? 0 : found->second;
  }
  /// Neither stack nor local memory.
  bool spills() const { return stackBytes || count("LDL") || count("STL"); }
  /// `registers 24 stack 0 shared 0 LDG.128 2 STG.128 1`.
  void print(llvm::raw_ostream &os) const;
};

/// The kernels of a cubin by name. An `invalid:` error for bytes that are no cubin.
llvm::Expected<std::map<std::string, CubinKernel>> readCubin(llvm::StringRef bytes);

} // namespace quern

#endif // QUERN_CODEGEN_CUDA_CUBIN_H
