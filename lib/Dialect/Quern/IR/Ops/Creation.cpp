//===- Creation.cpp - Tensors from attributes ---------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Dialect/Quern/IR/Ops/Creation.h"
#include "llvm/Support/Format.h"
#include <cmath>

#define GET_STRUCTURED_ARGS
#include "quern/Dialect/Quern/IR/Ops/Creation.structured.inc"

using namespace mlir;

namespace quern::meta {

static bool checkNumberDtype(unsigned number, Type dtype, MetaContext &m) {
  return m.check(number, isa<FloatType>(dtype) || (isa<IntegerType>(dtype) && !dtype.isInteger(1)),
                 "expected dtype to be a float or integer dtype, got {0}", {dtype});
}

static void full(const FullArgs &a, MetaContext &m) {
  if (m.checkSizes(1, a.size, "size") &&
      m.check(2, isa<FloatType, IntegerType>(a.dtype),
              "expected dtype to be a float, integer or bool dtype, got {0}", {a.dtype}))
    m.setOutput(0, a.size, a.dtype);
}

static std::string toText(const Scalar &s) {
  if (s.integer)
    return std::to_string(*s.integer);
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%g", s.number);
  return text;
}

static void arange(const ArangeArgs &a, MetaContext &m) {
  Scalar start = a.start ? Scalar(a.start) : Scalar(0), end(a.end),
         step = a.step ? Scalar(a.step) : Scalar(1);
  SmallVector<MetaArg> numbers = {toText(start), toText(end), toText(step)};
  if (!m.check(1, step.number != 0, "expected step to be other than 0"))
    return;
  if (!m.check(
          2, std::isfinite(start.number) && std::isfinite(end.number) && std::isfinite(step.number),
          "expected start, end and step to be finite, got {0}, {1} and {2}", numbers))
    return;
  if (!m.check(3, step.number > 0 ? start.number <= end.number : start.number >= end.number,
               "expected end to lie in step's direction from start, got {0}, {1} and {2}", numbers))
    return;
  if (!checkNumberDtype(4, a.dtype, m))
    return;
  int64_t length;
  if (start.integer && end.integer && step.integer) {
    __int128 distance = __int128(*end.integer) - *start.integer, by = *step.integer;
    length = int64_t((distance + by - (by > 0 ? 1 : -1)) / by);
  } else {
    length = int64_t(std::ceil((end.number - start.number) / step.number));
  }
  m.setOutput(0, m.constant(length), a.dtype);
}

static void iota(const IotaArgs &a, MetaContext &m) {
  if (m.check(1, Condition::le(m.constant(0), a.size), "expected size to be at least 0, got {0}",
              {a.size}) &&
      checkNumberDtype(2, a.dtype, m))
    m.setOutput(0, a.size, a.dtype);
}

static void dimValue(const DimValueArgs &a, MetaContext &m) {
  if (checkNumberDtype(1, a.dtype, m))
    m.setOutput(0, {}, a.dtype);
}

} // namespace quern::meta

#define GET_STRUCTURED_DEFS
#include "quern/Dialect/Quern/IR/Ops/Creation.structured.inc"

#define GET_OP_CLASSES
#include "quern/Dialect/Quern/IR/Ops/Creation.cpp.inc"
