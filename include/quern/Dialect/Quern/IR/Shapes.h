//===- Shapes.h - Rules of sizes that several places need -------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What a meta function computes and the derivative or the lowering needs again.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_DIALECT_QUERN_IR_SHAPES_H
#define QUERN_DIALECT_QUERN_IR_SHAPES_H

#include "quern/Shape/Condition.h"

namespace quern {

/// Which elements a slice takes along one dim: start, start + step, … before end.
struct SliceBounds {
  Dim start;  ///< at least 0; beyond the size only where the slice is empty
  Dim end;    ///< in [0, size]
  Dim length; ///< the number of elements
};
/// ATen's rules: bounds left out are 0 and `size`; negative numbers count from the end (symbolic
/// bounds are taken as they are), and what lies outside [0, size] is left out. `step` is positive.
SliceBounds getSliceBounds(Dim size, std::optional<Dim> start, std::optional<Dim> end, int64_t step,
                           llvm::function_ref<Truth(const Condition &)> decide);
/// The same with no facts at hand.
SliceBounds getSliceBounds(Dim size, std::optional<Dim> start, std::optional<Dim> end,
                           int64_t step);

/// The dims of a reduction, one flag for each dim of the operand: all of them when the list is
/// empty. Entries are in [-rank, rank).
llvm::SmallVector<bool> getReducedDims(llvm::ArrayRef<int64_t> dim, int64_t rank);

} // namespace quern

#endif // QUERN_DIALECT_QUERN_IR_SHAPES_H
