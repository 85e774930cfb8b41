//===- MatMul.td - Matrix products ------------------------------*- tablegen -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_OPS_MATMUL_TD
#define QUERN_OPS_MATMUL_TD

include "quern/Dialect/Quern/IR/StructuredOp.td"

/// Products of one dtype, summed in f32 for f16 and bf16 and rounded once.
class MatMulOp<string mnemonic, list<Trait> traits = []> : Quern_Op<mnemonic, traits> {
  let meta = mnemonic;
  let fusion = Contraction;
  let body = Lowering<mnemonic>;
  let inPlace = NotInPlace<"each result element reads a whole row and column">;
}

def Quern_MmOp : MatMulOp<"mm"> {
  let summary = "product of two matrices: [N, K] x [K, M]";
  let args = (ins AnyRankedTensor:$self, AnyRankedTensor:$mat2);
  let constraints = ["self and mat2 have the same dtype", "self and mat2 are matrices",
                     "self dim 1 (K) equals mat2 dim 0"];
  let derivatives = [Wrt<"self", "mm(grad, permute(mat2, dims=[1, 0]))">,
                     Wrt<"mat2", "mm(permute(self, dims=[1, 0]), grad)">];
  let samples = [Sample<"mm(f32[2,3], f32[3,4]) -> f32[2,4]">, Sample<"mm(f64[5,1], f64[1,5]) -> f64[5,5]">,
                 Sample<"mm(f32[2,0], f32[0,3]) -> f32[2,3]">];
  let badSamples = [
    BadSample<"mm(f32[2,3], f64[3,4])",
              "mm_c1: expected mat2 to have the dtype of self, got f64 and f32">,
    BadSample<"mm(f32[2,3], f32[3])", "mm_c2: expected mat2 to have rank 2, got rank 1">,
    BadSample<"mm(f32[2,768], f32[512,4])",
              "mm_c3: expected self dim 1 (K) to equal mat2 dim 0, got 768 and 512">];
}

def Quern_BmmOp : MatMulOp<"bmm"> {
  let summary = "products of a batch of matrices: [B, N, K] x [B, K, M]";
  let args = (ins AnyRankedTensor:$self, AnyRankedTensor:$mat2);
  let constraints = ["self and mat2 have the same dtype", "self and mat2 have rank 3",
                     "self dim 2 (K) equals mat2 dim 1", "self dim 0 (batch) equals mat2 dim 0"];
  let derivatives = [Wrt<"self", "bmm(grad, permute(mat2, dims=[0, 2, 1]))">,
                     Wrt<"mat2", "bmm(permute(self, dims=[0, 2, 1]), grad)">];
  let samples = [Sample<"bmm(f32[2,3,4], f32[2,4,5]) -> f32[2,3,5]">, Sample<"bmm(f64[1,2,2], f64[1,2,2]) -> f64[1,2,2]">];
  let badSamples = [
    BadSample<"bmm(f32[2,3,4], i64[2,4,5])",
              "bmm_c1: expected mat2 to have the dtype of self, got i64 and f32">,
    BadSample<"bmm(f32[3,4], f32[2,4,5])", "bmm_c2: expected self to have rank 3, got rank 2">,
    BadSample<"bmm(f32[2,3,4], f32[2,3,5])",
              "bmm_c3: expected self dim 2 (K) to equal mat2 dim 1, got 4 and 3">,
    BadSample<"bmm(f32[2,3,4], f32[1,4,5])",
              "bmm_c4: expected self dim 0 (batch) to equal mat2 dim 0, got 2 and 1">];
}

def Quern_AddmmOp : MatMulOp<"addmm"> {
  let summary = "beta * self + alpha * (mat1 x mat2)";
  let description = [{
    `self` broadcasts to the product. With beta = 0 it is not read, so that NaN in it does not show.
  }];
  let args = (ins AnyRankedTensor:$self, AnyRankedTensor:$mat1, AnyRankedTensor:$mat2,
                  DefaultValuedAttr<F64Attr, "1.0">:$beta, DefaultValuedAttr<F64Attr, "1.0">:$alpha);
  let constraints = ["self, mat1 and mat2 have the same dtype", "mat1 and mat2 are matrices",
                     "mat1 dim 1 (K) equals mat2 dim 0", "self broadcasts to [N, M]"];
  let derivatives = [Wrt<"self", "grad * beta">,
                     Wrt<"mat1", "mm(grad, permute(mat2, dims=[1, 0])) * alpha">,
                     Wrt<"mat2", "mm(permute(mat1, dims=[1, 0]), grad) * alpha">];
  let samples = [Sample<"addmm(f32[4], f32[2,3], f32[3,4]) -> f32[2,4]">,
                 Sample<"addmm(f32[2,4], f32[2,3], f32[3,4], beta=0.5, alpha=2.0) -> f32[2,4]">];
  let badSamples = [
    BadSample<"addmm(f32[4], f32[2,3], f64[3,4])",
              "addmm_c1: expected mat2 to have the dtype of self, got f64 and f32">,
    BadSample<"addmm(f32[4], f32[2,3], f32[1,3,4])",
              "addmm_c2: expected mat2 to have rank 2, got rank 3">,
    BadSample<"addmm(f32[1], f32[2,3], f32[2,3])",
              "addmm_c3: expected mat1 dim 1 (K) to equal mat2 dim 0, got 3 and 2">,
    BadSample<"addmm(f32[2], f32[2,2], f32[2,3])",
              "addmm_c4: expected self dim 0 to equal 3 or to be 1, got 2">];
}

def Quern_LinearOp : MatMulOp<"linear", [AttrSizedOperandSegments]> {
  let summary = "input x weight^T + bias over the last dim: [..., I] x [O, I] + [O]";
  let args = (ins AnyRankedTensor:$input, AnyRankedTensor:$weight, Optional<AnyRankedTensor>:$bias);
  let constraints = ["input, weight and bias have the same dtype",
                     "input has at least one dim, weight has two, bias has one",
                     "input's last dim (in features) equals weight dim 1",
                     "bias dim 0 equals weight dim 0 (out features) or is 1"];
  let derivatives = [Wrt<"input", "linear(grad, permute(weight, dims=[1, 0]))">,
                     Custom<"weight", "linearWeight", ["input"]>, Wrt<"bias", "grad">];
  let samples = [Sample<"linear(f32[2,3], f32[4,3], f32[4]) -> f32[2,4]">,
                 Sample<"linear(f32[2,5,3], f32[4,3], _) -> f32[2,5,4]">, Sample<"linear(f32[2,3], f32[4,3], f32[1]) -> f32[2,4]">, Sample<"linear(f64[3], f64[4,3], f64[4]) -> f64[4]">];
  let badSamples = [
    BadSample<"linear(i64[2,3], f32[4,3], f32[4])",
              "linear_c1: expected weight to have the dtype of input, got f32 and i64">,
    BadSample<"linear(f32[2,3], f32[4,3,1], _)", "linear_c2: expected weight to have rank 2, got rank 3">,
    BadSample<"linear(f32[2,3], f32[4,2], _)",
              "linear_c3: expected input dim 1 (in features) to equal weight dim 1, got 3 and 2">,
    BadSample<"linear(f32[2,3], f32[4,3], f32[3])",
              "linear_c4: expected bias dim 0 to equal weight dim 0 (out features) or to be 1, got 3 and 4">];
}

#endif // QUERN_OPS_MATMUL_TD
