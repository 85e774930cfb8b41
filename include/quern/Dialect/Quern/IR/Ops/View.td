//===- View.td - The same elements, arranged otherwise ----------*- tablegen -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_OPS_VIEW_TD
#define QUERN_OPS_VIEW_TD

include "quern/Dialect/Quern/IR/StructuredOp.td"

//===----------------------------------------------------------------------===//
// The same order: no kernel
//===----------------------------------------------------------------------===//

class ReshapeOp<string mnemonic> : Quern_Op<mnemonic> {
  let inPlace = InPlace<["self"]>;
  let derivatives = [Wrt<"self", "view(grad, size=shape(self))">];
  let fusion = Reshape;
  let body = Lowering<"reshape">;
}

def Quern_ViewOp : ReshapeOp<"view"> {
  let args = (ins AnyRankedTensor:$self, Quern_DimsAttr:$size);
  let summary = "the same elements in the same order with another shape";
  let description = "One size may be -1: what is left of the elements.";
  let constraints = ["at most one size is -1, the others are at least 0",
                     "the number of elements stays, or is a multiple of the given sizes"];
  let meta = "view";
  let identityOnSameType = 1;
  let folder = "view";
  let samples = [Sample<"view(f32[2,3,4], size=[6,4]) -> f32[6,4]">,
                 Sample<"view(f32[2,3,4], size=[2,-1]) -> f32[2,12]">,
                 Sample<"view(i64[1], size=[]) -> i64[]">];
  let badSamples = [
    BadSample<"view(f32[4], size=[-1,-1])", "view_c1: expected at most one size to be -1">,
    BadSample<"view(f32[4], size=[-2,2])", "view_c1: expected size 0 to be -1 or at least 0, got -2">,
    BadSample<"view(f32[3,4], size=[4,2])", "view_c2: expected size to hold the 12 elements of self, got 8">,
    BadSample<"view(f32[3,5], size=[2,-1])", "view_c2: expected the 15 elements of self to be a multiple of the given sizes, got 2">];
}

def Quern_SqueezeOp : ReshapeOp<"squeeze"> {
  let args = (ins AnyRankedTensor:$self, DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$dim);
  let summary = "without the dims of size 1 among `dim` (among all when it is empty)";
  let description = [{
    As in ATen, a dim known to be other than 1 stays. A dim whose size is not known yet has to be 1,
    which is checked at run time; with an empty list every size must be known to be 1 or not.
  }];
  let constraints = ["dims are in range", "dims are different",
                     "a dim whose size is not known is 1"];
  let meta = "squeeze";
  let identityOnSameType = 1;
  let samples = [Sample<"squeeze(f32[2,1,3], dim=[1]) -> f32[2,3]">,
                 Sample<"squeeze(f32[1,2,1]) -> f32[2]", 0>,
                 Sample<"squeeze(f32[2,3], dim=[-1]) -> f32[2,3]", 0>];
  let badSamples = [
    BadSample<"squeeze(f32[2,1], dim=[2])", "squeeze_c1: expected dim to be in [-2, 1], got 2">,
    BadSample<"squeeze(f32[2,1], dim=[0,0])", "squeeze_c2: expected dims to be different, got 0 twice">,
    BadSample<"squeeze(f32[?])", "squeeze_c3: expected dim 0 to be known where no dim is given, got ?">];
}

def Quern_UnsqueezeOp : ReshapeOp<"unsqueeze"> {
  let args = (ins AnyRankedTensor:$self, I64Attr:$dim);
  let summary = "with a new dim of size 1 at `dim`";
  let constraints = ["dim is in [-rank - 1, rank]"];
  let meta = "unsqueeze";
  let samples = [Sample<"unsqueeze(f32[2,3], dim=1) -> f32[2,1,3]">, Sample<"unsqueeze(f32[], dim=-1) -> f32[1]">];
  let badSamples = [BadSample<"unsqueeze(f32[2,3], dim=3)", "unsqueeze_c1: expected dim to be in [-3, 2], got 3">];
}

//===----------------------------------------------------------------------===//
// Elements elsewhere
//===----------------------------------------------------------------------===//

