// Faults that users of such systems have reported: values, integer and float edges.
//
// RUN: %python %S/Inputs/run.py %s
// RUN: %python %S/Inputs/run.py %s -O0
// RUN: %python %S/Inputs/run.py %s --target=cuda-emulated
// RUN: %python %S/Inputs/run.py %s --poison --no-inplace

//--- u8 result widened in fusion
// in: ui8[1] 7
// out: f32[1] 249.5
func.func @f(%x: tensor<1xui8>) -> tensor<1xf32> {
  %half = arith.constant dense<0.5> : tensor<f32>
  %0 = quern.neg %x : (tensor<1xui8>) -> tensor<1xui8>
  %1 = quern.convert %0 {dtype = f32} : (tensor<1xui8>) -> tensor<1xf32>
  %2 = quern.add %1, %half : (tensor<1xf32>, tensor<f32>) -> tensor<1xf32>
  return %2 : tensor<1xf32>
}

//--- u8 arithmetic done in int
// in: ui8[2] 3 200
// in: ui8[2] 5 156
// out: i32[2] 254 44
func.func @f(%x: tensor<2xui8>, %y: tensor<2xui8>) -> tensor<2xi32> {
  %0 = quern.sub %x, %y : (tensor<2xui8>, tensor<2xui8>) -> tensor<2xui8>
  %1 = quern.convert %0 {dtype = i32} : (tensor<2xui8>) -> tensor<2xi32>
  return %1 : tensor<2xi32>
}

//--- an integer division never traps
// in: i32[3] -2147483648 1 7
// in: i32[3] -1 0 -2
// out: i32[3] -2147483648 -1 -3
func.func @f(%x: tensor<3xi32>, %y: tensor<3xi32>) -> tensor<3xi32> {
  %0 = quern.div %x, %y {rounding_mode = "trunc"} : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi32>
  return %0 : tensor<3xi32>
}

//--- x * 0 folded to 0
// in: f32[2] inf nan
// out: f32[2] nan nan
func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
  %zero = arith.constant dense<0.0> : tensor<f32>
  %0 = quern.mul %x, %zero : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

//--- the sign of zero lost
// in: f32[2] 0.0 -0.0
// out: f32[2] -inf inf
// out: f32[2] 0.0 0.0
func.func @f(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %one = arith.constant dense<1.0> : tensor<f32>
  %minus = arith.constant dense<-1.0> : tensor<f32>
  %zero = arith.constant dense<0.0> : tensor<f32>
  %0 = quern.mul %x, %minus : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %1 = quern.div %one, %0 : (tensor<f32>, tensor<2xf32>) -> tensor<2xf32>
  %2 = quern.add %x, %zero : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  return %1, %2 : tensor<2xf32>, tensor<2xf32>
}

//--- a bf16 comparison on the value before rounding
// in: f32[1] 0.001
// out: i1[1] 1
// out: f32[1] 0.0
func.func @f(%x: tensor<1xf32>) -> (tensor<1xi1>, tensor<1xf32>) {
  %one = arith.constant dense<1.0> : tensor<bf16>
  %0 = quern.convert %x {dtype = bf16} : (tensor<1xf32>) -> tensor<1xbf16>
  %1 = quern.add %0, %one : (tensor<1xbf16>, tensor<bf16>) -> tensor<1xbf16>
  %2 = quern.eq %1, %one : (tensor<1xbf16>, tensor<bf16>) -> tensor<1xi1>
  %3 = quern.sub %1, %one : (tensor<1xbf16>, tensor<bf16>) -> tensor<1xbf16>
  %4 = quern.convert %3 {dtype = f32} : (tensor<1xbf16>) -> tensor<1xf32>
  return %2, %4 : tensor<1xi1>, tensor<1xf32>
}

//--- sums of low precision
// in: f32[512] 1
// out: f32[] 512
// out: f32[512] 0.001953125
func.func @f(%x: tensor<512xf32>) -> (tensor<f32>, tensor<512xf32>) {
  %0 = quern.convert %x {dtype = bf16} : (tensor<512xf32>) -> tensor<512xbf16>
  %1 = quern.sum %0 : (tensor<512xbf16>) -> tensor<bf16>
  %2 = quern.convert %1 {dtype = f32} : (tensor<bf16>) -> tensor<f32>
  %3 = quern.softmax %0 {dim = 0} : (tensor<512xbf16>) -> tensor<512xbf16>
  %4 = quern.convert %3 {dtype = f32} : (tensor<512xbf16>) -> tensor<512xf32>
  return %2, %4 : tensor<f32>, tensor<512xf32>
}

//--- f16 mean whose sum is infinite
// in: f16[70000] 1
// out: f32[] 1
func.func @f(%x: tensor<70000xf16>) -> tensor<f32> {
  %0 = quern.mean %x : (tensor<70000xf16>) -> tensor<f16>
  %1 = quern.convert %0 {dtype = f32} : (tensor<f16>) -> tensor<f32>
  return %1 : tensor<f32>
}

