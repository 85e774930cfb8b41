//===- Builtins.h - What a code generator takes for granted -----*- C -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===--------------------------------------------------------------------===//
///
/// \file
/// Conversions between float formats that LLVM calls by these names when the CPU
/// has no instruction for them. They are usually in a compiler's support library,
/// which an artefact does not depend on (and older ones lack some). Narrow floats
/// are passed as the ABI passes _Float16, in the low half of a vector register.
///
//===--------------------------------------------------------------------===//
#ifndef QUERN_C_BUILTINS_H
#define QUERN_C_BUILTINS_H

/// Every function, for those that list them: the JIT.
#define QUERN_BUILTINS                                                                             \
  QUERN_BUILTIN(__extendhfsf2)                                                                     \
  QUERN_BUILTIN(__truncsfhf2)                                                                      \
  QUERN_BUILTIN(__truncdfhf2)                                                                      \
  QUERN_BUILTIN(__truncsfbf2)                                                                      \
  QUERN_BUILTIN(__truncdfbf2)

#ifdef __cplusplus
extern "C" {
#endif

__attribute__((weak)) float __extendhfsf2(_Float16 value);
__attribute__((weak)) _Float16 __truncsfhf2(float value);
__attribute__((weak)) _Float16 __truncdfhf2(double value);
/// To bf16, whose bits stand in the _Float16.
__attribute__((weak)) _Float16 __truncsfbf2(float value);
__attribute__((weak)) _Float16 __truncdfbf2(double value);

#ifdef __cplusplus
}
#endif

#endif // QUERN_C_BUILTINS_H
