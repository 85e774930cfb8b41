//===- Output.cpp - Files that appear whole or not at all -----------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Support/Output.h"

#include "quern/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace quern {

static Error cannotWrite(StringRef path, const Twine &why) {
  return runtimeError(path + ": cannot be written: " + why);
}

static bool isDevice(StringRef path) {
  sys::fs::file_status status;
  return !sys::fs::status(path, status) && sys::fs::exists(status) &&
         !sys::fs::is_regular_file(status);
}

Error checkOutputPath(StringRef path) {
  if (path == "-")
    return Error::success();
  StringRef folder = sys::path::parent_path(path);
  if (!folder.empty() && !sys::fs::is_directory(folder))
    return invalidInput(path + ": no such folder");
  if (sys::fs::is_directory(path))
    return invalidInput(path + ": expected a file, found a folder");
  if (std::error_code error = sys::fs::access(isDevice(path)   ? path
                                              : folder.empty() ? "."
                                                               : folder,
                                              sys::fs::AccessMode::Write))
    return cannotWrite(path, error.message());
  return Error::success();
}

/// Writes to an open file and takes its error, which would end the process.
static std::error_code writeTo(int fd, bool close, function_ref<void(raw_ostream &)> write) {
  raw_fd_ostream os(fd, close);
  write(os);
  os.flush();
  std::error_code error = os.error();
  os.clear_error();
  return error;
}

Error writeOutput(StringRef path, function_ref<void(raw_ostream &)> write) {
  if (path == "-") {
    write(outs());
    return Error::success();
  }
  if (Error error = checkOutputPath(path))
    return error;
  if (isDevice(path)) {
    int fd;
    std::error_code error = sys::fs::openFileForWrite(path, fd);
    if (!error)
      error = writeTo(fd, /*close=*/true, write);
    return error ? cannotWrite(path, error.message()) : Error::success();
  }
  Expected<sys::fs::TempFile> file = sys::fs::TempFile::create(path + ".%%%%%%%%");
  if (!file)
    return cannotWrite(path, toString(file.takeError()));
  if (std::error_code error = writeTo(file->FD, /*close=*/false, write)) {
    consumeError(file->discard());
    return cannotWrite(path, error.message());
  }
  if (Error error = file->keep(path))
    return cannotWrite(path, toString(std::move(error)));
  return Error::success();
}

} // namespace quern
