//===- Reduction.cpp - Sums and the like over dims ------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Dialect/Quern/IR/Ops/Reduction.h"
#include "quern/Dialect/Quern/IR/Shapes.h"

#define GET_STRUCTURED_ARGS
#include "quern/Dialect/Quern/IR/Ops/Reduction.structured.inc"

using namespace mlir;

namespace quern::meta {

/// Checks 1 and 2 of the family, and the result's shape.
template <typename Args> static bool reduction(const Args &a, MetaContext &m) {
  int64_t rank = a.self.rank();
  SmallVector<bool> seen(std::max<int64_t>(rank, 1));
  for (int64_t d : a.dim) {
    if (!m.wrapDim(1, d, rank, "dim") ||
        !m.check(2, !seen[d], "expected dims to be different, got {0} twice", {d}))
      return false;
    seen[d] = true;
  }
  SmallVector<Dim> dims;
  for (auto [size, reduced] : llvm::zip(a.self.dims, getReducedDims(a.dim, rank))) {
    if (!reduced)
      dims.push_back(size);
    else if (a.keepdim)
      dims.push_back(m.constant(1));
  }
  m.setOutput(0, dims, a.self.dtype);
  return true;
}

static void sum(const SumArgs &a, MetaContext &m) {
  if (reduction(a, m))
    m.check(3, !a.self.dtype.isInteger(1), "expected self to be of a number dtype, got {0}",
            {a.self.dtype});
}

static void mean(const MeanArgs &a, MetaContext &m) {
  if (reduction(a, m))
    m.check(3, isa<FloatType>(a.self.dtype), "expected self to be of a float dtype, got {0}",
            {a.self.dtype});
}

template <typename Args> static void extreme(const Args &a, MetaContext &m) {
  if (!reduction(a, m))
    return;
  for (auto [i, reduced] : llvm::enumerate(getReducedDims(a.dim, a.self.rank())))
    if (reduced &&
        !m.check(3, Condition::le(m.constant(1), a.self.dim(i)),
                 "expected dim {0} to be at least 1, got {1}", {int64_t(i), a.self.dim(i)}))
      return;
}

} // namespace quern::meta

namespace quern::derivative {

/// The shape after a reduction that keeps its dims.
static SmallVector<Dim> keptDims(ArrayRef<Dim> dims, ArrayRef<int64_t> dim) {
  SmallVector<Dim> kept(dims);
  for (auto [size, reduced] : llvm::zip(kept, getReducedDims(dim, dims.size())))
    if (reduced)
      size = Dim::constant(size.getContext(), 1);
  return kept;
}

} // namespace quern::derivative

#define GET_STRUCTURED_DEFS
#include "quern/Dialect/Quern/IR/Ops/Reduction.structured.inc"

#define GET_OP_CLASSES
#include "quern/Dialect/Quern/IR/Ops/Reduction.cpp.inc"
