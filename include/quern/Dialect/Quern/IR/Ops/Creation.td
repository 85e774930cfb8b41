//===- Creation.td - Tensors from attributes --------------------*- tablegen -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_OPS_CREATION_TD
#define QUERN_OPS_CREATION_TD

include "quern/Dialect/Quern/IR/StructuredOp.td"

class CreationOp<string mnemonic> : Quern_Op<mnemonic> {
  let inPlace = NotInPlace<"it has no operand">;
  let derivatives = [];
  let fusion = Creation;
}

def Quern_FullOp : CreationOp<"full"> {
  let args = (ins Quern_DimsAttr:$size, Quern_ScalarAttr:$fill_value, TypeAttr:$dtype);
  let summary = "a tensor of one number";
  let description = "The number is converted as by `convert`. `zeros` and `ones` are calls of it.";
  let constraints = ["sizes are at least 0", "dtype is a float, integer or bool dtype"];
  let meta = "full";
  let body = Lowering<"full">;
  let samples = [Sample<"full(size=[2,3], fill_value=1.5, dtype=f32) -> f32[2,3]">,
                 Sample<"full(size=[], fill_value=7, dtype=i64) -> i64[]">];
  let badSamples = [
    BadSample<"full(size=[-2,5], fill_value=6, dtype=f32)", "full_c1: expected size 0 to be at least 0, got -2">,
    BadSample<"full(size=[2], fill_value=6, dtype=index)", "full_c2: expected dtype to be a float, integer or bool dtype, got index">];
}

def Quern_ArangeOp : CreationOp<"arange"> {
  let args = (ins DefaultValuedAttr<Quern_ScalarAttr, "0">:$start, Quern_ScalarAttr:$end,
                  DefaultValuedAttr<Quern_ScalarAttr, "1">:$step, TypeAttr:$dtype);
  let summary = "start, start + step, … before end";
  let description = [{
    There are ceil((end - start) / step) numbers: exactly where all three are integers, else in f64.
    Integer dtypes compute in i64 from truncated numbers, float dtypes in f64; the results are
    converted as by `convert`. `iota` counts up to a size that is not known yet.
  }];
  let constraints = ["step is not 0", "start, end and step are finite",
                     "end lies in step's direction from start",
                     "dtype is a float or integer dtype"];
  let meta = "arange";
  let body = Lowering<"arange">;
  let samples = [Sample<"arange(end=3, dtype=i64) -> i64[3]">,
                 Sample<"arange(start=2, end=-3, step=-1, dtype=f32) -> f32[5]">,
                 Sample<"arange(start=0.0, end=1.0, step=0.25, dtype=f64) -> f64[4]">];
  let badSamples = [
    BadSample<"arange(end=3, step=0, dtype=i64)", "arange_c1: expected step to be other than 0">,
    BadSample<"arange(end=inf, dtype=f32)", "arange_c2: expected start, end and step to be finite, got 0, inf and 1">,
    BadSample<"arange(end=-3, step=2, dtype=i64)", "arange_c3: expected end to lie in step's direction from start, got 0, -3 and 2">,
    BadSample<"arange(end=3, dtype=bool)", "arange_c4: expected dtype to be a float or integer dtype, got bool">];
}

def Quern_IotaOp : CreationOp<"iota"> {
  let args = (ins Quern_DimAttr:$size, TypeAttr:$dtype);
  let summary = "0, 1, … size - 1";
  let constraints = ["size is at least 0", "dtype is a float or integer dtype"];
  let meta = "iota";
  let body = Lowering<"iota">;
  let samples = [Sample<"iota(size=4, dtype=i64) -> i64[4]">, Sample<"iota(size=0, dtype=f32) -> f32[0]">];
  let badSamples = [
    BadSample<"iota(size=-1, dtype=i64)", "iota_c1: expected size to be at least 0, got -1">,
    BadSample<"iota(size=3, dtype=bool)", "iota_c2: expected dtype to be a float or integer dtype, got bool">];
}

def Quern_DimValueOp : CreationOp<"dim_value"> {
  let args = (ins Quern_DimAttr:$value, TypeAttr:$dtype);
  let summary = "a size as a tensor of rank 0";
  let description = "How a size that is not known before the call becomes a number, as in mean's gradient.";
  let constraints = ["dtype is a float or integer dtype"];
  let meta = "dimValue";
  let body = Lowering<"dimValue">;
  let samples = [Sample<"dim_value(value=4, dtype=f32) -> f32[]">, Sample<"dim_value(value=4, dtype=i64) -> i64[]">];
  let badSamples = [
    BadSample<"dim_value(value=3, dtype=bool)", "dim_value_c1: expected dtype to be a float or integer dtype, got bool">];
}

#endif // QUERN_OPS_CREATION_TD
