//===- Dim.h - Symbolic sizes -----------------------------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A `Dim` is the size of a tensor along one dimension: a constant, an
/// expression over named symbols, or unknown. It is kept in one canonical form,
/// a sum of products of symbols and opaque atoms (floordiv, ceildiv, mod, min,
/// max, bcast), uniqued in the MLIR context: equal expressions are the same
/// pointer and print alike.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_SHAPE_DIM_H
#define QUERN_SHAPE_DIM_H

#include "mlir/IR/Attributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TensorEncoding.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace quern {
namespace detail {
struct DimAttrStorage;
struct DimsAttrStorage;
} // namespace detail

/// What an expression node is.
enum class DimKind : uint8_t {
  Unknown,  ///< `_`: a size without a name; never known equal to anything, itself included
  Constant, ///< 64-bit signed
  Symbol,   ///< a name; any string (printed quoted when it is no identifier)
  Sum,      ///< operands: two or more, in canonical order
  Product,  ///< operands: two or more, a constant coefficient first
  FloorDiv, ///< two operands; the divisor is positive
  CeilDiv,  ///< only with a divisor that is no constant (else written as a FloorDiv)
  Mod,
  Min, ///< two or more operands, as Max
  Max,
  Bcast, ///< two or more, each equal to the result or 1: the first that is not 1, else 1
};

/// The uniqued expression. Use it through `Dim`.
class DimAttr : public mlir::Attribute::AttrBase<DimAttr, mlir::Attribute, detail::DimAttrStorage> {
public:
  using Base::Base;
  static constexpr llvm::StringLiteral name = "quern.dim";
  static constexpr llvm::StringLiteral dialectName = "quern";
  static constexpr llvm::StringLiteral getMnemonic() { return "dim"; }
};

/// A size. A value type, one pointer wide; null only when default-constructed.
class Dim {
public:
  /// The largest expression that is kept; a larger one becomes unknown, so that
  /// hostile or degenerate programs cost no more than this per size.
  static constexpr uint32_t maxNodes = 1024;

  Dim() = default;
  explicit Dim(DimAttr attr) : attr(attr) {}

  static Dim unknown(mlir::MLIRContext *ctx);
  static Dim constant(mlir::MLIRContext *ctx, int64_t value);
  static Dim symbol(mlir::MLIRContext *ctx, llvm::StringRef name);

  explicit operator bool() const { return bool(attr); }
  DimAttr getAttr() const { return attr; }
  mlir::MLIRContext *getContext() const { return attr.getContext(); }

  DimKind kind() const;
  bool isUnknown() const { return kind() == DimKind::Unknown; }
  bool isConstant() const { return kind() == DimKind::Constant; }
  bool isConstant(int64_t value) const { return isConstant() && getConstant() == value; }
  bool isSymbol() const { return kind() == DimKind::Symbol; }
  int64_t getConstant() const;
  llvm::StringRef getSymbol() const;
  llvm::ArrayRef<Dim> operands() const;
  /// A symbol or an opaque op: what products are made of.
  bool isAtom() const { return isSymbol() || kind() > DimKind::Product; }
  /// A lower bound where every symbol is at least 0; INT64_MIN when there is none.
  int64_t getMinimum() const;
  /// A bound: its absolute value, and that of each step of computing it, is below 2^bits where
  /// every symbol is the size of a tensor that a caller passes.
  unsigned getMaxBits() const;
  /// Whether computing it in 64 bits gives its value for all such sizes: no step overflows, none
  /// divides by a number below 1.
  bool isExact() const;

  /// The structural order in which operands are kept, the same in every run.
  static bool before(Dim a, Dim b);

  /// Same expression. Unknown dims compare equal as pointers, which says nothing
  /// about their sizes: ask `Facts::decide(Condition::eq(…))` for that.
  friend bool operator==(Dim a, Dim b) { return a.attr == b.attr; }
  friend bool operator!=(Dim a, Dim b) { return a.attr != b.attr; }

  friend Dim operator+(Dim a, Dim b);
  friend Dim operator-(Dim a, Dim b);
  friend Dim operator*(Dim a, Dim b);
  Dim operator+(int64_t c) const { return *this + constant(getContext(), c); }
  Dim operator-(int64_t c) const { return *this - constant(getContext(), c); }
  Dim operator*(int64_t c) const { return *this * constant(getContext(), c); }
  static Dim floorDiv(Dim a, Dim b);
  static Dim ceilDiv(Dim a, Dim b);
  static Dim mod(Dim a, Dim b);
  static Dim min(Dim a, Dim b);
  static Dim max(Dim a, Dim b);
  static Dim bcast(Dim a, Dim b);
  /// The product of all: the number of elements. 1 for none.
  static Dim product(mlir::MLIRContext *ctx, llvm::ArrayRef<Dim> dims);

