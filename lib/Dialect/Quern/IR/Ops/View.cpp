//===- View.cpp - The same elements, arranged otherwise -----------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Dialect/Quern/IR/Ops/View.h"
#include "quern/Dialect/Quern/IR/Shapes.h"

#define GET_STRUCTURED_ARGS
#include "quern/Dialect/Quern/IR/Ops/View.structured.inc"

using namespace mlir;

namespace quern::meta {

//===----------------------------------------------------------------------===//
// The same order
//===----------------------------------------------------------------------===//

/// Takes out what stands in both lists (also where it may be 0: the other factors decide then).
static void cancel(SmallVectorImpl<Dim> &a, SmallVectorImpl<Dim> &b) {
  llvm::erase_if(a, [&](Dim d) {
    auto it = llvm::find(b, d);
    if (it == b.end() || d.isUnknown() || d.isConstant(0))
      return false;
    b.erase(it);
    return true;
  });
}

static void view(const ViewArgs &a, MetaContext &m) {
  MLIRContext *ctx = m.getContext();
  SmallVector<Dim> dims(a.size), given, have(a.self.dims);
  std::optional<size_t> open;
  for (auto [i, size] : llvm::enumerate(dims)) {
    if (size.isConstant(-1)) {
      if (!m.check(1, !open, "expected at most one size to be -1"))
        return;
      open = i;
      continue;
    }
    if (!m.check(1, Condition::le(m.constant(0), size),
                 "expected size {0} to be -1 or at least 0, got {1}", {int64_t(i), size}))
      return;
    given.push_back(size);
  }
  Dim numel = Dim::product(ctx, have), product = Dim::product(ctx, given);
  if (!open) {
    if (m.check(2, Condition::eq(product, numel),
                "expected size to hold the {0} elements of self, got {1}", {numel, product}))
      m.setOutput(0, dims, a.self.dtype);
    return;
  }
  cancel(have, given);
  Dim left = Dim::product(ctx, have), divisor = Dim::product(ctx, given);
  if (!m.check(2, !divisor.isConstant(0),
               "expected the given sizes to be other than 0 where one is -1") ||
      !m.check(2, Condition::divides(divisor, left),
               "expected the {0} elements of self to be a multiple of the given sizes, got {1}",
               {numel, product}))
    return;
  dims[*open] = divisor.isConstant(1) ? left : Dim::floorDiv(left, divisor);
  m.setOutput(0, dims, a.self.dtype);
}

/// Dims in range and different, as flags for each dim of the rank (at least one).
static bool checkDims(unsigned number, ArrayRef<int64_t> list, int64_t rank, StringRef what,
                      MetaContext &m, SmallVectorImpl<bool> &flags) {
  flags.assign(std::max<int64_t>(rank, 1), false);
  for (int64_t d : list) {
    if (!m.wrapDim(number, d, rank, what) ||
        !m.check(number + 1, !flags[d], "expected dims to be different, got {0} twice", {d}))
      return false;
    flags[d] = true;
  }
  return true;
}

static void squeeze(const SqueezeArgs &a, MetaContext &m) {
  SmallVector<bool> chosen;
  if (!checkDims(1, a.dim, a.self.rank(), "dim", m, chosen))
    return;
  SmallVector<Dim> dims;
  for (auto [i, size] : llvm::enumerate(a.self.dims)) {
    Condition isOne = Condition::eq(size, m.constant(1));
    Truth one = m.decide(isOne);
    if (one == Truth::False || (!a.dim.empty() && !chosen[i])) {
      dims.push_back(size);
      continue;
    }
    if (a.dim.empty()) {
      if (!m.check(3, one == Truth::True,
                   "expected dim {0} to be known where no dim is given, got {1}",
                   {int64_t(i), size}))
        return;
      continue;
    }
    if (!m.check(3, isOne, "expected dim {0}, which is squeezed, to be 1, got {1}",
                 {int64_t(i), size}))
      return;
  }
  m.setOutput(0, dims, a.self.dtype);
}

static void unsqueeze(const UnsqueezeArgs &a, MetaContext &m) {
  int64_t dim = a.dim;
  if (!m.wrapDim(1, dim, a.self.rank() + 1, "dim"))
    return;
  SmallVector<Dim> dims(a.self.dims);
  dims.insert(dims.begin() + dim, m.constant(1));
  m.setOutput(0, dims, a.self.dtype);
}

//===----------------------------------------------------------------------===//
// Broadcast and its adjoint
//===----------------------------------------------------------------------===//

static void expand(const ExpandArgs &a, MetaContext &m) {
  SmallVector<Dim> dims(a.size);
  int64_t lead = int64_t(dims.size()) - a.self.rank();
  if (!m.check(1, lead >= 0, "expected size to have at least {0} dims, got {1}",
               {a.self.rank(), int64_t(dims.size())}))
    return;
  for (int64_t i = 0; i < int64_t(dims.size()); ++i) {
    if (i < lead) {
      if (!m.check(1, Condition::le(m.constant(0), dims[i]),
                   "expected size {0}, which self does not have, to be at least 0, got {1}",
                   {i, dims[i]}))
        return;
      continue;
    }
    Dim own = a.self.dim(i - lead);
    if (dims[i].isConstant(-1))
      dims[i] = own;
    else if (!m.check(1, Condition::le(m.constant(0), dims[i]),
                      "expected size {0} to be at least 0, or -1 to keep that of self, got {1}",
                      {i, dims[i]}) ||
             !m.check(
                 2,
                 Condition::anyOf({Condition::eq(own, dims[i]), Condition::eq(own, m.constant(1))}),
                 "expected self dim {0} to be 1 or size {1}, got {2} and {3}",
                 {i - lead, i, own, dims[i]}))
      return;
  }
  m.setOutput(0, dims, a.self.dtype);
}

static void sumToSize(const SumToSizeArgs &a, MetaContext &m) {
  int64_t lead = a.self.rank() - int64_t(a.size.size());
  if (!m.check(1, lead >= 0, "expected self to have at least {0} dims, got {1}",
               {int64_t(a.size.size()), a.self.rank()}))
    return;
  for (int64_t i = 0; i < int64_t(a.size.size()); ++i)
    if (!m.check(2,
                 Condition::anyOf({Condition::eq(a.size[i], a.self.dim(lead + i)),
                                   Condition::eq(a.size[i], m.constant(1))}),
                 "expected size {0} to be 1 or self dim {1}, got {2} and {3}",
                 {i, lead + i, a.size[i], a.self.dim(lead + i)}))
      return;
  if (m.check(3, !a.self.dtype.isInteger(1), "expected self to be of a number dtype, got {0}",
              {a.self.dtype}))
    m.setOutput(0, a.size, a.self.dtype);
}

//===----------------------------------------------------------------------===//
// Elements elsewhere
//===----------------------------------------------------------------------===//

static void permute(const PermuteArgs &a, MetaContext &m) {
  int64_t rank = a.self.rank();
  SmallVector<bool> seen;
  if (!m.check(1, int64_t(a.dims.size()) == rank, "expected {0} dims, got {1}",
               {rank, int64_t(a.dims.size())}) ||
      !checkDims(2, a.dims, rank, "dims", m, seen))
    return;
  SmallVector<Dim> dims;
  for (int64_t d : a.dims)
    dims.push_back(a.self.dim(d < 0 ? d + rank : d));
  m.setOutput(0, dims, a.self.dtype);
}

/// A dim of a tensor that has to have one.
static bool checkDim(unsigned number, int64_t &dim, int64_t rank, StringRef what, MetaContext &m) {
  return m.check(number, rank > 0, "expected {0} to have at least 1 dim", {what.str()}) &&
         m.wrapDim(number, dim, rank, "dim");
}

static bool checkStep(unsigned number, int64_t step, MetaContext &m) {
  return m.check(number, step >= 1, "expected step to be at least 1, got {0}", {step});
}

static void slice(const SliceArgs &a, MetaContext &m) {
  int64_t dim = a.dim;
  if (!checkDim(1, dim, a.self.rank(), "self", m) || !checkStep(2, a.step, m))
    return;
  SmallVector<Dim> dims(a.self.dims);
  dims[dim] = getSliceBounds(dims[dim], a.start, a.end, a.step, [&](const Condition &c) {
                return m.decide(c);
              }).length;
  m.setOutput(0, dims, a.self.dtype);
}

static void sliceBackward(const SliceBackwardArgs &a, MetaContext &m) {
  int64_t dim = a.dim, rank = a.input_sizes.size();
  if (!m.checkSizes(1, a.input_sizes, "input size") || !checkDim(1, dim, rank, "input_sizes", m) ||
      !checkStep(2, a.step, m))
    return;
  if (!m.check(3, a.grad_output.rank() == rank, "expected grad_output to have {0} dims, got {1}",
               {rank, a.grad_output.rank()}))
    return;
  for (int64_t i = 0; i < rank; ++i) {
    Dim size = a.input_sizes[i];
    if (i == dim)
      size = getSliceBounds(size, a.start, a.end, a.step, [&](const Condition &c) {
               return m.decide(c);
             }).length;
    if (!m.check(3, Condition::eq(a.grad_output.dim(i), size),
                 "expected grad_output dim {0} to be the slice's, got {1} and {2}",
                 {i, a.grad_output.dim(i), size}))
      return;
  }
  m.setOutput(0, a.input_sizes, a.grad_output.dtype);
}

static bool checkIndex(Dim index, Dim size, MetaContext &m) {
  bool fromEnd = index.isConstant() && index.getConstant() < 0;
  Condition inside =
      fromEnd ? Condition::le(m.constant(0) - index, size) : Condition::lt(index, size);
  StringRef text = "expected index to be in [{0}, {1}], got {2}";
  SmallVector<MetaArg> args = {m.constant(0) - size, size - 1, index};
  return m.check(2, inside, text, args) &&
         (fromEnd || m.check(2, Condition::le(m.constant(0), index), text, args));
}

static void select(const SelectArgs &a, MetaContext &m) {
  int64_t dim = a.dim;
  if (!checkDim(1, dim, a.self.rank(), "self", m) || !checkIndex(a.index, a.self.dim(dim), m))
    return;
  SmallVector<Dim> dims(a.self.dims);
  dims.erase(dims.begin() + dim);
  m.setOutput(0, dims, a.self.dtype);
}

static void selectBackward(const SelectBackwardArgs &a, MetaContext &m) {
  int64_t dim = a.dim, rank = a.input_sizes.size();
  if (!m.checkSizes(1, a.input_sizes, "input size") || !checkDim(1, dim, rank, "input_sizes", m) ||
      !checkIndex(a.index, a.input_sizes[dim], m))
    return;
  if (!m.check(3, a.grad_output.rank() == rank - 1,
               "expected grad_output to have {0} dims, got {1}", {rank - 1, a.grad_output.rank()}))
    return;
  for (int64_t i = 0; i < rank - 1; ++i) {
    int64_t from = i < dim ? i : i + 1;
    if (!m.check(3, Condition::eq(a.grad_output.dim(i), a.input_sizes[from]),
                 "expected grad_output dim {0} to be input size {1}, got {2} and {3}",
                 {i, from, a.grad_output.dim(i), a.input_sizes[from]}))
      return;
  }
  m.setOutput(0, a.input_sizes, a.grad_output.dtype);
}

static void cat(const CatArgs &a, MetaContext &m) {
  if (!m.check(1, !a.tensors.empty(), "expected at least one tensor"))
    return;
  const TensorMeta &first = a.tensors.front();
  if (!m.check(3, first.rank() > 0, "expected tensor 0 to have at least 1 dim"))
    return;
  SmallVector<Dim> dims(first.dims);
  int64_t dim = a.dim;
  for (int64_t i = 1; i < int64_t(a.tensors.size()); ++i) {
    const TensorMeta &t = a.tensors[i];
    if (!m.check(2, t.dtype == first.dtype,
                 "expected tensor {0} to have the dtype of tensor 0, got {1} and {2}",
                 {i, t.dtype, first.dtype}) ||
        !m.check(3, t.rank() == first.rank(), "expected tensor {0} to have {1} dims, got {2}",
                 {i, first.rank(), t.rank()}))
      return;
  }
  if (!m.wrapDim(4, dim, first.rank(), "dim"))
    return;
  for (int64_t i = 1; i < int64_t(a.tensors.size()); ++i)
    for (int64_t k = 0; k < first.rank(); ++k) {
      Dim size = a.tensors[i].dim(k);
      if (k == dim)
        dims[k] = dims[k] + size;
      else if (!m.check(5, Condition::eq(size, dims[k]),
                        "expected tensor {0} dim {1} to equal tensor 0's, got {2} and {3}",
                        {i, k, size, dims[k]}))
        return;
      else if (dims[k].isUnknown())
        dims[k] = size;
    }
  m.setOutput(0, dims, first.dtype);
}

} // namespace quern::meta