//--- a variance by the difference of sums
// in: f32[1x3] 10000 10001 10002
// out: f32[1x3] -1.2247356 0.0 1.2247356
func.func @f(%x: tensor<1x3xf32>) -> tensor<1x3xf32> {
  %y, %m, %r = quern.layer_norm %x, _, _ {normalized_shape = #quern.dims<3>} : (tensor<1x3xf32>) -> (tensor<1x3xf32>, tensor<1x1xf32>, tensor<1x1xf32>)
  return %y : tensor<1x3xf32>
}

//--- reductions over nothing
// in: f32[2x0]
// in: f32[0x3]
// out: f32[2] 0
// out: f32[2] nan
// out: f32[2x3] 0
// out: f32[2x0]
func.func @f(%x: tensor<2x0xf32>, %y: tensor<0x3xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2x3xf32>, tensor<2x0xf32>) {
  %0 = quern.sum %x {dim = array<i64: 1>} : (tensor<2x0xf32>) -> tensor<2xf32>
  %1 = quern.mean %x {dim = array<i64: 1>} : (tensor<2x0xf32>) -> tensor<2xf32>
  %2 = quern.mm %x, %y : (tensor<2x0xf32>, tensor<0x3xf32>) -> tensor<2x3xf32>
  %3 = quern.softmax %x {dim = 1} : (tensor<2x0xf32>) -> tensor<2x0xf32>
  return %0, %1, %2, %3 : tensor<2xf32>, tensor<2xf32>, tensor<2x3xf32>, tensor<2x0xf32>
}

//--- 0 * NaN of a bias that is not read
// in: f32[1x1] nan
// in: f32[1x1] 1
// out: f32[1x1] 1
func.func @f(%b: tensor<1x1xf32>, %x: tensor<1x1xf32>) -> tensor<1x1xf32> {
  %0 = quern.addmm %b, %x, %x {beta = 0.0 : f64} : (tensor<1x1xf32>, tensor<1x1xf32>, tensor<1x1xf32>) -> tensor<1x1xf32>
  return %0 : tensor<1x1xf32>
}

//--- booleans: what is true, and their sum
// in: f32[5] 0 -0.0 0.5 nan 2
// out: i1[5] 0 0 1 1 1
// out: i64[] 3
func.func @f(%x: tensor<5xf32>) -> (tensor<5xi1>, tensor<i64>) {
  %0 = quern.convert %x {dtype = i1} : (tensor<5xf32>) -> tensor<5xi1>
  %n = quern.convert %0 {dtype = i64} : (tensor<5xi1>) -> tensor<5xi64>
  %1 = quern.sum %n : (tensor<5xi64>) -> tensor<i64>
  return %0, %1 : tensor<5xi1>, tensor<i64>
}

//--- slices past the end
// in: i64[5] 0 1 2 3 4
// out: i64[3] 2 3 4
// out: i64[2] 0 1
func.func @f(%x: tensor<5xi64>) -> (tensor<3xi64>, tensor<2xi64>) {
  %0 = quern.slice %x {start = #quern.dim<2>, end = #quern.dim<100>} : (tensor<5xi64>) -> tensor<3xi64>
  %1 = quern.slice %x {start = #quern.dim<-100>, end = #quern.dim<2>} : (tensor<5xi64>) -> tensor<2xi64>
  return %0, %1 : tensor<3xi64>, tensor<2xi64>
}

//--- cat of an expanded operand
// in: f32[1] 7
// in: f32[3] 1 2 3
// out: f32[6] 7 7 7 1 2 3
func.func @f(%x: tensor<1xf32>, %y: tensor<3xf32>) -> tensor<6xf32> {
  %0 = quern.expand %x {size = #quern.dims<3>} : (tensor<1xf32>) -> tensor<3xf32>
  %1 = quern.cat [%0, %y] : (tensor<3xf32>, tensor<3xf32>) -> tensor<6xf32>
  return %1 : tensor<6xf32>
}

//--- relu of NaN
// in: f32[3] nan -1 2
// out: f32[3] nan 0 2
func.func @f(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = quern.relu %x : (tensor<3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

//--- a broadcast mask in a vector loop
// in: i1[2x4x1] 1
// in: f32[2x4x7] 5
// out: f32[2x4x7] 0
func.func @f(%m: tensor<2x4x1xi1>, %x: tensor<2x4x7xf32>) -> tensor<2x4x7xf32> {
  %zero = arith.constant dense<0.0> : tensor<f32>
  %0 = quern.where %m, %zero, %x : (tensor<2x4x1xi1>, tensor<f32>, tensor<2x4x7xf32>) -> tensor<2x4x7xf32>
  return %0 : tensor<2x4x7xf32>
}

//--- saturating conversions
// in: f32[4] 3e9 -3e9 nan 2.9
// out: i32[4] 2147483647 -2147483648 0 2
func.func @f(%x: tensor<4xf32>) -> tensor<4xi32> {
  %0 = quern.convert %x {dtype = i32} : (tensor<4xf32>) -> tensor<4xi32>
  return %0 : tensor<4xi32>
}

//--- a value kept in the row of a result that is written before the last reader
// in: f32[1x3] 1 2 3
// out: f32[1x3] -0.145298 0.05713542 0.08816259
// out: f32[1x3] -0.2334606 -0.03102717 0.0
func.func @f(%x: tensor<1x3xf32>) -> (tensor<1x3xf32>, tensor<1x3xf32>) {
  %t = quern.tanh %x : (tensor<1x3xf32>) -> tensor<1x3xf32>
  %m = quern.mean %t {dim = array<i64: 1>, keepdim = true} : (tensor<1x3xf32>) -> tensor<1x1xf32>
  %c = quern.sub %t, %m : (tensor<1x3xf32>, tensor<1x1xf32>) -> tensor<1x3xf32>
  %n = quern.amax %c {dim = array<i64: 1>, keepdim = true} : (tensor<1x3xf32>) -> tensor<1x1xf32>
  %d = quern.sub %c, %n : (tensor<1x3xf32>, tensor<1x1xf32>) -> tensor<1x3xf32>
  return %c, %d : tensor<1x3xf32>, tensor<1x3xf32>
}
