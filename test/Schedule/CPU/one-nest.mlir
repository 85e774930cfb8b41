// RUN: quern-compile %s --cpu=x86-64-v3 --emit=mlir-scheduled --no-cache -o - | FileCheck %s --implicit-check-not=malloc

// Ops that reduce rows are one nest: nothing of a row's size or more between its parts. Results
// of one element a row, wanted or not, are part of it.
// CHECK: // {{.*}}layer_norm
// CHECK: func.func @row_reduction_
func.func @layer_norm(%x: tensor<64x768xf32>, %w: tensor<768xf32>, %b: tensor<768xf32>) -> tensor<64x768xf32> {
  %0:3 = quern.layer_norm %x, %w, %b {normalized_shape = #quern.dims<768>} : (tensor<64x768xf32>, tensor<768xf32>, tensor<768xf32>) -> (tensor<64x768xf32>, tensor<64x1xf32>, tensor<64x1xf32>)
  return %0#0 : tensor<64x768xf32>
}

// CHECK: // {{.*}}layer_norm
// CHECK: func.func @row_reduction_
func.func @layer_norm_for_training(%x: tensor<65x768xf32>, %w: tensor<768xf32>, %b: tensor<768xf32>) -> (tensor<65x768xf32>, tensor<65x1xf32>, tensor<65x1xf32>) {
  %0:3 = quern.layer_norm %x, %w, %b {normalized_shape = #quern.dims<768>} : (tensor<65x768xf32>, tensor<768xf32>, tensor<768xf32>) -> (tensor<65x768xf32>, tensor<65x1xf32>, tensor<65x1xf32>)
  return %0#0, %0#1, %0#2 : tensor<65x768xf32>, tensor<65x1xf32>, tensor<65x1xf32>
}

// A convolution is a product: sums and a panel of windows on the stack, multiply-adds of
// a vector of output positions with one number of the weight.
// CHECK: // {{.*}}convolution
// CHECK: func.func @convolution_
// CHECK-COUNT-2: llvm.alloca
// CHECK: math.fma {{.*}} : vector<8xf32>
func.func @convolution(%x: tensor<2x16x64x1xf32>, %w: tensor<32x16x5x1xf32>) -> tensor<2x32x60x1xf32> {
  %0 = quern.convolution %x, %w, _ {dilation = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>} : (tensor<2x16x64x1xf32>, tensor<32x16x5x1xf32>) -> tensor<2x32x60x1xf32>
  return %0 : tensor<2x32x60x1xf32>
}
