//===- Reduction.cpp - ATen's reductions ----------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Call.h"
#include "llvm/ADT/Sequence.h"

using namespace mlir;

namespace quern::aten {

/// The dims to reduce: an empty list, or none, means all of them.
static SmallVector<int64_t> reducedDims(Call &call, Value self) {
  SmallVector<int64_t> dims = call.integers("dim");
  if (dims.empty())
    llvm::append_range(dims, llvm::seq<int64_t>(0, Call::rankOf(self)));
  return dims;
}

static Results reduce(Call &call, StringRef mnemonic, Value self) {
  if (call.failed())
    return {};
  SmallVector<int64_t> dims = reducedDims(call, self);
  return {call.op(mnemonic, {self},
                  {call.attr("dim", ArrayRef<int64_t>(dims)),
                   call.attr("keepdim", call.boolean("keepdim", false))})};
}

/// Integers and bool are summed as i64; a sum as bool is whether any element is nonzero.
static Results sum(Call &call) {
  Value self = call.tensor("self");
  if (call.failed())
    return {};
  Type dtype = call.dtype(), i64 = IntegerType::get(call.getContext(), 64);
  if (dtype && isBool(dtype)) {
    Results count = reduce(call, "sum", call.convert(call.convert(self, dtype), i64));
    return count.empty() ? count : Results{call.convert(count.front(), dtype)};
  }
  if (!dtype && !isa<FloatType>(Call::dtypeOf(self)))
    dtype = i64;
  return reduce(call, "sum", call.convert(self, dtype));
}

static Results mean(Call &call) {
  Value self = call.tensor("self");
  return reduce(call, "mean", call.convert(self, call.dtype()));
}

static Results amax(Call &call) { return reduce(call, "amax", call.tensor("self")); }

llvm::ArrayRef<Overload> getReductionOverloads() {
  constexpr Rounding summed = Rounding::Accumulating;
  static const Overload table[] = {
      {"sum.default", sum, summed, Terms::Reduced},
      {"sum.dim_IntList", sum, summed, Terms::Reduced},
      {"mean.default", mean, summed, Terms::Reduced},
      {"mean.dim", mean, summed, Terms::Reduced},
      {"amax.default", amax, Rounding::Exact, Terms::One, Rounding::Pointwise},
  };
  return table;
}

} // namespace quern::aten
