//===- Loss.td - Losses -----------------------------------------*- tablegen -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_OPS_LOSS_TD
#define QUERN_OPS_LOSS_TD

include "quern/Dialect/Quern/IR/StructuredOp.td"

def Quern_NllLossOp : Quern_Op<"nll_loss", [AttrSizedOperandSegments]> {
  let summary = "-weight[target] * self[target] of each row; their mean, sum, or all";
  let description = [{
    `self` holds log probabilities, [N, C] or [C]; `target` class numbers, [N] or a scalar.
    `reduction`: 0 none, 1 mean (over the summed weights), 2 sum. Rows whose target is `ignore_index`
    count nothing. `total_weight` is the sum of the weights used (0 for [N, C] and reduction 0). A target outside
    [0, C) gives NaN.
  }];
  let args = (ins AnyRankedTensor:$self, AnyRankedTensor:$target, Optional<AnyRankedTensor>:$weight,
                  DefaultValuedAttr<I64Attr, "1">:$reduction,
                  DefaultValuedAttr<I64Attr, "-100">:$ignore_index);
  let results = (outs AnyRankedTensor:$result, AnyRankedTensor:$total_weight);
  let meta = "nllLoss";
  let fusion = Gather;
  let body = Lowering<"nll_loss">;
  let inPlace = NotInPlace<"the result is smaller than self">;
  let constraints = ["self is of a float dtype, weight has the same, target is i64 or u8",
                     "self has rank 1 or 2, target one less",
                     "self dim 0 equals target dim 0 (rows)",
                     "weight has one element for each class", "reduction is 0, 1 or 2",
                     "there is a class if there are rows"];
  let derivatives = [Custom<"self", "nllLoss", ["target", "weight", "total_weight"]>,
                     NonDifferentiable<"target", "class numbers are integers">,
                     NonDifferentiable<"weight", "class weights are not learned">];
  let samples = [Sample<"nll_loss(f32[4,5], i64[4], _) -> f32[], f32[]">,
                 Sample<"nll_loss(f64[4,5], i64[4], f64[5], reduction=0) -> f64[4], f64[]">,
                 Sample<"nll_loss(f32[5], i64[], _, reduction=2) -> f32[], f32[]">];
  let badSamples = [
    BadSample<"nll_loss(f32[4,5], i32[4], _)",
              "nll_loss_c1: expected target to be i64 or u8, got i32">,
    BadSample<"nll_loss(f32[4,5,6], i64[4], _)", "nll_loss_c2: expected self to have rank 1 or 2, got rank 3">,
    BadSample<"nll_loss(f32[4,5], i64[3], _)",
              "nll_loss_c3: expected self dim 0 to equal target dim 0 (rows), got 4 and 3">,
    BadSample<"nll_loss(f32[4,6], i64[4], f32[5])",
              "nll_loss_c4: expected weight to have 6 elements (classes), got 5">,
    BadSample<"nll_loss(f32[4,5], i64[4], _, reduction=3)",
              "nll_loss_c5: expected reduction to be 0, 1 or 2, got 3">,
    BadSample<"nll_loss(f32[4,0], i64[4], _)",
              "nll_loss_c6: expected self to have a class to choose, got 0">];
}

def Quern_NllLossBackwardOp : Quern_Op<"nll_loss_backward", [AttrSizedOperandSegments]> {
  let summary = "the gradient of nll_loss: nonzero only at each row's target";
  let args = (ins AnyRankedTensor:$grad_output, AnyRankedTensor:$target, Optional<AnyRankedTensor>:$weight,
                  AnyRankedTensor:$total_weight, Quern_DimsAttr:$size,
                  DefaultValuedAttr<I64Attr, "1">:$reduction,
                  DefaultValuedAttr<I64Attr, "-100">:$ignore_index);
  let meta = "nllLossBackward";
  let fusion = Gather;
  let body = Lowering<"nll_loss_backward">;
  let inPlace = NotInPlace<"the result is larger than any operand">;
  let constraints = ["grad_output is of a float dtype, total_weight and weight have the same, target is i64 or u8",
                     "size has rank 1 or 2 and is at least 0; target has one less, total_weight 0",
                     "size 0 equals target dim 0 (rows)",
                     "weight has one element for each class", "reduction is 0, 1 or 2",
                     "grad_output has the shape of the loss"];
  let derivatives = [NonDifferentiable<"grad_output", "second derivatives of losses are not built">,
                     NonDifferentiable<"target", "class numbers are integers">,
                     NonDifferentiable<"weight", "class weights are not learned">,
                     NonDifferentiable<"total_weight", "it depends on targets and class weights only">];
  let samples = [Sample<"nll_loss_backward(f32[], i64[4], _, f32[], size=[4,5]) -> f32[4,5]">];
  let badSamples = [
    BadSample<"nll_loss_backward(f32[], i64[4], _, f64[], size=[4,5])",
              "nll_loss_backward_c1: expected total_weight to have the dtype of grad_output, got f64 and f32">,
    BadSample<"nll_loss_backward(f32[], i64[4], _, f32[], size=[4,5,6])",
              "nll_loss_backward_c2: expected size to have rank 1 or 2, got rank 3">,
    BadSample<"nll_loss_backward(f32[], i64[4], _, f32[], size=[5,4])",
              "nll_loss_backward_c3: expected size dim 0 to equal target dim 0 (rows), got 5 and 4">,
    BadSample<"nll_loss_backward(f32[], i64[4], f32[3], f32[], size=[4,5])",
              "nll_loss_backward_c4: expected weight to have 5 elements (classes), got 3">,
    BadSample<"nll_loss_backward(f32[], i64[4], _, f32[], size=[4,5], reduction=3)",
              "nll_loss_backward_c5: expected reduction to be 0, 1 or 2, got 3">,
    BadSample<"nll_loss_backward(f32[3], i64[4], _, f32[], size=[4,5], reduction=0)",
              "nll_loss_backward_c6: expected grad_output dim 0 to equal size 0 (rows), got 3 and 4">];
}

#endif // QUERN_OPS_LOSS_TD