//===----------------------------------------------------------------------===//
// Derivatives
//===----------------------------------------------------------------------===//

namespace quern::derivative {

static SmallVector<int64_t> inversePermutation(ArrayRef<int64_t> dims) {
  SmallVector<int64_t> inverse(dims.size());
  for (auto [i, d] : llvm::enumerate(dims))
    inverse[d < 0 ? d + dims.size() : d] = i;
  return inverse;
}

/// Each tensor gets its part of the gradient.
static void cat(CatOp op, DerivativeBuilder &b) {
  OpBuilder &builder = b.getBuilder();
  int64_t dim = op.getDim();
  Dim at;
  for (auto [i, tensor] : llvm::enumerate(op.getTensors())) {
    SmallVector<Dim> dims = b.shape(tensor);
    Dim size = dims[dim < 0 ? dim + dims.size() : dim];
    Dim start = at ? at : Dim::constant(op.getContext(), 0);
    at = start + size;
    if (b.wants(0, i))
      b.set(0,
            b.create("slice", {b.grad(0)},
                     {builder.getNamedAttr("dim", b.attr(dim)),
                      builder.getNamedAttr("start", b.attr(start)),
                      builder.getNamedAttr("end", b.attr(at))}),
            i);
  }
}

} // namespace quern::derivative

