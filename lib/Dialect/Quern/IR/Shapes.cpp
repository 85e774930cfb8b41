//===- Shapes.cpp - Rules of sizes that several places need ---------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Dialect/Quern/IR/Shapes.h"

using namespace mlir;

namespace quern {

SliceBounds getSliceBounds(Dim size, std::optional<Dim> start, std::optional<Dim> end, int64_t step,
                           llvm::function_ref<Truth(const Condition &)> decide) {
  Dim zero = Dim::constant(size.getContext(), 0);
  auto isAtMost = [&](Dim a, Dim b) { return decide(Condition::le(a, b)) == Truth::True; };
  auto max = [&](Dim a, Dim b) { return isAtMost(a, b) ? b : isAtMost(b, a) ? a : Dim::max(a, b); };
  auto min = [&](Dim a, Dim b) { return isAtMost(a, b) ? a : isAtMost(b, a) ? b : Dim::min(a, b); };
  auto fromFront = [&](Dim bound) {
    if (!bound.isConstant() || bound.getConstant() >= 0)
      return max(bound, zero);
    if (bound.getConstant() == std::numeric_limits<int64_t>::min())
      return zero;
    return max(size + bound, zero);
  };
  SliceBounds bounds;
  bounds.start = start ? fromFront(*start) : zero;
  bounds.end =
      !end || (end->isConstant() && end->getConstant() == std::numeric_limits<int64_t>::max())
          ? size
          : min(fromFront(*end), size);
  Dim extent = max(bounds.end - bounds.start, zero);
  bounds.length = step == 1 ? extent : Dim::ceilDiv(extent, Dim::constant(size.getContext(), step));
  return bounds;
}

SliceBounds getSliceBounds(Dim size, std::optional<Dim> start, std::optional<Dim> end,
                           int64_t step) {
  Facts none;
  return getSliceBounds(size, start, end, step, [&](const Condition &c) { return none.decide(c); });
}

SmallVector<bool> getReducedDims(ArrayRef<int64_t> dim, int64_t rank) {
  SmallVector<bool> reduced(rank, dim.empty());
  for (int64_t d : dim)
    if (rank)
      reduced[d < 0 ? d + rank : d] = true;
  return reduced;
}

} // namespace quern
