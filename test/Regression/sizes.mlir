// Faults that users of such systems have reported: shapes, free sizes, odd sizes.
//
// RUN: %python %S/Inputs/run.py %s
// RUN: %python %S/Inputs/run.py %s -O0
// RUN: %python %S/Inputs/run.py %s --target=cuda-emulated

//--- a literal 0 in a target shape
// in: f32[0x8x2]
// out: f32[0x0x4]
func.func @f(%x: tensor<0x8x2xf32>) -> tensor<0x0x4xf32> {
  %0 = quern.view %x {size = #quern.dims<4,2,0>} : (tensor<0x8x2xf32>) -> tensor<4x2x0xf32>
  %1 = quern.view %0 {size = #quern.dims<0,0,4>} : (tensor<4x2x0xf32>) -> tensor<0x0x4xf32>
  return %1 : tensor<0x0x4xf32>
}

//--- a convolution over a free height
// in: f32[1x1x8x3] 1
// in: f32[1x1x3x3] 1
// out: f32[1x1x4x2] 4 4 6 6 6 6 6 6
func.func @f(%x: tensor<1x1x?x3xf32>, %w: tensor<1x1x3x3xf32>) -> tensor<1x1x?x2xf32> {
  %0 = quern.convolution %x, %w, _ {stride = array<i64: 2,2>, padding = array<i64: 1,1>, dilation = array<i64: 1,1>} : (tensor<1x1x?x3xf32>, tensor<1x1x3x3xf32>) -> tensor<1x1x?x2xf32>
  return %0 : tensor<1x1x?x2xf32>
}

//--- the same of the least height
// in: f32[1x1x1x3] 1
// in: f32[1x1x3x3] 1
// out: f32[1x1x1x2] 2 2
func.func @f(%x: tensor<1x1x?x3xf32>, %w: tensor<1x1x3x3xf32>) -> tensor<1x1x?x2xf32> {
  %0 = quern.convolution %x, %w, _ {stride = array<i64: 2,2>, padding = array<i64: 1,1>, dilation = array<i64: 1,1>} : (tensor<1x1x?x3xf32>, tensor<1x1x3x3xf32>) -> tensor<1x1x?x2xf32>
  return %0 : tensor<1x1x?x2xf32>
}

//--- ranks that differ
// in: f32[1x1x3] 1 2 3
// in: f32[3] 10 20 30
// out: f32[1x1x3] 11 22 33
func.func @f(%x: tensor<1x1x3xf32>, %y: tensor<3xf32>) -> tensor<1x1x3xf32> {
  %0 = quern.add %x, %y : (tensor<1x1x3xf32>, tensor<3xf32>) -> tensor<1x1x3xf32>
  return %0 : tensor<1x1x3xf32>
}

//--- a select past the end of a free size
// in: f32[2x1] 1
// error: select_c
func.func @f(%x: tensor<2x?xf32>) -> tensor<2xf32> {
  %0 = quern.select %x {dim = 1, index = #quern.dim<1>} : (tensor<2x?xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

//--- the largest of nothing
// in: f32[2x0]
// error: amax_c
func.func @f(%x: tensor<2x?xf32>) -> tensor<2xf32> {
  %0 = quern.amax %x {dim = array<i64: 1>} : (tensor<2x?xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

//--- a matrix product of broadcast batches
// in: f32[2x1x1x2] 1 2 3 4
// in: f32[3x2x1] 1 1 2 2 3 3
// out: f32[2x3x1x1] 3 6 9 7 14 21
func.func @f(%x: tensor<2x1x1x2xf32>, %y: tensor<3x2x1xf32>) -> tensor<2x3x1x1xf32> {
  %a = quern.expand %x {size = #quern.dims<2,3,1,2>} : (tensor<2x1x1x2xf32>) -> tensor<2x3x1x2xf32>
  %b = quern.expand %y {size = #quern.dims<2,3,2,1>} : (tensor<3x2x1xf32>) -> tensor<2x3x2x1xf32>
  %c = quern.view %a {size = #quern.dims<6,1,2>} : (tensor<2x3x1x2xf32>) -> tensor<6x1x2xf32>
  %d = quern.view %b {size = #quern.dims<6,2,1>} : (tensor<2x3x2x1xf32>) -> tensor<6x2x1xf32>
  %e = quern.bmm %c, %d : (tensor<6x1x2xf32>, tensor<6x2x1xf32>) -> tensor<6x1x1xf32>
  %0 = quern.view %e {size = #quern.dims<2,3,1,1>} : (tensor<6x1x1xf32>) -> tensor<2x3x1x1xf32>
  return %0 : tensor<2x3x1x1xf32>
}

//--- rows that are no power of two, of a size that no block has
// in: f32[3x1025] 1
// in: f32[70000x3] 1
// out: f32[3] 1025
// out: f32[3] 70000
func.func @f(%x: tensor<?x?xf32>, %y: tensor<?x3xf32>) -> (tensor<?xf32>, tensor<3xf32>) {
  %0 = quern.sum %x {dim = array<i64: 1>} : (tensor<?x?xf32>) -> tensor<?xf32>
  %1 = quern.sum %y {dim = array<i64: 0>} : (tensor<?x3xf32>) -> tensor<3xf32>
  return %0, %1 : tensor<?xf32>, tensor<3xf32>
}

//--- nothing at all, and then something
// in: f32[0x4]
// in: f32[1] -3
// out: f32[0x4]
// out: f32[1] 3
func.func @f(%x: tensor<?x4xf32>, %y: tensor<1xf32>) -> (tensor<?x4xf32>, tensor<1xf32>) {
  %0 = quern.relu %x : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %1 = quern.abs %y : (tensor<1xf32>) -> tensor<1xf32>
  return %0, %1 : tensor<?x4xf32>, tensor<1xf32>
}

//--- a view that starts at an odd element
// in: f16[3] 1 2 3
// out: f16[2] 4 6
func.func @f(%x: tensor<3xf16>) -> tensor<2xf16> {
  %two = arith.constant dense<2.0> : tensor<f16>
  %0 = quern.slice %x {start = #quern.dim<1>, end = #quern.dim<3>} : (tensor<3xf16>) -> tensor<2xf16>
  %1 = quern.mul %0, %two : (tensor<2xf16>, tensor<f16>) -> tensor<2xf16>
  return %1 : tensor<2xf16>
}

//--- a size that 64 bits do not hold
// in: i8[4x1] 1
// error: expand_result: expected dims [B, 4611686018427387904*B] of i8 to be at least 0 and to fit 64 bits, got B = 4
func.func @f(%x: tensor<?x1xi8, #quern.dims<B>>) -> tensor<?x?xi8> {
  %0 = quern.expand %x {size = #quern.dims<B, 4611686018427387904*B>} : (tensor<?x1xi8, #quern.dims<B>>) -> tensor<?x?xi8>
  return %0 : tensor<?x?xi8>
}

//--- nothing of that size is a tensor without elements
// in: i8[0x1]
// out: i8[0x0]
func.func @f(%x: tensor<?x1xi8, #quern.dims<B>>) -> tensor<?x?xi8> {
  %0 = quern.expand %x {size = #quern.dims<B, 4611686018427387904*B>} : (tensor<?x1xi8, #quern.dims<B>>) -> tensor<?x?xi8>
  return %0 : tensor<?x?xi8>
}

//--- more bytes than there are addresses, in a value that is never stored
// in: f32[4096x1] 1
// error: expand_result: expected dims [B, 1073741824*B*B] of f32 to take at most 281474976710656 bytes, got B = 4096
func.func @f(%x: tensor<?x1xf32, #quern.dims<B>>) -> tensor<?xf32> {
  %0 = quern.expand %x {size = #quern.dims<B, 1073741824*B*B>} : (tensor<?x1xf32, #quern.dims<B>>) -> tensor<?x?xf32>
  %1 = quern.sum %0 {dim = array<i64: 1>} : (tensor<?x?xf32>) -> tensor<?xf32>
  return %1 : tensor<?xf32>
}

//--- a size divided by zero
// in: f32[1] 1
// in: f32[3] 1
// error: expand_result: expected dims [floordiv(9, B - 3)] of f32 to be at least 0 and to fit 64 bits, got B = 3
func.func @f(%x: tensor<1xf32>, %y: tensor<?xf32, #quern.dims<B>>) -> tensor<?xf32> {
  %0 = quern.expand %x {size = #quern.dims<floordiv(9, B - 3)>} : (tensor<1xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

//--- an argument whose size is divided by a negative number
// in: f32[2x1] 1
// error: expected dim 1 to be floordiv(B, B - 3)
func.func @f(%x: tensor<?x?xf32, #quern.dims<B, floordiv(B, B - 3)>>) -> tensor<?x?xf32> {
  %0 = quern.exp %x : (tensor<?x?xf32, #quern.dims<B, floordiv(B, B - 3)>>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}
