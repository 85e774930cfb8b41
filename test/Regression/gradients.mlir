// Faults that users of such systems have reported: gradients.
//
// RUN: %python %S/Inputs/run.py %s
// RUN: %python %S/Inputs/run.py %s -O0
// RUN: %python %S/Inputs/run.py %s --target=cuda-emulated

//--- a broadcast operand's gradient is summed; a value used twice
// grad: 0
// in: f32[] 1
// out: f32[] 2721.0000
// out: f32[] 2721.0000
func.func @f(%z: tensor<f32>) -> tensor<f32> {
  %zeros = arith.constant dense<1.0> : tensor<1000xf32>
  %0 = quern.exp %z : (tensor<f32>) -> tensor<f32>
  %1 = quern.mul %0, %zeros : (tensor<f32>, tensor<1000xf32>) -> tensor<1000xf32>
  %2 = quern.sum %1 : (tensor<1000xf32>) -> tensor<f32>
  %3 = quern.add %2, %0 : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %3 : tensor<f32>
}

//--- a row against a matrix
// grad: 0,1
// in: f32[1] 2
// in: f32[2x3] 1 2 3 4 5 6
// out: f32[] 42
// out: f32[1] 21
// out: f32[2x3] 2
func.func @f(%a: tensor<1xf32>, %b: tensor<2x3xf32>) -> tensor<f32> {
  %0 = quern.mul %a, %b : (tensor<1xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = quern.sum %0 : (tensor<2x3xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}

//--- gather with a repeated index
// grad: 0
// in: f32[1] 0.1
// in: i64[2] 0 0
// in: f32[2] 0.2 0.3
// out: f32[] 0.05
// out: f32[1] 0.5
func.func @f(%x: tensor<1xf32>, %i: tensor<2xi64>, %g: tensor<2xf32>) -> tensor<f32> {
  %0 = quern.gather %x, %i {dim = 0} : (tensor<1xf32>, tensor<2xi64>) -> tensor<2xf32>
  %1 = quern.mul %0, %g : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %2 = quern.sum %1 : (tensor<2xf32>) -> tensor<f32>
  return %2 : tensor<f32>
}

//--- limits: the root of 0, 1/0, log 0
// grad: 0
// in: f32[] 0
// out: f32[] nan
// out: f32[] nan
func.func @f(%x: tensor<f32>) -> tensor<f32> {
  %0 = quern.sqrt %x : (tensor<f32>) -> tensor<f32>
  %1 = quern.reciprocal %x : (tensor<f32>) -> tensor<f32>
  %2 = quern.log %x : (tensor<f32>) -> tensor<f32>
  %3 = quern.add %0, %1 : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %4 = quern.add %3, %2 : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %4 : tensor<f32>
}

//--- the root at 0
// grad: 0
// in: f32[] 0
// out: f32[] 0
// out: f32[] inf
func.func @f(%x: tensor<f32>) -> tensor<f32> {
  %0 = quern.sqrt %x : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

//--- the root of a square at 0, by the chain rule
// grad: 0
// in: f32[] 0
// out: f32[] 0
// out: f32[] nan
func.func @f(%x: tensor<f32>) -> tensor<f32> {
  %0 = quern.mul %x, %x : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %1 = quern.sqrt %0 : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}

//--- tied maximum
// grad: 0,1
// in: f32[] 1
// in: f32[] 1
// out: f32[] 1
// out: f32[] 0.5
// out: f32[] 0.5
func.func @f(%x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {
  %0 = quern.maximum %x, %y : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

//--- relu at 0
// grad: 0
// in: f32[] 0
// out: f32[] 0
// out: f32[] 0
func.func @f(%x: tensor<f32>) -> tensor<f32> {
  %0 = quern.relu %x : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

//--- tied amax
// grad: 0
// in: f32[3] 3 3 1
// out: f32[] 3
// out: f32[3] 0.5 0.5 0
func.func @f(%x: tensor<3xf32>) -> tensor<f32> {
  %0 = quern.amax %x : (tensor<3xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

//--- one target of two ignored
// grad: 0
// in: f32[2x3] 1 2 3 0 0 0
// in: i64[2] -100 1
// out: f32[] 1.0986123
// out: f32[2x3] 0 0 0 0.33333334 -0.6666667 0.33333334
func.func @f(%x: tensor<2x3xf32>, %t: tensor<2xi64>) -> tensor<f32> {
  %0 = quern.log_softmax %x {dim = 1} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1:2 = quern.nll_loss %0, %t, _ : (tensor<2x3xf32>, tensor<2xi64>) -> (tensor<f32>, tensor<f32>)
  return %1#0 : tensor<f32>
}

//--- a gradient that accumulates by index
// grad: 0
// in: f32[3] 1 1 1
// in: i64[3] 0 0 1
// out: f32[] 3
// out: f32[3] 2 1 0
func.func @f(%x: tensor<3xf32>, %i: tensor<3xi64>) -> tensor<f32> {
  %0 = quern.index_select %x, %i {dim = 0} : (tensor<3xf32>, tensor<3xi64>) -> tensor<3xf32>
  %1 = quern.sum %0 : (tensor<3xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}

//--- sigmoid far out
// grad: 0
// in: f32[2] 100 -100
// out: f32[] 1
// out: f32[2] 0 0
func.func @f(%x: tensor<2xf32>) -> tensor<f32> {
  %0 = quern.sigmoid %x : (tensor<2xf32>) -> tensor<2xf32>
  %1 = quern.sum %0 : (tensor<2xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}

//--- 0 * inf as a scale
// grad: 0
// in: f32[2] 1 1
// out: f32[] 0
// out: f32[2] 0 0
func.func @f(%x: tensor<2xf32>) -> tensor<f32> {
  %zero = arith.constant dense<0.0> : tensor<f32>
  %0 = quern.mul %x, %zero : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %1 = quern.sum %0 : (tensor<2xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}

//--- a saved value that changes owner: y = x * x, then x + 1
// grad: 0
// in: f32[2] 2 3
// out: f32[] 20
// out: f32[2] 5 7
func.func @f(%x: tensor<2xf32>) -> tensor<f32> {
  %one = arith.constant dense<1.0> : tensor<f32>
  %0 = quern.mul %x, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = quern.add %x, %one : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %2 = quern.add %0, %1 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %3 = quern.sum %2 : (tensor<2xf32>) -> tensor<f32>
  return %3 : tensor<f32>
}

//--- a backward for every batch size
// grad: 0
// in: f32[3x2] 1 2 3 4 5 6
// out: f32[] 15.166667
// out: f32[3x2] 0.33333334 0.6666667 1 1.3333334 1.6666666 2
func.func @f(%x: tensor<?x2xf32>) -> tensor<f32> {
  %0 = quern.mul %x, %x : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
  %1 = quern.mean %0 : (tensor<?x2xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}

//--- the larger of a column and a row, with a tie
// grad: 0,1
// in: f32[2x1] 2 5
// in: f32[1x3] 1 3 5
// out: f32[] 98
// out: f32[2x1] 1 12
// out: f32[1x3] 0 2 6
func.func @f(%a: tensor<2x1xf32>, %b: tensor<1x3xf32>) -> tensor<f32> {
  %w = arith.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %0 = quern.maximum %a, %b : (tensor<2x1xf32>, tensor<1x3xf32>) -> tensor<2x3xf32>
  %1 = quern.mul %0, %w : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = quern.sum %1 : (tensor<2x3xf32>) -> tensor<f32>
  return %2 : tensor<f32>
}

//--- a bias whose size is free, of one output
// grad: 0,1,2
// in: f32[1x2] 1 2
// in: f32[1x2] 3 4
// in: f32[1] 5
// out: f32[] 16
// out: f32[1x2] 3 4
// out: f32[1x2] 1 2
// out: f32[1] 1
func.func @f(%x: tensor<1x?xf32>, %w: tensor<1x?xf32>, %b: tensor<?xf32>) -> tensor<f32> {
  %0 = quern.linear %x, %w, %b : (tensor<1x?xf32>, tensor<1x?xf32>, tensor<?xf32>) -> tensor<1x1xf32>
  %1 = quern.sum %0 : (tensor<1x1xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}
