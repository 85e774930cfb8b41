//===- Cast.cpp - Conversion between dtypes -----------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Dialect/Quern/IR/Ops/Cast.h"

#define GET_STRUCTURED_ARGS
#include "quern/Dialect/Quern/IR/Ops/Cast.structured.inc"

using namespace mlir;

namespace quern::meta {

static void convert(const ConvertArgs &a, MetaContext &m) {
  if (m.check(1, isa<FloatType, IntegerType>(a.dtype),
              "expected dtype to be a float, integer or bool dtype, got {0}", {a.dtype}))
    m.setOutput(0, a.self.dims, a.dtype);
}

} // namespace quern::meta

#define GET_STRUCTURED_DEFS
#include "quern/Dialect/Quern/IR/Ops/Cast.structured.inc"

#define GET_OP_CLASSES
#include "quern/Dialect/Quern/IR/Ops/Cast.cpp.inc"
