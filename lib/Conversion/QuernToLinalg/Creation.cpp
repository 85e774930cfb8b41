//===- Creation.cpp - Lowerings of creation ops ---------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Dialect/Quern/IR/Ops/Creation.h"
#include "quern/Conversion/QuernToLinalg/LoweringBuilder.h"

using namespace mlir;

namespace quern::lowering {

FailureOr<SmallVector<Value>> full(Operation *op, LoweringBuilder &b) {
  auto full = cast<FullOp>(op);
  return SmallVector<Value>{b.fill(b.resultDims(), b.resultDtype(), Scalar(full.getFillValue()))};
}

/// A vector whose elements follow from their index, computed in f64 or i64.
static SmallVector<Value> counted(LoweringBuilder &b,
                                  llvm::function_ref<Scalar(ScalarBuilder &, Scalar)> element) {
  Type dtype = b.resultDtype();
  Type wide = isa<FloatType>(dtype) ? Type(b.b.getF64Type()) : Type(b.b.getI64Type());
  return {b.pointwise(b.resultDims(), dtype, {}, {}, {}, [&](ScalarBuilder &s, ArrayRef<Scalar>) {
    Scalar i = s.cast(b.fromIndex(b.index(0)), wide);
    return s.cast(element(s, i), dtype);
  })};
}

FailureOr<SmallVector<Value>> arange(Operation *op, LoweringBuilder &b) {
  auto arange = cast<ArangeOp>(op);
  Scalar start(arange.getStart()), step(arange.getStep());
  return counted(b, [&](ScalarBuilder &s, Scalar i) { return s.add(start, s.mul(i, step)); });
}

FailureOr<SmallVector<Value>> iota(Operation *, LoweringBuilder &b) {
  return counted(b, [](ScalarBuilder &, Scalar i) { return i; });
}

FailureOr<SmallVector<Value>> dimValue(Operation *op, LoweringBuilder &b) {
  Dim value = cast<DimValueOp>(op).getValue();
  Type dtype = b.resultDtype();
  return SmallVector<Value>{
      b.pointwise({}, dtype, {}, {}, {}, [&](ScalarBuilder &s, ArrayRef<Scalar>) {
        return s.cast(b.fromIndex(b.dim(value)), dtype);
      })};
}

} // namespace quern::lowering
