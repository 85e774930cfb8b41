//===- Convolution.td - Convolutions ----------------------------*- tablegen -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_OPS_CONVOLUTION_TD
#define QUERN_OPS_CONVOLUTION_TD

include "quern/Dialect/Quern/IR/StructuredOp.td"

/// The window: one number for each spatial dim. Padding may have two for each (all begins, then
/// all ends).
class ConvolutionOp<string mnemonic, list<Trait> traits = []> : Quern_Op<mnemonic, traits> {
  dag window = (ins DenseI64ArrayAttr:$stride, DenseI64ArrayAttr:$padding,
                    DenseI64ArrayAttr:$dilation, DefaultValuedAttr<I64Attr, "1">:$groups);
  let fusion = Convolution;
  let body = Lowering<mnemonic>;
  let inPlace = NotInPlace<"each result element reads a window">;
}

def Quern_ConvolutionOp : ConvolutionOp<"convolution", [AttrSizedOperandSegments]> {
  let summary = "cross-correlation of input [N, C, ...] with weight [O, C / groups, ...]";
  let description = [{
    One, two or three spatial dims. `padding` zeros are added at both ends of each spatial dim, or, when it
    has twice as many numbers, the first half at the begins and the second at the ends.
  }];
  let args = !con((ins AnyRankedTensor:$input, AnyRankedTensor:$weight, Optional<AnyRankedTensor>:$bias), window);
  let meta = "convolution";
  let constraints = ["input, weight and bias have the same dtype",
                     "input has rank 3, 4 or 5, weight has the same, bias has rank 1",
                     "stride, padding and dilation have a number for each spatial dim; stride and dilation are positive, padding is not negative",
                     "groups is positive and divides the input channels and weight dim 0",
                     "input dim 1 (channels) equals groups x weight dim 1",
                     "bias dim 0 equals weight dim 0 (out channels)",
                     "the window and the input have elements in each spatial dim, and the window fits into the padded input"];
  let derivatives = [Custom<"input", "convolution", ["weight"]>,
                     Custom<"weight", "convolution", ["input"]>, Custom<"bias", "convolution", []>];
  let samples = [
    Sample<"convolution(f32[1,3,8], f32[4,3,3], f32[4], stride=[2], padding=[1], dilation=[1]) -> f32[1,4,4]">,
    Sample<"convolution(f64[2,4,6,5], f64[4,2,3,2], _, stride=[1,2], padding=[1,0], dilation=[2,1], groups=2) -> f64[2,4,4,2]">];
  let badSamples = [
    BadSample<"convolution(f32[1,3,8], f64[4,3,3], _, stride=[1], padding=[0], dilation=[1])",
              "convolution_c1: expected weight to have the dtype of input, got f64 and f32">,
    BadSample<"convolution(f32[1,3,8], f32[4,3], _, stride=[1], padding=[0], dilation=[1])",
              "convolution_c2: expected weight to have rank 3, got rank 2">,
    BadSample<"convolution(f32[1,3,8], f32[4,3,3], _, stride=[0], padding=[0], dilation=[1])",
              "convolution_c3: expected stride to be positive, got 0">,
    BadSample<"convolution(f32[1,3,8], f32[2,1,3], _, stride=[1], padding=[0], dilation=[1], groups=3)",
              "convolution_c4: expected groups to divide weight dim 0, got 3 and 2">,
    BadSample<"convolution(f32[1,3,8], f32[4,2,3], _, stride=[1], padding=[0], dilation=[1])",
              "convolution_c5: expected input dim 1 (channels) to be weight dim 1 times groups, got 3 and 2 times 1">,
    BadSample<"convolution(f32[1,3,8], f32[4,3,3], f32[3], stride=[1], padding=[0], dilation=[1])",
              "convolution_c6: expected bias dim 0 to equal weight dim 0 (out channels), got 3 and 4">,
    BadSample<"convolution(f32[1,3,2], f32[4,3,3], _, stride=[1], padding=[0], dilation=[1])",
              "convolution_c7: expected the window of dim 2 (3 with dilation) to fit into the padded input, got 2">,
    BadSample<"convolution(f32[1,3,0], f32[4,3,1], _, stride=[1], padding=[1], dilation=[1])",
              "convolution_c7: expected input dim 2 to be at least 1, got 0">];
}

/// `size` stands for the operand whose gradient is made.
class ConvolutionBackwardOp<string mnemonic, string other> : ConvolutionOp<mnemonic> {
  let args = !con((ins AnyRankedTensor:$grad_output),
                  !if(!eq(other, "weight"), (ins AnyRankedTensor:$weight), (ins AnyRankedTensor:$input)),
                  (ins Quern_DimsAttr:$size), window);
  let meta = "convolutionBackward";
  let constraints = ["both operands have the same dtype",
                     "input has rank 3, 4 or 5, weight and grad_output have the same; sizes are at least 0",
                     "stride, padding and dilation have a number for each spatial dim; stride and dilation are positive, padding is not negative",
                     "groups is positive and divides weight dim 0",
                     "input dim 1 (channels) equals groups x weight dim 1",
                     "grad_output has the shape of the convolution's result",
                     "the window and the input have elements in each spatial dim, and the window fits into the padded input"];
  let derivatives = [NonDifferentiable<"grad_output", "second derivatives of convolutions are not built">,
                     NonDifferentiable<other, "second derivatives of convolutions are not built">];
}

