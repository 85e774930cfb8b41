//===- Indexing.cpp - Elements chosen by an index tensor ------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Dialect/Quern/IR/Ops/Indexing.h"

#define GET_STRUCTURED_ARGS
#include "quern/Dialect/Quern/IR/Ops/Indexing.structured.inc"

using namespace mlir;

namespace quern::meta {

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

static bool isIndex(MetaContext &m, unsigned number, const TensorMeta &t) {
  return m.check(number, t.dtype.isSignlessInteger(32) || t.dtype.isSignlessInteger(64),
                 ("expected " + t.name + " to be i32 or i64, got {0}").str(), {t.dtype});
}

static bool hasRank(MetaContext &m, unsigned number, const TensorMeta &t, int64_t rank) {
  return m.check(number, t.rank() == rank,
                 ("expected " + t.name + " to have rank {0}, got rank {1}").str(),
                 {rank, t.rank()});
}

static bool sameDtype(MetaContext &m, unsigned number, const TensorMeta &t,
                      const TensorMeta &like) {
  return m.check(
      number, t.dtype == like.dtype,
      ("expected " + t.name + " to have the dtype of " + like.name + ", got {0} and {1}").str(),
      {t.dtype, like.dtype});
}

/// A scalar counts as one element.
static TensorMeta asList(MetaContext &m, TensorMeta t) {
  if (t.dims.empty())
    t.dims.push_back(m.constant(1));
  return t;
}

/// A list of indices, or one.
static bool isIndexList(MetaContext &m, const TensorMeta &t) {
  return isIndex(m, 1, t) &&
         m.check(1, t.rank() <= 1, ("expected " + t.name + " to have rank 1, got rank {0}").str(),
                 {t.rank()});
}

/// An index without elements chooses nothing: as in ATen, its shape need not fit then.
static Condition isEmpty(MetaContext &m, const TensorMeta &index) {
  return Condition::eq(Dim::product(m.getContext(), index.dims), m.constant(0));
}

/// `index` has the rank of self, or no elements.
static bool fitsRank(MetaContext &m, const TensorMeta &index, const TensorMeta &self) {
  return index.rank() == self.rank() ||
         m.check(2, isEmpty(m, index), "expected index to have rank {0}, got rank {1}",
                 {self.rank(), index.rank()});
}

/// The index `a` is no larger than `b` in each dim but `except`, or has no elements.
static bool noLarger(MetaContext &m, unsigned number, const TensorMeta &a, const TensorMeta &b,
                     int64_t except) {
  if (a.rank() != b.rank())
    return true;
  for (int64_t i = 0; i < a.rank(); ++i)
    if (i != except &&
        !m.check(number, Condition::anyOf({Condition::le(a.dim(i), b.dim(i)), isEmpty(m, a)}),
                 ("expected " + a.name + " dim {0} to be at most " + b.name +
                  " dim {0}, got {1} and {2}")
                     .str(),
                 {i, a.dim(i), b.dim(i)}))
      return false;
  return true;
}

/// There is an element to read along `dim` of `t` if there are indices.
static bool hasElements(MetaContext &m, unsigned number, const TensorMeta &t, int64_t dim,
                        const TensorMeta &index) {
  Dim indices = Dim::product(m.getContext(), index.dims);
  return m.check(
      number, Condition::anyOf({Condition::le(m.constant(1), t.dim(dim)), isEmpty(m, index)}),
      ("expected " + t.name + " dim {0} to have elements for {1} indices, got {2}").str(),
      {dim, indices, t.dim(dim)});
}

//===----------------------------------------------------------------------===//
// Meta functions
//===----------------------------------------------------------------------===//

static void embedding(const EmbeddingArgs &a, MetaContext &m) {
  if (!hasRank(m, 1, a.weight, 2) || !isIndex(m, 2, a.indices) ||
      !hasElements(m, 3, a.weight, 0, a.indices))
    return;
  SmallVector<Dim> dims(a.indices.dims);
  dims.push_back(a.weight.dim(1));
  m.setOutput(0, dims, a.weight.dtype);
}

static void indexSelect(const IndexSelectArgs &a, MetaContext &m) {
  int64_t dim = a.dim;
  if (!isIndexList(m, a.index) ||
      (a.self.dims.empty() && !m.check(1, Condition::eq(asList(m, a.index).dim(0), m.constant(1)),
                                       "expected index to have 1 element for a scalar, got {0}",
                                       {asList(m, a.index).dim(0)})) ||
      !m.wrapDim(2, dim, a.self.rank(), "dim") ||
      !hasElements(m, 3, asList(m, a.self), dim, a.index))
    return;
  SmallVector<Dim> dims(a.self.dims);
  if (!dims.empty())
    dims[dim] = asList(m, a.index).dim(0);
  m.setOutput(0, dims, a.self.dtype);
}

static void gather(const GatherArgs &a, MetaContext &m) {
  TensorMeta self = asList(m, a.self), index = asList(m, a.index);
  int64_t dim = a.dim;
  if (!isIndex(m, 1, index) || !fitsRank(m, index, self) ||
      !m.wrapDim(3, dim, a.self.rank(), "dim") || !noLarger(m, 4, index, self, dim) ||
      !hasElements(m, 5, self, dim, index))
    return;
  m.setOutput(0, a.index.dims, a.self.dtype);
}

static void scatterAdd(const ScatterAddArgs &a, MetaContext &m) {
  TensorMeta self = asList(m, a.self), index = asList(m, a.index), src = asList(m, a.src);
  int64_t dim = a.dim;
  if (!isIndex(m, 1, index) || !sameDtype(m, 1, src, self) || !fitsRank(m, index, self) ||
      (index.rank() == self.rank() && !hasRank(m, 2, src, self.rank())) ||
      !m.wrapDim(3, dim, a.self.rank(), "dim") || !noLarger(m, 4, index, self, dim) ||
      !noLarger(m, 5, index, src, /*except=*/-1))
    return;
  m.setOutput(0, a.self.dims, a.self.dtype);
}

static void indexAdd(const IndexAddArgs &a, MetaContext &m) {
  TensorMeta self = asList(m, a.self), index = asList(m, a.index), source = asList(m, a.source);
  int64_t dim = a.dim;
  if (!isIndexList(m, a.index) || !m.wrapDim(2, dim, a.self.rank(), "dim") ||
      !sameDtype(m, 3, source, self) || !hasRank(m, 4, source, self.rank()))
    return;
  for (int64_t i = 0; i < self.rank(); ++i) {
    const TensorMeta &like = i == dim ? index : self;
    int64_t j = i == dim ? 0 : i;
    if (!m.check(
            4, Condition::eq(source.dim(i), like.dim(j)),
            ("expected source dim {0} to equal " + like.name + " dim {1}, got {2} and {3}").str(),
            {i, j, source.dim(i), like.dim(j)}))
      return;
  }
  m.setOutput(0, a.self.dims, a.self.dtype);
}

static void embeddingDenseBackward(const EmbeddingDenseBackwardArgs &a, MetaContext &m) {
  if (!m.check(1, isa<FloatType>(a.grad_output.dtype),
               "expected grad_output to be of a float dtype, got {0}", {a.grad_output.dtype}) ||
      !isIndex(m, 1, a.indices) || !hasRank(m, 2, a.grad_output, a.indices.rank() + 1) ||
      !m.check(3, Condition::le(m.constant(0), a.num_weights),
               "expected num_weights to be at least 0, got {0}", {a.num_weights}) ||
      !m.check(
          3, Condition::anyOf({Condition::le(m.constant(1), a.num_weights), isEmpty(m, a.indices)}),
          "expected num_weights to be at least 1 for indices, got {0}", {a.num_weights}))
    return;
  for (int64_t i = 0; i < a.indices.rank(); ++i)
    if (!m.check(2, Condition::eq(a.grad_output.dim(i), a.indices.dim(i)),
                 "expected grad_output dim {0} to equal indices dim {0}, got {1} and {2}",
                 {i, a.grad_output.dim(i), a.indices.dim(i)}))
      return;
  m.setOutput(0, {a.num_weights, a.grad_output.dims.back()}, a.grad_output.dtype);
}

} // namespace quern::meta

