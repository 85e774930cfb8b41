//===- Normalization.cpp - Softmax and layer normalisation ----------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Dialect/Quern/IR/Ops/Normalization.h"

#define GET_STRUCTURED_ARGS
#include "quern/Dialect/Quern/IR/Ops/Normalization.structured.inc"

using namespace mlir;

namespace quern::meta {

template <typename Args> static void softmax(const Args &a, MetaContext &m) {
  int64_t dim = a.dim;
  if (!m.check(1, isa<FloatType>(a.self.dtype), "expected self to be of a float dtype, got {0}",
               {a.self.dtype}) ||
      !m.wrapDim(2, dim, a.self.rank(), "dim"))
    return;
  m.setOutput(0, a.self.dims, a.self.dtype);
}

static void layerNorm(const LayerNormArgs &a, MetaContext &m) {
  Type dtype = a.input.dtype;
  if (!m.check(1, isa<FloatType>(dtype), "expected input to be of a float dtype, got {0}", {dtype}))
    return;
  for (const TensorMeta *t : {&a.weight, &a.bias})
    if (*t &&
        !m.check(1, t->dtype == dtype,
                 ("expected " + t->name + " to have the dtype of input, got {0} and {1}").str(),
                 {t->dtype, dtype}))
      return;
  int64_t n = a.normalized_shape.size(), lead = a.input.rank() - n;
  if (!m.check(2, n >= 1 && lead >= 0, "expected normalized_shape to have 1 to {0} dims, got {1}",
               {a.input.rank(), n}))
    return;
  for (int64_t i = 0; i < n; ++i)
    if (!m.check(3, Condition::eq(a.normalized_shape[i], a.input.dim(lead + i)),
                 "expected normalized_shape dim {0} to equal input dim {1}, got {2} and {3}",
                 {i, lead + i, a.normalized_shape[i], a.input.dim(lead + i)}))
      return;
  for (const TensorMeta *t : {&a.weight, &a.bias}) {
    if (!*t)
      continue;
    if (!m.check(4, t->rank() == n,
                 ("expected " + t->name + " to have rank {0}, got rank {1}").str(), {n, t->rank()}))
      return;
    for (int64_t i = 0; i < n; ++i)
      if (!m.check(4, Condition::eq(t->dim(i), a.normalized_shape[i]),
                   ("expected " + t->name +
                    " dim {0} to equal normalized_shape dim {0}, got {1} and {2}")
                       .str(),
                   {i, t->dim(i), a.normalized_shape[i]}))
        return;
  }
  m.setOutput(0, a.input.dims, dtype);
  SmallVector<Dim> statistics(a.input.dims);
  for (int64_t i = 0; i < n; ++i)
    statistics[lead + i] = m.constant(1);
  m.setOutput(1, statistics, dtype);
  m.setOutput(2, statistics, dtype);
}

} // namespace quern::meta

namespace quern::derivative {

// With x̂ = (x - mean) rstd, g = dy * weight and means over the normalised dims:
// dx = rstd (g - mean(g) - x̂ mean(g x̂)), dweight = Σ dy x̂, dbias = Σ dy.
static void layerNorm(LayerNormOp op, DerivativeBuilder &b) {
  if (b.isZero(0))
    return;
  Value grad = b.grad(0);
  if (b.wants(2))
    b.set(2, Term(grad));
  if (!b.wants(0) && !b.wants(1))
    return;
  Value centred = b.create("sub", {op.getInput(), op.getMean()});
  Value normalized = b.create("mul", {centred, op.getRstd()});
  if (b.wants(1))
    b.set(1, Term(b.create("mul", {grad, normalized})));
  if (!b.wants(0))
    return;
  int64_t rank = b.shape(op.getInput()).size(), n = op.getNormalizedShape().size();
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(rank - n, rank));
  OpBuilder &builder = b.getBuilder();
  NamedAttribute attrs[] = {builder.getNamedAttr("dim", b.attr(dims)),
                            builder.getNamedAttr("keepdim", b.attr(true))};
  if (Value weight = op.getWeight())
    grad = b.create("mul", {grad, weight});
  Value meanGrad = b.create("mean", {grad}, attrs);
  Value meanProduct = b.create("mean", {b.create("mul", {grad, normalized})}, attrs);
  Value inner = b.create(
      "sub", {b.create("sub", {grad, meanGrad}), b.create("mul", {normalized, meanProduct})});
  b.set(0, Term(b.create("mul", {inner, op.getRstd()})));
}

} // namespace quern::derivative

#define GET_STRUCTURED_DEFS
#include "quern/Dialect/Quern/IR/Ops/Normalization.structured.inc"

#define GET_OP_CLASSES
#include "quern/Dialect/Quern/IR/Ops/Normalization.cpp.inc"
