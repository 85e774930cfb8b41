//===- Compile.cpp - CUDA texts to host code ------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Compile.h"
#include "Grid.h"
#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <filesystem>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

extern char **environ;

namespace quern::emulator {

namespace {
/// The headers of a unit, embedded at build time.
struct EmbeddedFile {
  const char *name, *text;
};
const EmbeddedFile embeddedFiles[] = {
#include "EmulatedFiles.inc"
};

constexpr size_t textsPerUnit = 25;
} // namespace

//===----------------------------------------------------------------------===//
// Small things
//===----------------------------------------------------------------------===//

/// Two 64-bit FNV-1a hashes with different offsets, in hexadecimal.
static std::string hashOf(const std::string &text) {
  uint64_t a = 0xcbf29ce484222325, b = 0x9e3779b97f4a7c15;
  for (unsigned char c : text) {
    a = (a ^ c) * 0x100000001b3;
    b = (b ^ c) * 0x100000001b3 + (b >> 29);
  }
  char hex[33];
  std::snprintf(hex, sizeof hex, "%016llx%016llx", (unsigned long long)a, (unsigned long long)b);
  return hex;
}

static std::string readFile(const std::string &path) {
  std::string text;
  if (FILE *file = std::fopen(path.c_str(), "rb")) {
    char buffer[4096];
    while (size_t n = std::fread(buffer, 1, sizeof buffer, file))
      text.append(buffer, n);
    std::fclose(file);
  }
  return text;
}

static std::string temporaryName(const std::string &path) {
  static std::atomic<unsigned> counter{0};
  return path + "." + std::to_string(getpid()) + "." + std::to_string(counter++);
}

/// Appears under its name only when it is complete.
static bool writeFile(const std::string &path, const std::string &text) {
  std::string partial = temporaryName(path);
  FILE *file = std::fopen(partial.c_str(), "wb");
  if (!file)
    return false;
  bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  written &= std::fclose(file) == 0;
  if (written && std::rename(partial.c_str(), path.c_str()) == 0)
    return true;
  std::remove(partial.c_str());
  return false;
}

static bool exists(const std::string &path) { return access(path.c_str(), R_OK) == 0; }

static bool makeFolders(const std::string &path) {
  for (size_t slash = 1; slash != std::string::npos;) {
    slash = path.find('/', slash + 1);
    std::string part = path.substr(0, slash);
    if (mkdir(part.c_str(), 0700) && !exists(part))
      return false;
  }
  return true;
}

/// Starts a program with its output in a file; -1 when it cannot be started.
static pid_t start(const std::vector<std::string> &command, const std::string &log) {
  std::vector<char *> arguments;
  for (const std::string &word : command)
    arguments.push_back(const_cast<char *>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = -1;
  if (posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ))
    child = -1;
  posix_spawn_file_actions_destroy(&actions);
  return child;
}

static bool succeeded(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR)
      return false;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool runs(const std::vector<std::string> &command, const std::string &log) {
  pid_t child = start(command, log);
  return child > 0 && succeeded(child);
}

/// The names of the kernels in a text: what follows `__global__` up to a parenthesis,
/// attributes such as __launch_bounds__(256) left out.
static std::vector<std::string> kernelNames(const std::string &source) {
  std::vector<std::string> names;
  const std::string mark = "__global__";
  for (size_t at = source.find(mark); at != std::string::npos; at = source.find(mark, at)) {
    at += mark.size();
    std::string name;
    while (at < source.size()) {
      unsigned char c = source[at];
      if (std::isalnum(c) || c == '_') {
        size_t end = at;
        while (end < source.size() &&
               (std::isalnum((unsigned char)source[end]) || source[end] == '_'))
          ++end;
        name = source.substr(at, end - at);
        at = end;
      } else if (c == '(') {
        if (name != "__launch_bounds__")
          break;
        at = source.find(')', at);
      } else {
        ++at;
      }
    }
    names.push_back(name);
  }
  return names;
}

const Kernel *Text::find(const char *name) const {
  for (const Kernel *kernel = unit ? unit->kernels : nullptr; kernel; kernel = kernel->next)
    if (hash == kernel->text && !std::strcmp(name, kernel->name))
      return kernel;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// The compiler
//===----------------------------------------------------------------------===//

Compiler::Compiler(bool checked, std::string dir) : checked(checked), cacheDir(std::move(dir)) {
  if (!cacheDir.empty())
    return;
  const char *cache = std::getenv("QUERN_CACHE_DIR"), *tmp = std::getenv("TMPDIR");
  std::string folder = std::string(tmp ? tmp : "/tmp") + "/quern-";
  if (!cache) {
    cacheDir = folder + std::to_string(getuid()) + "/cuda-emulated";
  } else if (*cache) {
    cacheDir = std::string(cache) + "/cuda-emulated";
  } else { // nothing is kept
    folder += "XXXXXX";
    isTemporary = mkdtemp(folder.data()) != nullptr;
    cacheDir = folder;
  }
}

Compiler::~Compiler() {
  std::error_code ignored;
  if (isTemporary)
    std::filesystem::remove_all(cacheDir, ignored);
}

std::vector<std::string> Compiler::command() const {
  // -ffp-contract=off: as NVRTC's --fmad=false, contraction is in the text.
  std::vector<std::string> words = {compiler,
                                    "-std=c++20",
                                    "-fPIC",
                                    "-fno-strict-aliasing",
                                    "-ffp-contract=off",
                                    "-fvisibility=hidden",
                                    "-w",
                                    "-I" + includeDir};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("fma") && __builtin_cpu_supports("avx2"))
    words.insert(words.end(), {"-mfma", "-mf16c"});
#endif
  return words;
}

std::string Compiler::prepare() {
  if (prepared)
    return error;
  prepared = true;
  // A folder that others cannot write: what lies in it is loaded and run.
  struct stat info;
  if (!makeFolders(cacheDir) || stat(cacheDir.c_str(), &info) || info.st_uid != getuid())
    return error = "cannot use the folder " + cacheDir + " for compiled kernels";

  std::string log = temporaryName(cacheDir + "/log");
  std::vector<std::string> candidates = {"g++", "clang++-22", "clang++", "c++"};
  if (const char *chosen = std::getenv("QUERN_HOST_CXX"))
    candidates = {chosen};
  for (const std::string &candidate : candidates)
    if (runs({candidate, "--version"}, log)) {
      compiler = candidate;
      break;
    }
  std::string identity = readFile(log);
  std::remove(log.c_str());
  if (compiler.empty())
    return error = "no C++ compiler found for emulated kernels: install g++ or clang++, or set "
                   "QUERN_HOST_CXX";

  std::string everything = identity;
  for (const EmbeddedFile &file : embeddedFiles)
    everything += file.text;
  for (const std::string &word : command())
    everything += word;
  version = hashOf(everything).substr(0, 16);
  includeDir = cacheDir + "/" + version;
  for (const char *folder : {"", "/units", "/texts"})
    if (!makeFolders(includeDir + folder))
      return error = "cannot make the folder " + includeDir + folder;
  for (const EmbeddedFile &file : embeddedFiles)
    if (!exists(includeDir + "/" + file.name) &&
        !writeFile(includeDir + "/" + file.name, file.text))
      return error = "cannot write to " + includeDir;

  support = includeDir + "/UnitSupport.o";
  if (!exists(support)) {
    std::string partial = temporaryName(support);
    std::vector<std::string> words = command();
    words.insert(words.end(), {"-O2", "-c", includeDir + "/UnitSupport.cpp", "-o", partial});
    log = partial + ".log";
    bool compiled = runs(words, log) && !std::rename(partial.c_str(), support.c_str());
    std::string messages = readFile(log);
    std::remove(log.c_str());
    if (!compiled)
      return error = compiler + " cannot compile the emulator's own unit:\n" + messages;
  }
  return error;
}

Text *Compiler::add(std::string source) {
  std::string hash = hashOf(source + (checked ? "checked" : "plain"));
  std::unique_ptr<Text> &text = texts[hash];
  if (!text) {
    text = std::make_unique<Text>();
    text->hash = hash, text->source = std::move(source);
    pending.push_back(text.get());
  }
  return text.get();
}

Unit *Compiler::attach(const std::string &path) {
  Unit *&unit = attached[path];
  if (!unit)
    if (void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL))
      if (auto attachUnit =
              reinterpret_cast<Unit *(*)(const Hooks *)>(dlsym(library, "quern_unit_attach")))
        unit = attachUnit(&gridHooks());
  return unit;
}

