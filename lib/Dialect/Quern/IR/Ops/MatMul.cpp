//===- MatMul.cpp - Matrix products ---------------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Dialect/Quern/IR/Ops/MatMul.h"

#define GET_STRUCTURED_ARGS
#include "quern/Dialect/Quern/IR/Ops/MatMul.structured.inc"

using namespace mlir;

namespace quern::meta {

//===----------------------------------------------------------------------===//
// Meta functions
//===----------------------------------------------------------------------===//

static bool sameDtype(MetaContext &m, const TensorMeta &a, const TensorMeta &b) {
  return m.check(
      1, a.dtype == b.dtype,
      ("expected " + b.name + " to have the dtype of " + a.name + ", got {0} and {1}").str(),
      {b.dtype, a.dtype});
}

static bool hasRank(MetaContext &m, const TensorMeta &t, int64_t rank) {
  return m.check(2, t.rank() == rank,
                 ("expected " + t.name + " to have rank {0}, got rank {1}").str(),
                 {rank, t.rank()});
}

static void mm(const MmArgs &a, MetaContext &m) {
  if (!sameDtype(m, a.self, a.mat2) || !hasRank(m, a.self, 2) || !hasRank(m, a.mat2, 2))
    return;
  if (!m.check(3, Condition::eq(a.self.dim(1), a.mat2.dim(0)),
               "expected self dim 1 (K) to equal mat2 dim 0, got {0} and {1}",
               {a.self.dim(1), a.mat2.dim(0)}))
    return;
  m.setOutput(0, {a.self.dim(0), a.mat2.dim(1)}, a.self.dtype);
}

static void bmm(const BmmArgs &a, MetaContext &m) {
  if (!sameDtype(m, a.self, a.mat2) || !hasRank(m, a.self, 3) || !hasRank(m, a.mat2, 3))
    return;
  if (!m.check(3, Condition::eq(a.self.dim(2), a.mat2.dim(1)),
               "expected self dim 2 (K) to equal mat2 dim 1, got {0} and {1}",
               {a.self.dim(2), a.mat2.dim(1)}) ||
      !m.check(4, Condition::eq(a.self.dim(0), a.mat2.dim(0)),
               "expected self dim 0 (batch) to equal mat2 dim 0, got {0} and {1}",
               {a.self.dim(0), a.mat2.dim(0)}))
    return;
  m.setOutput(0, {a.self.dim(0), a.self.dim(1), a.mat2.dim(2)}, a.self.dtype);
}

static void addmm(const AddmmArgs &a, MetaContext &m) {
  if (!sameDtype(m, a.self, a.mat1) || !sameDtype(m, a.self, a.mat2) || !hasRank(m, a.mat1, 2) ||
      !hasRank(m, a.mat2, 2))
    return;
  if (!m.check(3, Condition::eq(a.mat1.dim(1), a.mat2.dim(0)),
               "expected mat1 dim 1 (K) to equal mat2 dim 0, got {0} and {1}",
               {a.mat1.dim(1), a.mat2.dim(0)}))
    return;
  Dim dims[] = {a.mat1.dim(0), a.mat2.dim(1)};
  if (!m.check(4, a.self.rank() <= 2, "expected self to have rank 2 at most, got rank {0}",
               {a.self.rank()}))
    return;
  for (int64_t i = 0; i < a.self.rank(); ++i) {
    Dim own = a.self.dim(i), whole = dims[2 - a.self.rank() + i];
    if (!m.check(4,
                 Condition::anyOf({Condition::eq(own, whole), Condition::eq(own, m.constant(1))}),
                 "expected self dim {0} to equal {1} or to be 1, got {2}", {i, whole, own}))
      return;
  }
  m.setOutput(0, dims, a.self.dtype);
}

static void linear(const LinearArgs &a, MetaContext &m) {
  if (!sameDtype(m, a.input, a.weight) || (a.bias && !sameDtype(m, a.input, a.bias)))
    return;
  if (!m.check(2, a.input.rank() >= 1, "expected input to have rank 1 or more, got rank {0}",
               {a.input.rank()}) ||
      !hasRank(m, a.weight, 2) || (a.bias && !hasRank(m, a.bias, 1)))
    return;
  int64_t last = a.input.rank() - 1;
  if (!m.check(3, Condition::eq(a.input.dim(last), a.weight.dim(1)),
               "expected input dim {0} (in features) to equal weight dim 1, got {1} and {2}",
               {last, a.input.dim(last), a.weight.dim(1)}))
    return;
  if (a.bias &&
      !m.check(
          4,
          Condition::anyOf({Condition::eq(a.bias.dim(0), a.weight.dim(0)),
                            Condition::eq(a.bias.dim(0), m.constant(1))}),
          "expected bias dim 0 to equal weight dim 0 (out features) or to be 1, got {0} and {1}",
          {a.bias.dim(0), a.weight.dim(0)}))
    return;
  SmallVector<Dim> dims(a.input.dims);
  dims.back() = a.weight.dim(0);
  m.setOutput(0, dims, a.input.dtype);
}

} // namespace quern::meta

//===----------------------------------------------------------------------===//
// Derivatives
//===----------------------------------------------------------------------===//

namespace quern::derivative {

/// The leading dims as one: [..., I] as [N, I].
static Value asMatrix(DerivativeBuilder &b, Value v) {
  SmallVector<Dim> dims = b.shape(v);
  if (dims.size() == 2)
    return v;
  Dim lead = Dim::product(v.getContext(), ArrayRef(dims).drop_back());
  return b.create("view", {v},
                  {b.getBuilder().getNamedAttr("size", b.attr(ArrayRef<Dim>{lead, dims.back()}))});
}

static void linearWeight(LinearOp op, DerivativeBuilder &b) {
  if (!b.wants(1))
    return;
  Value grad = asMatrix(b, b.grad(0)), input = asMatrix(b, op.getInput());
  Value transposed = b.create(
      "permute", {grad}, {b.getBuilder().getNamedAttr("dims", b.attr(ArrayRef<int64_t>{1, 0}))});
  b.set(1, Term(b.create("mm", {transposed, input})));
}

} // namespace quern::derivative

#define GET_STRUCTURED_DEFS
#include "quern/Dialect/Quern/IR/Ops/MatMul.structured.inc"

#define GET_OP_CLASSES
#include "quern/Dialect/Quern/IR/Ops/MatMul.cpp.inc"