def Quern_ConvolutionInputBackwardOp : ConvolutionBackwardOp<"convolution_input_backward", "weight"> {
  let summary = "the gradient of a convolution's input, of sizes `size`";
  let samples = [Sample<"convolution_input_backward(f32[1,4,6], f32[4,3,3], size=[1,3,8], stride=[1], padding=[0], dilation=[1]) -> f32[1,3,8]">];
  let badSamples = [
    BadSample<"convolution_input_backward(f32[1,4,6], f64[4,3,3], size=[1,3,8], stride=[1], padding=[0], dilation=[1])",
              "convolution_input_backward_c1: expected weight to have the dtype of grad_output, got f64 and f32">,
    BadSample<"convolution_input_backward(f32[1,4,6], f32[4,3,3], size=[1,3], stride=[1], padding=[0], dilation=[1])",
              "convolution_input_backward_c2: expected size to have rank 3, 4 or 5, got rank 2">,
    BadSample<"convolution_input_backward(f32[1,4,6], f32[4,3,3], size=[1,3,8], stride=[0], padding=[0], dilation=[1])",
              "convolution_input_backward_c3: expected stride to be positive, got 0">,
    BadSample<"convolution_input_backward(f32[1,4,6], f32[4,3,3], size=[1,9,8], stride=[1], padding=[0], dilation=[1], groups=3)",
              "convolution_input_backward_c4: expected groups to divide weight dim 0, got 3 and 4">,
    BadSample<"convolution_input_backward(f32[1,4,6], f32[4,3,3], size=[1,5,8], stride=[1], padding=[0], dilation=[1])",
              "convolution_input_backward_c5: expected size dim 1 (channels) to be weight dim 1 times groups, got 5 and 3 times 1">,
    BadSample<"convolution_input_backward(f32[2,4,6], f32[4,3,3], size=[1,3,8], stride=[1], padding=[0], dilation=[1])",
              "convolution_input_backward_c6: expected grad_output dim 0 to be the convolution's, got 2 and 1">,
    BadSample<"convolution_input_backward(f32[1,4,6], f32[4,3,3], size=[1,3,2], stride=[1], padding=[0], dilation=[1])",
              "convolution_input_backward_c7: expected the window of dim 2 (3 with dilation) to fit into the padded input, got 2">];
}

def Quern_ConvolutionWeightBackwardOp : ConvolutionBackwardOp<"convolution_weight_backward", "input"> {
  let summary = "the gradient of a convolution's weight, of sizes `size`";
  let samples = [Sample<"convolution_weight_backward(f32[1,4,6], f32[1,3,8], size=[4,3,3], stride=[1], padding=[0], dilation=[1]) -> f32[4,3,3]">];
  let badSamples = [
    BadSample<"convolution_weight_backward(f32[1,4,6], f64[1,3,8], size=[4,3,3], stride=[1], padding=[0], dilation=[1])",
              "convolution_weight_backward_c1: expected input to have the dtype of grad_output, got f64 and f32">,
    BadSample<"convolution_weight_backward(f32[1,4], f32[1,3,8], size=[4,3,3], stride=[1], padding=[0], dilation=[1])",
              "convolution_weight_backward_c2: expected grad_output to have rank 3, got rank 2">,
    BadSample<"convolution_weight_backward(f32[1,4,6], f32[1,3,8], size=[4,3,3], stride=[1], padding=[-1], dilation=[1])",
              "convolution_weight_backward_c3: expected padding not to be negative, got -1">,
    BadSample<"convolution_weight_backward(f32[1,4,6], f32[1,3,8], size=[4,3,3], stride=[1], padding=[0], dilation=[1], groups=0)",
              "convolution_weight_backward_c4: expected groups to be positive, got 0">,
    BadSample<"convolution_weight_backward(f32[1,4,6], f32[1,3,8], size=[4,2,3], stride=[1], padding=[0], dilation=[1])",
              "convolution_weight_backward_c5: expected input dim 1 (channels) to be size dim 1 times groups, got 3 and 2 times 1">,
    BadSample<"convolution_weight_backward(f32[1,4,7], f32[1,3,8], size=[4,3,3], stride=[1], padding=[0], dilation=[1])",
              "convolution_weight_backward_c6: expected grad_output dim 2 to be the convolution's, got 7 and 6">,
    BadSample<"convolution_weight_backward(f32[1,4,6], f32[1,3,2], size=[4,3,3], stride=[1], padding=[0], dilation=[1])",
              "convolution_weight_backward_c7: expected the window of dim 2 (3 with dilation) to fit into the padded input, got 2">];
}

#endif // QUERN_OPS_CONVOLUTION_TD
