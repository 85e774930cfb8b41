//===- DiskCache.cpp - Compiled code that is kept on disk -----------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Support/DiskCache.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/CachePruning.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <dlfcn.h>
#include <link.h>

using namespace llvm;

namespace quern {

// An entry: the mark, the hash of key and bytes, the bytes. The hash says that the
// entry is whole and that it is for this key.
static constexpr StringLiteral mark = "quern cache v1\n\n";
static constexpr size_t headerSize = mark.size() + 32;

static std::string hash(ArrayRef<StringRef> parts) {
  BLAKE3 hasher;
  for (StringRef part : parts) {
    uint8_t size[8];
    support::endian::write64le(size, part.size());
    hasher.update(ArrayRef(size));
    hasher.update(part);
  }
  return toStringRef(hasher.final()).str();
}

DiskCache DiskCache::user() {
  if (const char *folder = std::getenv("QUERN_CACHE_DIR"))
    return DiskCache(folder);
  SmallString<128> path;
  const char *xdg = std::getenv("XDG_CACHE_HOME");
  if (xdg && sys::path::is_absolute(xdg)) // others are to be ignored, says the XDG specification
    path = xdg;
  else if (const char *home = std::getenv("HOME"); home && *home)
    sys::path::append(path, home, ".cache");
  else
    return DiskCache();
  sys::path::append(path, "quern");
  return DiskCache(path);
}

// The file that this code is in: the library that a program loaded, or the program itself.
static std::string thisFile() {
  Dl_info info;
  link_map *map = nullptr;
  bool found = dladdr1(reinterpret_cast<const void *>(&thisFile), &info,
                       reinterpret_cast<void **>(&map), RTLD_DL_LINKMAP);
  return found && map && *map->l_name ? map->l_name : "/proc/self/exe";
}

// The compiler itself: code of one build is never used by another of the same version.
static const std::string &buildIdentity() {
  static const std::string identity = [] {
    sys::fs::file_status status;
    if (sys::fs::status(thisFile(), status))
      return std::string(QUERN_VERSION);
    return QUERN_VERSION " " + std::to_string(status.getSize()) + " " +
           std::to_string(status.getLastModificationTime().time_since_epoch().count());
  }();
  return identity;
}

std::string DiskCache::key(ArrayRef<StringRef> parts) {
  SmallVector<StringRef> all{LLVM_VERSION_STRING, buildIdentity()};
  all.append(parts.begin(), parts.end());
  return contentHash(all);
}

std::string DiskCache::contentHash(ArrayRef<StringRef> parts) {
  return toHex(hash(parts), /*LowerCase=*/true);
}

std::string DiskCache::path(StringRef key) const {
  SmallString<128> path(folder);
  sys::path::append(path, "llvmcache-" + key); // what pruneCache removes has such a name
  return path.str().str();
}

std::unique_ptr<MemoryBuffer> DiskCache::read(StringRef key) const {
  if (!*this)
    return nullptr;
  auto file = MemoryBuffer::getFile(path(key), /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file)
    return nullptr;
  StringRef all = (*file)->getBuffer();
  if (all.size() < headerSize || !all.starts_with(mark))
    return nullptr;
  StringRef bytes = all.drop_front(headerSize);
  if (hash({key, bytes}) != all.slice(mark.size(), headerSize))
    return nullptr;
  // A copy, aligned as readers of objects expect.
  return MemoryBuffer::getMemBufferCopy(bytes, key);
}

void DiskCache::write(StringRef key, StringRef bytes) const {
  if (!*this)
    return;
  std::string to = path(key);
  if (sys::fs::create_directories(sys::path::parent_path(to)))
    return;
  Expected<sys::fs::TempFile> file =
      sys::fs::TempFile::create(to + ".%%%%%%%%", sys::fs::all_read | sys::fs::owner_write);
  if (!file)
    return consumeError(file.takeError());
  raw_fd_ostream os(file->FD, /*shouldClose=*/false);
  os << mark << hash({key, bytes}) << bytes;
  os.flush();
  bool bad = os.has_error();
  os.clear_error();
  consumeError(bad ? file->discard() : file->keep(to));
  // Looks at the folder three times an hour at most.
  CachePruningPolicy policy;
  policy.Expiration = std::chrono::hours(30 * 24);
  policy.MaxSizeBytes = uint64_t(4) << 30;
  pruneCache(folder, policy);
}

} // namespace quern
