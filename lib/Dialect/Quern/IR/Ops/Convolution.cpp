//===- Convolution.cpp - Convolutions -------------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Dialect/Quern/IR/Ops/Convolution.h"

#define GET_STRUCTURED_ARGS
#include "quern/Dialect/Quern/IR/Ops/Convolution.structured.inc"

using namespace mlir;

namespace quern::meta {

/// C3: one number for each spatial dim, none below `least`.
static bool window(MetaContext &m, StringRef name, ArrayRef<int64_t> numbers, size_t spatial,
                   int64_t least, bool mayBeDouble) {
  bool count = numbers.size() == spatial || (mayBeDouble && numbers.size() == 2 * spatial);
  if (!m.check(3, count, ("expected " + name + " to have {0} numbers, got {1}").str(),
               {int64_t(spatial), int64_t(numbers.size())}))
    return false;
  for (int64_t v : numbers)
    if (!m.check(3, v >= least,
                 ("expected " + name +
                  (least ? " to be positive, got {0}" : " not to be negative, got {0}"))
                     .str(),
                 {v}))
      return false;
  return true;
}

/// C2 to C5 and C7 of all: the sizes of a convolution's result. Empty where a check failed.
template <typename Args>
static SmallVector<Dim> resultSizes(MetaContext &m, const TensorMeta &input,
                                    const TensorMeta &weight, const Args &a) {
  int64_t rank = input.rank();
  if (!m.check(2, rank >= 3 && rank <= 5,
               ("expected " + input.name + " to have rank 3, 4 or 5, got rank {0}").str(),
               {rank}) ||
      !m.check(2, weight.rank() == rank,
               ("expected " + weight.name + " to have rank {0}, got rank {1}").str(),
               {rank, weight.rank()}))
    return {};
  size_t spatial = rank - 2;
  if (!window(m, "stride", a.stride, spatial, 1, false) ||
      !window(m, "padding", a.padding, spatial, 0, true) ||
      !window(m, "dilation", a.dilation, spatial, 1, false))
    return {};
  Dim groups = m.constant(a.groups), out = weight.dim(0);
  if (!m.check(4, a.groups >= 1, "expected groups to be positive, got {0}", {a.groups}) ||
      !m.check(4, Condition::divides(groups, out),
               ("expected groups to divide " + weight.name + " dim 0, got {0} and {1}").str(),
               {groups, out}) ||
      !m.check(5, Condition::eq(input.dim(1), weight.dim(1) * groups),
               ("expected " + input.name + " dim 1 (channels) to be " + weight.name +
                " dim 1 times groups, got {0} and {1} times {2}")
                   .str(),
               {input.dim(1), weight.dim(1), a.groups}))
    return {};
  SmallVector<Dim> dims{input.dim(0), out};
  bool twoSided = a.padding.size() == 2 * spatial;
  for (size_t i = 0; i < spatial; ++i) {
    int64_t before = a.padding[i], after = a.padding[twoSided ? spatial + i : i];
    Dim padded = input.dim(2 + i) + (before + after);
    Dim reach = (weight.dim(2 + i) - 1) * a.dilation[i] + 1;
    if (!m.check(7, Condition::le(reach, padded),
                 "expected the window of dim {0} ({1} with dilation) to fit into the padded input, "
                 "got {2}",
                 {int64_t(2 + i), reach, padded}))
      return {};
    for (const TensorMeta *t : {&input, &weight})
      if (!m.check(7, Condition::le(m.constant(1), t->dim(2 + i)),
                   ("expected " + t->name + " dim {0} to be at least 1, got {1}").str(),
                   {int64_t(2 + i), t->dim(2 + i)}))
        return {};
    dims.push_back(Dim::floorDiv(padded - reach, m.constant(a.stride[i])) + 1);
  }
  return dims;
}

static void convolution(const ConvolutionArgs &a, MetaContext &m) {
  for (const TensorMeta *t : {&a.weight, &a.bias})
    if (*t &&
        !m.check(1, t->dtype == a.input.dtype,
                 ("expected " + t->name + " to have the dtype of input, got {0} and {1}").str(),
                 {t->dtype, a.input.dtype}))
      return;
  SmallVector<Dim> dims = resultSizes(m, a.input, a.weight, a);
  if (dims.empty() ||
      (a.bias && (!m.check(2, a.bias.rank() == 1, "expected bias to have rank 1, got rank {0}",
                           {a.bias.rank()}) ||
                  !m.check(6, Condition::eq(a.bias.dim(0), a.weight.dim(0)),
                           "expected bias dim 0 to equal weight dim 0 (out channels), got {0} "
                           "and {1}",
                           {a.bias.dim(0), a.weight.dim(0)}))))
    return;
  m.setOutput(0, dims, a.input.dtype);
}

/// `size` stands for the operand whose gradient is made, `other` is the other one.
template <typename Args>
static void backward(MetaContext &m, const Args &a, const TensorMeta &other,
                     const TensorMeta &input, const TensorMeta &weight) {
  const TensorMeta &grad = a.grad_output;
  if (!m.check(
          1, other.dtype == grad.dtype,
          ("expected " + other.name + " to have the dtype of grad_output, got {0} and {1}").str(),
          {other.dtype, grad.dtype}) ||
      !m.checkSizes(2, a.size, "size"))
    return;
  SmallVector<Dim> dims = resultSizes(m, input, weight, a);
  if (dims.empty() || !m.check(2, grad.rank() == int64_t(dims.size()),
                               "expected grad_output to have rank {0}, got rank {1}",
                               {int64_t(dims.size()), grad.rank()}))
    return;
  for (int64_t i = 0; i < grad.rank(); ++i)
    if (!m.check(6, Condition::eq(grad.dim(i), dims[i]),
                 "expected grad_output dim {0} to be the convolution's, got {1} and {2}",
                 {i, grad.dim(i), dims[i]}))
      return;
  m.setOutput(0, a.size, grad.dtype);
}
static void convolutionBackward(const ConvolutionInputBackwardArgs &a, MetaContext &m) {
  TensorMeta size{"size", SmallVector<Dim>(a.size), a.grad_output.dtype};
  backward(m, a, a.weight, size, a.weight);
}
static void convolutionBackward(const ConvolutionWeightBackwardArgs &a, MetaContext &m) {
  TensorMeta size{"size", SmallVector<Dim>(a.size), a.grad_output.dtype};
  backward(m, a, a.input, a.input, size);
}

} // namespace quern::meta