bool Compiler::loadCached(Text &text) {
  char target[512];
  std::string link = includeDir + "/texts/" + text.hash;
  ssize_t length = readlink(link.c_str(), target, sizeof target - 1);
  if (length <= 0)
    return false;
  text.unit = attach(includeDir + "/units/" + std::string(target, length));
  return text.unit != nullptr;
}

std::string Compiler::compilePending() {
  if (pending.empty())
    return "";
  if (std::string failure = prepare(); !failure.empty())
    return failure;
  std::vector<Text *> missing;
  for (Text *text : pending)
    if (!loadCached(*text))
      missing.push_back(text);
  pending.clear();

  // Units of equal size, and enough of them for all cores.
  size_t cores = std::max(1u, std::thread::hardware_concurrency());
  size_t numUnits = (missing.size() + textsPerUnit - 1) / textsPerUnit;
  if (missing.size() >= 8)
    numUnits = std::max(numUnits, std::min(cores, missing.size() / 4));
  std::vector<std::vector<Text *>> units(numUnits);
  for (size_t i = 0; i < missing.size(); ++i)
    units[i % numUnits].push_back(missing[i]);
  std::string failure = compileUnits(units);

  // A unit that failed: each of its texts alone, so that one bad text spoils no other.
  std::vector<std::vector<Text *>> alone;
  for (Text *text : missing)
    if (!text->unit && text->error.empty())
      alone.push_back({text});
  if (failure.empty() && !alone.empty())
    failure = compileUnits(alone);
  return failure;
}