  /// Calls `fn` for every symbol in the expression, repeats included.
  void walkSymbols(llvm::function_ref<void(llvm::StringRef)> fn) const;
  /// Replaces symbols; one that `fn` answers with null stays.
  Dim substitute(llvm::function_ref<Dim(llvm::StringRef)> fn) const;
  /// Replaces atoms, inner ones first (an opaque op is shown with its operands
  /// already replaced); one that `fn` answers with null stays.
  Dim replaceAtoms(llvm::function_ref<Dim(Dim)> fn) const;
  /// The value under an assignment of symbols, or nothing when one is missing,
  /// the expression is unknown, or it divides by zero.
  std::optional<int64_t>
  evaluate(llvm::function_ref<std::optional<int64_t>(llvm::StringRef)> fn) const;

  /// Prints as in IR: `_`, `2*S + 1`, `floordiv(S, 2)`, `bcast(A, B)`.
  void print(llvm::raw_ostream &os) const;
  std::string str() const;

private:
  DimAttr attr;
};

inline llvm::raw_ostream &operator<<(llvm::raw_ostream &os, Dim d) {
  d.print(os);
  return os;
}

inline mlir::Diagnostic &operator<<(mlir::Diagnostic &diagnostic, Dim d) {
  return diagnostic << d.str();
}

/// The encoding of a tensor type: the names of its dynamic dims, in order:
/// `tensor<?x384x?xf32, #quern.dims<B, 2*S+1>>`. It tolerates dims that became
/// static (upstream folders keep the encoding): entries are matched to the
/// dynamic dims only when the counts agree, or to all dims of the rank when the
/// count is the rank's.
class DimsAttr
    : public mlir::Attribute::AttrBase<DimsAttr, mlir::Attribute, detail::DimsAttrStorage,
                                       mlir::VerifiableTensorEncoding::Trait> {
public:
  using Base::Base;
  static constexpr llvm::StringLiteral name = "quern.dims";
  static constexpr llvm::StringLiteral dialectName = "quern";
  static constexpr llvm::StringLiteral getMnemonic() { return "dims"; }
  static DimsAttr get(mlir::MLIRContext *ctx, llvm::ArrayRef<Dim> dims);
  llvm::ArrayRef<Dim> getDims() const;
  /// One entry for each dynamic dim at least, for each dim at most; a dynamic dim is no number.
  mlir::LogicalResult
  verifyEncoding(llvm::ArrayRef<int64_t> shape, mlir::Type elementType,
                 llvm::function_ref<mlir::InFlightDiagnostic()> emitError) const;
};

/// The sizes of a ranked tensor type: constants where static, the encoding's
/// names where dynamic, unknown where there is no encoding.
llvm::SmallVector<Dim> getDims(mlir::RankedTensorType type);

/// The tensor type with these sizes: static where constant, else `?` with an
/// encoding (left out when every dynamic dim is unknown).
mlir::RankedTensorType getTensorType(llvm::ArrayRef<Dim> dims, mlir::Type elementType);

/// The type without its encoding.
mlir::RankedTensorType stripEncoding(mlir::RankedTensorType type);

/// Emits index arithmetic for the expression before the builder's insertion
/// point; `symbol` answers the value of a symbol. The expression has no unknown.
mlir::Value emitDim(mlir::OpBuilder &builder, mlir::Location loc, Dim dim,
                    llvm::function_ref<mlir::Value(llvm::StringRef)> symbol);

/// Parses a size as it is printed.
mlir::FailureOr<Dim> parseDim(mlir::AsmParser &parser);
/// The dialect's hooks: parse and print what follows the mnemonic of #quern.dim and
/// #quern.dims, brackets included.
mlir::Attribute parseDimAttr(mlir::AsmParser &parser);
mlir::Attribute parseDimsAttr(mlir::AsmParser &parser);
/// Parses the text form without a parser at hand (option values, symbol facts).
mlir::FailureOr<Dim> parseDim(mlir::MLIRContext *ctx, llvm::StringRef text);
void printDimsAttr(DimsAttr attr, mlir::AsmPrinter &printer);

} // namespace quern

namespace llvm {
template <> struct DenseMapInfo<quern::Dim> {
  static quern::Dim getEmptyKey() {
    return quern::Dim(DenseMapInfo<quern::DimAttr>::getEmptyKey());
  }
  static quern::Dim getTombstoneKey() {
    return quern::Dim(DenseMapInfo<quern::DimAttr>::getTombstoneKey());
  }
  static unsigned getHashValue(quern::Dim d) {
    return DenseMapInfo<quern::DimAttr>::getHashValue(d.getAttr());
  }
  static bool isEqual(quern::Dim a, quern::Dim b) { return a == b; }
};
} // namespace llvm

MLIR_DECLARE_EXPLICIT_TYPE_ID(quern::DimAttr)
MLIR_DECLARE_EXPLICIT_TYPE_ID(quern::DimsAttr)

#endif // QUERN_SHAPE_DIM_H
