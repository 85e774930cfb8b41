//===- Case.h - Recorded calls of ATen operators ----------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Reads files of recorded operator calls: a JSON list of cases with the tensors
/// in a .safetensors file beside it. test/Conformance/README.md describes the
/// format.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_LIB_CONFORMANCE_CASE_H
#define QUERN_LIB_CONFORMANCE_CASE_H

#include "quern/Import/ATen/ATen.h"
#include "quern/Support/HostTensor.h"
#include "llvm/Support/Error.h"
#include <variant>

namespace quern::conformance {

/// An argument as recorded. A std::monostate is None.
using CaseValue = std::variant<std::monostate, HostTensor, std::vector<HostTensor>, aten::Scalar,
                               llvm::SmallVector<int64_t>, std::string, DType>;

struct CaseArgument {
  std::string name;
  CaseValue value;
};

struct CaseOutput {
  /// The expected values; only dtype and dims count where `shapeOnly`.
  HostTensor tensor;
  bool shapeOnly = false;
};

/// The gradient of sum <cotangent, output> by an argument, or an element of a list.
struct CaseGradient {
  std::string argument;
  int64_t element = -1; ///< of a list, else -1
  HostTensor want;
};

struct OpCase {
  std::string id;
  std::string op;       ///< `add`
  std::string overload; ///< `add.Tensor`
  std::vector<CaseArgument> arguments;
  std::vector<CaseOutput> outputs;
  std::vector<HostTensor> cotangents; ///< one for each output; false where it has none
  std::vector<CaseGradient> gradients;
  double err64 = 0;
  /// `shape`, `dtype` or `value` for a call that is refused, else "".
  std::string refusal;
  std::string error; ///< what PyTorch said
  /// Why the case is beyond what the reader can express (complex numbers, …), or "".
  std::string unreadable;

  const CaseValue *find(llvm::StringRef argument) const;
};

/// The cases of `<name>.json` with the tensors of `<name>.safetensors`.
llvm::Expected<std::vector<OpCase>> readCases(llvm::StringRef jsonPath);

} // namespace quern::conformance
#endif // QUERN_LIB_CONFORMANCE_CASE_H
