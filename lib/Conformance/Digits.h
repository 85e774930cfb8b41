//===- Digits.h - The handwritten digits ------------------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_LIB_CONFORMANCE_DIGITS_H
#define QUERN_LIB_CONFORMANCE_DIGITS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <vector>

namespace quern::conformance {

/// Rows of 64 pixels, divided by 16, and a label each.
struct Digits {
  std::vector<double> pixels;
  std::vector<int64_t> labels;
};

/// Reads digits.csv.gz: lines of 64 numbers from 0 to 16, then the label. Where there is no such
/// file: the digits that this program carries.
llvm::Expected<Digits> readDigits(llvm::StringRef path);

} // namespace quern::conformance
#endif // QUERN_LIB_CONFORMANCE_DIGITS_H
