// A result that is promised an argument's buffer is written after the argument's last reader, whatever
// the order of the text.
// RUN: quern-opt %s --quern-inplace | FileCheck %s

// CHECK-LABEL: func.func @step
// CHECK: %[[READ:.*]] = quern.mul %arg1, %arg0
// CHECK: %[[NEW:.*]] = quern.sgd_step %arg0, %arg1 into %arg0
// CHECK: return %[[NEW]], %[[READ]]
func.func @step(%w: tensor<4xf32> {quern.donated}, %g: tensor<4xf32>)
    -> (tensor<4xf32> {quern.into = 0 : i64}, tensor<4xf32>) {
  %new = quern.sgd_step %w, %g {lr = 0.1 : f64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %read = quern.mul %g, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %new, %read : tensor<4xf32>, tensor<4xf32>
}
