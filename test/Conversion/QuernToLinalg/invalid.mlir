// RUN: quern-opt %s --quern-to-linalg --split-input-file --verify-diagnostics

// Two sizes without a name may be equal, or one of them 1: no index map is right for both.
func.func @unnamed(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error @below {{unsupported: lowering an op with an unnamed size; run quern-propagate-shapes first}}
  %0 = quern.add %x, %y : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// An operand is as bad as a result.
func.func @operand(%x: tensor<?x3xf32>) -> tensor<f32> {
  // expected-error @below {{unsupported: lowering an op with an unnamed size; run quern-propagate-shapes first}}
  %0 = quern.sum %x : (tensor<?x3xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
