//===- Facts.cpp - What is known of sizes ---------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Decisions are made on the canonical difference of two sizes, after known
/// equalities are put in, by interval arithmetic and by divisors. Each look-up
/// costs a bounded number of steps, however much is known.
///
//===----------------------------------------------------------------------===//

#include "quern/Shape/Condition.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;

namespace quern {

//===----------------------------------------------------------------------===//
// Interval arithmetic; the ends of int64 stand for no bound
//===----------------------------------------------------------------------===//

static constexpr int64_t minusInf = std::numeric_limits<int64_t>::min();
static constexpr int64_t plusInf = std::numeric_limits<int64_t>::max();

static bool isFinite(int64_t v) { return v != minusInf && v != plusInf; }

/// `absorbing` is the infinity that wins: minusInf for lower bounds.
static int64_t add(int64_t a, int64_t b, int64_t absorbing) {
  if (a == absorbing || b == absorbing)
    return absorbing;
  if (!isFinite(a))
    return a;
  if (!isFinite(b))
    return b;
  int64_t r;
  if (llvm::AddOverflow(a, b, r))
    return a > 0 ? plusInf : minusInf;
  return r;
}

static int64_t multiply(int64_t a, int64_t b) {
  if (a == 0 || b == 0)
    return 0;
  int64_t r;
  if (isFinite(a) && isFinite(b) && !llvm::MulOverflow(a, b, r))
    return r;
  return (a < 0) == (b < 0) ? plusInf : minusInf;
}

/// a / b for b >= 1, rounded by `round`; an infinite divisor gives what the
/// quotient of a finite dividend tends to from its side.
static int64_t divide(int64_t a, int64_t b, bool ceil) {
  if (!isFinite(a))
    return a;
  if (b == plusInf)
    return ceil ? (a > 0 ? 1 : 0) : (a < 0 ? -1 : 0);
  return ceil ? llvm::divideCeilSigned(a, b) : llvm::divideFloorSigned(a, b);
}

struct Facts::Interval {
  int64_t lo = minusInf, hi = plusInf;

