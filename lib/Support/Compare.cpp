//===- Compare.cpp - Is this tensor what was expected? --------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Support/Compare.h"
#include "quern/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <limits>

using namespace llvm;

namespace quern {

namespace {
/// A row of the table: rtol = atol. Accumulating is base + slope * sqrt(terms).
struct Row {
  double pointwise, base, slope;
  double gradientFactor;
};
} // namespace

static Row getRow(DType dtype) {
  switch (dtype) {
  case DType::F64:
    return {1e-14, 0, 1e-14, 4};
  case DType::F32:
    return {1e-6, 0, 5e-7, 4};
  case DType::F16:
    return {1e-3, 1e-3, 1e-6, 1};
  case DType::BF16:
    return {8e-3, 8e-3, 1e-6, 1};
  default:
    return {0, 0, 0, 1};
  }
}

Tolerance getTolerance(DType dtype, Rounding rounding, int64_t terms, bool gradient, double err64) {
  Row row = getRow(dtype);
  double value = 0;
  if (rounding == Rounding::Pointwise)
    value = row.pointwise;
  else if (rounding == Rounding::Accumulating)
    value = row.base + row.slope * std::sqrt(double(std::max<int64_t>(terms, 1)));
  if (gradient)
    value *= row.gradientFactor;
  Tolerance tolerance;
  tolerance.rtol = tolerance.atol = value;
  tolerance.scaleByMax = true;
  if (isFloat(dtype) && std::isfinite(err64))
    tolerance.floor = 8 * err64;
  return tolerance;
}

Expected<Tolerance> readOnnxTolerance(StringRef dataJson) {
  Tolerance tolerance;
  tolerance.rtol = 1e-3;
  tolerance.atol = 1e-7;
  if (!sys::fs::exists(dataJson))
    return tolerance;
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer = MemoryBuffer::getFile(dataJson);
  if (!buffer)
    return invalidInput(dataJson + ": " + buffer.getError().message());
  Expected<json::Value> value = json::parse((*buffer)->getBuffer());
  if (!value)
    return invalidInput(dataJson + ": " + toString(value.takeError()));
  const json::Object *object = value->getAsObject();
  if (!object)
    return invalidInput(dataJson + ": expected an object");
  if (std::optional<double> number = object->getNumber("rtol"))
    tolerance.rtol = *number;
  if (std::optional<double> number = object->getNumber("atol"))
    tolerance.atol = *number;
  tolerance.maxRel = object->getNumber("max_rel");
  return tolerance;
}

static std::string indexString(ArrayRef<int64_t> dims, int64_t flat) {
  SmallVector<int64_t> index(dims.size());
  for (int64_t i = int64_t(dims.size()) - 1; i >= 0; --i) {
    index[i] = flat % dims[i];
    flat /= dims[i];
  }
  std::string text;
  raw_string_ostream os(text);
  os << '[';
  interleaveComma(index, os);
  os << ']';
  return text;
}

/// |a - b|, zero for NaN and NaN, infinity where only one is NaN or infinite.
static double difference(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b)))
    return 0;
  if (!std::isfinite(a) || !std::isfinite(b))
    return std::numeric_limits<double>::infinity();
  return std::fabs(a - b);
}

static void describe(Comparison &result, const HostTensor &got, const HostTensor &want,
                     double allowed) {
  raw_string_ostream os(result.message);
  os << "element " << indexString(want.dims(), result.where) << ": got ";
  if (isFloat(want.dtype()))
    os << format("%.17g, expected %.17g, allowed error %.3g", got.getDouble(result.where),
                 want.getDouble(result.where), allowed);
  else
    os << got.getInt(result.where) << ", expected " << want.getInt(result.where);
}

static Comparison compareIntegers(const HostTensor &got, const HostTensor &want) {
  Comparison result;
  for (int64_t i = 0; i < want.numElements(); ++i) {
    if (got.getInt(i) == want.getInt(i))
      continue;
    double error = std::fabs(got.getDouble(i) - want.getDouble(i));
    if (result.ok || error > result.maxError)
      result.where = i;
    // Distinct 64-bit integers may round to the same double.
    result.maxError = std::max({result.maxError, error, 1.0});
    result.ok = false;
  }
  if (!result.ok)
    describe(result, got, want, 0);
  return result;
}

Comparison compare(const HostTensor &got, const HostTensor &want, const Tolerance &tolerance) {
  Comparison result;
  if (got.dtype() != want.dtype() || got.dims() != want.dims()) {
    result.ok = false;
    result.maxError = std::numeric_limits<double>::infinity();
    result.message = "got " + got.typeString() + ", expected " + want.typeString();
    return result;
  }
  if (!isFloat(want.dtype()))
    return compareIntegers(got, want);

  double largest = 0;
  for (int64_t i = 0; i < want.numElements(); ++i)
    if (double x = std::fabs(want.getDouble(i)); std::isfinite(x))
      largest = std::max(largest, x);
  double scale = tolerance.scaleByMax ? std::max(1.0, largest) : 1.0;
  double worst = 0; // the largest error, or, once one is not allowed, the largest excess
  double worstAllowed = 0;
  for (int64_t i = 0; i < want.numElements(); ++i) {
    double expected = want.getDouble(i);
    double error = difference(got.getDouble(i), expected);
    double allowed = 0;
    if (tolerance.maxRel)
      allowed = *tolerance.maxRel * largest;
    else if (std::isfinite(expected))
      allowed = std::max(tolerance.atol * scale + tolerance.rtol * std::fabs(expected),
                         tolerance.floor * std::max(1.0, std::fabs(expected)));
    bool bad = !(error <= allowed);
    double rank = bad ? error - allowed : error;
    if ((bad && result.ok) || (bad == !result.ok && (rank > worst || result.where < 0))) {
      worst = rank;
      worstAllowed = allowed;
      result.where = i;
    }
    if (bad)
      result.ok = false;
    result.maxError = std::max(result.maxError, error);
  }
  if (!result.ok)
    describe(result, got, want, worstAllowed);
  return result;
}

} // namespace quern
