//===- Condition.h - Conditions on sizes, and facts -------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The little language of conditions beside `Dim`: equal, at most, divisible,
/// or. A condition is known true, known false or undecided under the facts at
/// hand.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_SHAPE_CONDITION_H
#define QUERN_SHAPE_CONDITION_H

#include "quern/Shape/Dim.h"
#include "llvm/ADT/StringSet.h"
#include <vector>

namespace quern {

enum class Truth : uint8_t { False, True, Undecided };

/// eq(a, b): a = b; le(a, b): a <= b; divides(a, b): a mod b = 0; exact(a): 64 bits compute a
/// (no step overflows or divides by a number below 1); anyOf: or.
class Condition {
public:
  enum class Kind : uint8_t { Eq, Le, Divides, Exact, Or };

  static Condition eq(Dim a, Dim b) { return Condition(Kind::Eq, a, b); }
  static Condition le(Dim a, Dim b) { return Condition(Kind::Le, a, b); }
  static Condition lt(Dim a, Dim b) { return Condition(Kind::Le, a + 1, b); }
  /// a is a multiple of b.
  static Condition divides(Dim b, Dim a) { return Condition(Kind::Divides, a, b); }
  static Condition exact(Dim a) { return Condition(Kind::Exact, a, a); }
  /// One of these holds; there is at least one.
  static Condition anyOf(llvm::ArrayRef<Condition> conditions);
  /// Equal, or one of them is 1: what a broadcast needs.
  static Condition broadcastable(Dim a, Dim b);

  Kind kind() const { return k; }
  Dim lhs() const { return a; }
  Dim rhs() const { return b; }
  llvm::ArrayRef<Condition> alternatives() const { return parts; }
  /// Of one that `broadcastable` made: its two sizes.
  std::optional<std::pair<Dim, Dim>> getBroadcast() const;

  Condition substitute(llvm::function_ref<Dim(llvm::StringRef)> fn) const;
  void walkSymbols(llvm::function_ref<void(llvm::StringRef)> fn) const;
  /// True when no unknown dim is in it, so that it can be checked at run time.
  bool isCheckable() const;
  /// Emits an i1 that tells whether the condition holds. One over sizes that are not exact
  /// does not.
  mlir::Value emit(mlir::OpBuilder &builder, mlir::Location loc,
                   llvm::function_ref<mlir::Value(llvm::StringRef)> symbol) const;
  /// Prints `a == b`, `a <= b`, `a mod b == 0`, `exact(a)`, and these with ` or ` between.
  void print(llvm::raw_ostream &os) const;
  std::string str() const;
  /// Round trip through an attribute (an ArrayAttr), for ops that carry one.
  mlir::Attribute toAttribute(mlir::MLIRContext *ctx) const;
  static mlir::FailureOr<Condition> fromAttribute(mlir::Attribute attr);
  friend bool operator==(const Condition &x, const Condition &y) {
    return x.k == y.k && x.a == y.a && x.b == y.b && x.parts == y.parts;
  }

private:
  Condition(Kind k, Dim a, Dim b) : k(k), a(a), b(b) {}
  /// The same condition on changed sizes.
  Condition map(llvm::function_ref<Dim(Dim)> fn) const;
  friend class Facts;

  Kind k;
  Dim a, b;
  std::vector<Condition> parts;
};

/// What is known of the symbols: ranges, divisors, and conditions that were
/// checked before. Every symbol is at least 0. Facts may stand on outer ones,
/// which they see and do not change: what a branch or one meta run assumes ends
/// with it. Answers are sound, never complete.
class Facts {
public:
  Facts() = default;
  /// Starts with what `outer` knows; it outlives these and does not change meanwhile.
  explicit Facts(const Facts *outer) : outer(outer) {}

  struct Range {
    int64_t min = 0;
    std::optional<int64_t> max;
    int64_t divisor = 1; ///< the symbol is a multiple of it
  };
  void setRange(llvm::StringRef symbol, Range range);
  Range getRange(llvm::StringRef symbol) const;
  /// Takes a condition as true from here on.
  void assume(const Condition &condition);
  Truth decide(const Condition &condition) const;
  /// Bounds of an expression; nothing where unbounded or unknown.
  std::optional<int64_t> lowerBound(Dim d) const;
  std::optional<int64_t> upperBound(Dim d) const;
  /// The expression with the equalities put in: sizes known equal mostly get one form.
  Dim normalize(Dim d) const;

private:
  struct Interval;
  Interval bounds(Dim normalized) const;
  Interval boundsOfParts(Dim normalized) const;
  int64_t knownDivisor(Dim normalized) const;
  Truth decideEq(Dim a, Dim b) const;
  Truth decideLe(Dim a, Dim b) const;
  Truth decideDivides(Dim divisor, Dim d) const;
  Truth decideOr(const Condition &condition) const;
  bool wasAssumed(const Condition &condition) const;
  void assumeEq(Dim a, Dim b);
  void assumeNonNegative(Dim d);
  void assumeMultiple(Dim d, int64_t divisor);
  std::string keyOf(const Condition &condition) const;
  template <typename T> std::optional<T> find(llvm::DenseMap<Dim, T> Facts::*map, Dim key) const;

  const Facts *outer = nullptr;
  llvm::StringMap<Range> ranges;
  /// Equalities, as replacements of atoms.
  llvm::DenseMap<Dim, Dim> replacements;
  /// Lower bounds of expressions without constant term and common coefficient.
  llvm::DenseMap<Dim, int64_t> minima;
  llvm::DenseMap<Dim, int64_t> divisors;
  /// Conditions that fit none of these, and their normal form as text.
  std::vector<Condition> others;
  llvm::StringSet<> otherKeys;
};

namespace detail {
struct RangeAttrStorage;
}

/// What a function's signature promises of a size, `#quern.range<1, 64, mod 8>`: least,
/// greatest (`_` or left out: no bound), a divisor. Functions carry a dictionary of them
/// by symbol in `quern.dims`.
class RangeAttr
    : public mlir::Attribute::AttrBase<RangeAttr, mlir::Attribute, detail::RangeAttrStorage> {
public:
  using Base::Base;
  static constexpr llvm::StringLiteral name = "quern.range";
  static constexpr llvm::StringLiteral dialectName = "quern";
  static constexpr llvm::StringLiteral getMnemonic() { return "range"; }
  static RangeAttr get(mlir::MLIRContext *ctx, const Facts::Range &range);
  Facts::Range getRange() const;
};

/// The dialect's hooks, brackets included.
mlir::Attribute parseRangeAttr(mlir::AsmParser &parser);
void printRangeAttr(RangeAttr attr, mlir::AsmPrinter &printer);

} // namespace quern

MLIR_DECLARE_EXPLICIT_TYPE_ID(quern::RangeAttr)

#endif // QUERN_SHAPE_CONDITION_H
