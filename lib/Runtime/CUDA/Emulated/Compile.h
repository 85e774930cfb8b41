//===- Compile.h - CUDA texts to host code ----------------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Compiles kernel texts with the machine's C++ compiler, many in one unit (a
/// compiler start costs as much as a dozen kernels), and keeps the units on disk:
/// `units/<hash>.so`, and for each text a link `texts/<hash>` to its unit.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_RUNTIME_CUDA_EMULATED_COMPILE_H
#define QUERN_RUNTIME_CUDA_EMULATED_COMPILE_H

#include "Interface.h"
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace quern::emulator {

/// One text. Compiled when `unit` is set; refused by the compiler when `error` is.
struct Text {
  std::string hash, source;
  Unit *unit = nullptr;
  std::string error;

  /// Null: the text has no kernel of that name.
  const Kernel *find(const char *name) const;
};

class Compiler {
public:
  /// `checked`: with access checks. `cacheDir` "": $QUERN_CACHE_DIR/cuda-emulated, when that is
  /// not set a folder for this user under $TMPDIR or /tmp, when it is empty one that goes with
  /// the compiler.
  Compiler(bool checked, std::string cacheDir);
  ~Compiler();

  /// The text, once for equal texts. Does not compile.
  Text *add(std::string source);
  /// Compiles every text added so far. "" or why nothing could be compiled (no
  /// compiler, no place to write); what is wrong with one text stands in it.
  std::string compilePending();

private:
  /// The compiler, the folders and the support object, found or made at first use.
  std::string prepare();
  /// The command's start: compiler and flags.
  std::vector<std::string> command() const;
  bool loadCached(Text &text);
  Unit *attach(const std::string &path);
  std::string compileUnits(const std::vector<std::vector<Text *>> &units);

  bool checked;
  std::string cacheDir, compiler, includeDir, support, version, error;
  bool prepared = false, isTemporary = false;
  std::map<std::string, std::unique_ptr<Text>> texts; ///< by hash
  std::map<std::string, Unit *> attached;             ///< by path
  std::vector<Text *> pending;
};

} // namespace quern::emulator

#endif // QUERN_RUNTIME_CUDA_EMULATED_COMPILE_H
