//===- Passes.h - Quern's passes --------------------------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_TRANSFORMS_PASSES_H
#define QUERN_TRANSFORMS_PASSES_H

#include "mlir/Pass/Pass.h"

namespace quern {

#define GEN_PASS_DECL
#include "quern/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "quern/Transforms/Passes.h.inc"

} // namespace quern

#endif // QUERN_TRANSFORMS_PASSES_H
