//===- Convolution.cpp - Convolutions as linalg ---------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Conversion/QuernToLinalg/LoweringBuilder.h"

using namespace mlir;

namespace quern::lowering {

using Results = FailureOr<SmallVector<Value>>;

namespace {
/// The window's numbers.
struct Window {
  ArrayRef<int64_t> stride, padding, dilation;
  int64_t groups;

  explicit Window(Operation *op) {
    auto list = [&](StringRef name) {
      return op->getAttrOfType<DenseI64ArrayAttr>(name).asArrayRef();
    };
    stride = list("stride");
    padding = list("padding");
    dilation = list("dilation");
    groups = op->getAttrOfType<IntegerAttr>("groups").getInt();
  }
};

/// Integer arithmetic on indices inside a region, as i64.
struct Place {
  LoweringBuilder &b;
  ScalarBuilder &s;
  Scalar loop(unsigned i) { return b.fromIndex(b.index(i)); }
  Scalar size(Dim d) { return b.fromIndex(b.dim(d)); }
};
} // namespace

/// The element of `input` under weight position `k` for output position `x`, in each spatial dim:
/// zero in the padding.
static Scalar readWindow(LoweringBuilder &b, ScalarBuilder &s, const Window &w, Value input,
                         Type dtype, Value batch, Value channel, ArrayRef<Scalar> x,
                         ArrayRef<Scalar> k) {
  SmallVector<Dim> dims = b.dims(input);
  SmallVector<Value> at{batch, channel};
  Scalar inside;
  bool padded = llvm::any_of(w.padding, [](int64_t p) { return p != 0; });
  for (unsigned i = 0; i < x.size(); ++i) {
    Scalar place =
        s.sub(s.add(s.mul(x[i], Scalar(w.stride[i])), s.mul(k[i], Scalar(w.dilation[i]))),
              Scalar(w.padding[i]));
    if (!padded) {
      at.push_back(b.toIndex(place));
      continue;
    }
    Scalar here = s.and_(s.ge(place, Scalar(0)), s.lt(place, b.fromIndex(b.dim(dims[2 + i]))));
    inside = inside.value ? s.and_(inside, here) : here;
    at.push_back(b.toIndex(s.select(here, place, Scalar(0))));
  }
  Scalar element = b.extract(input, dtype, at);
  return padded ? s.select(inside, element, Scalar(0)) : element;
}

Results convolution(Operation *op, LoweringBuilder &b) {
  Window w(op);
  Value input = b.operand(0), weight = b.operand(1), bias = b.operand(2);
  Type dtype = b.resultDtype(), wide = b.accumulatorType(dtype);
  SmallVector<Dim> out = b.resultDims(), wd = b.dims(weight);
  unsigned rank = out.size(), spatial = rank - 2;
  // Loops: n, o, x…, c, k….
  SmallVector<Dim> loops(out);
  loops.append(wd.begin() + 1, wd.end());
  SmallVector<bool> reduced(rank, false);
  reduced.append(1 + spatial, true);
  SmallVector<AffineExpr> weightExprs{b.b.getAffineDimExpr(1)};
  for (unsigned i = 0; i <= spatial; ++i)
    weightExprs.push_back(b.b.getAffineDimExpr(rank + i));
  AffineMap weightMap = AffineMap::get(loops.size(), 0, weightExprs, b.b.getContext());
  Value sum =
      b.reduce(loops, reduced, wide, Scalar(0), weight, dtype, weightMap,
               [&](ScalarBuilder &s, Scalar acc, ArrayRef<Scalar> in) {
                 Place p{b, s};
                 Scalar channel = p.loop(rank);
                 if (w.groups > 1) {
                   Scalar perGroup = s.div(p.size(wd[0]), Scalar(w.groups));
                   channel = s.add(s.mul(s.div(p.loop(1), perGroup), p.size(wd[1])), channel);
                 }
                 SmallVector<Scalar> x, k;
                 for (unsigned i = 0; i < spatial; ++i) {
                   x.push_back(p.loop(2 + i));
                   k.push_back(p.loop(rank + 1 + i));
                 }
                 Scalar element =
                     readWindow(b, s, w, input, dtype, b.index(0), b.toIndex(channel), x, k);
                 return s.add(acc, s.mul(element, in[0]));
               });
  if (!bias)
    return SmallVector<Value>{b.convert(sum, wide, dtype)};
  return SmallVector<Value>{
      b.pointwise(out, dtype, {sum, bias}, {wide, dtype},
                  {b.identityMap(rank), AffineMap::get(rank, 0, b.b.getAffineDimExpr(1))},
                  [](ScalarBuilder &s, ArrayRef<Scalar> in) { return s.add(in[0], in[1]); })};
}

// gi[n, c, y] = Σ over o of c's group and k of g[n, o, x] w[o, c, k] where x stride + k dilation
// - padding = y for a whole x inside the output.
Results convolution_input_backward(Operation *op, LoweringBuilder &b) {
  Window w(op);
  Value grad = b.operand(0), weight = b.operand(1);
  Type dtype = b.resultDtype(), wide = b.accumulatorType(dtype);
  SmallVector<Dim> in = b.resultDims(), gd = b.dims(grad), wd = b.dims(weight);
  unsigned rank = in.size(), spatial = rank - 2;
  MLIRContext *ctx = b.b.getContext();
  Dim perGroup = Dim::floorDiv(wd[0], Dim::constant(ctx, w.groups));
  // Loops: n, c, y…, o within the group, k….
  SmallVector<Dim> loops(in);
  loops.push_back(perGroup);
  loops.append(wd.begin() + 2, wd.end());
  SmallVector<bool> reduced(rank, false);
  reduced.append(1 + spatial, true);
  Value sum = b.reduce(
      loops, reduced, wide, Scalar(0), {}, {}, {},
      [&](ScalarBuilder &s, Scalar acc, ArrayRef<Scalar>) {
        Place p{b, s};
        Scalar channels = p.size(wd[1]), channel = p.loop(1);
        Scalar group = w.groups > 1 ? s.div(channel, channels)
                                    : s.materialize(Scalar(int64_t(0)), b.b.getI64Type());
        Scalar o = s.add(s.mul(group, p.size(perGroup)), p.loop(rank));
        Scalar c = w.groups > 1 ? s.rem(channel, channels) : channel;
        SmallVector<Value> gradAt{b.index(0), b.toIndex(o)}, weightAt{b.toIndex(o), b.toIndex(c)};
        Scalar counts = s.materialize(Scalar(true), b.b.getI1Type());
        for (unsigned i = 0; i < spatial; ++i) {
          Scalar shifted = s.sub(s.add(p.loop(2 + i), Scalar(w.padding[i])),
                                 s.mul(p.loop(rank + 1 + i), Scalar(w.dilation[i])));
          Scalar x = s.div(shifted, Scalar(w.stride[i]));
          Scalar whole = s.eq(s.mul(x, Scalar(w.stride[i])), shifted);
          Scalar inside = s.and_(s.ge(shifted, Scalar(0)), s.lt(x, p.size(gd[2 + i])));
          Scalar here = s.and_(whole, inside);
          counts = s.and_(counts, here);
          gradAt.push_back(b.toIndex(s.select(here, x, Scalar(0))));
          weightAt.push_back(b.index(rank + 1 + i));
        }
        Scalar product = s.mul(b.extract(grad, dtype, gradAt), b.extract(weight, dtype, weightAt));
        return s.add(acc, s.select(counts, product, Scalar(0)));
      });
  return SmallVector<Value>{b.convert(sum, wide, dtype)};
}

// gw[o, c, k] = Σ over n and x of g[n, o, x] input[n, group(o) C + c, x stride + k dilation -
// padding].
Results convolution_weight_backward(Operation *op, LoweringBuilder &b) {
  Window w(op);
  Value grad = b.operand(0), input = b.operand(1);
  Type dtype = b.resultDtype(), wide = b.accumulatorType(dtype);
  SmallVector<Dim> out = b.resultDims(), gd = b.dims(grad);
  unsigned rank = out.size(), spatial = rank - 2;
  // Loops: o, c, k…, n, x….
  SmallVector<Dim> loops(out);
  loops.push_back(gd[0]);
  loops.append(gd.begin() + 2, gd.end());
  SmallVector<bool> reduced(rank, false);
  reduced.append(1 + spatial, true);
  SmallVector<AffineExpr> gradExprs{b.b.getAffineDimExpr(rank), b.b.getAffineDimExpr(0)};
  for (unsigned i = 0; i < spatial; ++i)
    gradExprs.push_back(b.b.getAffineDimExpr(rank + 1 + i));
  AffineMap gradMap = AffineMap::get(loops.size(), 0, gradExprs, b.b.getContext());
  Value sum =
      b.reduce(loops, reduced, wide, Scalar(0), grad, dtype, gradMap,
               [&](ScalarBuilder &s, Scalar acc, ArrayRef<Scalar> in) {
                 Place p{b, s};
                 Scalar channel = p.loop(1);
                 if (w.groups > 1) {
                   Scalar perGroup = s.div(p.size(out[0]), Scalar(w.groups));
                   channel = s.add(s.mul(s.div(p.loop(0), perGroup), p.size(out[1])), channel);
                 }
                 SmallVector<Scalar> x, k;
                 for (unsigned i = 0; i < spatial; ++i) {
                   x.push_back(p.loop(rank + 1 + i));
                   k.push_back(p.loop(2 + i));
                 }
                 Scalar element =
                     readWindow(b, s, w, input, dtype, b.index(rank), b.toIndex(channel), x, k);
                 return s.add(acc, s.mul(in[0], element));
               });
  return SmallVector<Value>{b.convert(sum, wide, dtype)};
}

} // namespace quern::lowering
