//===- DiskCache.h - Compiled code that is kept on disk ---------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Bytes by content key. Safe by construction: the key covers everything that the
/// bytes depend on (and always LLVM's version and this program's build), entries appear whole
/// (written beside, then renamed) and are checked when read. Any number of
/// processes may share a folder. A cache that cannot be read or written is a miss,
/// never an error.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_SUPPORT_DISKCACHE_H
#define QUERN_SUPPORT_DISKCACHE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/MemoryBuffer.h"

#include <memory>
#include <string>

namespace quern {

class DiskCache {
public:
  /// A cache that keeps nothing.
  DiskCache() = default;
  /// In `folder`, which is made when first written to.
  explicit DiskCache(llvm::StringRef folder) : folder(folder) {}
  /// `$QUERN_CACHE_DIR`, else `quern` in `$XDG_CACHE_HOME` or `~/.cache`. An empty
  /// `$QUERN_CACHE_DIR`, or no home, gives a cache that keeps nothing.
  static DiskCache user();

  explicit operator bool() const { return !folder.empty(); }

  /// A key over `parts`, 64 hexadecimal digits. Their boundaries count.
  static std::string key(llvm::ArrayRef<llvm::StringRef> parts);
  /// The same over nothing else, for names: equal in every build.
  static std::string contentHash(llvm::ArrayRef<llvm::StringRef> parts);

  /// The bytes under `key`, or null.
  std::unique_ptr<llvm::MemoryBuffer> read(llvm::StringRef key) const;
  /// Keeps the bytes. What nobody read for 30 days is removed, and the oldest of more than 4 GiB.
  void write(llvm::StringRef key, llvm::StringRef bytes) const;

private:
  std::string path(llvm::StringRef key) const;

  std::string folder;
};

} // namespace quern

#endif // QUERN_SUPPORT_DISKCACHE_H
