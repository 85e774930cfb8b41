//===- Version.h - What --version prints ------------------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_SUPPORT_VERSION_H
#define QUERN_SUPPORT_VERSION_H

#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

namespace quern {

/// `--version` of this program prints Quern's version, not only LLVM's. (In a header: quern-tblgen
/// is built before any library of ours.)
inline void setVersionPrinter() {
  llvm::cl::SetVersionPrinter([](llvm::raw_ostream &os) {
    os << "Quern " << QUERN_VERSION << " (LLVM " << LLVM_VERSION_STRING << ")\n";
  });
}

} // namespace quern

#endif // QUERN_SUPPORT_VERSION_H
