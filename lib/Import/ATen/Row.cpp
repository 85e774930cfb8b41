//===- Row.cpp - ATen's softmax, normalisations and losses ----------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Call.h"

using namespace mlir;

namespace quern::aten {

/// `dtype=` is a cast before; so is `half_to_float` of the overloads below autograd.
static Results softmaxLike(Call &call, StringRef mnemonic) {
  Type dtype = call.dtype();
  if (call.boolean("half_to_float", false))
    dtype = Float32Type::get(call.getContext());
  Value self = call.convert(call.tensor("self"), dtype);
  return {call.op(mnemonic, {self}, {call.attr("dim", call.integer("dim", -1))})};
}
static Results softmax(Call &call) { return softmaxLike(call, "softmax"); }
static Results logSoftmax(Call &call) { return softmaxLike(call, "log_softmax"); }

/// Result, mean, reciprocal standard deviation.
static Results nativeLayerNorm(Call &call) {
  SmallVector<int64_t> shape = call.integers("normalized_shape");
  Scalar eps = call.scalar("eps", Scalar::number(1e-5));
  return call.ops(
      "layer_norm",
      {call.tensor("input"), call.optionalTensor("weight"), call.optionalTensor("bias")},
      {call.sizesAttr("normalized_shape", shape), call.attr("eps", eps.asDouble)});
}

static Results layerNorm(Call &call) {
  Results results = nativeLayerNorm(call);
  return results.empty() ? Results() : Results{results.front()};
}

/// Loss, sum of the weights.
static Results nllLossForward(Call &call) {
  return call.ops("nll_loss",
                  {call.tensor("self"), call.tensor("target"), call.optionalTensor("weight")},
                  {call.attr("reduction", call.integer("reduction", 1)),
                   call.attr("ignore_index", call.integer("ignore_index", -100))});
}

static Results nllLoss(Call &call) {
  Results results = nllLossForward(call);
  return results.empty() ? Results() : Results{results.front()};
}

llvm::ArrayRef<Overload> getRowOverloads() {
  constexpr Rounding summed = Rounding::Accumulating;
  static const Overload table[] = {
      {"_softmax.default", softmax, summed, Terms::Reduced},
      {"softmax.int", softmax, summed, Terms::Reduced},
      {"_log_softmax.default", logSoftmax, summed, Terms::Reduced},
      {"log_softmax.int", logSoftmax, summed, Terms::Reduced},
      {"native_layer_norm.default", nativeLayerNorm, summed, Terms::Normalized},
      {"layer_norm.default", layerNorm, summed, Terms::Normalized},
      {"nll_loss_forward.default", nllLossForward, summed, Terms::FirstDim},
      {"nll_loss.default", nllLoss, summed, Terms::FirstDim},
  };
  return table;
}

} // namespace quern::aten
