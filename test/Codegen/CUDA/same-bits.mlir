// The order of a sum follows from its op (docs/numerics.md), whatever the target, the width of its
// vectors and what it is fused with: the same bits.
// RUN: mkdir -p %t/cpu %t/cuda
// RUN: quern-run %s --no-cache --random-inputs=5 --quiet --save=%t/cpu
// RUN: quern-run %s --no-cache --random-inputs=5 --quiet --save=%t/cuda --target=cuda-emulated
// RUN: diff -r %t/cpu %t/cuda
// RUN: ls %t/cuda | FileCheck %s
// CHECK: npy
func.func @main(%a: tensor<5x1000xf32>, %b: tensor<3x4x67xf32>, %c: tensor<2x130xf64>, %d: tensor<70x9xf32>,
                %e: tensor<4x300xf16>)
    -> (tensor<5xf32>, tensor<3x1x1xf32>, tensor<2xf64>, tensor<9xf32>, tensor<4xf16>, tensor<4xf32>,
        tensor<3x67xf32>, tensor<f32>, tensor<3x4x67xf32>, tensor<67xf32>) {
  // Rows; over two dims; other types.
  %0 = quern.sum %a {dim = array<i64: 1>} : (tensor<5x1000xf32>) -> tensor<5xf32>
  %1 = quern.sum %b {dim = array<i64: 1, 2>, keepdim = true} : (tensor<3x4x67xf32>) -> tensor<3x1x1xf32>
  %2 = quern.sum %c {dim = array<i64: 1>} : (tensor<2x130xf64>) -> tensor<2xf64>
  %4 = quern.sum %e {dim = array<i64: 1>} : (tensor<4x300xf16>) -> tensor<4xf16>
  // Columns; a dim between; everything.
  %3 = quern.sum %d {dim = array<i64: 0>} : (tensor<70x9xf32>) -> tensor<9xf32>
  %6 = quern.sum %b {dim = array<i64: 1>} : (tensor<3x4x67xf32>) -> tensor<3x67xf32>
  %7 = quern.sum %d {dim = array<i64: 0, 1>} : (tensor<70x9xf32>) -> tensor<f32>
  // Parts that do not lie together, and a result that has their columns.
  %5 = quern.sum %b {dim = array<i64: 0, 2>} : (tensor<3x4x67xf32>) -> tensor<4xf32>
  %8 = quern.sum %b {dim = array<i64: 0, 2>, keepdim = true} : (tensor<3x4x67xf32>) -> tensor<1x4x1xf32>
  %9 = quern.sub %b, %8 : (tensor<3x4x67xf32>, tensor<1x4x1xf32>) -> tensor<3x4x67xf32>
  // A sum of sums.
  %10 = quern.sum %9 {dim = array<i64: 0, 1>} : (tensor<3x4x67xf32>) -> tensor<67xf32>
  return %0, %1, %2, %3, %4, %5, %6, %7, %9, %10 : tensor<5xf32>, tensor<3x1x1xf32>, tensor<2xf64>, tensor<9xf32>,
      tensor<4xf16>, tensor<4xf32>, tensor<3x67xf32>, tensor<f32>, tensor<3x4x67xf32>, tensor<67xf32>
}
