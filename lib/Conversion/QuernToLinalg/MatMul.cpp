//===- MatMul.cpp - Matrix products as linalg -----------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Conversion/QuernToLinalg/LoweringBuilder.h"

using namespace mlir;

namespace quern::lowering {

using Results = FailureOr<SmallVector<Value>>;

/// sum over the reduced loops of lhs * rhs, in the accumulator's dtype.
static Value contract(LoweringBuilder &b, ArrayRef<Dim> loops, ArrayRef<bool> reduced, Value lhs,
                      Value rhs, ArrayRef<unsigned> lhsLoops, ArrayRef<unsigned> rhsLoops,
                      Type dtype) {
  auto map = [&](ArrayRef<unsigned> order) {
    SmallVector<AffineExpr> exprs;
    for (unsigned loop : order)
      exprs.push_back(b.b.getAffineDimExpr(loop));
    return AffineMap::get(loops.size(), 0, exprs, b.b.getContext());
  };
  return b.reduce(loops, reduced, b.accumulatorType(dtype), Scalar(0), {lhs, rhs}, {dtype, dtype},
                  {map(lhsLoops), map(rhsLoops)},
                  [](ScalarBuilder &s, Scalar acc, ArrayRef<Scalar> in) {
                    return s.add(acc, s.mul(in[0], in[1]));
                  });
}

Results mm(Operation *, LoweringBuilder &b) {
  Value lhs = b.operand(0), rhs = b.operand(1);
  auto x = b.dims(lhs), y = b.dims(rhs);
  Type dtype = b.resultDtype();
  Value sum =
      contract(b, {x[0], y[1], x[1]}, {false, false, true}, lhs, rhs, {0, 2}, {2, 1}, dtype);
  return SmallVector<Value>{b.convert(sum, b.accumulatorType(dtype), dtype)};
}

Results bmm(Operation *, LoweringBuilder &b) {
  Value lhs = b.operand(0), rhs = b.operand(1);
  auto x = b.dims(lhs), y = b.dims(rhs);
  Type dtype = b.resultDtype();
  Value sum = contract(b, {x[0], x[1], y[2], x[2]}, {false, false, false, true}, lhs, rhs,
                       {0, 1, 3}, {0, 3, 2}, dtype);
  return SmallVector<Value>{b.convert(sum, b.accumulatorType(dtype), dtype)};
}

Results addmm(Operation *op, LoweringBuilder &b) {
  Value self = b.operand(0), lhs = b.operand(1), rhs = b.operand(2);
  auto x = b.dims(lhs), y = b.dims(rhs);
  Type dtype = b.resultDtype(), wide = b.accumulatorType(dtype);
  double beta = op->getAttrOfType<FloatAttr>("beta").getValueAsDouble();
  double alpha = op->getAttrOfType<FloatAttr>("alpha").getValueAsDouble();
  Value sum =
      contract(b, {x[0], y[1], x[1]}, {false, false, true}, lhs, rhs, {0, 2}, {2, 1}, dtype);
  SmallVector<Dim> dims = b.resultDims();
  // With beta 0 self is not read.
  if (beta == 0)
    return SmallVector<Value>{
        b.broadcast(dims, dtype, sum, wide, [&](ScalarBuilder &s, ArrayRef<Scalar> in) {
          return s.mul(in[0], Scalar(alpha));
        })};
  return SmallVector<Value>{b.broadcast(
      dims, dtype, {sum, self}, {wide, dtype}, [&](ScalarBuilder &s, ArrayRef<Scalar> in) {
        return s.add(s.mul(in[0], Scalar(alpha)), s.mul(in[1], Scalar(beta)));
      })};
}

Results linear(Operation *, LoweringBuilder &b) {
  Value input = b.operand(0), weight = b.operand(1), bias = b.operand(2);
  auto x = b.dims(input), w = b.dims(weight);
  Type dtype = b.resultDtype(), wide = b.accumulatorType(dtype);
  // Loops: the leading dims, out features, in features.
  unsigned lead = x.size() - 1, out = lead, in = lead + 1;
  SmallVector<Dim> loops(x.begin(), x.end() - 1);
  loops.append({w[0], w[1]});
  SmallVector<bool> reduced(loops.size(), false);
  reduced.back() = true;
  SmallVector<unsigned> inputLoops = llvm::to_vector(llvm::seq<unsigned>(0, lead));
  inputLoops.push_back(in);
  Value sum = contract(b, loops, reduced, input, weight, inputLoops, {out, in}, dtype);
  if (!bias)
    return SmallVector<Value>{b.convert(sum, wide, dtype)};
  return SmallVector<Value>{
      b.broadcast(b.resultDims(), dtype, {sum, bias}, {wide, dtype},
                  [](ScalarBuilder &s, ArrayRef<Scalar> v) { return s.add(v[0], v[1]); })};
}

} // namespace quern::lowering
