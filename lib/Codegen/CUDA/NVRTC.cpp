//===- NVRTC.cpp - CUDA C++ text to device code ---------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Codegen/CUDA/NVRTC.h"
#include "quern/Support/Error.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>

using namespace llvm;

namespace quern {

namespace {
using Program = void *;

struct EmbeddedFile {
  const char *name, *text;
};
const EmbeddedFile deviceFiles[] = {
#include "DeviceFiles.inc"
};
} // namespace

/// The part of nvrtc.h that is used: its names without the prefix.
struct Nvrtc::Functions {
  int (*Version)(int *major, int *minor);
  int (*GetNumSupportedArchs)(int *);
  int (*GetSupportedArchs)(int *);
  int (*CreateProgram)(Program *, const char *text, const char *name, int headers,
                       const char *const *contents, const char *const *names);
  int (*CompileProgram)(Program, int, const char *const *);
  int (*GetProgramLogSize)(Program, size_t *);
  int (*GetProgramLog)(Program, char *);
  int (*GetCUBINSize)(Program, size_t *);
  int (*GetCUBIN)(Program, char *);
  int (*GetPTXSize)(Program, size_t *);
  int (*GetPTX)(Program, char *);
  int (*DestroyProgram)(Program *);

  /// The name of the first function that is missing, or null.
  const char *load(void *library) {
#define QUERN_NVRTC_FUNCTION(name)                                                                 \
  if (name = reinterpret_cast<decltype(name)>(dlsym(library, "nvrtc" #name)); !name)               \
    return "nvrtc" #name;
    QUERN_NVRTC_FUNCTION(Version)
    QUERN_NVRTC_FUNCTION(GetNumSupportedArchs)
    QUERN_NVRTC_FUNCTION(GetSupportedArchs)
    QUERN_NVRTC_FUNCTION(CreateProgram)
    QUERN_NVRTC_FUNCTION(CompileProgram)
    QUERN_NVRTC_FUNCTION(GetProgramLogSize)
    QUERN_NVRTC_FUNCTION(GetProgramLog)
    QUERN_NVRTC_FUNCTION(GetCUBINSize)
    QUERN_NVRTC_FUNCTION(GetCUBIN)
    QUERN_NVRTC_FUNCTION(GetPTXSize)
    QUERN_NVRTC_FUNCTION(GetPTX)
    QUERN_NVRTC_FUNCTION(DestroyProgram)
#undef QUERN_NVRTC_FUNCTION
    return nullptr;
  }
};

Expected<int> parseCudaArchitecture(StringRef target) {
  StringRef digits = target;
  int architecture = 0;
  if (!(digits.consume_front("sm_") || digits.consume_front("compute_")) ||
      digits.getAsInteger(10, architecture) || architecture <= 0)
    return invalidInput("expected a chip such as sm_90, got '" + target + "'");
  return architecture;
}

Expected<const Nvrtc &> Nvrtc::get() {
  static std::string error;
  static const Nvrtc *opened = []() -> const Nvrtc * {
    SmallVector<std::string> names = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so",
                                      "/usr/local/cuda/lib64/libnvrtc.so"};
    if (const char *chosen = std::getenv("QUERN_NVRTC"))
      names = {chosen};
    void *library = nullptr;
    for (const std::string &name : names)
      if (!library)
        library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      error = "CUDA code needs NVRTC, and none was found (" + join(names, ", ") +
              "); install it or name it in QUERN_NVRTC";
      return nullptr;
    }
    static Functions functions;
    static Nvrtc nvrtc;
    if (const char *missing = functions.load(library)) {
      error = "the NVRTC found is too old: it has no " + std::string(missing);
      return nullptr;
    }
    int major = 0, minor = 0, count = 0;
    functions.Version(&major, &minor);
    functions.GetNumSupportedArchs(&count);
    nvrtc.supported.resize(count);
    functions.GetSupportedArchs(nvrtc.supported.data());
    std::sort(nvrtc.supported.begin(), nvrtc.supported.end());
    nvrtc.versionText = std::to_string(major) + "." + std::to_string(minor);
    nvrtc.functions = &functions;
    return &nvrtc;
  }();
  if (!opened)
    return unsupported(error);
  return *opened;
}

Expected<std::string> Nvrtc::targetFor(StringRef chip) const {
  Expected<int> architecture = parseCudaArchitecture(chip);
  if (!architecture)
    return architecture.takeError();
  if (chip.starts_with("compute_") || is_contained(supported, *architecture))
    return chip.str();
  auto newer = std::upper_bound(supported.begin(), supported.end(), *architecture);
  if (newer == supported.begin())
    return unsupported("NVRTC " + versionText + " compiles for sm_" + Twine(supported.front()) +
                       " and newer, got " + chip);
  return "compute_" + std::to_string(newer[-1]);
}

/// The lines of a text around line `fault` (from 1), numbered, the fault marked.
static std::string numberedLines(StringRef text, unsigned fault) {
  std::string result;
  raw_string_ostream os(result);
  SmallVector<StringRef> lines;
  text.split(lines, '\n');
  for (unsigned i = 1; i <= lines.size(); ++i)
    if (i + 4 >= fault && i <= fault + 4)
      os << (i == fault ? "> " : "  ") << format_decimal(i, 4) << " | " << lines[i - 1] << '\n';
  return result;
}

static Error refusal(StringRef version, StringRef text, StringRef name, StringRef target,
                     StringRef log) {
  // The log names a place as `name.cu(12): error: …`.
  unsigned fault = 1;
  size_t place = log.find(": error");
  if (size_t open = log.rfind('(', place); place != StringRef::npos && open != StringRef::npos)
    log.slice(open + 1, log.find(')', open)).getAsInteger(10, fault);
  std::string dumped = "nowhere";
  SmallString<128> path;
  int file;
  if (!sys::fs::createTemporaryFile("quern-" + name, "cu", file, path)) {
    raw_fd_ostream(file, /*shouldClose=*/true) << text;
    dumped = path.str().str();
  }
  return make_error<StatusError>(
      QUERN_INTERNAL, "NVRTC " + version + " refuses kernel '" + name + "' for " + target +
                          " (text dumped to " + dumped + ")\n" + numberedLines(text, fault) + log);
}

Expected<CudaBinary> Nvrtc::compile(StringRef text, StringRef name, StringRef target) const {
  Expected<int> architecture = parseCudaArchitecture(target);
  if (!architecture)
    return architecture.takeError();
  // NVRTC says only "invalid value", or answers an empty cubin.
  if (!is_contained(supported, *architecture)) {
    std::string known;
    for (int other : supported)
      known += (known.empty() ? "" : ", ") + std::to_string(other);
    return unsupported("NVRTC " + versionText + " does not compile for " + target + ", only for " +
                       known);
  }
  SmallVector<const char *> contents, names;
  for (const EmbeddedFile &file : deviceFiles) {
    contents.push_back(file.text);
    names.push_back(file.name);
  }
  std::string textCopy = text.str(), file = (name + ".cu").str();
  Program program = nullptr;
  auto fault = [&](StringRef what) {
    if (program)
      functions->DestroyProgram(&program);
    return make_error<StatusError>(QUERN_INTERNAL, "NVRTC cannot " + what + " for kernel '" + name +
                                                       "' and " + target);
  };
  if (functions->CreateProgram(&program, textCopy.c_str(), file.c_str(), contents.size(),
                               contents.data(), names.data()))
    return fault("make a program");
  // Contraction is said in the text by fmaf, never decided by the compiler.
  std::string architectureOption = ("--gpu-architecture=" + target).str();
  const char *options[] = {architectureOption.c_str(), "--std=c++17", "--fmad=false"};
  int status = functions->CompileProgram(program, std::size(options), options);

  CudaBinary binary;
  binary.target = target.str();
  size_t size = 0;
  if (!functions->GetProgramLogSize(program, &size) && size > 1) {
    binary.log.resize(size);
    functions->GetProgramLog(program, binary.log.data());
    binary.log.resize(size - 1);
  }
  if (status) {
    functions->DestroyProgram(&program);
    return refusal(versionText, text, name, target, binary.log);
  }
  bool cubin = target.starts_with("sm_");
  if ((cubin ? functions->GetCUBINSize : functions->GetPTXSize)(program, &size) || !size)
    return fault("give code");
  binary.data.resize(size);
  if ((cubin ? functions->GetCUBIN : functions->GetPTX)(program, binary.data.data()))
    return fault("give code");
  functions->DestroyProgram(&program);
  return binary;
}

} // namespace quern
