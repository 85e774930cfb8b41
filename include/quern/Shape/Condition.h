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

namespace quern {

enum class Truth : uint8_t { False, True, Undecided };

/// eq(a, b): a = b; le(a, b): a <= b; divides(a, b): a mod b = 0; anyOf: or.
class Condition {
public:
  enum class Kind : uint8_t { Eq, Le, Divides, Or };

  static Condition eq(Dim a, Dim b) { return Condition(Kind::Eq, a, b); }
  static Condition le(Dim a, Dim b) { return Condition(Kind::Le, a, b); }
  static Condition lt(Dim a, Dim b) { return Condition(Kind::Le, a + 1, b); }
  /// a is a multiple of b.
  static Condition divides(Dim b, Dim a) { return Condition(Kind::Divides, a, b); }
  static Condition anyOf(llvm::ArrayRef<Condition> conditions);
  /// Equal, or one of them is 1: what a broadcast needs.
  static Condition broadcastable(Dim a, Dim b);

  Kind kind() const { return k; }
  Dim lhs() const { return a; }
  Dim rhs() const { return b; }
  llvm::ArrayRef<Condition> alternatives() const { return parts; }

  Condition substitute(llvm::function_ref<Dim(llvm::StringRef)> fn) const;
  void walkSymbols(llvm::function_ref<void(llvm::StringRef)> fn) const;
  /// True when no unknown dim is in it, so that it can be checked at run time.
  bool isCheckable() const;
  /// Emits an i1 that tells whether the condition holds.
  mlir::Value emit(mlir::OpBuilder &builder, mlir::Location loc,
                   llvm::function_ref<mlir::Value(llvm::StringRef)> symbol) const;
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
  Kind k;
  Dim a, b;
  std::vector<Condition> parts;
};

/// What is known of the symbols: ranges, divisors, and conditions that were
/// checked before. Every symbol is at least 0.
class Facts {
public:
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

private:
  llvm::StringMap<Range> ranges;
  std::vector<Condition> assumed;
};

} // namespace quern
#endif // QUERN_SHAPE_CONDITION_H