//===----------------------------------------------------------------------===//
// Folds
//===----------------------------------------------------------------------===//

namespace quern::fold {

/// A view of a view is a view of its source.
static Value view(ViewOp op) {
  auto inner = op.getSelf().getDefiningOp<StructuredOp>();
  if (!inner || inner.getOpRecord().fusion != FusionClass::Reshape ||
      !inner.getDestinations().empty() || !runMeta(inner).undecided.empty())
    return {};
  op.getSelfMutable().assign(inner->getOperand(0));
  return op.getResult();
}

/// Dims in their own order; a permutation of a permutation is one.
static Value permute(PermuteOp op) {
  int64_t rank = op.getDims().size();
  auto wrap = [&](int64_t d) { return d < 0 ? d + rank : d; };
  bool identity = true;
  for (auto [i, d] : llvm::enumerate(op.getDims()))
    identity &= wrap(d) == int64_t(i);
  if (identity && op.getSelf().getType() == op.getType())
    return op.getSelf();
  auto inner = op.getSelf().getDefiningOp<PermuteOp>();
  if (!inner || !inner.getInto().empty())
    return {};
  SmallVector<int64_t> dims;
  for (int64_t d : op.getDims())
    dims.push_back(wrap(inner.getDims()[wrap(d)]));
  op.getSelfMutable().assign(inner.getSelf());
  op.setDims(dims);
  return op.getResult();
}

static Value cat(CatOp op) {
  if (op.getTensors().size() == 1 && op.getTensors()[0].getType() == op.getType())
    return op.getTensors()[0];
  return {};
}

} // namespace quern::fold

#define GET_STRUCTURED_DEFS
#include "quern/Dialect/Quern/IR/Ops/View.structured.inc"

#define GET_OP_CLASSES
#include "quern/Dialect/Quern/IR/Ops/View.cpp.inc"
