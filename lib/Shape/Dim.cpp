//===- Dim.cpp - Symbolic sizes in canonical form -------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Every operation takes canonical operands apart into a sum of terms
/// (coefficient times sorted atoms), works on those, and puts the result together
/// again. Nothing here depends on addresses: order is structural.
///
/// Numbers are integers of any size as far as the rules go; what does not fit in
/// 64 bits, or grows beyond `Dim::maxNodes`, becomes unknown. A division is only
/// meaningful where its divisor is positive: `floordiv(B*S, S)` is `B`, though S
/// may be 0 (who divides by a size guards it).
///
//===----------------------------------------------------------------------===//

#include "quern/Shape/Dim.h"
#include "quern-c/Runtime.h"
#include "quern/Shape/DimStorage.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;

MLIR_DEFINE_EXPLICIT_TYPE_ID(quern::DimAttr)
MLIR_DEFINE_EXPLICIT_TYPE_ID(quern::DimsAttr)

namespace quern {

static constexpr int64_t noMinimum = std::numeric_limits<int64_t>::min();

//===----------------------------------------------------------------------===//
// Storage
//===----------------------------------------------------------------------===//

/// Sum of two lower bounds. One that is too large for 64 bits is cut down, which
/// is still a lower bound.
static int64_t addMinimum(int64_t a, int64_t b) {
  if (a == noMinimum || b == noMinimum)
    return noMinimum;
  int64_t r;
  if (llvm::AddOverflow(a, b, r))
    return a > 0 ? std::numeric_limits<int64_t>::max() : noMinimum;
  return r;
}

// For b >= 1. Neither overflows: a = floorDivide(a, b) * b + floorRest(a, b).
static int64_t floorDivide(int64_t a, int64_t b) { return llvm::divideFloorSigned(a, b); }
static int64_t floorRest(int64_t a, int64_t b) { return a % b < 0 ? a % b + b : a % b; }

static const detail::DimAttrStorage *storage(Dim d) {
  return static_cast<const detail::DimAttrStorage *>(d.getAttr().getImpl());
}

static int64_t minimumOf(const detail::DimAttrStorage::KeyTy &key) {
  auto min = [](Dim d) { return storage(d)->minimum; };
  ArrayRef<Dim> ops = key.operands;
  switch (key.kind) {
  case DimKind::Unknown:
    return noMinimum;
  case DimKind::Constant:
    return key.value;
  case DimKind::Symbol:
  case DimKind::Mod:
    return 0;
  case DimKind::Sum:
    return std::accumulate(ops.begin(), ops.end(), int64_t(0),
                           [&](int64_t sum, Dim d) { return addMinimum(sum, min(d)); });
  case DimKind::Product: {
    int64_t product = 1;
    for (Dim d : ops) {
      if (min(d) < 0)
        return noMinimum;
      if (llvm::MulOverflow(product, min(d), product))
        product = std::numeric_limits<int64_t>::max();
    }
    return product;
  }
  case DimKind::FloorDiv:
    if (ops[1].isConstant() && min(ops[0]) != noMinimum)
      return floorDivide(min(ops[0]), ops[1].getConstant());
    return min(ops[0]) >= 0 ? 0 : noMinimum;
  case DimKind::CeilDiv:
    return min(ops[0]) >= 0 ? 0 : noMinimum;
  case DimKind::Max:
    return min(*llvm::max_element(ops, [&](Dim a, Dim b) { return min(a) < min(b); }));
  case DimKind::Min:
  case DimKind::Bcast:
    return min(*llvm::min_element(ops, [&](Dim a, Dim b) { return min(a) < min(b); }));
  }
  llvm_unreachable("unknown kind of size");
}

detail::DimAttrStorage *detail::DimAttrStorage::construct(AttributeStorageAllocator &allocator,
                                                          const KeyTy &key) {
  KeyTy copy{key.kind, key.value, allocator.copyInto(key.symbol), allocator.copyInto(key.operands)};
  auto *result = new (allocator.allocate<DimAttrStorage>()) DimAttrStorage(copy);
  for (Dim d : copy.operands)
    result->nodes += storage(d)->nodes;
  result->minimum = minimumOf(copy);
  return result;
}

static Dim make(MLIRContext *ctx, detail::DimAttrStorage::KeyTy key) {
  uint32_t nodes = 1;
  for (Dim d : key.operands)
    nodes += storage(d)->nodes;
  if (nodes > Dim::maxNodes)
    return Dim::unknown(ctx);
  return Dim(DimAttr::Base::get(ctx, key));
}

static Dim make(DimKind kind, ArrayRef<Dim> operands) {
  return make(operands.front().getContext(), {kind, 0, {}, operands});
}

Dim Dim::unknown(MLIRContext *ctx) { return make(ctx, {DimKind::Unknown}); }
Dim Dim::constant(MLIRContext *ctx, int64_t value) { return make(ctx, {DimKind::Constant, value}); }
Dim Dim::symbol(MLIRContext *ctx, StringRef name) { return make(ctx, {DimKind::Symbol, 0, name}); }

DimKind Dim::kind() const { return storage(*this)->key.kind; }
int64_t Dim::getConstant() const { return storage(*this)->key.value; }
StringRef Dim::getSymbol() const { return storage(*this)->key.symbol; }
ArrayRef<Dim> Dim::operands() const { return storage(*this)->key.operands; }
int64_t Dim::getMinimum() const { return storage(*this)->minimum; }

DimsAttr DimsAttr::get(MLIRContext *ctx, ArrayRef<Dim> dims) { return Base::get(ctx, dims); }
ArrayRef<Dim> DimsAttr::getDims() const { return getImpl()->dims; }

//===----------------------------------------------------------------------===//
// Terms
//===----------------------------------------------------------------------===//

static int compareLists(ArrayRef<Dim> a, ArrayRef<Dim> b);

/// Structural order: symbols by name before opaque atoms by kind and operands.
static int compare(Dim a, Dim b) {
  if (a == b)
    return 0;
  if (a.kind() != b.kind())
    return a.kind() < b.kind() ? -1 : 1;
  if (a.isConstant())
    return a.getConstant() < b.getConstant() ? -1 : 1;
  if (a.isSymbol())
    return a.getSymbol() < b.getSymbol() ? -1 : 1;
  return compareLists(a.operands(), b.operands());
}

static int compareLists(ArrayRef<Dim> a, ArrayRef<Dim> b) {
  for (auto [x, y] : llvm::zip(a, b))
    if (int c = compare(x, y))
      return c;
  return a.size() == b.size() ? 0 : a.size() < b.size() ? -1 : 1;
}

bool Dim::before(Dim a, Dim b) { return compare(a, b) < 0; }

namespace {
/// coefficient * atom * atom …; atoms are sorted, and none for the constant term.
struct Term {
  int64_t coefficient;
  SmallVector<Dim, 2> atoms;
};
using Terms = SmallVector<Term, 4>;
} // namespace

static Term termOf(Dim d) {
  if (d.isConstant())
    return {d.getConstant(), {}};
  if (d.kind() != DimKind::Product)
    return {1, {d}};
  ArrayRef<Dim> ops = d.operands();
  if (!ops.front().isConstant())
    return {1, SmallVector<Dim, 2>(ops)};
  return {ops.front().getConstant(), SmallVector<Dim, 2>(ops.drop_front())};
}

static Terms termsOf(Dim d) {
  Terms terms;
  if (d.kind() == DimKind::Sum)
    for (Dim op : d.operands())
      terms.push_back(termOf(op));
  else if (!d.isConstant(0))
    terms.push_back(termOf(d));
  return terms;
}

/// The canonical expression of a sum of terms in any order. Coefficients are
/// merged; the constant term comes last.
static Dim fromTerms(MLIRContext *ctx, Terms terms) {
  llvm::sort(terms, [](const Term &a, const Term &b) {
    if (a.atoms.empty() || b.atoms.empty())
      return b.atoms.empty() && !a.atoms.empty();
    return compareLists(a.atoms, b.atoms) < 0;
  });
  Terms merged;
  for (Term &term : terms) {
    if (merged.empty() || merged.back().atoms != term.atoms)
      merged.push_back(std::move(term));
    else if (llvm::AddOverflow(merged.back().coefficient, term.coefficient,
                               merged.back().coefficient))
      return Dim::unknown(ctx);
  }
  llvm::erase_if(merged, [](const Term &term) { return term.coefficient == 0; });

  SmallVector<Dim> operands;
  for (const Term &term : merged) {
    SmallVector<Dim> factors;
    if (term.coefficient != 1 || term.atoms.empty())
      factors.push_back(Dim::constant(ctx, term.coefficient));
    llvm::append_range(factors, term.atoms);
    operands.push_back(factors.size() == 1 ? factors.front() : make(DimKind::Product, factors));
    if (operands.back().isUnknown())
      return operands.back();
  }
  if (operands.empty())
    return Dim::constant(ctx, 0);
  return operands.size() == 1 ? operands.front() : make(DimKind::Sum, operands);
}

static Dim unknownLike(Dim d) { return Dim::unknown(d.getContext()); }

Dim operator+(Dim a, Dim b) {
  if (a.isUnknown() || b.isUnknown())
    return unknownLike(a);
  if (a.isConstant(0))
    return b;
  if (b.isConstant(0))
    return a;
  Terms terms = termsOf(a);
  llvm::append_range(terms, termsOf(b));
  return fromTerms(a.getContext(), std::move(terms));
}

Dim operator-(Dim a, Dim b) { return a + b * -1; }

Dim operator*(Dim a, Dim b) {
  if (a.isConstant(0) || b.isConstant(1))
    return a;
  if (b.isConstant(0) || a.isConstant(1))
    return b;
  if (a.isUnknown() || b.isUnknown())
    return unknownLike(a);
  Terms left = termsOf(a), right = termsOf(b), product;
  if (left.size() * right.size() > Dim::maxNodes)
    return unknownLike(a);
  for (const Term &x : left)
    for (const Term &y : right) {
      Term term;
      if (llvm::MulOverflow(x.coefficient, y.coefficient, term.coefficient))
        return unknownLike(a);
      std::merge(x.atoms.begin(), x.atoms.end(), y.atoms.begin(), y.atoms.end(),
                 std::back_inserter(term.atoms), Dim::before);
      product.push_back(std::move(term));
    }
  return fromTerms(a.getContext(), std::move(product));
}

Dim Dim::product(MLIRContext *ctx, ArrayRef<Dim> dims) {
  Dim result = constant(ctx, 1);
  for (Dim d : dims)
    result = result * d;
  return result;
}

//===----------------------------------------------------------------------===//
// Division
//===----------------------------------------------------------------------===//

/// Takes the atoms of `divisor` out of those of `dividend`, if they are all there.
static bool divideAtoms(ArrayRef<Dim> dividend, ArrayRef<Dim> divisor,
                        SmallVectorImpl<Dim> &quotient) {
  quotient.clear();
  for (Dim d : dividend) {
    if (!divisor.empty() && d == divisor.front())
      divisor = divisor.drop_front();
    else
      quotient.push_back(d);
  }
  return divisor.empty();
}

/// A positive common divisor, the greatest one that fits.
static int64_t commonDivisor(int64_t a, int64_t b) {
  uint64_t gcd = std::gcd(llvm::AbsoluteValue(a), llvm::AbsoluteValue(b));
  return gcd > uint64_t(std::numeric_limits<int64_t>::max()) ? 1 : gcd;
}

static bool divideTerm(const Term &dividend, const Term &divisor, Term &quotient) {
  if (llvm::divideSignedWouldOverflow(dividend.coefficient, divisor.coefficient) ||
      dividend.coefficient % divisor.coefficient != 0 ||
      !divideAtoms(dividend.atoms, divisor.atoms, quotient.atoms))
    return false;
  quotient.coefficient = dividend.coefficient / divisor.coefficient;
  return true;
}

/// a / b when the polynomial division leaves no remainder; else null.
static Dim divideExactly(Dim a, Dim b) {
  // The leading term is one of the highest degree, the first of them in order.
  auto leading = [](const Terms &terms) -> const Term & {
    return *llvm::max_element(terms, [](const Term &x, const Term &y) {
      return x.atoms.size() < y.atoms.size() ||
             (x.atoms.size() == y.atoms.size() && compareLists(x.atoms, y.atoms) > 0);
    });
  };
  Terms divisor = termsOf(b), quotient;
  const Term &first = leading(divisor);
  // Each step removes a leading term and adds only smaller ones: it ends, and an
  // exact division takes one step for each term of the quotient.
  for (unsigned steps = 0; !a.isConstant(0); ++steps) {
    if (a.isUnknown() || steps > 64)
      return Dim();
    Term term;
    if (!divideTerm(leading(termsOf(a)), first, term))
      return Dim();
    quotient.push_back(term);
    a = a - fromTerms(a.getContext(), Terms{term}) * b;
  }
  return fromTerms(a.getContext(), std::move(quotient));
}

namespace {
/// a = quotient * b + rest, as far as that can be seen term by term.
struct Split {
  Terms quotient, rest;
};
} // namespace

/// For a constant divisor the coefficients of the rest are in [0, k).
static Split splitByConstant(Dim a, int64_t k) {
  Split split;
  for (Term &term : termsOf(a)) {
    int64_t q = floorDivide(term.coefficient, k), r = floorRest(term.coefficient, k);
    if (q)
      split.quotient.push_back({q, term.atoms});
    if (r)
      split.rest.push_back({r, term.atoms});
  }
  return split;
}

/// The multiples of a divisor that is one term are split off; factors that the
/// rest and the divisor have in common are taken out of both.
static Split splitBySymbols(Dim a, Dim &b) {
  Split split;
  if (b.kind() == DimKind::Sum) {
    split.rest = termsOf(a);
    return split;
  }
  Term divisor = termOf(b), part;
  for (Term &term : termsOf(a)) {
    if (divideTerm(term, divisor, part))
      split.quotient.push_back(part);
    else
      split.rest.push_back(term);
  }
  SmallVector<Dim, 2> common, kept;
  int64_t gcd = commonDivisor(divisor.coefficient, 0);
  for (const Term &term : split.rest)
    gcd = commonDivisor(gcd, term.coefficient);
  for (Dim atom : divisor.atoms) {
    common.push_back(atom);
    SmallVector<Dim, 2> quotient;
    if (!llvm::all_of(split.rest,
                      [&](const Term &term) { return divideAtoms(term.atoms, common, quotient); }))
      kept.push_back(common.pop_back_val());
  }
  for (Term &term : split.rest)
    divideTerm(Term(term), {gcd, common}, term);
  b = fromTerms(b.getContext(), Terms{{divisor.coefficient / gcd, kept}});
  return split;
}

Dim Dim::floorDiv(Dim a, Dim b) {
  MLIRContext *ctx = a.getContext();
  if (a.isConstant(0) || b.isConstant(1))
    return a;
  if (a.isUnknown() || b.isUnknown() || (b.isConstant() && b.getConstant() <= 0))
    return unknown(ctx);
  if (!b.isConstant()) {
    if (Dim exact = divideExactly(a, b))
      return exact;
    Split split = splitBySymbols(a, b);
    Dim rest = fromTerms(ctx, split.rest);
    Dim atom = b.isConstant() || rest.isConstant(0) ? floorDiv(rest, b)
                                                    : make(DimKind::FloorDiv, {rest, b});
    return fromTerms(ctx, split.quotient) + atom;
  }

  int64_t k = b.getConstant(), offset = 0;
  Split split = splitByConstant(a, k);
  Dim quotient = fromTerms(ctx, split.quotient);
  if (!split.rest.empty() && split.rest.back().atoms.empty())
    offset = split.rest.pop_back_val().coefficient;
  if (split.rest.empty())
    return quotient;
  // floor((g*x + c) / (g*k)) = floor((x + floor(c/g)) / k).
  int64_t gcd = k;
  for (const Term &term : split.rest)
    gcd = commonDivisor(gcd, term.coefficient);
  for (Term &term : split.rest)
    term.coefficient /= gcd;
  k /= gcd;
  offset /= gcd;
  Dim rest = fromTerms(ctx, split.rest);
  // floor((floor(x/m) + c) / k) = floor((x + m*c) / (m*k)).
  int64_t divisor;
  if (rest.kind() == DimKind::FloorDiv && rest.operands()[1].isConstant() &&
      !llvm::MulOverflow(k, rest.operands()[1].getConstant(), divisor)) {
    Dim inner = rest.operands()[0] + rest.operands()[1] * offset;
    return quotient + floorDiv(inner, constant(ctx, divisor));
  }
  return quotient + make(DimKind::FloorDiv, {rest + offset, constant(ctx, k)});
}

Dim Dim::ceilDiv(Dim a, Dim b) {
  MLIRContext *ctx = a.getContext();
  if (a.isConstant(0) || b.isConstant(1))
    return a;
  if (a.isUnknown() || b.isUnknown())
    return unknown(ctx);
  // One form for a constant divisor, so that both spellings are equal.
  if (b.isConstant())
    return floorDiv(a + (b - 1), b);
  if (Dim exact = divideExactly(a, b))
    return exact;
  Split split = splitBySymbols(a, b);
  Dim rest = fromTerms(ctx, split.rest);
  Dim atom =
      b.isConstant() || rest.isConstant(0) ? ceilDiv(rest, b) : make(DimKind::CeilDiv, {rest, b});
  return fromTerms(ctx, split.quotient) + atom;
}

Dim Dim::mod(Dim a, Dim b) {
  MLIRContext *ctx = a.getContext();
  if (a.isConstant(0) || b.isConstant(1))
    return constant(ctx, 0);
  if (a.isUnknown() || b.isUnknown() || (b.isConstant() && b.getConstant() <= 0))
    return unknown(ctx);
  if (!b.isConstant()) {
    if (divideExactly(a, b))
      return constant(ctx, 0);
    Dim divisor = b;
    Split split = splitBySymbols(a, divisor);
    if (divisor == b)
      return make(DimKind::Mod, {fromTerms(ctx, split.rest), b});
    // mod(g*x, g*y) = g * mod(x, y).
    Dim factor = divideExactly(b, divisor);
    return factor ? factor * mod(fromTerms(ctx, split.rest), divisor) : unknown(ctx);
  }
  int64_t k = b.getConstant();
  Dim rest = fromTerms(ctx, splitByConstant(a, k).rest);
  if (rest.isConstant())
    return rest;
  int64_t gcd = k;
  for (const Term &term : termsOf(rest))
    gcd = commonDivisor(gcd, term.coefficient);
  if (gcd > 1)
    return mod(floorDiv(rest, constant(ctx, gcd)), constant(ctx, k / gcd)) * gcd;
  if (rest.kind() == DimKind::Mod && rest.operands()[1].isConstant() &&
      rest.operands()[1].getConstant() % k == 0)
    return mod(rest.operands()[0], b);
  return make(DimKind::Mod, {rest, b});
}

//===----------------------------------------------------------------------===//
// Min, max, broadcast
//===----------------------------------------------------------------------===//

/// The operands of nested ops of this kind, sorted, each once.
static SmallVector<Dim> flatten(DimKind kind, Dim a, Dim b) {
  SmallVector<Dim> operands;
  for (Dim d : {a, b})
    if (d.kind() == kind)
      llvm::append_range(operands, d.operands());
    else
      operands.push_back(d);
  llvm::sort(operands, Dim::before);
  operands.erase(llvm::unique(operands), operands.end());
  return operands;
}

static Dim minOrMax(DimKind kind, Dim a, Dim b) {
  if (a.isUnknown() || b.isUnknown())
    return unknownLike(a);
  // An operand goes where another one is known to win, whatever the symbols are.
  SmallVector<Dim> kept;
  for (Dim d : flatten(kind, a, b)) {
    auto wins = [&](Dim x, Dim y) {
      return (kind == DimKind::Max ? x - y : y - x).getMinimum() >= 0;
    };
    if (llvm::any_of(kept, [&](Dim other) { return wins(other, d); }))
      continue;
    llvm::erase_if(kept, [&](Dim other) { return wins(d, other); });
    kept.push_back(d);
  }
  return kept.size() == 1 ? kept.front() : make(kind, kept);
}

Dim Dim::min(Dim a, Dim b) { return minOrMax(DimKind::Min, a, b); }
Dim Dim::max(Dim a, Dim b) { return minOrMax(DimKind::Max, a, b); }

Dim Dim::bcast(Dim a, Dim b) {
  // Operands are equal or 1, so one that cannot be 1 is the result.
  SmallVector<Dim> operands = flatten(DimKind::Bcast, a, b);
  for (Dim d : operands)
    if (d.getMinimum() > 1 || (d.isConstant() && d.getConstant() != 1))
      return d;
  llvm::erase_if(operands, [](Dim d) { return d.isConstant(1); });
  if (operands.empty())
    return a;
  if (llvm::any_of(operands, [](Dim d) { return d.isUnknown(); }))
    return unknownLike(a);
  return operands.size() == 1 ? operands.front() : make(DimKind::Bcast, operands);
}

//===----------------------------------------------------------------------===//
// Walking
//===----------------------------------------------------------------------===//

void Dim::walkSymbols(function_ref<void(StringRef)> fn) const {
  if (isSymbol())
    return fn(getSymbol());
  for (Dim d : operands())
    d.walkSymbols(fn);
}

/// The same operation on other operands.
static Dim rebuild(DimKind kind, ArrayRef<Dim> ops) {
  auto fold = [&](Dim (*fn)(Dim, Dim)) {
    return std::accumulate(ops.begin() + 1, ops.end(), ops.front(), fn);
  };
  switch (kind) {
  case DimKind::Sum: {
    Terms terms;
    for (Dim d : ops) {
      if (d.isUnknown())
        return d;
      llvm::append_range(terms, termsOf(d));
    }
    return fromTerms(ops.front().getContext(), std::move(terms));
  }
  case DimKind::Product:
    return fold([](Dim a, Dim b) { return a * b; });
  case DimKind::FloorDiv:
    return fold(Dim::floorDiv);
  case DimKind::CeilDiv:
    return fold(Dim::ceilDiv);
  case DimKind::Mod:
    return fold(Dim::mod);
  case DimKind::Min:
    return fold(Dim::min);
  case DimKind::Max:
    return fold(Dim::max);
  case DimKind::Bcast:
    return fold(Dim::bcast);
  case DimKind::Unknown:
  case DimKind::Constant:
  case DimKind::Symbol:
    break;
  }
  llvm_unreachable("leaves have no operands");
}

Dim Dim::replaceAtoms(function_ref<Dim(Dim)> fn) const {
  Dim result = *this;
  if (!operands().empty()) {
    SmallVector<Dim> ops;
    for (Dim d : operands())
      ops.push_back(d.replaceAtoms(fn));
    if (ArrayRef<Dim>(ops) != operands())
      result = rebuild(kind(), ops);
  }
  if (!result.isAtom())
    return result;
  Dim replacement = fn(result);
  return replacement ? replacement : result;
}

Dim Dim::substitute(function_ref<Dim(StringRef)> fn) const {
  return replaceAtoms([&](Dim atom) { return atom.isSymbol() ? fn(atom.getSymbol()) : Dim(); });
}

unsigned Dim::getMaxBits() const {
  auto largest = [&] {
    unsigned bits = 0;
    for (Dim d : operands())
      bits = std::max(bits, d.getMaxBits());
    return bits;
  };
  switch (kind()) {
  case DimKind::Unknown:
    return 64;
  case DimKind::Constant:
    return llvm::Log2_64(llvm::AbsoluteValue(getConstant()) | 1) + 1;
  case DimKind::Symbol:
    return llvm::Log2_64(QUERN_MAX_BYTES) + 1;
  case DimKind::Sum:
    return largest() + llvm::Log2_64_Ceil(operands().size());
  case DimKind::Product:
    return std::accumulate(operands().begin(), operands().end(), 0u,
                           [](unsigned sum, Dim d) { return sum + d.getMaxBits(); });
  case DimKind::CeilDiv:
    return largest() + 1; // the divisor is added first
  default:
    return largest();
  }
}

bool Dim::isExact() const {
  bool divides =
      kind() == DimKind::FloorDiv || kind() == DimKind::CeilDiv || kind() == DimKind::Mod;
  return getMaxBits() < 64 && !(divides && operands()[1].getMinimum() < 1) &&
         llvm::all_of(operands(), [](Dim d) { return d.isExact(); });
}

std::optional<int64_t> Dim::evaluate(function_ref<std::optional<int64_t>(StringRef)> fn) const {
  if (isUnknown())
    return std::nullopt;
  if (isConstant())
    return getConstant();
  if (isSymbol())
    return fn(getSymbol());
  std::optional<int64_t> first = operands().front().evaluate(fn);
  if (!first)
    return std::nullopt;
  int64_t result = *first;
  for (Dim d : operands().drop_front()) {
    std::optional<int64_t> next = d.evaluate(fn);
    if (!next)
      return std::nullopt;
    int64_t value = *next;
    switch (kind()) {
    case DimKind::Sum:
      if (llvm::AddOverflow(result, value, result))
        return std::nullopt;
      break;
    case DimKind::Product:
      if (llvm::MulOverflow(result, value, result))
        return std::nullopt;
      break;
    case DimKind::FloorDiv:
    case DimKind::CeilDiv:
    case DimKind::Mod:
      if (value <= 0)
        return std::nullopt;
      result = kind() == DimKind::FloorDiv  ? floorDivide(result, value)
               : kind() == DimKind::CeilDiv ? llvm::divideCeilSigned(result, value)
                                            : floorRest(result, value);
      break;
    case DimKind::Min:
      result = std::min(result, value);
      break;
    case DimKind::Max:
      result = std::max(result, value);
      break;
    case DimKind::Bcast:
      result = result == 1 ? value : result;
      break;
    case DimKind::Unknown:
    case DimKind::Constant:
    case DimKind::Symbol:
      llvm_unreachable("leaves have no operands");
    }
  }
  return result;
}

} // namespace quern
