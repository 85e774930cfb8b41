// A complete op; bad-records.test takes something away from it.
include "quern/Dialect/Quern/IR/Ops/Pointwise.td"

class Softly : Quern_Op<"softly"> {
  let args = (ins AnyRankedTensor:$self);
  let summary = "a test";
  let constraints = ["self is of a float dtype"];
  let meta = "floatUnary";
  let inPlace = InPlace<["self"]>;
  let derivatives = [Wrt<"self", "grad">];
  let fusion = Pointwise;
  let body = ScalarBody<"exp(self)">;
  let samples = [Sample<"softly(f32[2]) -> f32[2]">];
  let badSamples = [BadSample<"softly(i32[2])", "softly_c1: expected a float">];
}