std::string Compiler::compileUnits(const std::vector<std::vector<Text *>> &units) {
  struct Job {
    const std::vector<Text *> *texts;
    std::string stem, name;
    pid_t child;
  };
  auto finish = [&](const Job &job) {
    bool compiled = job.child > 0 && succeeded(job.child);
    std::string library = includeDir + "/units/" + job.name;
    if (compiled && !std::rename((job.stem + ".so").c_str(), library.c_str())) {
      Unit *unit = attach(library);
      for (Text *text : *job.texts) {
        text->unit = unit;
        if (!unit)
          text->error = "cannot load the compiled unit " + library;
        std::string link = includeDir + "/texts/" + text->hash, partial = temporaryName(link);
        if (!symlink(job.name.c_str(), partial.c_str()))
          std::rename(partial.c_str(), link.c_str());
      }
    } else if (job.texts->size() == 1) {
      job.texts->front()->error = compiler + " refused the text:\n" + readFile(job.stem + ".log");
    }
    for (const char *ending : {".cpp", ".log", ".so"})
      std::remove((job.stem + ending).c_str());
  };

  size_t cores = std::max(1u, std::thread::hardware_concurrency());
  std::vector<Job> running;
  for (const std::vector<Text *> &texts : units) {
    std::string unit = "#include \"quern.cuh\"\n", hashes;
    for (const Text *text : texts) {
      hashes += text->hash;
      std::vector<std::string> names = kernelNames(text->source);
      if (names.empty()) {
        unit += "#error \"the text has no kernel\"\n";
        continue;
      }
      // Other texts of the unit may have kernels of the same name.
      for (const std::string &name : names)
        unit += "#define " + name + " " + name + "_" + text->hash + "\n";
      unit += "#line 1 \"" + names.front() + ".cu\"\n" + text->source + "\n";
      for (const std::string &name : names)
        unit += "#undef " + name + "\nstatic quern::emulator::Enlist enlist_" + name + "_" +
                text->hash + "(\"" + text->hash + "\", \"" + name + "\", " + name + "_" +
                text->hash + ");\n";
    }
    Job job;
    job.texts = &texts;
    job.name = hashOf(hashes) + ".so";
    job.stem = temporaryName(includeDir + "/unit");
    if (!writeFile(job.stem + ".cpp", unit))
      return "cannot write to " + includeDir;
    // Initialised registers would hide a missing initialisation: fill them with a pattern.
    std::vector<std::string> words = command();
    words.insert(words.end(), {"-O1", "-ftrivial-auto-var-init=pattern"});
    if (checked)
      words.insert(words.end(), {"-g1", "-gdwarf-4",
                                 "-fsanitize=thread,bounds,alignment,signed-integer-overflow,shift,"
                                 "integer-divide-by-zero"});
    // Two steps: a link with -fsanitize would add the sanitizers' libraries.
    std::string line;
    words.insert(words.end(), {"-c", job.stem + ".cpp", "-o", job.stem + ".o"});
    for (const std::string &word : words)
      line += "'" + word + "' ";
    line += "&& '" + compiler + "' -shared '" + job.stem + ".o' '" + support + "' -lm -o '" +
            job.stem + ".so'; status=$?; rm -f '" + job.stem + ".o'; exit $status";
    job.child = start({"/bin/sh", "-c", line}, job.stem + ".log");
    running.push_back(job);
    if (running.size() >= cores) {
      finish(running.front());
      running.erase(running.begin());
    }
  }
  for (const Job &job : running)
    finish(job);
  return "";
}

} // namespace quern::emulator
