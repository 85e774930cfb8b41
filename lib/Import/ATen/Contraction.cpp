//===- Contraction.cpp - ATen's matrix products and convolutions ----------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Call.h"

using namespace mlir;

namespace quern::aten {

static Results mm(Call &call) {
  return {call.op("mm", {call.tensor("self"), call.tensor("mat2")})};
}

static Results bmm(Call &call) {
  return {call.op("bmm", {call.tensor("self"), call.tensor("mat2")})};
}

static Results addmm(Call &call) {
  return {call.op("addmm", {call.tensor("self"), call.tensor("mat1"), call.tensor("mat2")},
                  {call.attr("beta", call.scalar("beta", Scalar::integer(1)).asDouble),
                   call.attr("alpha", call.scalar("alpha", Scalar::integer(1)).asDouble)})};
}

/// A weight of one dim is one output, without a dim of its own; a bias may broadcast.
static Results linear(Call &call) {
  Value input = call.tensor("input"), weight = call.tensor("weight");
  Value bias = call.optionalTensor("bias");
  if (call.failed())
    return {};
  if (Call::rankOf(weight) == 1) {
    if (bias)
      return {call.fail("expected no bias with a weight of 1 dim")};
    weight = call.op("unsqueeze", {weight}, {call.attr("dim", int64_t(0))});
    Value result = call.op("linear", {input, weight, Value()});
    return {call.op("squeeze", {result}, {call.attr("dim", ArrayRef<int64_t>{-1})})};
  }
  if (!bias || Call::rankOf(bias) == 1 || Call::rankOf(weight) != 2)
    return {call.op("linear", {input, weight, bias})};
  Value product = call.op("linear", {input, weight, Value()});
  Value sum = call.op("add", {product, bias});
  if (!call.failed() && Call::typeOf(sum).getShape() != Call::typeOf(product).getShape())
    return {call.fail("expected bias to broadcast to the product")};
  return {sum};
}

/// A list of one entry stands for all dims.
static SmallVector<int64_t> perDim(Call &call, StringRef argument, int64_t otherwise,
                                   unsigned spatial) {
  SmallVector<int64_t> list = call.integers(argument);
  if (list.empty())
    list.push_back(otherwise);
  if (list.size() == 1)
    list.resize(spatial, list.front());
  if (list.size() != spatial)
    call.fail("expected " + argument + " to have 1 or " + Twine(spatial) + " entries, got " +
              Twine(list.size()));
  return list;
}

template <unsigned spatial> static Results convolution(Call &call) {
  Value input = call.tensor("input"), weight = call.tensor("weight");
  if (call.failed())
    return {};
  int64_t rank = Call::rankOf(input);
  if (rank != spatial + 1 && rank != spatial + 2)
    return {call.fail("expected input to have " + Twine(spatial + 1) + " or " + Twine(spatial + 2) +
                      " dims, got " + Twine(rank))};
  SmallVector<int64_t> stride = perDim(call, "stride", 1, spatial);
  SmallVector<int64_t> padding = perDim(call, "padding", 0, spatial);
  SmallVector<int64_t> dilation = perDim(call, "dilation", 1, spatial);
  // Without a batch dim, one of size 1 is put before and taken away again.
  bool batched = rank == spatial + 2;
  if (!batched)
    input = call.op("unsqueeze", {input}, {call.attr("dim", int64_t(0))});
  Value result = call.op("convolution", {input, weight, call.optionalTensor("bias")},
                         {call.attr("stride", ArrayRef<int64_t>(stride)),
                          call.attr("padding", ArrayRef<int64_t>(padding)),
                          call.attr("dilation", ArrayRef<int64_t>(dilation)),
                          call.attr("groups", call.integer("groups", 1))});
  if (!batched)
    result = call.op("squeeze", {result}, {call.attr("dim", ArrayRef<int64_t>{0})});
  return {result};
}

llvm::ArrayRef<Overload> getContractionOverloads() {
  constexpr Rounding summed = Rounding::Accumulating;
  static const Overload table[] = {
      {"mm.default", mm, summed, Terms::LastDim},
      {"bmm.default", bmm, summed, Terms::LastDim},
      {"addmm.default", addmm, summed, Terms::LastDim},
      {"linear.default", linear, summed, Terms::LastDim},
      {"conv1d.default", convolution<1>, summed, Terms::Window},
      {"conv2d.default", convolution<2>, summed, Terms::Window},
  };
  return table;
}

} // namespace quern::aten
