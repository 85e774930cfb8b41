//===- Output.h - Files that appear whole or not at all ---------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_SUPPORT_OUTPUT_H
#define QUERN_SUPPORT_OUTPUT_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

namespace quern {

/// Whether a file can be written at `path`: its folder exists and can be written, and no folder has
/// its name. Ask before the work; `-` (standard output) is always fine.
llvm::Error checkOutputPath(llvm::StringRef path);

/// Writes the file that `write` gives, beside `path` and renamed at the end. `-` is standard
/// output, whose errors Tool.h reports; a device is written as it is.
llvm::Error writeOutput(llvm::StringRef path, llvm::function_ref<void(llvm::raw_ostream &)> write);

} // namespace quern
#endif // QUERN_SUPPORT_OUTPUT_H
