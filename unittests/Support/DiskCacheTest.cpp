//===- DiskCacheTest.cpp - The compile cache ------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Support/DiskCache.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"
#include <cstdlib>
#include <thread>

using namespace quern;

namespace {

class Cache : public testing::Test {
protected:
  llvm::SmallString<64> folder;
  DiskCache cache;
  Cache() {
    EXPECT_FALSE(llvm::sys::fs::createUniqueDirectory("quern-cache", folder));
    cache = DiskCache(folder);
  }
  ~Cache() override { llvm::sys::fs::remove_directories(folder); }
  std::string text(const std::string &key) {
    auto bytes = cache.read(key);
    return bytes ? bytes->getBuffer().str() : "(miss)";
  }
  std::string file(const std::string &key) { return (folder + "/llvmcache-" + key).str(); }
};

TEST_F(Cache, KeepsBytes) {
  std::string key = DiskCache::key({"text", "options"});
  EXPECT_EQ(text(key), "(miss)");
  std::string bytes("with\0zero", 9);
  cache.write(key, bytes);
  EXPECT_EQ(text(key), bytes);
  cache.write(key, "");
  EXPECT_EQ(text(key), "");
}

TEST_F(Cache, BoundariesCount) {
  EXPECT_NE(DiskCache::key({"ab", "c"}), DiskCache::key({"a", "bc"}));
  EXPECT_NE(DiskCache::key({"ab"}), DiskCache::key({"ab", ""}));
  EXPECT_EQ(DiskCache::key({"ab"}).size(), 64u);
}

TEST_F(Cache, DamagedEntriesAreMisses) {
  std::string key = DiskCache::key({"k"}), other = DiskCache::key({"other"});
  std::string bytes(1000, 'x');
  cache.write(key, bytes);
  std::string whole = (*llvm::MemoryBuffer::getFile(file(key)))->getBuffer().str();
  auto overwrite = [&](llvm::StringRef content) {
    std::error_code error;
    llvm::raw_fd_ostream(file(key), error) << content;
  };
  for (size_t size : {0, 1, 16, 47, 48, 500, 1047}) { // cut off anywhere
    overwrite(llvm::StringRef(whole).take_front(size));
    EXPECT_EQ(text(key), "(miss)") << size;
  }
  for (size_t at : {0, 20, 48, 1040}) { // one bit wrong
    std::string damaged = whole;
    damaged[at] ^= 4;
    overwrite(damaged);
    EXPECT_EQ(text(key), "(miss)") << at;
  }
  overwrite(whole + "more");
  EXPECT_EQ(text(key), "(miss)");
  // An entry under a wrong name.
  std::error_code error;
  llvm::raw_fd_ostream(file(other), error) << whole;
  EXPECT_EQ(text(other), "(miss)");
  cache.write(key, bytes);
  EXPECT_EQ(text(key), bytes);
}

TEST_F(Cache, OldEntriesAreRemoved) {
  std::string old = file(DiskCache::key({"old"})), recent = file(DiskCache::key({"recent"}));
  for (const std::string &path : {old, recent}) {
    int file;
    ASSERT_FALSE(llvm::sys::fs::openFileForWrite(path, file));
    llvm::raw_fd_ostream(file, /*shouldClose=*/false) << "content";
    auto age = std::chrono::hours(path == old ? 31 * 24 : 0);
    llvm::sys::fs::setLastAccessAndModificationTime(file, std::chrono::system_clock::now() - age);
    llvm::sys::fs::file_t handle = llvm::sys::fs::convertFDToNativeFile(file);
    llvm::sys::fs::closeFile(handle);
  }
  cache.write(DiskCache::key({"new"}), "x");
  EXPECT_FALSE(llvm::sys::fs::exists(old));
  EXPECT_TRUE(llvm::sys::fs::exists(recent));
  EXPECT_EQ(text(DiskCache::key({"new"})), "x");
}

TEST_F(Cache, ManyWriters) {
  std::string key = DiskCache::key({"shared"}), bytes(100000, 'y');
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        cache.write(key, bytes);
        EXPECT_EQ(text(key), bytes);
      }
    });
  for (std::thread &t : threads)
    t.join();
  std::error_code error;
  int files = 0;
  for (llvm::sys::fs::directory_iterator it(folder, error), end; it != end; it.increment(error))
    files += llvm::sys::path::filename(it->path()).starts_with("llvmcache-");
  EXPECT_EQ(files, 1); // no temporary is left
}

TEST_F(Cache, WhereNothingCanBeWritten) {
  std::string key = DiskCache::key({"k"});
  DiskCache nowhere("/proc/quern");
  nowhere.write(key, "x");
  EXPECT_EQ(nowhere.read(key), nullptr);
  DiskCache none;
  none.write(key, "x");
  EXPECT_EQ(none.read(key), nullptr);
  EXPECT_FALSE(bool(none));
}

TEST_F(Cache, Folder) {
  setenv("QUERN_CACHE_DIR", folder.c_str(), 1);
  std::string key = DiskCache::key({"k"});
  DiskCache::user().write(key, "here");
  EXPECT_EQ(text(key), "here");
  setenv("QUERN_CACHE_DIR", "", 1);
  EXPECT_FALSE(bool(DiskCache::user()));
  unsetenv("QUERN_CACHE_DIR");
}

} // namespace
