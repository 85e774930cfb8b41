//===- Pointwise.td - Element-by-element ops --------------------*- tablegen -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_OPS_POINTWISE_TD
#define QUERN_OPS_POINTWISE_TD

include "quern/Dialect/Quern/IR/StructuredOp.td"

//===----------------------------------------------------------------------===//
// The family
//===----------------------------------------------------------------------===//

class PointwiseOp<string mnemonic> : Quern_Op<mnemonic> {
  let meta = "pointwise";
  let fusion = Pointwise;
}

/// One operand of a float dtype, or any dtype for the ops that say so.
class PointwiseUnary<string mnemonic, string expr> : PointwiseOp<mnemonic> {
  let args = (ins AnyRankedTensor:$self);
  let body = ScalarBody<expr>;
  let inPlace = InPlace<["self"]>;
  let meta = "floatUnary";
  let constraints = ["self is of a float dtype"];
  let samples = [Sample<mnemonic # "(f32[2,3])">, Sample<mnemonic # "(f64[5])">];
  let badSamples = [BadSample<mnemonic # "(i32[2])", mnemonic # "_c1: expected self to be of a float dtype, got i32">];
}

/// One operand of any number dtype; the result has the same.
class NumericUnary<string mnemonic, string expr> : PointwiseUnary<mnemonic, expr> {
  let meta = "numericUnary";
  let constraints = ["self is of a number dtype"];
  let samples = [Sample<mnemonic # "(f32[2,3])">, Sample<mnemonic # "(i64[4])">];
  let badSamples = [BadSample<mnemonic # "(bool[2])", mnemonic # "_c1: expected self to be of a number dtype, got bool">];
}

/// Two operands of one dtype that broadcast.
class PointwiseBinary<string mnemonic, string expr> : PointwiseOp<mnemonic> {
  let args = (ins AnyRankedTensor:$self, AnyRankedTensor:$other);
  let body = ScalarBody<expr>;
  let inPlace = InPlace<["self", "other"]>;
  let meta = "pointwiseBinary";
  let constraints = ["self and other have the same dtype",
                     "self and other broadcast: aligned from the last dim, equal or 1"];
  let samples = [Sample<mnemonic # "(f32[2,3], f32[2,3])">, Sample<mnemonic # "(f32[2,3], f32[3])">,
                 Sample<mnemonic # "(f64[2,1], f64[1,3])">];
  let badSamples = [
    BadSample<mnemonic # "(f32[2], i32[2])",
              mnemonic # "_c1: expected other to have the dtype of self, got i32 and f32">,
    BadSample<mnemonic # "(f32[2,3], f32[4])",
              mnemonic # "_c2: expected other dim 0 to equal self dim 1 or to be 1, got 4 and 3">];
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

def Quern_AddOp : PointwiseBinary<"add", "self + other"> {
  let summary = "self + other";
  let derivatives = [Wrt<"self", "grad">, Wrt<"other", "grad">];
}

def Quern_MulOp : PointwiseBinary<"mul", "self * other"> {
  let summary = "self * other";
  let derivatives = [Wrt<"self", "grad * other">, Wrt<"other", "grad * self">];
}

def Quern_DivOp : PointwiseBinary<"div", "self / other"> {
  let summary = "self / other; integers truncate toward zero";
  let derivatives = [Wrt<"self", "grad / other">, Wrt<"other", "-grad * result / other">];
}

def Quern_SubOp : PointwiseBinary<"sub", "self - other"> {
  let summary = "self - other";
  let derivatives = [Wrt<"self", "grad">, Wrt<"other", "-grad">];
}

def Quern_NegOp : NumericUnary<"neg", "-self"> {
  let summary = "-self";
  let derivatives = [Wrt<"self", "-grad">];
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

def Quern_ExpOp : PointwiseUnary<"exp", "exp(self)"> {
  let summary = "e to the power of self";
  let derivatives = [Wrt<"self", "grad * result">];
}

def Quern_TanhOp : PointwiseUnary<"tanh", "tanh(self)"> {
  let summary = "hyperbolic tangent";
  let derivatives = [Wrt<"self", "grad * (1 - result * result)">];
}

#endif // QUERN_OPS_POINTWISE_TD