class IndexMapOp<string mnemonic> : Quern_Op<mnemonic> {
  let inPlace = NotInPlace<"elements are read at other places than they are written">;
  let fusion = IndexMap;
}

def Quern_ExpandOp : IndexMapOp<"expand"> {
  let args = (ins AnyRankedTensor:$self, Quern_DimsAttr:$size);
  let summary = "broadcast to a shape";
  let description = "Dims are aligned from the last. A size of -1 keeps that of self.";
  let constraints = ["size has at least as many dims as self, each at least 0; -1 stands only for dims of self",
                     "each dim of self is 1 or equal to its size"];
  let meta = "expand";
  let derivatives = [Wrt<"self", "grad">]; // summed over the new dims, as everywhere
  let body = Lowering<"expand">;
  let identityOnSameType = 1;
  let samples = [Sample<"expand(f32[3,1], size=[2,3,4]) -> f32[2,3,4]">,
                 Sample<"expand(f32[2,1], size=[-1,5]) -> f32[2,5]">,
                 Sample<"expand(f32[], size=[2]) -> f32[2]">];
  let badSamples = [
    BadSample<"expand(f32[2,3], size=[3])", "expand_c1: expected size to have at least 2 dims, got 1">,
    BadSample<"expand(f32[3], size=[-1,3])", "expand_c1: expected size 0, which self does not have, to be at least 0, got -1">,
    BadSample<"expand(f32[1,3], size=[-2,3])", "expand_c1: expected size 0 to be at least 0, or -1 to keep that of self, got -2">,
    BadSample<"expand(f32[3], size=[2,4])", "expand_c2: expected self dim 0 to be 1 or size 1, got 3 and 4">];
}

def Quern_SumToSizeOp : Quern_Op<"sum_to_size"> {
  let args = (ins AnyRankedTensor:$self, Quern_DimsAttr:$size);
  let summary = "the adjoint of a broadcast: summed over the dims that `size` does not have";
  let description = [{
    Dims are aligned from the last; a size is that of self, or 1 where self is summed. Which of them
    holds may be left to run time.
  }];
  let constraints = ["self has at least as many dims as size", "each size is 1 or that of self",
                     "self is of a number dtype"];
  let meta = "sumToSize";
  let inPlace = NotInPlace<"elements of self are summed">;
  let derivatives = [Wrt<"self", "expand(grad, size=shape(self))">];
  let fusion = Reduction;
  let body = Lowering<"sumToSize">;
  let identityOnSameType = 1;
  let samples = [Sample<"sum_to_size(f32[2,3,4], size=[3,1]) -> f32[3,1]">,
                 Sample<"sum_to_size(f64[2,3], size=[]) -> f64[]">,
                 Sample<"sum_to_size(f16[2,3], size=[2,3]) -> f16[2,3]">];
  let badSamples = [
    BadSample<"sum_to_size(f32[3], size=[2,3])", "sum_to_size_c1: expected self to have at least 2 dims, got 1">,
    BadSample<"sum_to_size(f32[3,4], size=[2,4])", "sum_to_size_c2: expected size 0 to be 1 or self dim 0, got 2 and 3">,
    BadSample<"sum_to_size(bool[3], size=[1])", "sum_to_size_c3: expected self to be of a number dtype, got bool">];
}

def Quern_PermuteOp : IndexMapOp<"permute"> {
  let args = (ins AnyRankedTensor:$self, DenseI64ArrayAttr:$dims);
  let summary = "dims in another order: dim i of the result is dim dims[i] of self";
  let constraints = ["there are as many dims as self has", "dims are in range", "dims are different"];
  let meta = "permute";
  let derivatives = [Wrt<"self", "permute(grad, dims=inversePermutation(dims))">];
  let body = Lowering<"permute">;
  let folder = "permute";
  let samples = [Sample<"permute(f32[2,3,4], dims=[2,0,1]) -> f32[4,2,3]">,
                 Sample<"permute(i64[2,3], dims=[-1,0]) -> i64[3,2]">];
  let badSamples = [
    BadSample<"permute(f32[2,3], dims=[0,1,2])", "permute_c1: expected 2 dims, got 3">,
    BadSample<"permute(f32[2,3], dims=[0,2])", "permute_c2: expected dims to be in [-2, 1], got 2">,
    BadSample<"permute(f32[2,3], dims=[0,-2])", "permute_c3: expected dims to be different, got 0 twice">];
}

