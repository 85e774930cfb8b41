//===- Cast.td - Conversion between dtypes ----------------------*- tablegen -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_OPS_CAST_TD
#define QUERN_OPS_CAST_TD

include "quern/Dialect/Quern/IR/StructuredOp.td"

def Quern_ConvertOp : Quern_Op<"convert"> {
  let args = (ins AnyRankedTensor:$self, TypeAttr:$dtype);
  let summary = "the same elements in another dtype";
  let description = [{
    Floats are rounded to nearest even (to f16 and bf16 by way of f32). Float to integer truncates
    toward zero and saturates, NaN gives 0; integers wrap. Anything but zero is true, NaN too.
  }];
  let constraints = ["dtype is a float, integer or bool dtype"];
  let meta = "convert";
  let inPlace = InPlace<["self"]>;
  let derivatives = [Wrt<"self", "convert(grad, dtype=dtype(self))">];
  let fusion = Pointwise;
  let body = ScalarBody<"convert(self)">;
  let identityOnSameType = 1;
  let samples = [Sample<"convert(f32[2,3], dtype=i32) -> i32[2,3]">,
                 Sample<"convert(bool[4], dtype=f16) -> f16[4]">,
                 Sample<"convert(u8[4], dtype=bool) -> bool[4]">];
  let badSamples = [
    BadSample<"convert(f32[2], dtype=index)", "convert_c1: expected dtype to be a float, integer or bool dtype, got index">];
}

#endif // QUERN_OPS_CAST_TD
