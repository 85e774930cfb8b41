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
  let fusion = Pointwise;
}

/// One operand of a float dtype.
class PointwiseUnary<string mnemonic, string expr> : PointwiseOp<mnemonic> {
  let args = (ins AnyRankedTensor:$self);
  let constraints = ["self is of a float dtype"];
  let meta = "floatUnary";
  let inPlace = InPlace<["self"]>;
  let body = ScalarBody<expr>;
  let samples = [Sample<mnemonic # "(f32[2,3]) -> f32[2,3]">, Sample<mnemonic # "(f64[5]) -> f64[5]">];
  let badSamples = [BadSample<mnemonic # "(i32[2])", mnemonic # "_c1: expected self to be of a float dtype, got i32">];
}

/// One operand of any number dtype; the result has the same.
class NumericUnary<string mnemonic, string expr> : PointwiseUnary<mnemonic, expr> {
  let constraints = ["self is of a number dtype"];
  let meta = "numericUnary";
  let samples = [Sample<mnemonic # "(f32[2,3]) -> f32[2,3]">, Sample<mnemonic # "(i64[4]) -> i64[4]">];
  let badSamples = [BadSample<mnemonic # "(bool[2])", mnemonic # "_c1: expected self to be of a number dtype, got bool">];
}

/// What all ops of two operands check, and calls of them.
class BinaryChecks<string mnemonic> {
  list<string> constraints = ["self and other have the same dtype",
                              "self and other broadcast: aligned from the last dim, equal or 1"];
  list<Sample> samples = [Sample<mnemonic # "(f32[2,3], f32[2,3]) -> f32[2,3]">,
                          Sample<mnemonic # "(f32[2,3], f32[3]) -> f32[2,3]">,
                          Sample<mnemonic # "(f64[2,1], f64[1,3]) -> f64[2,3]">];
  list<BadSample> badSamples = [
    BadSample<mnemonic # "(f32[2], i32[2])",
              mnemonic # "_c1: expected other to have the dtype of self, got i32 and f32">,
    BadSample<mnemonic # "(f32[2,3], f32[4])",
              mnemonic # "_c2: expected other dim 0 to equal self dim 1 or to be 1, got 4 and 3">];
}

/// Two operands of one dtype that broadcast.
class PointwiseBinary<string mnemonic, string expr> : PointwiseOp<mnemonic> {
  let args = (ins AnyRankedTensor:$self, AnyRankedTensor:$other);
  let constraints = BinaryChecks<mnemonic>.constraints;
  let meta = "pointwiseBinary";
  let inPlace = InPlace<["self", "other"]>;
  let body = ScalarBody<expr>;
  let samples = BinaryChecks<mnemonic>.samples;
  let badSamples = BinaryChecks<mnemonic>.badSamples;
}

/// The same without bool.
class NotBool<string mnemonic> {
  list<string> constraints = ["self is of a number dtype"];
  list<BadSample> badSamples = [
    BadSample<mnemonic # "(bool[2], bool[2])", mnemonic # "_c3: expected self to be of a number dtype, got bool">];
}
class NumericBinary<string mnemonic, string expr> : PointwiseBinary<mnemonic, expr> {
  let constraints = BinaryChecks<mnemonic>.constraints # NotBool<mnemonic>.constraints;
  let meta = "numericBinary";
  let badSamples = BinaryChecks<mnemonic>.badSamples # NotBool<mnemonic>.badSamples;
}

/// A question about the operands; the answer is bool.
class Comparison<string mnemonic, string expr> : PointwiseBinary<mnemonic, expr> {
  let meta = "comparison";
  let derivatives = [NonDifferentiable<"self", "the result is bool">,
                     NonDifferentiable<"other", "the result is bool">];
  let samples = [Sample<mnemonic # "(f32[2,3], f32[3]) -> bool[2,3]">,
                 Sample<mnemonic # "(i64[2,1], i64[1,3]) -> bool[2,3]">,
                 Sample<mnemonic # "(bool[4], bool[4]) -> bool[4]">];
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

/// A factor `alpha` of the second operand, as ATen's.
class Alpha<string mnemonic, int number> {
  list<string> constraints = ["alpha is an integer where the dtype is no float dtype"];
  list<BadSample> badSamples = [
    BadSample<mnemonic # "(i32[2], i32[2], alpha=0.5)",
              mnemonic # "_c" # number # ": expected alpha to be an integer for dtype i32">];
}
defvar alphaArgs = (ins AnyRankedTensor:$self, AnyRankedTensor:$other,
                        DefaultValuedAttr<Quern_ScalarAttr, "1">:$alpha);

def Quern_AddOp : PointwiseBinary<"add", "self + alpha * other"> {
  let args = alphaArgs;
  let summary = "self + alpha * other; or, for bools";
  let constraints = BinaryChecks<"add">.constraints # Alpha<"add", 3>.constraints;
  let meta = "add";
  let derivatives = [Wrt<"self", "grad">, Wrt<"other", "grad * alpha">];
  let identities = [Identity<"self", "other", "-0">, Identity<"other", "self", "-0">];
  let samples = BinaryChecks<"add">.samples # [Sample<"add(f32[2,3], f32[3], alpha=0.5) -> f32[2,3]">,
                                Sample<"add(bool[2], bool[2]) -> bool[2]">];
  let badSamples = BinaryChecks<"add">.badSamples # Alpha<"add", 3>.badSamples;
}

def Quern_SubOp : NumericBinary<"sub", "self - alpha * other"> {
  let args = alphaArgs;
  let summary = "self - alpha * other";
  let constraints = BinaryChecks<"sub">.constraints # NotBool<"sub">.constraints # Alpha<"sub", 4>.constraints;
  let meta = "sub";
  let derivatives = [Wrt<"self", "grad">, Wrt<"other", "-grad * alpha">];
  let identities = [Identity<"self", "other", "0">];
  let samples = BinaryChecks<"sub">.samples # [Sample<"sub(i32[2], i32[2], alpha=2) -> i32[2]">];
  let badSamples = BinaryChecks<"sub">.badSamples # NotBool<"sub">.badSamples # Alpha<"sub", 4>.badSamples;
}

def Quern_MulOp : PointwiseBinary<"mul", "self * other"> {
  let summary = "self * other; and, for bools";
  let derivatives = [Wrt<"self", "grad * other">, Wrt<"other", "grad * self">];
  let identities = [Identity<"self", "other", "1">, Identity<"other", "self", "1">];
}

def Quern_DivOp : NumericBinary<"div", "self / other"> {
  let summary = "self / other; integers truncate toward zero";
  let description = [{
    Integers never trap: division by zero gives -1 (all bits set), MIN / -1 gives MIN. Front ends
    that follow PyTorch convert integers to floats first.
  }];
  let derivatives = [Wrt<"self", "grad / other">, Wrt<"other", "-grad * result / other">];
  let identities = [Identity<"self", "other", "1">];
}

def Quern_MaximumOp : PointwiseBinary<"maximum", "max(self, other)"> {
  let summary = "the greater of self and other; NaN if one is";
  let description = "Where both are equal, each gets half of the gradient.";
  let derivatives = [
    Wrt<"self", "where(self < other, 0, where(self == other, grad * 0.5, grad))">,
    Wrt<"other", "where(self > other, 0, where(self == other, grad * 0.5, grad))">];
}

def Quern_MinimumOp : PointwiseBinary<"minimum", "min(self, other)"> {
  let summary = "the lesser of self and other; NaN if one is";
  let description = "Where both are equal, each gets half of the gradient.";
  let derivatives = [
    Wrt<"self", "where(self > other, 0, where(self == other, grad * 0.5, grad))">,
    Wrt<"other", "where(self < other, 0, where(self == other, grad * 0.5, grad))">];
}

def Quern_NegOp : NumericUnary<"neg", "-self"> {
  let summary = "-self";
  let derivatives = [Wrt<"self", "-grad">];
}

def Quern_AbsOp : NumericUnary<"abs", "abs(self)"> {
  let summary = "absolute value; of the least integer, itself";
  let description = "The gradient at 0 is 0.";
  let derivatives = [Wrt<"self", "grad * sign(self)">];
}

def Quern_SignOp : NumericUnary<"sign", "select(self > 0, 1, select(self < 0, -1, 0))"> {
  let summary = "1, 0 or -1; 0 for NaN";
  let derivatives = [NonDifferentiable<"self", "piecewise constant: the gradient is zero">];
}

def Quern_ReluOp : NumericUnary<"relu", "max(self, 0)"> {
  let summary = "max(self, 0); NaN stays";
  let description = "The gradient at 0 is 0.";
  let derivatives = [Wrt<"self", "where(result <= 0, 0, grad)">];
}

//===----------------------------------------------------------------------===//
// Functions of floats
//===----------------------------------------------------------------------===//

def Quern_ReciprocalOp : PointwiseUnary<"reciprocal", "1 / self"> {
  let summary = "1 / self";
  let derivatives = [Wrt<"self", "-grad * result * result">];
}

def Quern_SqrtOp : PointwiseUnary<"sqrt", "sqrt(self)"> {
  let summary = "square root";
  let description = "The gradient at 0 is inf.";
  let derivatives = [Wrt<"self", "grad / (2 * result)">];
}

def Quern_RsqrtOp : PointwiseUnary<"rsqrt", "rsqrt(self)"> {
  let summary = "1 / sqrt(self)";
  let derivatives = [Wrt<"self", "-0.5 * grad * (result * result * result)">];
}

def Quern_ExpOp : PointwiseUnary<"exp", "exp(self)"> {
  let summary = "e to the power of self";
  let derivatives = [Wrt<"self", "grad * result">];
}

def Quern_LogOp : PointwiseUnary<"log", "log(self)"> {
  let summary = "natural logarithm";
  let derivatives = [Wrt<"self", "grad / self">];
}

def Quern_ErfOp : PointwiseUnary<"erf", "erf(self)"> {
  let summary = "error function";
  // 2 / sqrt(pi)
  let derivatives = [Wrt<"self", "grad * (1.1283791670955126 * exp(-self * self))">];
}

def Quern_TanhOp : PointwiseUnary<"tanh", "tanh(self)"> {
  let summary = "hyperbolic tangent";
  let derivatives = [Wrt<"self", "grad * (1 - result * result)">];
}

def Quern_SigmoidOp : PointwiseUnary<"sigmoid", "sigmoid(self)"> {
  let summary = "1 / (1 + exp(-self))";
  let derivatives = [Wrt<"self", "grad * (1 - result) * result">];
}

// sqrt(1/2), 1/sqrt(2 pi), sqrt(2/pi); the cubic term is that of the approximation's paper
// (Hendrycks and Gimpel, 2016).
def Quern_GeluOp : PointwiseUnary<"gelu", [{
  select(approximate == 'tanh',
         0.5 * self * (1 + tanh(0.7978845608028654 * (self + 0.044715 * self * self * self))),
         0.5 * self * (1 + erf(0.7071067811865476 * self)))
}]> {
  let args = (ins AnyRankedTensor:$self, DefaultValuedAttr<StrAttr, "\"none\"">:$approximate);
  let summary = "self times the normal distribution function of self, or its tanh approximation";
  let constraints = ["self is of a float dtype", "approximate is none or tanh"];
  let meta = "gelu";
  let derivatives = [Wrt<"self", [{
    let square = self * self;
    let t = where(approximate == 'tanh',
                  tanh(self * (0.7978845608028654 + 0.035677408136300125 * square)),
                  erf(0.7071067811865476 * self));
    let slope = where(approximate == 'tanh',
                      (1 - t * t) * (0.3989422804014327 + 0.05351611220445019 * square),
                      0.3989422804014327 * exp(-0.5 * square));
    grad * (0.5 * (1 + t) + self * slope)
  }]>];
  let samples = [Sample<"gelu(f32[2,3]) -> f32[2,3]">,
                 Sample<"gelu(f32[2,3], approximate=tanh) -> f32[2,3]">];
  let badSamples = [
    BadSample<"gelu(i32[2])", "gelu_c1: expected self to be of a float dtype, got i32">,
    BadSample<"gelu(f32[2], approximate=fast)", "gelu_c2: expected approximate to be none or tanh, got fast">];
}

//===----------------------------------------------------------------------===//
// Comparisons and logic
//===----------------------------------------------------------------------===//

def Quern_EqOp : Comparison<"eq", "self == other"> { let summary = "self == other; NaN equals nothing"; }
def Quern_NeOp : Comparison<"ne", "self != other"> { let summary = "self != other"; }
def Quern_LtOp : Comparison<"lt", "self < other"> { let summary = "self < other"; }
def Quern_LeOp : Comparison<"le", "self <= other"> { let summary = "self <= other"; }
def Quern_GtOp : Comparison<"gt", "self > other"> { let summary = "self > other"; }
def Quern_GeOp : Comparison<"ge", "self >= other"> { let summary = "self >= other"; }

def Quern_LogicalAndOp : Comparison<"logical_and", "and(self != 0, other != 0)"> {
  let summary = "whether both are nonzero";
}
def Quern_LogicalOrOp : Comparison<"logical_or", "or(self != 0, other != 0)"> {
  let summary = "whether one is nonzero";
}
def Quern_LogicalNotOp : PointwiseUnary<"logical_not", "self == 0"> {
  let summary = "whether self is zero";
  let constraints = [];
  let meta = "logicalNot";
  let derivatives = [NonDifferentiable<"self", "the result is bool">];
  let samples = [Sample<"logical_not(f32[2,3]) -> bool[2,3]">, Sample<"logical_not(bool[4]) -> bool[4]">];
  let badSamples = [];
}

def Quern_WhereOp : PointwiseOp<"where"> {
  let args = (ins AnyRankedTensor:$condition, AnyRankedTensor:$self, AnyRankedTensor:$other);
  let summary = "self where condition is true, else other";
  let constraints = ["condition is bool", "self and other have the same dtype",
                     "condition, self and other broadcast"];
  let meta = "where";
  let inPlace = InPlace<["condition", "self", "other"]>;
  let derivatives = [NonDifferentiable<"condition", "it is bool">,
                     Wrt<"self", "where(condition, grad, 0)">,
                     Wrt<"other", "where(condition, 0, grad)">];
  let body = ScalarBody<"select(condition, self, other)">;
  let samples = [Sample<"where(bool[2,3], f32[2,3], f32[2,3]) -> f32[2,3]">,
                 Sample<"where(bool[2,1], i64[3], i64[]) -> i64[2,3]">];
  let badSamples = [
    BadSample<"where(u8[2], f32[2], f32[2])", "where_c1: expected condition to be bool, got u8">,
    BadSample<"where(bool[2], f32[2], f64[2])", "where_c2: expected other to have the dtype of self, got f64 and f32">,
    BadSample<"where(bool[2], f32[3], f32[3])", "where_c3: expected self dim 0 to equal condition dim 0 or to be 1, got 3 and 2">];
}

#endif // QUERN_OPS_POINTWISE_TD
