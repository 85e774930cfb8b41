//===- Reduction.cpp - Lowerings of reductions ----------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Dialect/Quern/IR/Ops/Reduction.h"
#include "quern/Conversion/QuernToLinalg/LoweringBuilder.h"
#include "quern/Dialect/Quern/IR/Shapes.h"

using namespace mlir;

namespace quern::lowering {

using Combine = llvm::function_ref<Scalar(ScalarBuilder &, Scalar, Scalar)>;

/// Combines the elements of operand 0 along the dims of `op`. The result has the accumulator's
/// dtype and no reduced dims.
template <typename OpTy>
static Value reduceDims(OpTy op, LoweringBuilder &b, Type accumulator, Scalar init,
                        Combine combine) {
  SmallVector<Dim> dims = b.dims(b.operand(0));
  return b.reduce(dims, getReducedDims(op.getDim(), dims.size()), accumulator, init, b.operand(0),
                  b.dtype(0), b.identityMap(dims.size()),
                  [&](ScalarBuilder &s, Scalar sofar, ArrayRef<Scalar> in) {
                    return combine(s, sofar, in[0]);
                  });
}

static Scalar addUp(ScalarBuilder &s, Scalar total, Scalar x) { return s.add(total, x); }

FailureOr<SmallVector<Value>> sum(Operation *op, LoweringBuilder &b) {
  Type wide = b.accumulatorType(b.dtype(0));
  Value total = reduceDims(cast<SumOp>(op), b, wide, Scalar(0), addUp);
  return SmallVector<Value>{b.view(b.convert(total, wide, b.resultDtype()), b.resultDims())};
}

FailureOr<SmallVector<Value>> mean(Operation *op, LoweringBuilder &b) {
  auto mean = cast<MeanOp>(op);
  Type wide = b.accumulatorType(b.dtype(0));
  Value total = reduceDims(mean, b, wide, Scalar(0), addUp);
  SmallVector<Dim> dims = b.dims(b.operand(0)), counted;
  for (auto [size, reduced] : llvm::zip(dims, getReducedDims(mean.getDim(), dims.size())))
    if (reduced)
      counted.push_back(size);
  Dim count = Dim::product(b.b.getContext(), counted);
  Value quotient = b.broadcast(
      b.dims(total), b.resultDtype(), total, wide, [&](ScalarBuilder &s, ArrayRef<Scalar> in) {
        Scalar n = count.isConstant() ? Scalar(count.getConstant())
                                      : s.cast(b.fromIndex(b.dim(count)), wide);
        return s.div(in[0], n);
      });
  return SmallVector<Value>{b.view(quotient, b.resultDims())};
}

/// The least or greatest number of a dtype, which loses against every other.
static Scalar loser(Type dtype, bool greatest) {
  if (isa<FloatType>(dtype))
    return Scalar(greatest ? -std::numeric_limits<double>::infinity()
                           : std::numeric_limits<double>::infinity());
  auto integer = cast<IntegerType>(dtype);
  unsigned width = integer.getWidth();
  bool isUnsigned = integer.isUnsigned() || width == 1;
  if (greatest)
    return isUnsigned ? Scalar(0) : Scalar(APInt::getSignedMinValue(width).getSExtValue());
  // All bits set is the greatest unsigned number.
  return isUnsigned ? Scalar(-1) : Scalar(APInt::getSignedMaxValue(width).getSExtValue());
}

template <typename OpTy>
static SmallVector<Value> extreme(OpTy op, LoweringBuilder &b, bool greatest) {
  Type dtype = b.dtype(0);
  // Nothing is lost in the wider dtype, and nothing is rounded on the way back.
  Type wide = b.accumulatorType(dtype);
  Value found = reduceDims(op, b, wide, loser(dtype, greatest),
                           [&](ScalarBuilder &s, Scalar sofar, Scalar x) {
                             return greatest ? s.max(sofar, x) : s.min(sofar, x);
                           });
  return {b.view(b.convert(found, wide, dtype), b.resultDims())};
}

FailureOr<SmallVector<Value>> amax(Operation *op, LoweringBuilder &b) {
  return extreme(cast<AmaxOp>(op), b, true);
}
FailureOr<SmallVector<Value>> amin(Operation *op, LoweringBuilder &b) {
  return extreme(cast<AminOp>(op), b, false);
}

} // namespace quern::lowering
