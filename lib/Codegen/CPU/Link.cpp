//===- Link.cpp - Artefacts from objects ----------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Codegen/CPU/Link.h"

#include "Flags.h"
#include "quern/Support/Error.h"
#include "quern/Support/Output.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/StringSaver.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <cstdlib>
#include <dlfcn.h>
#include <mutex>

#ifdef QUERN_HAVE_LLD
#include "lld/Common/Driver.h"
#include "llvm/Plugins/PassPlugin.h"
LLD_HAS_DRIVER(elf)
#endif

#ifdef QUERN_ABSENT_BACKENDS
#define BACKEND(NAME)                                                                              \
  void LLVMInitialize##NAME##TargetInfo() {}                                                       \
  void LLVMInitialize##NAME##Target() {}                                                           \
  void LLVMInitialize##NAME##TargetMC() {}                                                         \
  void LLVMInitialize##NAME##AsmPrinter() {}                                                       \
  void LLVMInitialize##NAME##AsmParser() {}
extern "C" {
QUERN_ABSENT_BACKENDS
}
#undef BACKEND
// The same for the one extension that LLVM's packages are built with.
llvm::PassPluginLibraryInfo getPollyPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "Polly", "absent", [](llvm::PassBuilder &) {}, nullptr};
}
#endif

using namespace llvm;

namespace quern {

// The shared library that a function of this program is in: libc and libm as they
// are installed here, found without a search path.
static std::string libraryOf(const void *function) {
  Dl_info info;
  return dladdr(function, &info) && info.dli_fname ? info.dli_fname : "";
}

// Runs the linker; its messages go to `log`. False when it failed.
static bool runLinker(ArrayRef<const char *> args, std::string &log) {
#ifdef QUERN_HAVE_LLD
  static std::mutex oneAtATime;
  std::lock_guard<std::mutex> lock(oneAtATime);
  raw_string_ostream os(log);
  bool ok = lld::lldMain(args, os, os, {{lld::Gnu, &lld::elf::link}}).retCode == 0;
  setCodegenFlags(); // lld has set every command-line option of LLVM to its default
  return ok;
#else
  std::string program;
  for (const char *name : {"ld.lld-22", "ld.lld", "ld"})
    if (ErrorOr<std::string> found = sys::findProgramByName(name)) {
      program = *found;
      break;
    }
  if (program.empty()) {
    log = "no linker: expected ld.lld or ld in PATH";
    return false;
  }
  SmallString<64> file;
  if (sys::fs::createTemporaryFile("quern-link", "log", file))
    return false;
  FileRemover remover(file);
  SmallVector<StringRef> words(args.begin(), args.end());
  words[0] = program;
  int status = sys::ExecuteAndWait(program, words, std::nullopt,
                                   {StringRef(""), StringRef(file), StringRef(file)}, 0, 0, &log);
  if (auto text = MemoryBuffer::getFile(file))
    log += (*text)->getBuffer();
  return status == 0;
#endif
}

Error linkArtefact(ArtefactKind kind, ArrayRef<StringRef> objects, StringRef path) {
  std::string output = path.str(); // `path` may be an option's value, which lld resets
  // All files are made beside the output, so that the last step is one rename.
  if (Error error = checkOutputPath(output))
    return error;
  std::vector<std::unique_ptr<FileRemover>> removers;
  auto temporary = [&](StringRef bytes) -> Expected<std::string> {
    SmallString<128> path;
    int fd;
    if (std::error_code error = sys::fs::createUniqueFile(output + ".%%%%%%%%", fd, path))
      return runtimeError(output + ": cannot be written: " + error.message());
    removers.push_back(std::make_unique<FileRemover>(path));
    raw_fd_ostream os(fd, /*shouldClose=*/true);
    os << bytes;
    os.flush();
    if (os.has_error()) {
      std::string text = os.error().message();
      os.clear_error();
      return runtimeError(path + ": cannot be written: " + text);
    }
    return path.str().str();
  };

  BumpPtrAllocator memory;
  StringSaver words(memory);
  SmallVector<const char *> args{"ld.lld"};
  auto add = [&](std::initializer_list<StringRef> more) {
    for (StringRef word : more)
      args.push_back(words.save(word).data());
  };
  Expected<std::string> linked = temporary("");
  if (!linked)
    return linked.takeError();
  add({"-o", *linked});
  if (kind == ArtefactKind::Object)
    add({"-r"});
  else
    add({"-shared", "-Bsymbolic", "--gc-sections", "-z", "defs", "-z", "noexecstack", "-z", "relro",
         "--hash-style=gnu", "--build-id=none", "-soname", sys::path::filename(output)});
  for (StringRef object : objects) {
    Expected<std::string> file = temporary(object);
    if (!file)
      return file.takeError();
    add({*file});
  }
  if (kind == ArtefactKind::Shared) {
    std::string libc = libraryOf(reinterpret_cast<void *>(&std::abort));
    double (*exponential)(double) = &std::exp;
    std::string libm = libraryOf(reinterpret_cast<void *>(exponential));
    add({"--as-needed", libm, libc});
  }

  std::string log;
  if (!runLinker(args, log))
    return runtimeError(output + ": cannot be linked: " + StringRef(log).trim());
  if (kind == ArtefactKind::Shared)
    if (auto mode = sys::fs::getPermissions(*linked))
      (void)sys::fs::setPermissions(*linked, *mode | sys::fs::all_exe | sys::fs::all_read);
  if (std::error_code error = sys::fs::rename(*linked, output))
    return runtimeError(output + ": cannot be written: " + error.message());
  removers.front()->releaseFile();
  return Error::success();
}

} // namespace quern
