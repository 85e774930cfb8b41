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
// error: expand_sizes: expected 4611686018427387904*B to fit 64 bits and its divisors to be at least 1, got B = 4
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
// error: expand_sizes: expected floordiv(9, B - 3) to fit 64 bits and its divisors to be at least 1, got B = 3
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

//--- two free sizes that broadcast, and no result that has the size: 1 and 3
// in: f32[1x4] 2
// in: f32[3x4] 1 2 3 4 5 6 7 8 9 10 11 12
// out: f32[] 156
// out: f32[4] 10 12 14 16
// out: f32[] 24
func.func @f(%a: tensor<?x4xf32>, %b: tensor<?x4xf32>) -> (tensor<f32>, tensor<4xf32>, tensor<f32>) {
  %0 = quern.mul %a, %b : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %1 = quern.sum %0 : (tensor<?x4xf32>) -> tensor<f32>
  %2 = quern.mean %0 {dim = array<i64: 0>} : (tensor<?x4xf32>) -> tensor<4xf32>
  %3 = quern.amax %0 : (tensor<?x4xf32>) -> tensor<f32>
  return %1, %2, %3 : tensor<f32>, tensor<4xf32>, tensor<f32>
}

//--- the same: 3 and 1
// in: f32[3x4] 1 2 3 4 5 6 7 8 9 10 11 12
// in: f32[1x4] 2
// out: f32[] 156
func.func @f(%a: tensor<?x4xf32>, %b: tensor<?x4xf32>) -> tensor<f32> {
  %0 = quern.mul %a, %b : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %1 = quern.sum %0 : (tensor<?x4xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}

//--- the same: 1 and 0
// in: f32[1x4] 2
// in: f32[0x4]
// out: f32[] 0
func.func @f(%a: tensor<?x4xf32>, %b: tensor<?x4xf32>) -> tensor<f32> {
  %0 = quern.mul %a, %b : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %1 = quern.sum %0 : (tensor<?x4xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}

//--- a size that only an attribute tells, against one that is 1
// in: f32[1] 2
// in: f32[5] 1
// out: f32[] 10
func.func @f(%b: tensor<?xf32, #quern.dims<B>>, %c: tensor<?xf32, #quern.dims<C>>) -> tensor<f32> {
  %one = quern.full {size = #quern.dims<C>, fill_value = 1.0, dtype = f32} : () -> tensor<?xf32>
  %0 = quern.mul %one, %b : (tensor<?xf32>, tensor<?xf32, #quern.dims<B>>) -> tensor<?xf32>
  %1 = quern.sum %0 : (tensor<?xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}

//--- a value of two sizes that broadcast, used with each of them
// in: f32[1] 1
// in: f32[5] 0 1 2 3 4
// out: f32[5] 1 1 1 1 1
// out: f32[5] 0 1 2 3 4
func.func @f(%b: tensor<?xf32, #quern.dims<B>>, %c: tensor<?xf32, #quern.dims<C>>) -> (tensor<?xf32>, tensor<?xf32>) {
  %one = arith.constant dense<1.0> : tensor<1xf32>
  %e = quern.expand %one {size = #quern.dims<bcast(B, C)>} : (tensor<1xf32>) -> tensor<?xf32>
  %0 = quern.mul %e, %b : (tensor<?xf32>, tensor<?xf32, #quern.dims<B>>) -> tensor<?xf32>
  %1 = quern.mul %e, %c : (tensor<?xf32>, tensor<?xf32, #quern.dims<C>>) -> tensor<?xf32>
  return %0, %1 : tensor<?xf32>, tensor<?xf32>
}

//--- a slice from a size that has no value
// in: i8[8] 1
// in: i8[1] 1
// error: slice_sizes: expected min(4, floordiv(9, B - 3)) + 4 to fit 64 bits and its divisors to be at least 1, got B = 1
func.func @f(%x: tensor<8xi8>, %y: tensor<?xi8, #quern.dims<B>>) -> tensor<4xi8> {
  %0 = quern.slice %x {start = #quern.dim<min(4, floordiv(9, B - 3))>, end = #quern.dim<min(4, floordiv(9, B - 3)) + 4>} : (tensor<8xi8>) -> tensor<4xi8>
  return %0 : tensor<4xi8>
}

//--- a size that overflows as a value
// in: i8[4] 1
// error: dim_value_sizes: expected 4611686018427387904*B to fit 64 bits
func.func @f(%y: tensor<?xi8, #quern.dims<B>>) -> tensor<i64> {
  %0 = quern.dim_value {value = #quern.dim<4611686018427387904*B>, dtype = i64} : () -> tensor<i64>
  return %0 : tensor<i64>
}
