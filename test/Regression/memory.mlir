// Faults that users of such systems have reported: buffers that are shared where they may not be.
//
// RUN: %python %S/Inputs/run.py %s
// RUN: %python %S/Inputs/run.py %s -O0
// RUN: %python %S/Inputs/run.py %s --target=cuda-emulated
// RUN: %python %S/Inputs/run.py %s --no-inplace

//--- a transpose of a square done in place
// in: f32[2x2] 1 2 3 4
// out: f32[2x2] 2 4 3 5
func.func @f(%x: tensor<2x2xf32> {quern.donated}) -> tensor<2x2xf32> {
  %one = arith.constant dense<1.0> : tensor<f32>
  %0 = quern.add %x, %one : (tensor<2x2xf32>, tensor<f32>) -> tensor<2x2xf32>
  %1 = quern.permute %0 {dims = array<i64: 1,0>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  return %1 : tensor<2x2xf32>
}

//--- x + 0 folded to x, and then written
// in: f32[2] 1 2
// out: f32[2] 1 2
// out: f32[2] 2 4
func.func @f(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %zero = arith.constant dense<0.0> : tensor<f32>
  %two = arith.constant dense<2.0> : tensor<f32>
  %0 = quern.add %x, %zero : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %1 = quern.mul %0, %two : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  return %x, %1 : tensor<2xf32>, tensor<2xf32>
}

//--- the input of a cat reused while the cat needs it
// in: f32[2] 1 2
// out: f32[4] 2 3 4 6
// out: f32[2] 5 6
func.func @f(%x: tensor<2xf32>) -> (tensor<4xf32>, tensor<2xf32>) {
  %one = arith.constant dense<1.0> : tensor<f32>
  %two = arith.constant dense<2.0> : tensor<f32>
  %three = arith.constant dense<3.0> : tensor<f32>
  %a = quern.add %x, %one : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %a2 = quern.mul %a, %two : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %b = quern.cat [%a, %a2] : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
  %c = quern.add %a, %three : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  return %b, %c : tensor<4xf32>, tensor<2xf32>
}

//--- a result in an argument that another result reads
// in: f32[2] -1 2
// in: f32[2] 10 20
// out: f32[2] 0 2
// out: f32[2] 9 22
func.func @f(%t0: tensor<2xf32>, %t1: tensor<2xf32>) -> (tensor<2xf32> {quern.into = 0 : i64}, tensor<2xf32>) {
  %t2 = quern.relu %t0 : (tensor<2xf32>) -> tensor<2xf32>
  %t3 = quern.add %t0, %t1 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %t2, %t3 : tensor<2xf32>, tensor<2xf32>
}

//--- a result in an argument of another shape
// in: f32[2x4] 1
// error: the argument that it is promised to have different types
func.func @f(%x: tensor<2x4xf32>) -> (tensor<4x2xf32> {quern.into = 0 : i64}) {
  %0 = quern.permute %x {dims = array<i64: 1,0>} : (tensor<2x4xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}

//--- a small operand takes the larger result
// in: f32[3] 1 2 3
// in: f32[2x3] 1 1 1 2 2 2
// out: f32[2x3] 3.7182817 8.389056 21.085537 4.7182817 9.389056 22.085537
func.func @f(%x: tensor<3xf32>, %h: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %g = quern.exp %x : (tensor<3xf32>) -> tensor<3xf32>
  %0 = quern.add %g, %h : (tensor<3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

//--- a float that dies into a bool
// in: f32[3] -1 0 1
// out: i1[3] 0 0 1
func.func @f(%x: tensor<3xf32> {quern.donated}) -> tensor<3xi1> {
  %zero = arith.constant dense<0.0> : tensor<f32>
  %0 = quern.gt %x, %zero : (tensor<3xf32>, tensor<f32>) -> tensor<3xi1>
  return %0 : tensor<3xi1>
}

//--- a matrix product into its own operand
// in: f32[2x2] 1 2 3 4
// out: f32[2x2] 7 10 15 22
func.func @f(%x: tensor<2x2xf32>) -> (tensor<2x2xf32> {quern.into = 0 : i64}) {
  %0 = quern.mm %x, %x : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}

//--- a view of an argument into itself
// in: f32[2x2] 1 2 3 4
// out: f32[2x2] 1 2 3 4
func.func @f(%x: tensor<2x2xf32>) -> (tensor<2x2xf32> {quern.into = 0 : i64}) {
  %0 = quern.view %x {size = #quern.dims<4>} : (tensor<2x2xf32>) -> tensor<4xf32>
  %1 = quern.view %0 {size = #quern.dims<2,2>} : (tensor<4xf32>) -> tensor<2x2xf32>
  return %1 : tensor<2x2xf32>
}

//--- arguments that change places
// in: f32[2] 1 2
// in: f32[2] 3 4
// out: f32[2] 3 4
// out: f32[2] 1 2
func.func @f(%x: tensor<2xf32>, %y: tensor<2xf32>) -> (tensor<2xf32> {quern.into = 0 : i64}, tensor<2xf32> {quern.into = 1 : i64}) {
  return %y, %x : tensor<2xf32>, tensor<2xf32>
}

//--- a result over an operand that a larger result reads along the reduced dim
// in: f32[2x3x3] 1 2 3 4 5 6 7 8 9 1 2 3 4 5 6 7 8 9
// in: f32[2x1x3] 1 2 3 4 5 6
// out: f32[2x3x3] 1 4 9 4 10 18 7 16 27 4 10 18 16 25 36 28 40 54
// out: f32[2x1x3] 13 32 57 52 80 114
func.func @f(%x: tensor<2x?x?xf32, #quern.dims<A, A>>, %s: tensor<2x1x?xf32, #quern.dims<A>> {quern.donated}) -> (tensor<2x?x?xf32, #quern.dims<A, A>>, tensor<2x1x?xf32, #quern.dims<A>>) {
  %0 = quern.mul %x, %s : (tensor<2x?x?xf32, #quern.dims<A, A>>, tensor<2x1x?xf32, #quern.dims<A>>) -> tensor<2x?x?xf32, #quern.dims<A, A>>
  %1 = quern.sum %0 {dim = array<i64: 1>, keepdim = true} : (tensor<2x?x?xf32, #quern.dims<A, A>>) -> tensor<2x1x?xf32, #quern.dims<A>>
  %2 = quern.add %1, %s : (tensor<2x1x?xf32, #quern.dims<A>>, tensor<2x1x?xf32, #quern.dims<A>>) -> tensor<2x1x?xf32, #quern.dims<A>>
  return %0, %2 : tensor<2x?x?xf32, #quern.dims<A, A>>, tensor<2x1x?xf32, #quern.dims<A>>
}

//--- the same, in the argument by promise
// in: f32[2x3] 1 2 3 4 5 6
// in: f32[1x3] 1 2 3
// out: f32[2x3] 1 4 9 4 10 18
// out: f32[1x3] 6 16 30
func.func @f(%x: tensor<2x3xf32>, %s: tensor<1x3xf32>) -> (tensor<2x3xf32>, tensor<1x3xf32> {quern.into = 1 : i64}) {
  %0 = quern.mul %x, %s : (tensor<2x3xf32>, tensor<1x3xf32>) -> tensor<2x3xf32>
  %1 = quern.sum %0 {dim = array<i64: 0>, keepdim = true} : (tensor<2x3xf32>) -> tensor<1x3xf32>
  %2 = quern.add %1, %s : (tensor<1x3xf32>, tensor<1x3xf32>) -> tensor<1x3xf32>
  return %0, %2 : tensor<2x3xf32>, tensor<1x3xf32>
}

//--- a row's sum and its elements, each over its own operand
// in: f32[2x4] 1 2 3 4 5 6 7 8
// in: f32[2x4] 1 1 1 1 2 2 2 2
// in: f32[2x1] 100 200
// out: f32[2x1] 110 252
// out: f32[2x4] -9 -8 -7 -6 -42 -40 -38 -36
func.func @f(%x: tensor<2x4xf32>, %y: tensor<2x4xf32>, %s: tensor<2x1xf32>) -> (tensor<2x1xf32> {quern.into = 2 : i64}, tensor<2x4xf32> {quern.into = 1 : i64}) {
  %0 = quern.mul %x, %y : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %1 = quern.sum %0 {dim = array<i64: 1>, keepdim = true} : (tensor<2x4xf32>) -> tensor<2x1xf32>
  %2 = quern.add %1, %s : (tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x1xf32>
  %3 = quern.sub %0, %1 : (tensor<2x4xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
  return %2, %3 : tensor<2x1xf32>, tensor<2x4xf32>
}

//--- a sum of all and its elements, each over its own operand
// in: f32[4] 1 2 3 4
// in: f32[] 5
// out: f32[] 15
// out: f32[4] -9 -8 -7 -6
func.func @f(%x: tensor<4xf32>, %s: tensor<f32>) -> (tensor<f32> {quern.into = 1 : i64}, tensor<4xf32> {quern.into = 0 : i64}) {
  %0 = quern.sum %x : (tensor<4xf32>) -> tensor<f32>
  %1 = quern.add %0, %s : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %2 = quern.sub %x, %0 : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %1, %2 : tensor<f32>, tensor<4xf32>
}

//--- a sum of all over an operand that every element reads
// in: f32[4] 1 2 3 4
// in: f32[] 5
// out: f32[] 55
// out: f32[4] 5 10 15 20
func.func @f(%x: tensor<4xf32>, %s: tensor<f32>) -> (tensor<f32> {quern.into = 1 : i64}, tensor<4xf32> {quern.into = 0 : i64}) {
  %0 = quern.mul %x, %s : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = quern.sum %0 : (tensor<4xf32>) -> tensor<f32>
  %2 = quern.add %1, %s : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %2, %0 : tensor<f32>, tensor<4xf32>
}

//--- sums of columns over an operand, elements of unknown sizes
// in: f32[3] 1 2 3
// in: i1[3] 1 0 1
// in: f32[3] 4 5 6
// out: f32[3x3] 1 2 3 4 5 6 1 2 3
// out: f32[3] 4 5 6
func.func @f(%x: tensor<?xf32>, %p: tensor<?xi1>, %y: tensor<?xf32> {quern.donated}) -> (tensor<?x?xf32>, tensor<?xf32>) {
  %0 = quern.unsqueeze %p {dim = 1} : (tensor<?xi1>) -> tensor<?x1xi1>
  %1 = quern.where %0, %x, %y : (tensor<?x1xi1>, tensor<?xf32>, tensor<?xf32>) -> tensor<?x?xf32>
  %2 = quern.amax %1 {dim = array<i64: 0>, keepdim = false} : (tensor<?x?xf32>) -> tensor<?xf32>
  return %1, %2 : tensor<?x?xf32>, tensor<?xf32>
}
