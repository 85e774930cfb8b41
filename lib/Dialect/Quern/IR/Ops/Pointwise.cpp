//===- Pointwise.cpp - Element-by-element ops ---------------------------===//
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
// Shared by the family
//===----------------------------------------------------------------------===//

static bool checkFloat(const TensorMeta &self, MetaContext &m) {
  return m.check(1, isa<FloatType>(self.dtype), "expected self to be of a float dtype, got {0}",
                 {self.dtype});
}
static bool checkNumber(unsigned number, const TensorMeta &self, MetaContext &m) {
  return m.check(number, !self.dtype.isInteger(1), "expected self to be of a number dtype, got {0}",
                 {self.dtype});
}

template <typename Args> static void floatUnary(const Args &a, MetaContext &m) {
  if (checkFloat(a.self, m))
    m.setOutput(0, a.self.dims, a.self.dtype);
}

template <typename Args> static void numericUnary(const Args &a, MetaContext &m) {
  if (checkNumber(1, a.self, m))
    m.setOutput(0, a.self.dims, a.self.dtype);
}

/// Checks 1 and 2 of all binary ops; `result` is the operands' dtype unless it is given.
static bool binary(const TensorMeta &self, const TensorMeta &other, MetaContext &m,
                   Type result = {}) {
  SmallVector<Dim> dims(self.dims);
  if (!m.check(1, self.dtype == other.dtype,
               "expected other to have the dtype of self, got {0} and {1}",
               {other.dtype, self.dtype}) ||
      !m.broadcast(2, dims, "self", other))
    return false;
  m.setOutput(0, dims, result ? result : self.dtype);
  return true;
}

template <typename Args> static void pointwiseBinary(const Args &a, MetaContext &m) {
  binary(a.self, a.other, m);
}

template <typename Args> static void numericBinary(const Args &a, MetaContext &m) {
  if (binary(a.self, a.other, m))
    checkNumber(3, a.self, m);
}

template <typename Args> static void comparison(const Args &a, MetaContext &m) {
  binary(a.self, a.other, m, IntegerType::get(m.getContext(), 1));
}

//===----------------------------------------------------------------------===//
// Of one op
//===----------------------------------------------------------------------===//

static void checkAlpha(unsigned number, TypedAttr alpha, Type dtype, MetaContext &m) {
  m.check(number, !alpha || isa<FloatType>(dtype) || isa<IntegerAttr>(alpha),
          "expected alpha to be an integer for dtype {0}", {dtype});
}

static void add(const AddArgs &a, MetaContext &m) {
  if (binary(a.self, a.other, m))
    checkAlpha(3, a.alpha, a.self.dtype, m);
}

static void sub(const SubArgs &a, MetaContext &m) {
  if (binary(a.self, a.other, m) && checkNumber(3, a.self, m))
    checkAlpha(4, a.alpha, a.self.dtype, m);
}

static void gelu(const GeluArgs &a, MetaContext &m) {
  if (checkFloat(a.self, m) &&
      m.check(2, a.approximate == "none" || a.approximate == "tanh",
              "expected approximate to be none or tanh, got {0}", {a.approximate.str()}))
    m.setOutput(0, a.self.dims, a.self.dtype);
}

static void logicalNot(const LogicalNotArgs &a, MetaContext &m) {
  m.setOutput(0, a.self.dims, IntegerType::get(m.getContext(), 1));
}

static void where(const WhereArgs &a, MetaContext &m) {
  SmallVector<Dim> dims(a.condition.dims);
  if (m.check(1, a.condition.dtype.isInteger(1), "expected condition to be bool, got {0}",
              {a.condition.dtype}) &&
      m.check(2, a.self.dtype == a.other.dtype,
              "expected other to have the dtype of self, got {0} and {1}",
              {a.other.dtype, a.self.dtype}) &&
      m.broadcast(3, dims, "condition", a.self) &&
      m.broadcast(3, dims, "condition and self", a.other))
    m.setOutput(0, dims, a.self.dtype);
}

} // namespace quern::meta

#define GET_STRUCTURED_DEFS
#include "quern/Dialect/Quern/IR/Ops/Pointwise.structured.inc"

#define GET_OP_CLASSES
#include "quern/Dialect/Quern/IR/Ops/Pointwise.cpp.inc"