namespace quern::derivative {
static Dim first_dim(ArrayRef<Dim> dims) { return dims.front(); }

/// src gets the gradient at the index; zeros where the index is smaller.
static void scatterAdd(ScatterAddOp op, DerivativeBuilder &b) {
  if (b.isZero(0))
    return;
  if (b.wants(0))
    b.set(0, Term(b.grad(0)));
  SmallVector<Dim> have = b.shape(op.getIndex()), want = b.shape(op.getSrc());
  // An index of another rank has no elements.
  auto countOf = [](Value v) {
    return std::max<int64_t>(1, cast<RankedTensorType>(v.getType()).getRank());
  };
  if (!b.wants(2) || countOf(op.getIndex()) != countOf(op.getSelf()))
    return;
  OpBuilder &builder = b.getBuilder();
  Value part = b.create("gather", {b.grad(0), op.getIndex()},
                        builder.getNamedAttr("dim", b.attr(int64_t(op.getDim()))));
  if (have.size() < want.size()) { // a scalar and a list
    have.push_back(Dim::constant(op.getContext(), 1));
    part = b.create("view", {part}, builder.getNamedAttr("size", b.attr(have)));
  }
  Facts facts;
  for (auto [i, to] : llvm::enumerate(want)) {
    Dim from = have[i];
    if (facts.decide(Condition::eq(from, to)) == Truth::True)
      continue;
    have[i] = to;
    // Only an index without elements is larger.
    NamedAttribute dim = builder.getNamedAttr("dim", b.attr(int64_t(i)));
    part = b.create("slice", {part}, {dim, builder.getNamedAttr("end", b.attr(to))});
    part = b.create("slice_backward", {part},
                    {builder.getNamedAttr("input_sizes", b.attr(have)), dim,
                     builder.getNamedAttr("end", b.attr(Dim::min(from, to)))});
  }
  b.set(2, Term(part));
}
} // namespace quern::derivative

#define GET_STRUCTURED_DEFS
#include "quern/Dialect/Quern/IR/Ops/Indexing.structured.inc"

#define GET_OP_CLASSES
#include "quern/Dialect/Quern/IR/Ops/Indexing.cpp.inc"
