//===- Jit.h - Objects loaded into this process -----------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_CODEGEN_CPU_JIT_H
#define QUERN_CODEGEN_CPU_JIT_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

#include <memory>

namespace quern {

/// The objects of one compiled model, linked with each other, the runtime, libc
/// and libm. They are unloaded with this object; nothing of them may be used
/// afterwards. Thread-safe as a whole: libraries may be made and used in parallel.
class JitLibrary {
public:
  static llvm::Expected<std::unique_ptr<JitLibrary>> create();
  ~JitLibrary();
  JitLibrary(const JitLibrary &) = delete;

  /// Adds an object file. It is linked when a symbol of it is first looked up.
  llvm::Error add(std::unique_ptr<llvm::MemoryBuffer> object);
  /// Defines a symbol of data that the caller keeps alive.
  llvm::Error define(llvm::StringRef name, const void *data);
  /// The address of a symbol, with all that it needs.
  llvm::Expected<void *> lookup(llvm::StringRef name);

private:
  struct Impl;
  explicit JitLibrary(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace quern

#endif // QUERN_CODEGEN_CPU_JIT_H
