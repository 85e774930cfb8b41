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
  Value self = call.tensor("self");
  if (call.failed())
    return {};
  if (call.boolean("half_to_float", false)) {
    if (!Call::dtypeOf(self).isF16())
      return {call.fail("half_to_float is for f16")};
    dtype = Float32Type::get(call.getContext());
  }
  self = call.convert(self, dtype);
  return {call.op(mnemonic, {self}, {call.attr("dim", call.integer("dim", -1))})};
}
static Results softmax(Call &call) { return softmaxLike(call, "softmax"); }
static Results logSoftmax(Call &call) { return softmaxLike(call, "log_softmax"); }

/// Result, mean, reciprocal standard deviation. Weights of f32 go with a narrow input, which is
/// then widened; the result is of the input's dtype, the statistics are f32.
static Results nativeLayerNorm(Call &call) {
  Value input = call.tensor("input");
  Value weight = call.optionalTensor("weight"), bias = call.optionalTensor("bias");
  SmallVector<int64_t> shape = call.integers("normalized_shape");
  Scalar eps = call.scalar("eps", Scalar::number(1e-5));
  if (call.failed())
    return {};
  Type dtype = Call::dtypeOf(input);
  bool isMixed = dtype.getIntOrFloatBitWidth() == 16 && isa<FloatType>(dtype) && (weight || bias);
  for (Value parameter : {weight, bias})
    isMixed &= !parameter || Call::dtypeOf(parameter).isF32();
  if (isMixed)
    input = call.convert(input, Float32Type::get(call.getContext()));
  Results results =
      call.ops("layer_norm", {input, weight, bias},
               {call.sizesAttr("normalized_shape", shape), call.attr("eps", eps.asDouble)});
  if (isMixed && !results.empty())
    results[0] = call.convert(results[0], dtype);
  return results;
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