def Quern_SliceOp : IndexMapOp<"slice"> {
  let args = (ins AnyRankedTensor:$self, DefaultValuedAttr<I64Attr, "0">:$dim,
                  OptionalAttr<Quern_DimAttr>:$start, OptionalAttr<Quern_DimAttr>:$end,
                  DefaultValuedAttr<I64Attr, "1">:$step);
  let summary = "elements start, start + step, … before end along a dim";
  let description = [{
    Bounds left out are 0 and the size. Negative numbers count from the end; expressions over
    symbols are taken as they are. Both are clamped to the size.
  }];
  let constraints = ["self has a dim, and dim is in range", "step is at least 1"];
  let meta = "slice";
  let derivatives = [Wrt<"self", "slice_backward(grad, input_sizes=shape(self), dim=dim, start=start, end=end, step=step)">];
  let body = Lowering<"slice">;
  let identityOnSameType = 1; // a slice of all elements along its dim, by 1
  let samples = [Sample<"slice(f32[5,3], start=1, end=4) -> f32[3,3]">,
                 Sample<"slice(f32[2,7], dim=-1, start=-5, step=2) -> f32[2,3]">,
                 Sample<"slice(f32[4], start=3, end=100) -> f32[1]">,
                 Sample<"slice(f32[4], start=3, end=1) -> f32[0]">];
  let badSamples = [
    BadSample<"slice(f32[], dim=0)", "slice_c1: expected self to have at least 1 dim">,
    BadSample<"slice(f32[3], dim=1)", "slice_c1: expected dim to be in [-1, 0], got 1">,
    BadSample<"slice(f32[3], step=0)", "slice_c2: expected step to be at least 1, got 0">];
}

def Quern_SliceBackwardOp : IndexMapOp<"slice_backward"> {
  let args = (ins AnyRankedTensor:$grad_output, Quern_DimsAttr:$input_sizes,
                  DefaultValuedAttr<I64Attr, "0">:$dim, OptionalAttr<Quern_DimAttr>:$start,
                  OptionalAttr<Quern_DimAttr>:$end, DefaultValuedAttr<I64Attr, "1">:$step);
  let summary = "the adjoint of slice: zeros with grad_output at the places of the slice";
  let constraints = ["input_sizes are at least 0, and dim is in range", "step is at least 1",
                     "grad_output has the shape of the slice"];
  let meta = "sliceBackward";
  let derivatives = [Wrt<"grad_output", "slice(grad, dim=dim, start=start, end=end, step=step)">];
  let body = Lowering<"sliceBackward">;
  let samples = [Sample<"slice_backward(f32[3,3], input_sizes=[5,3], start=1, end=4) -> f32[5,3]">,
                 Sample<"slice_backward(f32[2,3], input_sizes=[2,7], dim=-1, start=-5, step=2) -> f32[2,7]">];
  let badSamples = [
    BadSample<"slice_backward(f32[3], input_sizes=[5], dim=1)", "slice_backward_c1: expected dim to be in [-1, 0], got 1">,
    BadSample<"slice_backward(f32[3], input_sizes=[5], step=0)", "slice_backward_c2: expected step to be at least 1, got 0">,
    BadSample<"slice_backward(f32[3], input_sizes=[5])", "slice_backward_c3: expected grad_output dim 0 to be the slice's, got 3 and 5">];
}

