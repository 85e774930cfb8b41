//===- ATen.h - Calls of ATen overloads as Quern ops ------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Builds what a call of an ATen overload means: what ATen does before its
/// kernels (type promotion, numbers as tensors, defaults, `alpha`, `dtype=`,
/// negative dims) happens here, the rest is Quern's ops. The C++ graph builder
/// and the conformance tool share it.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_IMPORT_ATEN_ATEN_H
#define QUERN_IMPORT_ATEN_ATEN_H

#include "mlir/IR/Builders.h"
#include "quern/Dialect/Quern/IR/DTypes.h"
#include "quern/Support/Compare.h"
#include "llvm/ADT/StringMap.h"
#include <variant>

namespace quern::aten {

/// A Python number as it was written: 2 and 2.0 stay apart.
struct Scalar {
  enum class Kind : uint8_t { Bool, Int, Float };
  static Scalar boolean(bool value) { return {Kind::Bool, value, double(value)}; }
  static Scalar integer(int64_t value) { return {Kind::Int, value, double(value)}; }
  static Scalar number(double value) { return {Kind::Float, 0, value}; }
  bool isFloat() const { return kind == Kind::Float; }
  /// Equal as a number, whatever its kind.
  bool is(int64_t value) const { return isFloat() ? asDouble == double(value) : asInt == value; }

  Kind kind;
  int64_t asInt; ///< 0 for a float
  double asDouble;
};

/// The value of one argument. A number where the schema says Tensor is a wrapped
/// number: it takes part in promotion by category only.
using Argument = std::variant<std::monostate, mlir::Value, llvm::SmallVector<mlir::Value>, Scalar,
                              llvm::SmallVector<int64_t>, std::string, mlir::Type>;
/// By schema name; what is left out has its default.
using Arguments = llvm::StringMap<Argument>;

class Call;

/// How many terms are summed into one element of the result.
enum class Terms : uint8_t {
  One,
  Reduced,    ///< the dims in `dim`; all where it is empty or left out
  LastDim,    ///< K of the first operand
  Window,     ///< of a convolution: Cin / groups * kernel
  Normalized, ///< the product of `normalized_shape`
  FirstDim,   ///< the batch
};

/// An overload that this front end knows.
struct Overload {
  llvm::StringLiteral name; ///< `add.Tensor`
  llvm::SmallVector<mlir::Value> (*build)(Call &call);
  Rounding rounding = Rounding::Exact;
  Terms terms = Terms::One;
  Rounding gradientRounding = rounding;
};

/// All of them, sorted by family.
llvm::ArrayRef<const Overload *> getOverloads();
/// Null when it is not known.
const Overload *lookupOverload(llvm::StringRef name);

/// Builds the call. A bad one is reported at `loc` (the op's meta error, or what
/// ATen refuses before it comes to a kernel) and fails; an unknown overload is
/// reported as `unsupported:`.
mlir::FailureOr<llvm::SmallVector<mlir::Value>> buildCall(mlir::OpBuilder &builder,
                                                          mlir::Location loc,
                                                          llvm::StringRef overload,
                                                          const Arguments &arguments);

} // namespace quern::aten
#endif // QUERN_IMPORT_ATEN_ATEN_H
