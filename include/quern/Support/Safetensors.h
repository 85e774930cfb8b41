//===- Safetensors.h - .safetensors files -----------------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Named tensors in one file (github.com/huggingface/safetensors, "Format"): the
/// length of a JSON header, the header, the bytes. The file is mapped, every
/// number in the header is checked against the file before it is used.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_SUPPORT_SAFETENSORS_H
#define QUERN_SUPPORT_SAFETENSORS_H

#include "quern/Support/HostTensor.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

namespace quern {

class Safetensors {
public:
  static llvm::Expected<Safetensors> open(llvm::StringRef path);

  bool contains(llvm::StringRef name) const { return tensors.contains(name); }
  /// A view of the mapped bytes (private pages: writing to it does not change the
  /// file, but is seen by later views of the same tensor). Unknown names are errors.
  llvm::Expected<HostTensor> get(llvm::StringRef name) const;
  /// In the file's order of offsets.
  llvm::ArrayRef<std::string> names() const { return order; }
  const std::string &path() const { return file; }

private:
  std::string file;
  std::vector<std::string> order;
  llvm::StringMap<HostTensor> tensors;
};

/// Writes to a temporary file that replaces `path` when it is complete.
llvm::Error writeSafetensors(llvm::StringRef path,
                             llvm::ArrayRef<std::pair<std::string, HostTensor>> tensors);

} // namespace quern
#endif // QUERN_SUPPORT_SAFETENSORS_H
