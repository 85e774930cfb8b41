//===- Flags.h - LLVM's options without another interface -------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_LIB_CODEGEN_CPU_FLAGS_H
#define QUERN_LIB_CODEGEN_CPU_FLAGS_H

namespace quern {

/// Sets the options of LLVM's code generator that Quern relies on.
void setCodegenFlags();

} // namespace quern

#endif // QUERN_LIB_CODEGEN_CPU_FLAGS_H
