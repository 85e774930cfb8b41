//===- Pointwise.cpp - Element-by-element ops -----------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Dialect/Quern/IR/Ops/Pointwise.h"

#define GET_STRUCTURED_ARGS
#include "quern/Dialect/Quern/IR/Ops/Pointwise.structured.inc"

using namespace mlir;

namespace quern::meta {

//===----------------------------------------------------------------------===//
// Meta functions, shared by the family
//===----------------------------------------------------------------------===//

template <typename Args> static void floatUnary(const Args &a, MetaContext &m) {
  if (!m.check(1, isa<FloatType>(a.self.dtype), "expected self to be of a float dtype, got {0}",
               {a.self.dtype}))
    return;
  m.setOutput(0, a.self.dims, a.self.dtype);
}

template <typename Args> static void numericUnary(const Args &a, MetaContext &m) {
  if (!m.check(1, !a.self.dtype.isInteger(1), "expected self to be of a number dtype, got {0}",
               {a.self.dtype}))
    return;
  m.setOutput(0, a.self.dims, a.self.dtype);
}

template <typename Args> static void pointwiseBinary(const Args &a, MetaContext &m) {
  if (!m.check(1, a.self.dtype == a.other.dtype,
               "expected other to have the dtype of self, got {0} and {1}",
               {a.other.dtype, a.self.dtype}))
    return;
  SmallVector<Dim> dims(a.self.dims);
  if (!m.broadcast(2, dims, "self", a.other))
    return;
  m.setOutput(0, dims, a.self.dtype);
}

} // namespace quern::meta

#define GET_STRUCTURED_DEFS
#include "quern/Dialect/Quern/IR/Ops/Pointwise.structured.inc"

#define GET_OP_CLASSES
#include "quern/Dialect/Quern/IR/Ops/Pointwise.cpp.inc"
