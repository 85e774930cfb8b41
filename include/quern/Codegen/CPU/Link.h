//===- Link.h - Artefacts from objects --------------------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_CODEGEN_CPU_LINK_H
#define QUERN_CODEGEN_CPU_LINK_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace quern {

enum class ArtefactKind {
  Object, ///< one relocatable object
  Shared, ///< a shared library that needs libc and libm only
};

/// The object file of a part of the runtime (`QuernRuntime`), which this program
/// carries to link it into artefacts; empty when there is no such part.
llvm::StringRef getRuntimeObject(llvm::StringRef name);

/// Links `objects` (bytes of object files) into one artefact at `output`, which
/// appears whole or not at all. The linker is part of this program, or else
/// `ld.lld` or `ld` found in PATH.
llvm::Error linkArtefact(ArtefactKind kind, llvm::ArrayRef<llvm::StringRef> objects,
                         llvm::StringRef output);

} // namespace quern

#endif // QUERN_CODEGEN_CPU_LINK_H
