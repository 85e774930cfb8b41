//===- Normalization.td - Softmax and layer normalisation -------*- tablegen -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_OPS_NORMALIZATION_TD
#define QUERN_OPS_NORMALIZATION_TD

include "quern/Dialect/Quern/IR/StructuredOp.td"

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

/// Along one dim; computed in f32 for f16 and bf16. A scalar counts as one element.
class SoftmaxOp<string mnemonic> : Quern_Op<mnemonic> {
  let args = (ins AnyRankedTensor:$self, I64Attr:$dim);
  let meta = "softmax";
  let fusion = RowWise;
  let body = Lowering<mnemonic>;
  // A row is read whole before any of it is written.
  let inPlace = InPlace<["self"]>;
  let constraints = ["self is of a float dtype", "dim is a dim of self"];
  let samples = [Sample<mnemonic # "(f32[2,5], dim=1) -> f32[2,5]">, Sample<mnemonic # "(f64[3,4], dim=0) -> f64[3,4]">,
                 Sample<mnemonic # "(f32[2,3,4], dim=-1) -> f32[2,3,4]">];
  let badSamples = [
    BadSample<mnemonic # "(i64[2,5], dim=1)",
              mnemonic # "_c1: expected self to be of a float dtype, got i64">,
    BadSample<mnemonic # "(f32[5,5], dim=3)", mnemonic # "_c2: expected dim to be in [-2, 1], got 3">];
}

def Quern_SoftmaxOp : SoftmaxOp<"softmax"> {
  let summary = "exp(self) / sum(exp(self)) along dim";
  let description = [{
    The row's maximum is subtracted first, so that nothing overflows.
  }];
  let derivatives = [Wrt<"self", "let p = grad * result; p - result * sum(p, dim=[dim], keepdim=true)">];
}

def Quern_LogSoftmaxOp : SoftmaxOp<"log_softmax"> {
  let summary = "self - log(sum(exp(self))) along dim";
  let derivatives = [Wrt<"self", "grad - exp(result) * sum(grad, dim=[dim], keepdim=true)">];
}

//===----------------------------------------------------------------------===//
// Layer normalisation
//===----------------------------------------------------------------------===//

def Quern_LayerNormOp : Quern_Op<"layer_norm", [AttrSizedOperandSegments]> {
  let summary = "(input - mean) / sqrt(variance + eps) * weight + bias over the last dims";
  let description = [{
    Over as many last dims as `normalized_shape` has; the variance is the biased one. `mean` and
    `rstd` = 1 / sqrt(variance + eps) are for the backward: 1 in place of the normalised dims. Computed
    in f32 for f16 and bf16.
  }];
  let args = (ins AnyRankedTensor:$input, Optional<AnyRankedTensor>:$weight,
                  Optional<AnyRankedTensor>:$bias, Quern_DimsAttr:$normalized_shape,
                  DefaultValuedAttr<F64Attr, "1e-5">:$eps);
  let results = (outs AnyRankedTensor:$result, AnyRankedTensor:$mean, AnyRankedTensor:$rstd);
  let meta = "layerNorm";
  let fusion = RowWise;
  let body = Lowering<"layer_norm">;
  let inPlace = InPlace<["input"]>;
  let constraints = ["input is of a float dtype, weight and bias have the same",
                     "normalized_shape has at least one dim and no more than input",
                     "normalized_shape equals the last dims of input",
                     "weight and bias have the shape normalized_shape"];
  let derivatives = [Custom<"input", "layerNorm", ["input", "mean", "rstd", "weight"]>,
                     Custom<"weight", "layerNorm", ["input", "mean", "rstd"]>,
                     Custom<"bias", "layerNorm", []>];
  let samples = [
    Sample<"layer_norm(f32[2,6], f32[6], f32[6], normalized_shape=[6]) -> f32[2,6], f32[2,1], f32[2,1]">,
    Sample<"layer_norm(f64[2,2,3], _, _, normalized_shape=[2,3], eps=0.01) -> f64[2,2,3], f64[2,1,1], f64[2,1,1]">];
  let badSamples = [
    BadSample<"layer_norm(i64[2,6], _, _, normalized_shape=[6])",
              "layer_norm_c1: expected input to be of a float dtype, got i64">,
    BadSample<"layer_norm(f32[2,6], _, _, normalized_shape=[])",
              "layer_norm_c2: expected normalized_shape to have 1 to 2 dims, got 0">,
    BadSample<"layer_norm(f32[2,6], _, _, normalized_shape=[5])",
              "layer_norm_c3: expected normalized_shape dim 0 to equal input dim 1, got 5 and 6">,
    BadSample<"layer_norm(f32[2,6], f32[4], _, normalized_shape=[6])",
              "layer_norm_c4: expected weight dim 0 to equal normalized_shape dim 0, got 4 and 6">];
}

#endif // QUERN_OPS_NORMALIZATION_TD
