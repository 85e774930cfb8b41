// A slice from 0 reads a part of its operand: the loops are the result's.
// RUN: quern-opt %s --quern-propagate-shapes --quern-fuse --quern-to-linalg --quern-schedule-cpu | FileCheck %s

// CHECK: func.func @k_slice(
// CHECK-NOT: arith.constant 125
// CHECK: arith.constant 3 : i64
// CHECK-NOT: arith.constant 125
func.func @f(%x: tensor<5x5x5xi32>) -> tensor<3x5x5xi32> {
  %0 = quern.slice %x {end = #quern.dim<3>} : (tensor<5x5x5xi32>) -> tensor<3x5x5xi32>
  return %0 : tensor<3x5x5xi32>
}
