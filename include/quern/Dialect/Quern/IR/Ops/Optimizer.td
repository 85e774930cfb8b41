//===- Optimizer.td - Optimiser steps ---------------------------*- tablegen -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_OPS_OPTIMIZER_TD
#define QUERN_OPS_OPTIMIZER_TD

include "quern/Dialect/Quern/IR/StructuredOp.td"

class EndOfGraph<string operand> : NonDifferentiable<operand, "an optimiser step ends a graph">;

def Quern_SgdStepOp : Quern_Op<"sgd_step"> {
  let summary = "self - lr * (grad + weight_decay * self)";
  let args = (ins AnyRankedTensor:$self, AnyRankedTensor:$grad, F64Attr:$lr,
                  DefaultValuedAttr<F64Attr, "0.0">:$weight_decay);
  let meta = "sgdStep";
  let fusion = Pointwise;
  let body = ScalarBody<"self - lr * (grad + weight_decay * self)">;
  let inPlace = InPlace<["self", "grad"]>;
  let constraints = ["self is of a float dtype, grad has the same", "grad has the shape of self"];
  let derivatives = [EndOfGraph<"self">, EndOfGraph<"grad">];
  let samples = [Sample<"sgd_step(f32[3,4], f32[3,4], lr=0.1) -> f32[3,4]">,
                 Sample<"sgd_step(f64[5], f64[5], lr=0.1, weight_decay=0.01) -> f64[5]">];
  let badSamples = [
    BadSample<"sgd_step(f32[3], f64[3], lr=0.1)",
              "sgd_step_c1: expected grad to have the dtype of self, got f64 and f32">,
    BadSample<"sgd_step(f32[3], f32[4], lr=0.1)",
              "sgd_step_c2: expected grad dim 0 to equal self dim 0, got 4 and 3">];
}

def Quern_AdamwStepOp : Quern_Op<"adamw_step"> {
  let summary = "one step of AdamW: the new self and the new moving averages";
  let description = [{
    Loshchilov and Hutter, Decoupled Weight Decay Regularization (2019), in the order of torch.optim.AdamW:
    self decays by 1 - lr weight_decay; exp_avg and exp_avg_sq move toward grad and grad^2; self moves by
    -lr / (1 - beta1^step) * exp_avg / (sqrt(exp_avg_sq) / sqrt(1 - beta2^step) + eps). `step` is 1 in the
    first step.
  }];
  let args = (ins AnyRankedTensor:$self, AnyRankedTensor:$grad, AnyRankedTensor:$exp_avg,
                  AnyRankedTensor:$exp_avg_sq, AnyRankedTensor:$step, F64Attr:$lr,
                  DefaultValuedAttr<F64Attr, "0.9">:$beta1, DefaultValuedAttr<F64Attr, "0.999">:$beta2,
                  DefaultValuedAttr<F64Attr, "1e-8">:$eps, DefaultValuedAttr<F64Attr, "0.01">:$weight_decay);
  let results = (outs AnyRankedTensor:$result, AnyRankedTensor:$new_exp_avg, AnyRankedTensor:$new_exp_avg_sq);
  let meta = "adamwStep";
  let fusion = Pointwise;
  let body = Lowering<"adamw_step">;
  let inPlace = InPlace<["self", "grad", "exp_avg", "exp_avg_sq"]>;
  let constraints = ["self is of a float dtype; grad, exp_avg and exp_avg_sq have the same",
                     "grad, exp_avg and exp_avg_sq have the shape of self",
                     "step is one i64"];
  let derivatives = [EndOfGraph<"self">, EndOfGraph<"grad">, EndOfGraph<"exp_avg">,
                     EndOfGraph<"exp_avg_sq">, EndOfGraph<"step">];
  let samples = [Sample<"adamw_step(f32[3,4], f32[3,4], f32[3,4], f32[3,4], i64[], lr=0.001) -> f32[3,4], f32[3,4], f32[3,4]">];
  let badSamples = [
    BadSample<"adamw_step(f32[3], f32[3], f64[3], f32[3], i64[], lr=0.001)",
              "adamw_step_c1: expected exp_avg to have the dtype of self, got f64 and f32">,
    BadSample<"adamw_step(f32[3], f32[3], f32[3], f32[2], i64[], lr=0.001)",
              "adamw_step_c2: expected exp_avg_sq dim 0 to equal self dim 0, got 2 and 3">,
    BadSample<"adamw_step(f32[3], f32[3], f32[3], f32[3], f32[], lr=0.001)",
              "adamw_step_c3: expected step to be one i64, got f32 of rank 0">];
}

#endif // QUERN_OPS_OPTIMIZER_TD
