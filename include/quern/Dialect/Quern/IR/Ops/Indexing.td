//===- Indexing.td - Elements chosen by an index tensor ---------*- tablegen -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_OPS_INDEXING_TD
#define QUERN_OPS_INDEXING_TD

include "quern/Dialect/Quern/IR/StructuredOp.td"

class IndexOperand<string operand> : NonDifferentiable<operand, "indices are integers">;

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

class GatherOp<string mnemonic> : Quern_Op<mnemonic> {
  let fusion = Gather;
  let body = Lowering<mnemonic>;
  let inPlace = NotInPlace<"elements are read at other places than they are written">;
}

def Quern_EmbeddingOp : GatherOp<"embedding"> {
  let summary = "rows of weight: weight[indices]";
  let description = [{
    An index outside weight gives NaN (0 for integers). `padding_idx` (a row that learns nothing; -1: none) and
    `scale_grad_by_freq` (each row's gradient is divided by how often it was used) matter only for
    the gradient.
  }];
  let args = (ins AnyRankedTensor:$weight, AnyRankedTensor:$indices,
                  DefaultValuedAttr<I64Attr, "-1">:$padding_idx,
                  DefaultValuedAttr<BoolAttr, "false">:$scale_grad_by_freq);
  let meta = "embedding";
  let constraints = ["weight is a matrix", "indices are i32 or i64",
                     "weight has rows if there are indices"];
  let derivatives = [Wrt<"weight", "embedding_dense_backward(grad, indices, num_weights=first_dim(shape(weight)), padding_idx=padding_idx, scale_grad_by_freq=scale_grad_by_freq)">,
                     IndexOperand<"indices">];
  let samples = [Sample<"embedding(f32[10,4], i64[2,3]) -> f32[2,3,4]">, Sample<"embedding(f64[10,4], i64[]) -> f64[4]">];
  let badSamples = [BadSample<"embedding(f32[1,1,1], i64[2])", "embedding_c1: expected weight to have rank 2, got rank 3">,
                    BadSample<"embedding(f32[5,2], f32[2])", "embedding_c2: expected indices to be i32 or i64, got f32">,
                    BadSample<"embedding(f32[0,2], i64[3])", "embedding_c3: expected weight dim 0 to have elements for 3 indices, got 0">];
}

def Quern_IndexSelectOp : GatherOp<"index_select"> {
  let summary = "slices of self along dim, in the order of index";
  let args = (ins AnyRankedTensor:$self, AnyRankedTensor:$index, I64Attr:$dim);
  let meta = "indexSelect";
  let constraints = ["index is a list of i32 or i64, of one for a scalar", "dim is a dim of self",
                     "self has elements along dim if there are indices"];
  let derivatives = [Wrt<"self", "index_add(full(size=shape(self), fill_value=0, dtype=dtype(self)), index, grad, dim=dim)">,
                     IndexOperand<"index">];
  let samples = [Sample<"index_select(f32[2,3,4], i64[3], dim=1) -> f32[2,3,4]">, Sample<"index_select(i32[5], i64[2], dim=0) -> i32[2]">];
  let badSamples = [BadSample<"index_select(f32[2,3], f32[3], dim=1)", "index_select_c1: expected index to be i32 or i64, got f32">,
                    BadSample<"index_select(f32[2,3,4], i64[3], dim=4)", "index_select_c2: expected dim to be in [-3, 2], got 4">,
                    BadSample<"index_select(f32[2,0], i64[3], dim=1)", "index_select_c3: expected self dim 1 to have elements for 3 indices, got 0">];
}

def Quern_GatherOp : GatherOp<"gather"> {
  let summary = "self at index along dim: out[i, j] = self[index[i, j], j] for dim 0";
  let args = (ins AnyRankedTensor:$self, AnyRankedTensor:$index, I64Attr:$dim);
  let meta = "gather";
  let constraints = ["index is i32 or i64", "index has the rank of self (a scalar counts as one element) or no elements",
                     "dim is a dim of self", "index is no larger than self, except along dim, or has no elements",
                     "self has elements along dim if there are indices"];
  let derivatives = [Wrt<"self", "scatter_add(full(size=shape(self), fill_value=0, dtype=dtype(self)), index, grad, dim=dim)">,
                     IndexOperand<"index">];
  let samples = [Sample<"gather(f32[5,5], i64[5,2], dim=1) -> f32[5,2]">, Sample<"gather(f64[4], i64[2], dim=0) -> f64[2]">];
  let badSamples = [BadSample<"gather(f32[5], f32[2], dim=0)", "gather_c1: expected index to be i32 or i64, got f32">,
                    BadSample<"gather(f32[2], i64[2,2], dim=0)", "gather_c2: expected index to have rank 1, got rank 2">,
                    BadSample<"gather(f32[5,5], i64[5,1], dim=2)", "gather_c3: expected dim to be in [-2, 1], got 2">,
                    BadSample<"gather(f32[5,5], i64[6,1], dim=1)", "gather_c4: expected index dim 0 to be at most self dim 0, got 6 and 5">,
                    BadSample<"gather(f32[5,0], i64[5,1], dim=1)", "gather_c5: expected self dim 1 to have elements for 5 indices, got 0">];
}

//===----------------------------------------------------------------------===//
// Adding at indices: in the order of the index, the same bits every time
//===----------------------------------------------------------------------===//

class ScatterOp<string mnemonic> : Quern_Op<mnemonic> {
  let fusion = Scatter;
  let body = Lowering<mnemonic>;
}

def Quern_ScatterAddOp : ScatterOp<"scatter_add"> {
  let summary = "self with src added at index along dim";
  let args = (ins AnyRankedTensor:$self, AnyRankedTensor:$index, AnyRankedTensor:$src, I64Attr:$dim);
  let meta = "scatterAdd";
  let inPlace = InPlace<["self"]>;
  let constraints = ["index is i32 or i64, src has the dtype of self",
                     "index and src have the rank of self (a scalar counts as one element); index may have no elements",
                     "dim is a dim of self", "index is no larger than self, except along dim, or has no elements",
                     "index is no larger than src"];
  let derivatives = [Custom<"self", "scatterAdd", []>, IndexOperand<"index">,
                     Custom<"src", "scatterAdd", ["index"]>];
  let samples = [Sample<"scatter_add(f32[5,5], i64[5,2], f32[5,2], dim=1) -> f32[5,5]">];
  let badSamples = [BadSample<"scatter_add(f32[5], i64[2], f64[2], dim=0)", "scatter_add_c1: expected src to have the dtype of self, got f64 and f32">,
                    BadSample<"scatter_add(f32[5], i64[2,2], f32[2], dim=0)", "scatter_add_c2: expected index to have rank 1, got rank 2">,
                    BadSample<"scatter_add(f32[5], i64[2], f32[2], dim=1)", "scatter_add_c3: expected dim to be in [-1, 0], got 1">,
                    BadSample<"scatter_add(f32[2,5], i64[3,2], f32[3,2], dim=1)", "scatter_add_c4: expected index dim 0 to be at most self dim 0, got 3 and 2">,
                    BadSample<"scatter_add(f32[5], i64[3], f32[2], dim=0)", "scatter_add_c5: expected index dim 0 to be at most src dim 0, got 3 and 2">];
}

def Quern_IndexAddOp : ScatterOp<"index_add"> {
  let summary = "self with the slices of source added at index along dim";
  let args = (ins AnyRankedTensor:$self, AnyRankedTensor:$index, AnyRankedTensor:$source, I64Attr:$dim);
  let meta = "indexAdd";
  let inPlace = InPlace<["self"]>;
  let constraints = ["index is a list of i32 or i64", "dim is a dim of self",
                     "source has the dtype of self", "source has the shape of self, with the length of index along dim"];
  let derivatives = [Wrt<"self", "grad">, IndexOperand<"index">, Wrt<"source", "index_select(grad, index, dim=dim)">];
  let samples = [Sample<"index_add(f32[2,5], i64[3], f32[2,3], dim=1) -> f32[2,5]">];
  let badSamples = [BadSample<"index_add(f32[5], f32[2], f32[2], dim=0)", "index_add_c1: expected index to be i32 or i64, got f32">,
                    BadSample<"index_add(f32[5], i64[2], f32[2], dim=1)", "index_add_c2: expected dim to be in [-1, 0], got 1">,
                    BadSample<"index_add(f32[5], i64[2], f64[2], dim=0)", "index_add_c3: expected source to have the dtype of self, got f64 and f32">,
                    BadSample<"index_add(f32[2,5], i64[3], f32[3,3], dim=1)", "index_add_c4: expected source dim 0 to equal self dim 0, got 3 and 2">];
}

def Quern_EmbeddingDenseBackwardOp : ScatterOp<"embedding_dense_backward"> {
  let summary = "the gradient of embedding's weight: rows of grad_output summed by index";
  let args = (ins AnyRankedTensor:$grad_output, AnyRankedTensor:$indices, Quern_DimAttr:$num_weights,
                  DefaultValuedAttr<I64Attr, "-1">:$padding_idx,
                  DefaultValuedAttr<BoolAttr, "false">:$scale_grad_by_freq);
  let meta = "embeddingDenseBackward";
  let inPlace = NotInPlace<"the result has other sizes than the operands">;
  let constraints = ["grad_output is of a float dtype, indices are i32 or i64",
                     "grad_output has the dims of indices, then one more",
                     "num_weights is at least 0, and 1 if there are indices"];
  let derivatives = [Wrt<"grad_output", "embedding(grad, indices)">, IndexOperand<"indices">];
  let samples = [Sample<"embedding_dense_backward(f32[2,3,4], i64[2,3], num_weights=10) -> f32[10,4]">];
  let badSamples = [BadSample<"embedding_dense_backward(f32[2,4], f32[2], num_weights=10)", "embedding_dense_backward_c1: expected indices to be i32 or i64, got f32">,
                    BadSample<"embedding_dense_backward(f32[2,4], i64[3], num_weights=10)", "embedding_dense_backward_c2: expected grad_output dim 0 to equal indices dim 0, got 2 and 3">,
                    BadSample<"embedding_dense_backward(f32[2,4], i64[2], num_weights=-1)", "embedding_dense_backward_c3: expected num_weights to be at least 0, got -1">];
}

#endif // QUERN_OPS_INDEXING_TD