def Quern_SelectOp : IndexMapOp<"select"> {
  let args = (ins AnyRankedTensor:$self, I64Attr:$dim, Quern_DimAttr:$index);
  let summary = "the elements at one index of a dim, without that dim";
  let description = "A negative number counts from the end; an expression over symbols is taken as it is.";
  let constraints = ["self has a dim, and dim is in range", "index is in [-size, size - 1]"];
  let meta = "select";
  let derivatives = [Wrt<"self", "select_backward(grad, input_sizes=shape(self), dim=dim, index=index)">];
  let body = Lowering<"select">;
  let samples = [Sample<"select(f32[2,3,4], dim=1, index=2) -> f32[2,4]">, Sample<"select(i64[3], dim=0, index=-1) -> i64[]">];
  let badSamples = [
    BadSample<"select(f32[], dim=0, index=0)", "select_c1: expected self to have at least 1 dim">,
    BadSample<"select(f32[2,3], dim=2, index=0)", "select_c1: expected dim to be in [-2, 1], got 2">,
    BadSample<"select(f32[2,3], dim=1, index=3)", "select_c2: expected index to be in [-3, 2], got 3">,
    BadSample<"select(f32[2,3], dim=1, index=-4)", "select_c2: expected index to be in [-3, 2], got -4">];
}

def Quern_SelectBackwardOp : IndexMapOp<"select_backward"> {
  let args = (ins AnyRankedTensor:$grad_output, Quern_DimsAttr:$input_sizes, I64Attr:$dim,
                  Quern_DimAttr:$index);
  let summary = "the adjoint of select: zeros with grad_output at one index of a dim";
  let constraints = ["input_sizes are at least 0, and dim is in range",
                     "index is in [-size, size - 1]",
                     "grad_output has the shape of the selection"];
  let meta = "selectBackward";
  let derivatives = [Wrt<"grad_output", "select(grad, dim=dim, index=index)">];
  let body = Lowering<"selectBackward">;
  let samples = [Sample<"select_backward(f32[2,4], input_sizes=[2,3,4], dim=1, index=2) -> f32[2,3,4]">,
                 Sample<"select_backward(f32[], input_sizes=[3], dim=0, index=-1) -> f32[3]">];
  let badSamples = [
    BadSample<"select_backward(f32[2], input_sizes=[2,3], dim=2, index=0)", "select_backward_c1: expected dim to be in [-2, 1], got 2">,
    BadSample<"select_backward(f32[2], input_sizes=[2,3], dim=1, index=3)", "select_backward_c2: expected index to be in [-3, 2], got 3">,
    BadSample<"select_backward(f32[3], input_sizes=[2,3], dim=1, index=0)", "select_backward_c3: expected grad_output dim 0 to be input size 0, got 3 and 2">];
}

def Quern_CatOp : Quern_Op<"cat", [AttrSizedOperandSegments]> {
  let args = (ins Variadic<AnyRankedTensor>:$tensors, DefaultValuedAttr<I64Attr, "0">:$dim);
  let summary = "tensors one after another along a dim";
  let constraints = ["there is at least one tensor", "tensors have the same dtype",
                     "tensors have the same number of dims, at least 1", "dim is in range",
                     "all dims but that one are equal"];
  let meta = "cat";
  let inPlace = NotInPlace<"elements are read at other places than they are written">;
  let derivatives = [Custom<"tensors", "cat", []>];
  let fusion = IndexMap;
  let body = Lowering<"cat">;
  let folder = "cat";
  let samples = [Sample<"cat([f32[2,3], f32[1,3]]) -> f32[3,3]">,
                 Sample<"cat([i64[2,3], i64[2,0], i64[2,2]], dim=-1) -> i64[2,5]">];
  let badSamples = [
    BadSample<"cat([])", "cat_c1: expected at least one tensor">,
    BadSample<"cat([f32[2], f64[2]])", "cat_c2: expected tensor 1 to have the dtype of tensor 0, got f64 and f32">,
    BadSample<"cat([f32[2,3], f32[2]])", "cat_c3: expected tensor 1 to have 2 dims, got 1">,
    BadSample<"cat([f32[], f32[]])", "cat_c3: expected tensor 0 to have at least 1 dim">,
    BadSample<"cat([f32[2,3]], dim=2)", "cat_c4: expected dim to be in [-2, 1], got 2">,
    BadSample<"cat([f32[2,3], f32[2,4]])", "cat_c5: expected tensor 1 dim 1 to equal tensor 0's, got 4 and 3">];
}

#endif // QUERN_OPS_VIEW_TD
