// RUN: quern-opt %s --quern-simplify | FileCheck %s

// Equal ops once, dead ops never.
// CHECK-LABEL: @cse
// CHECK: %[[E:.*]] = quern.exp %arg0
// CHECK-NEXT: %[[M:.*]] = quern.mul %[[E]], %[[E]]
// CHECK-NEXT: return %[[M]]
func.func @cse(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = quern.exp %x : (tensor<2xf32>) -> tensor<2xf32>
  %1 = quern.exp %x : (tensor<2xf32>) -> tensor<2xf32>
  %dead = quern.tanh %1 : (tensor<2xf32>) -> tensor<2xf32>
  %2 = quern.mul %0, %1 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %2 : tensor<2xf32>
}

// Constants are folded by the scalar bodies, with broadcasting, to any depth.
// CHECK-LABEL: @constants
// CHECK{LITERAL}: dense<[[3.300000e+01, 4.400000e+01], [3.600000e+01, 4.800000e+01]]>
// CHECK-NEXT: return
func.func @constants() -> tensor<2x2xf32> {
  %a = arith.constant dense<[[1.0], [2.0]]> : tensor<2x1xf32>
  %b = arith.constant dense<[3.0, 4.0]> : tensor<2xf32>
  %c = arith.constant dense<10.0> : tensor<f32>
  %0 = quern.add %a, %c : (tensor<2x1xf32>, tensor<f32>) -> tensor<2x1xf32>
  %1 = quern.mul %0, %b : (tensor<2x1xf32>, tensor<2xf32>) -> tensor<2x2xf32>
  return %1 : tensor<2x2xf32>
}

// Unsigned division is unsigned, and division by zero gives all bits.
// CHECK-LABEL: @integers
// CHECK: dense<[127, 255]> : tensor<2xui8>
func.func @integers() -> tensor<2xui8> {
  %a = arith.constant dense<[254, 7]> : tensor<2xui8>
  %b = arith.constant dense<[2, 0]> : tensor<2xui8>
  %0 = quern.div %a, %b : (tensor<2xui8>, tensor<2xui8>) -> tensor<2xui8>
  return %0 : tensor<2xui8>
}

// A destination that is given must be written.
// CHECK-LABEL: @into
// CHECK: quern.add {{.*}} into %arg0
func.func @into(%d: tensor<2xf32>) -> tensor<2xf32> {
  %a = arith.constant dense<1.0> : tensor<2xf32>
  %0 = quern.add %a, %a into %d : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
