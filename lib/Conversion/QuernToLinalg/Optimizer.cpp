//===- Optimizer.cpp - Optimiser steps as linalg --------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Conversion/QuernToLinalg/LoweringBuilder.h"

using namespace mlir;

namespace quern::lowering {

FailureOr<SmallVector<Value>> adamw_step(Operation *op, LoweringBuilder &b) {
  Type dtype = b.resultDtype();
  SmallVector<Dim> dims = b.resultDims();
  auto number = [&](StringRef name) {
    return op->getAttrOfType<FloatAttr>(name).getValueAsDouble();
  };
  double lr = number("lr"), beta1 = number("beta1"), beta2 = number("beta2"), eps = number("eps");
  double decay = number("weight_decay");
  Value self = b.operand(0), grad = b.operand(1), avg = b.operand(2), avgSq = b.operand(3);
  Value step = b.operand(4);
  Type i64 = b.b.getI64Type();
  Value newAvg = b.broadcast(dims, dtype, {avg, grad}, {dtype, dtype},
                             [&](ScalarBuilder &s, ArrayRef<Scalar> in) {
                               return s.add(in[0], s.mul(s.sub(in[1], in[0]), Scalar(1 - beta1)));
                             });
  Value newAvgSq = b.broadcast(
      dims, dtype, {avgSq, grad}, {dtype, dtype}, [&](ScalarBuilder &s, ArrayRef<Scalar> in) {
        return s.add(s.mul(in[0], Scalar(beta2)), s.mul(s.mul(in[1], in[1]), Scalar(1 - beta2)));
      });
  // The corrections depend on the step only; in f64, where 1 - beta^step keeps its digits.
  Type f64 = b.b.getF64Type();
  auto correction = [&](double beta, bool root) {
    return b.broadcast({}, f64, step, i64, [&](ScalarBuilder &s, ArrayRef<Scalar> in) {
      Scalar t = s.cast(in[0], f64);
      Scalar c = s.sub(Scalar(1), s.pow(s.materialize(Scalar(beta), f64), t));
      return root ? s.sqrt(c) : c;
    });
  };
  Value c1 = correction(beta1, false), c2 = correction(beta2, true);
  Value result =
      b.broadcast(dims, dtype, {self, newAvg, newAvgSq, c1, c2}, {dtype, dtype, dtype, f64, f64},
                  [&](ScalarBuilder &s, ArrayRef<Scalar> in) {
                    Type wide = in[0].dtype;
                    Scalar decayed = s.mul(in[0], Scalar(1 - lr * decay));
                    Scalar size = s.cast(s.div(Scalar(lr), in[3]), wide);
                    Scalar root = s.div(s.sqrt(in[2]), s.cast(in[4], wide));
                    return s.sub(decayed, s.mul(size, s.div(in[1], s.add(root, Scalar(eps)))));
                  });
  return SmallVector<Value>{result, newAvg, newAvgSq};
}

} // namespace quern::lowering