namespace quern::derivative {

static void convolution(ConvolutionOp op, DerivativeBuilder &b) {
  if (b.isZero(0))
    return;
  Value grad = b.grad(0);
  OpBuilder &builder = b.getBuilder();
  auto attrsFor = [&](Value shaped) {
    return SmallVector<NamedAttribute>{
        builder.getNamedAttr("size", b.attr(b.shape(shaped))),
        builder.getNamedAttr("stride", b.attr(op.getStride())),
        builder.getNamedAttr("padding", b.attr(op.getPadding())),
        builder.getNamedAttr("dilation", b.attr(op.getDilation())),
        builder.getNamedAttr("groups", b.attr(int64_t(op.getGroups())))};
  };
  if (b.wants(0))
    b.set(0, Term(b.create("convolution_input_backward", {grad, op.getWeight()},
                           attrsFor(op.getInput()))));
  if (b.wants(1))
    b.set(1, Term(b.create("convolution_weight_backward", {grad, op.getInput()},
                           attrsFor(op.getWeight()))));
  if (b.wants(2)) {
    SmallVector<int64_t> dims{0};
    for (size_t i = 2; i < b.shape(grad).size(); ++i)
      dims.push_back(i);
    b.set(2, Term(b.create("sum", {grad}, {builder.getNamedAttr("dim", b.attr(dims))})));
  }
}

} // namespace quern::derivative

#define GET_STRUCTURED_DEFS
#include "quern/Dialect/Quern/IR/Ops/Convolution.structured.inc"

#define GET_OP_CLASSES
#include "quern/Dialect/Quern/IR/Ops/Convolution.cpp.inc"
