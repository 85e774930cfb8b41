//===- Compare.h - Is this tensor what was expected? ------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Comparison of results with expected ones, and the one table of tolerances
/// (docs/numerics.md shows it). Dtype and shape must be equal; NaN equals NaN;
/// infinities must be equal; integers and bool are compared exactly.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_SUPPORT_COMPARE_H
#define QUERN_SUPPORT_COMPARE_H

#include "quern/Support/HostTensor.h"
#include "llvm/Support/Error.h"

namespace quern {

/// What is allowed for one tensor. Element by element:
/// |got - want| <= max(atol * s + rtol * |want|, floor * max(1, |want|)), s being
/// the largest finite |want| of the tensor where `scaleByMax` and over 1, else 1.
/// With `maxRel` instead: max |got - want| <= maxRel * max |want|.
struct Tolerance {
  double rtol = 0;
  double atol = 0;
  double floor = 0;
  bool scaleByMax = false;
  std::optional<double> maxRel;
};

/// How a result is computed, as far as rounding goes.
enum class Rounding : uint8_t {
  Exact,        ///< copies, indexing, comparisons, max, and + - * / sqrt one at a time
  Pointwise,    ///< functions of single elements
  Accumulating, ///< sums and what is made of them
};

/// The table: by dtype, kind of rounding, the number of terms summed into one
/// element of the result, gradient or not. `err64` is how far the reference is from
/// the same in f64 (relative to max(1, |x|)); 8 times that is always allowed.
Tolerance getTolerance(DType dtype, Rounding rounding, int64_t terms = 1, bool gradient = false,
                       double err64 = 0);

/// ONNX's backend tests: rtol 1e-3, atol 1e-7, or what the folder's data.json says
/// (keys rtol, atol, max_rel). A missing file is the default.
llvm::Expected<Tolerance> readOnnxTolerance(llvm::StringRef dataJson);

struct Comparison {
  bool ok = true;
  /// The largest |got - want|; infinity where NaN, infinities, dtype or shape differ.
  double maxError = 0;
  /// Element of the largest violation (of the largest error where ok), row-major;
  /// -1 when there are no elements or dtype or shape differ.
  int64_t where = -1;
  /// Why it is not ok: "element [1, 2]: got 3.5, expected 3.25, allowed error 1e-06".
  std::string message;
};

Comparison compare(const HostTensor &got, const HostTensor &want, const Tolerance &tolerance);

} // namespace quern
#endif // QUERN_SUPPORT_COMPARE_H
