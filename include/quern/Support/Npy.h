//===- Npy.h - NumPy's .npy files -------------------------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Reads and writes one tensor as .npy, versions 1 to 3 of the format
/// (numpy.org/doc/stable/reference/generated/numpy.lib.format.html). Column-major
/// files are reordered when read. Big-endian and structured types are refused,
/// and so is writing bf16, which NumPy does not have.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_SUPPORT_NPY_H
#define QUERN_SUPPORT_NPY_H

#include "quern/Support/HostTensor.h"
#include "llvm/Support/Error.h"

namespace quern {

llvm::Expected<HostTensor> readNpy(llvm::StringRef path);
/// Reads from memory; `name` stands for the file in messages.
llvm::Expected<HostTensor> parseNpy(llvm::StringRef bytes, llvm::StringRef name);
/// Writes to a temporary file that replaces `path` when it is complete.
llvm::Error writeNpy(llvm::StringRef path, const HostTensor &tensor);

} // namespace quern
#endif // QUERN_SUPPORT_NPY_H