  Interval operator+(Interval o) const { return {add(lo, o.lo, minusInf), add(hi, o.hi, plusInf)}; }
  Interval operator*(Interval o) const {
    auto ends = {multiply(lo, o.lo), multiply(lo, o.hi), multiply(hi, o.lo), multiply(hi, o.hi)};
    return {std::min(ends), std::max(ends)};
  }
  Interval dividedBy(Interval by, bool ceil) const {
    by.lo = std::max<int64_t>(by.lo, 1);
    by.hi = std::max(by.hi, by.lo);
    return {divide(lo, lo >= 0 ? by.hi : by.lo, ceil), divide(hi, hi >= 0 ? by.lo : by.hi, ceil)};
  }
  bool contains(int64_t v) const { return lo <= v && v <= hi; }
};

//===----------------------------------------------------------------------===//
// Parts of expressions
//===----------------------------------------------------------------------===//

namespace {
/// d = factor * rest + offset, where rest has neither a constant term nor a common
/// positive coefficient (0 for a constant).
struct Linear {
  Dim rest;
  int64_t factor = 1, offset = 0;
};
} // namespace

static ArrayRef<Dim> termsOf(const Dim &d) {
  return d.kind() == DimKind::Sum ? d.operands() : ArrayRef<Dim>(d);
}

static int64_t coefficientOf(Dim term) {
  if (term.isConstant())
    return term.getConstant();
  return term.kind() == DimKind::Product && term.operands().front().isConstant()
             ? term.operands().front().getConstant()
             : 1;
}

static int64_t gcd(int64_t a, int64_t b) {
  uint64_t g = std::gcd(llvm::AbsoluteValue(a), llvm::AbsoluteValue(b));
  return g > uint64_t(plusInf) ? 1 : g;
}

static int64_t lcm(int64_t a, int64_t b) {
  int64_t r;
  return llvm::MulOverflow(a / gcd(a, b), b, r) ? std::max(a, b) : r;
}

static Linear linear(Dim d) {
  Linear result{d};
  if (Dim last = termsOf(d).back(); last.isConstant()) {
    result.offset = last.getConstant();
    result.rest = d - last;
  }
  int64_t common = 0;
  for (Dim term : termsOf(result.rest))
    common = gcd(common, coefficientOf(term));
  if (common > 1) {
    result.factor = common;
    result.rest = Dim::floorDiv(result.rest, Dim::constant(d.getContext(), common));
  }
  return result;
}

static bool occursIn(Dim d, Dim atom) {
  return d == atom || llvm::any_of(d.operands(), [&](Dim op) { return occursIn(op, atom); });
}

//===----------------------------------------------------------------------===//
// Look-up
//===----------------------------------------------------------------------===//

template <typename T>
std::optional<T> Facts::find(llvm::DenseMap<Dim, T> Facts::*map, Dim key) const {
  for (const Facts *facts = this; facts; facts = facts->outer)
    if (auto it = (facts->*map).find(key); it != (facts->*map).end())
      return it->second;
  return std::nullopt;
}

Facts::Range Facts::getRange(StringRef symbol) const {
  for (const Facts *facts = this; facts; facts = facts->outer)
    if (auto it = facts->ranges.find(symbol); it != facts->ranges.end())
      return it->second;
  return {};
}

void Facts::setRange(StringRef symbol, Range range) {
  range.min = std::max<int64_t>(range.min, 0);
  range.divisor = std::max<int64_t>(range.divisor, 1);
  ranges[symbol] = range;
}

Dim Facts::normalize(Dim d) const {
  if (d.isConstant() || d.isUnknown())
    return d;
  auto replace = [&](Dim atom) -> Dim {
    if (std::optional<Dim> known = find(&Facts::replacements, atom))
      return *known;
    if (atom.isSymbol()) {
      Range range = getRange(atom.getSymbol());
      return range.max == range.min ? Dim::constant(atom.getContext(), range.min) : Dim();
    }
    // The operands of a broadcast are equal or 1: one that is not 1 is the result.
    if (atom.kind() == DimKind::Bcast)
      for (Dim op : atom.operands())
        if (!bounds(op).contains(1))
          return op;
    return Dim();
  };
  // A replacement may need another one. The limit only matters for chains of
  // equalities; ending early is sound.
  for (unsigned i = 0; i < 8; ++i) {
    Dim next = d.replaceAtoms(replace);
    if (next == d)
      break;
    d = next;
  }
  return d;
}

Facts::Interval Facts::boundsOfParts(Dim d) const {
  auto fold = [&](auto fn) {
    Interval result = bounds(d.operands().front());
    for (Dim op : d.operands().drop_front())
      result = fn(result, bounds(op));
    return result;
  };
  switch (d.kind()) {
  case DimKind::Unknown:
    return {};
  case DimKind::Constant:
    return {d.getConstant(), d.getConstant()};
  case DimKind::Symbol: {
    Range range = getRange(d.getSymbol());
    return {range.min, range.max.value_or(plusInf)};
  }
  case DimKind::Sum:
    return fold([](Interval a, Interval b) { return a + b; });
  case DimKind::Product:
    return fold([](Interval a, Interval b) { return a * b; });
  case DimKind::FloorDiv:
    return fold([](Interval a, Interval b) { return a.dividedBy(b, /*ceil=*/false); });
  case DimKind::CeilDiv:
    return fold([](Interval a, Interval b) { return a.dividedBy(b, /*ceil=*/true); });
  case DimKind::Mod:
    return fold([](Interval a, Interval b) {
      Interval result{0, add(b.hi, -1, plusInf)};
      if (a.lo >= 0)
        result.hi = std::min(result.hi, a.hi);
      return result;
    });
  case DimKind::Min:
    return fold([](Interval a, Interval b) {
      return Interval{std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
    });
  case DimKind::Max:
    return fold([](Interval a, Interval b) {
      return Interval{std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
    });
  case DimKind::Bcast:
    return fold([](Interval a, Interval b) {
      return Interval{std::min(a.lo, b.lo), std::max(a.hi, b.hi)};
    });
  }
  llvm_unreachable("unknown kind of size");
}

Facts::Interval Facts::bounds(Dim d) const {
  Interval result = boundsOfParts(d);
  if (d.isConstant() || d.isUnknown())
    return result;
  bool anyMinima = false;
  for (const Facts *facts = this; facts; facts = facts->outer)
    anyMinima |= !facts->minima.empty();
  if (!anyMinima)
    return result;
  auto apply = [](int64_t bound, const Linear &l, int64_t absorbing) {
    return add(multiply(bound, l.factor), l.offset, absorbing);
  };
  Linear l = linear(d);
  if (std::optional<int64_t> least = find(&Facts::minima, l.rest))
    result.lo = std::max(result.lo, apply(*least, l, minusInf));
  if (std::optional<int64_t> least = find(&Facts::minima, l.rest * -1))
    result.hi = std::min(result.hi, apply(-*least, l, plusInf));
  return result;
}

std::optional<int64_t> Facts::lowerBound(Dim d) const {
  int64_t lo = bounds(normalize(d)).lo;
  return isFinite(lo) ? std::optional(lo) : std::nullopt;
}

std::optional<int64_t> Facts::upperBound(Dim d) const {
  int64_t hi = bounds(normalize(d)).hi;
  return isFinite(hi) ? std::optional(hi) : std::nullopt;
}

/// The largest number that is known to divide it; 0 for the constant 0.
int64_t Facts::knownDivisor(Dim d) const {
  int64_t result = 1;
  if (d.isConstant())
    return gcd(d.getConstant(), 0);
  if (d.isSymbol())
    result = getRange(d.getSymbol()).divisor;
  else if (d.kind() == DimKind::Product)
    for (Dim factor : d.operands()) {
      int64_t next = multiply(result, knownDivisor(factor));
      result = isFinite(next) ? next : result;
    }
  else if (d.kind() == DimKind::Sum)
    result =
        std::accumulate(d.operands().begin(), d.operands().end(), int64_t(0),
                        [&](int64_t common, Dim term) { return gcd(common, knownDivisor(term)); });
  if (std::optional<int64_t> known = find(&Facts::divisors, d))
    result = lcm(result, *known);
  return result;
}

//===----------------------------------------------------------------------===//
// Decisions
//===----------------------------------------------------------------------===//

Truth Facts::decide(const Condition &condition) const {
  switch (condition.kind()) {
  case Condition::Kind::Eq:
    return decideEq(condition.lhs(), condition.rhs());
  case Condition::Kind::Le:
    return decideLe(condition.lhs(), condition.rhs());
  case Condition::Kind::Divides:
    return decideDivides(condition.rhs(), condition.lhs());
  case Condition::Kind::Exact:
    return condition.lhs().isExact() || wasAssumed(condition) ? Truth::True : Truth::Undecided;
  case Condition::Kind::Or:
    return decideOr(condition);
  }
  llvm_unreachable("unknown kind of condition");
}

Truth Facts::decideEq(Dim a, Dim b) const {
  if ((a == b && !a.isUnknown()) || (a.isConstant() && b.isConstant()))
    return a == b ? Truth::True : Truth::False;
  Dim difference = normalize(a) - normalize(b);
  if (difference.isUnknown())
    return Truth::Undecided;
  Interval range = bounds(difference);
  if (!range.contains(0))
    return Truth::False;
  if (range.lo == 0 && range.hi == 0)
    return Truth::True;
  // 8*S + 3 is never 0.
  Linear l = linear(difference);
  int64_t divisor = multiply(l.factor, knownDivisor(l.rest));
  if (isFinite(divisor) && divisor > 0 && l.offset % divisor != 0)
    return Truth::False;
  return Truth::Undecided;
}

Truth Facts::decideLe(Dim a, Dim b) const {
  Dim difference = normalize(b) - normalize(a);
  if (difference.isUnknown())
    return Truth::Undecided;
  Interval range = bounds(difference);
  return range.lo >= 0 ? Truth::True : range.hi < 0 ? Truth::False : Truth::Undecided;
}

Truth Facts::decideDivides(Dim divisor, Dim d) const {
  divisor = normalize(divisor);
  d = normalize(d);
  if (d.isConstant(0) || divisor.isConstant(1))
    return Truth::True;
  if (divisor.isUnknown() || d.isUnknown())
    return Truth::Undecided;
  // Only 0 is a multiple of 0.
  if (divisor.isConstant(0))
    return decideEq(d, divisor);
  Dim rest = Dim::mod(d, divisor);
  if (rest.isConstant())
    return rest.isConstant(0) ? Truth::True : Truth::False;
  if (divisor.isConstant() && divisor.getConstant() > 0) {
    int64_t k = divisor.getConstant();
    // Terms that are multiples say nothing; what is left may be a constant.
    Dim others = Dim::constant(d.getContext(), 0);
    for (Dim term : termsOf(d))
      if (knownDivisor(term) % k != 0)
        others = others + term;
    if (knownDivisor(others) % k == 0)
      return Truth::True;
    if (others.isConstant())
      return Truth::False;
  }
  return wasAssumed(Condition::divides(divisor, d)) ? Truth::True : Truth::Undecided;
}

Truth Facts::decideOr(const Condition &condition) const {
  SmallVector<Condition> undecided;
  for (const Condition &part : condition.alternatives()) {
    Truth truth = decide(part);
    if (truth == Truth::True)
      return Truth::True;
    if (truth == Truth::Undecided)
      undecided.push_back(part);
  }
  if (undecided.empty())
    return Truth::False;
  if (!condition.isCheckable())
    return Truth::Undecided;
  if (wasAssumed(condition) || wasAssumed(Condition::anyOf(undecided)))
    return Truth::True;

  // The operands of one bcast go together, and bcast(A, B) goes with whatever both
  // A and B go with.
  std::optional<std::pair<Dim, Dim>> sizes = condition.getBroadcast();
  if (!sizes)
    return Truth::Undecided;
  Dim x = normalize(sizes->first), y = normalize(sizes->second);
  auto operandsOf = [](const Dim &d) {
    return d.kind() == DimKind::Bcast ? d.operands() : ArrayRef<Dim>(d);
  };
  ArrayRef<Dim> xs = operandsOf(x), ys = operandsOf(y);
  if (xs.size() == 1 && ys.size() == 1)
    return Truth::Undecided;
  for (Dim a : xs)
    for (Dim b : ys)
      if (!llvm::is_contained(xs, b) && !llvm::is_contained(ys, a) &&
          decide(Condition::broadcastable(a, b)) != Truth::True)
        return Truth::Undecided;
  return Truth::True;
}

/// Conditions with one meaning mostly have one text.
std::string Facts::keyOf(const Condition &condition) const {
  auto difference = [&](Dim a, Dim b) { return normalize(a) - normalize(b); };
  switch (condition.kind()) {
  case Condition::Kind::Eq: {
    Dim d = difference(condition.lhs(), condition.rhs()), negated = d * -1;
    return "0 == " + (Dim::before(negated, d) ? negated : d).str();
  }
  case Condition::Kind::Le:
    return "0 <= " + difference(condition.rhs(), condition.lhs()).str();
  case Condition::Kind::Divides:
    return normalize(condition.lhs()).str() + " mod " + normalize(condition.rhs()).str();
  case Condition::Kind::Exact:
    return condition.str(); // of this expression, not of its value
  case Condition::Kind::Or: {
    std::vector<std::string> parts;
    for (const Condition &part : condition.alternatives())
      parts.push_back(keyOf(part));
    llvm::sort(parts);
    return llvm::join(parts, " or ");
  }
  }
  llvm_unreachable("unknown kind of condition");
}

bool Facts::wasAssumed(const Condition &condition) const {
  std::string key;
  for (const Facts *facts = this; facts; facts = facts->outer) {
    if (facts->otherKeys.empty())
      continue;
    if (key.empty())
      key = keyOf(condition);
    if (facts->otherKeys.contains(key))
      return true;
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Assumptions
//===----------------------------------------------------------------------===//

void Facts::assume(const Condition &condition) {
  // What is known already, or contradicts it (then the code behind never runs).
  if (decide(condition) != Truth::Undecided || !condition.isCheckable())
    return;
  Dim a = condition.lhs(), b = condition.rhs();
  switch (condition.kind()) {
  case Condition::Kind::Eq:
    return assumeEq(a, b);
  case Condition::Kind::Le:
    return assumeNonNegative(b - a);
  case Condition::Kind::Divides:
    if (Dim divisor = normalize(b); divisor.isConstant() && divisor.getConstant() > 0)
      return assumeMultiple(normalize(a), divisor.getConstant());
    break;
  case Condition::Kind::Exact:
    break;
  case Condition::Kind::Or: {
    SmallVector<Condition> possible;
    for (const Condition &part : condition.alternatives())
      if (decide(part) == Truth::Undecided)
        possible.push_back(part);
    if (possible.size() == 1)
      return assume(possible.front());
    others.push_back(Condition::anyOf(possible));
    otherKeys.insert(keyOf(others.back()));
    break;
  }
  }
  others.push_back(condition);
  otherKeys.insert(keyOf(condition));
}

void Facts::assumeEq(Dim a, Dim b) {
  Linear l = linear(normalize(a) - normalize(b));
  if (l.rest.isUnknown() || l.rest.isConstant() || l.offset % l.factor != 0)
    return;
  Dim difference = l.rest + l.offset / l.factor;

  // An atom that stands alone in a term and nowhere else is replaced by the rest;
  // symbols first, the last in order, so that user's names mostly stay.
  Dim chosen;
  for (Dim term : llvm::reverse(termsOf(difference))) {
    int64_t sign = coefficientOf(term);
    Dim atom = term * sign;
    if ((sign != 1 && sign != -1) || !atom.isAtom() || (chosen && !atom.isSymbol()))
      continue;
    Dim rest = difference - term;
    if (rest.isUnknown() || occursIn(rest, atom))
      continue;
    chosen = atom;
    if (atom.isSymbol())
      break;
  }
  if (!chosen) {
    assumeNonNegative(difference);
    assumeNonNegative(difference * -1);
    return;
  }
  Dim with = difference.replaceAtoms(
      [&](Dim atom) { return atom == chosen ? Dim::constant(chosen.getContext(), 0) : Dim(); });
  // difference = sign * chosen + with = 0.
  if ((difference - with) == chosen)
    with = with * -1;
  if (with.isUnknown())
    return;
  Interval known = bounds(chosen);
  int64_t divisor = knownDivisor(chosen);
  replacements[chosen] = with;
  // What was known of it holds for what stands for it.
  if (isFinite(known.lo))
    assumeNonNegative(with - known.lo);
  if (isFinite(known.hi))
    assumeNonNegative(with * -1 + known.hi);
  if (divisor > 1)
    assumeMultiple(normalize(with), divisor);
  // Keys are in normal form, which has changed. Not kept up for long lists: it
  // only makes answers better.
  if (others.size() <= 64)
    for (const Condition &condition : others)
      otherKeys.insert(keyOf(condition));
}

/// d >= 0.
void Facts::assumeNonNegative(Dim d) {
  d = normalize(d);
  if (d.isUnknown() || d.isConstant())
    return;
  // factor * rest >= -offset.
  Linear l = linear(d);
  if (l.offset == minusInf || l.rest.isConstant())
    return;
  int64_t least = llvm::divideCeilSigned(-l.offset, l.factor);
  Dim negated = l.rest * -1;
  if (l.rest.isSymbol() || negated.isSymbol()) {
    StringRef symbol = (l.rest.isSymbol() ? l.rest : negated).getSymbol();
    Range range = getRange(symbol);
    if (l.rest.isSymbol())
      range.min = std::max(range.min, least);
    else
      range.max = std::min(range.max.value_or(plusInf), -least);
    setRange(symbol, range);
    return;
  }
  if (std::optional<int64_t> known = find(&Facts::minima, l.rest))
    least = std::max(least, *known);
  minima[l.rest] = least;
}

void Facts::assumeMultiple(Dim d, int64_t divisor) {
  if (d.isSymbol()) {
    Range range = getRange(d.getSymbol());
    range.divisor = lcm(range.divisor, divisor);
    setRange(d.getSymbol(), range);
  } else if (!d.isConstant() && !d.isUnknown()) {
    divisors[d] = lcm(find(&Facts::divisors, d).value_or(1), divisor);
  }
}

} // namespace quern
