//===- Reduction.td - Sums and the like over dims ---------------*- tablegen -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_OPS_REDUCTION_TD
#define QUERN_OPS_REDUCTION_TD

include "quern/Dialect/Quern/IR/StructuredOp.td"

//===----------------------------------------------------------------------===//
// The family
//===----------------------------------------------------------------------===//

/// What all ops of the family check, and calls of them.
class ReductionChecks<string mnemonic> {
  list<string> constraints = ["dims are in range", "dims are different"];
  list<Sample> samples = [Sample<mnemonic # "(f32[2,3,4], dim=[1]) -> f32[2,4]">,
                          Sample<mnemonic # "(f64[2,3], dim=[0,-1], keepdim=true) -> f64[1,1]">,
                          Sample<mnemonic # "(f16[2,3]) -> f16[]">,
                          Sample<mnemonic # "(f32[]) -> f32[]">];
  list<BadSample> badSamples = [
    BadSample<mnemonic # "(f32[2,3], dim=[2])", mnemonic # "_c1: expected dim to be in [-2, 1], got 2">,
    BadSample<mnemonic # "(f32[2,3], dim=[0,-2])", mnemonic # "_c2: expected dims to be different, got 0 twice">];
}

/// `dim` lists what is reduced (everything when it is empty); `keepdim` leaves those dims as 1.
class ReductionOp<string mnemonic> : Quern_Op<mnemonic> {
  let args = (ins AnyRankedTensor:$self, DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$dim,
                  DefaultValuedAttr<BoolAttr, "false">:$keepdim);
  let inPlace = NotInPlace<"elements of self are combined">;
  let fusion = Reduction;
  let body = Lowering<mnemonic>;
}

/// The dtype rule of a reduction that is its constraint 3.
class ReductionDtype<string mnemonic, string kind, string bad> {
  list<string> constraints = ["self is of a " # kind # " dtype"];
  list<BadSample> badSamples = [
    BadSample<mnemonic # "(" # bad # "[2,3])", mnemonic # "_c3: expected self to be of a " # kind # " dtype, got " # bad>];
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

def Quern_SumOp : ReductionOp<"sum"> {
  let summary = "the sum over dims; 0 over nothing";
  let description = [{
    f16 and bf16 are summed in f32 and rounded once; integers wrap. Front ends that follow PyTorch
    convert integers to i64 first.
  }];
  defvar dtype = ReductionDtype<"sum", "number", "bool">;
  let constraints = ReductionChecks<"sum">.constraints # dtype.constraints;
  let meta = "sum";
  let derivatives = [Wrt<"self", "expand(view(grad, size=keptDims(shape(self), dim)), size=shape(self))">];
  let samples = ReductionChecks<"sum">.samples # [Sample<"sum(i64[2,0], dim=[1]) -> i64[2]">];
  let badSamples = ReductionChecks<"sum">.badSamples # dtype.badSamples;
}

def Quern_MeanOp : ReductionOp<"mean"> {
  let summary = "the mean over dims; NaN over nothing";
  let description = "f16 and bf16 are summed and divided in f32 and rounded once.";
  defvar dtype = ReductionDtype<"mean", "float", "i64">;
  let constraints = ReductionChecks<"mean">.constraints # dtype.constraints;
  let meta = "mean";
  let derivatives = [Wrt<"self", [{
    expand(view(grad / count(self, dim), size=keptDims(shape(self), dim)), size=shape(self))
  }]>];
  let samples = ReductionChecks<"mean">.samples;
  let badSamples = ReductionChecks<"mean">.badSamples # dtype.badSamples;
}

//===----------------------------------------------------------------------===//
// Extremes
//===----------------------------------------------------------------------===//

class ExtremeOp<string mnemonic> : ReductionOp<mnemonic> {
  let description = "Elements that are equally extreme share the gradient.";
  let constraints = ReductionChecks<mnemonic>.constraints # ["there is an element to choose from"];
  let meta = "extreme";
  let derivatives = [Wrt<"self", [{
    let chosen = convert(self == view(result, size=keptDims(shape(self), dim)), dtype=dtype(self));
    view(grad, size=keptDims(shape(self), dim)) / sum(chosen, dim=dim, keepdim=true) * chosen
  }]>];
  let samples = ReductionChecks<mnemonic>.samples # [Sample<mnemonic # "(bool[2,3], dim=[0]) -> bool[3]">,
                                                     Sample<mnemonic # "(u8[0,3], dim=[1]) -> u8[0]">];
  let badSamples = ReductionChecks<mnemonic>.badSamples # [
    BadSample<mnemonic # "(f32[2,0], dim=[1])", mnemonic # "_c3: expected dim 1 to be at least 1, got 0">];
}

def Quern_AmaxOp : ExtremeOp<"amax"> { let summary = "the greatest element over dims; NaN if there is one"; }
def Quern_AminOp : ExtremeOp<"amin"> { let summary = "the least element over dims; NaN if there is one"; }

#endif // QUERN_OPS_REDUCTION_TD
