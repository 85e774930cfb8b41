//===- Header.h - The C header of an artefact -------------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_LIB_COMPILER_HEADER_H
#define QUERN_LIB_COMPILER_HEADER_H

#include "quern/Conversion/HostToLLVM/Signature.h"

namespace quern {

/// `text` as a C identifier that is neither a keyword nor `main`.
std::string cIdentifier(llvm::StringRef text);

/// The header of the functions, each with its symbol. `stem`: the artefact's name
/// without folder and ending.
std::string cHeader(llvm::StringRef stem,
                    llvm::ArrayRef<std::pair<std::string, Signature>> functions);

} // namespace quern

#endif // QUERN_LIB_COMPILER_HEADER_H
