// RUN: quern-opt %s --quern-inplace --quern-report -split-input-file 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=WHY --input-file=%t

// CHECK-LABEL: @chain
// CHECK: %[[A:.*]] = quern.exp %arg0 :
// CHECK: %[[B:.*]] = quern.tanh %[[A]] into %[[A]]
// CHECK: %[[C:.*]] = quern.mul %[[B]], %[[B]] :
// CHECK: %[[D:.*]] = quern.add %[[C]], %[[B]] into %[[C]]
// CHECK: quern.sub %[[D]], %arg1 into %[[D]]
// WHY: remark: {{.*}}: not in place; self: the argument is not donated
// WHY: remark: {{.*}}: in place: result into self
// WHY: remark: {{.*}}: not in place; self: it is still live; other: it is still live
// WHY: remark: {{.*}}: in place: result into self
// WHY: remark: {{.*}}: in place: result into self
func.func @chain(%x: tensor<2x4xf32>, %row: tensor<4xf32>) -> tensor<2x4xf32> {
  %0 = quern.exp %x : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %1 = quern.tanh %0 : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %2 = quern.mul %1, %1 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %3 = quern.add %2, %1 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %4 = quern.sub %3, %row : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  return %4 : tensor<2x4xf32>
}

// -----

// A donated argument serves intermediate values; what is returned has a buffer of its own.
// CHECK-LABEL: @donated
// CHECK: %[[A:.*]] = quern.exp %arg0 into %arg0
// CHECK: quern.neg %[[A]] :
// WHY: remark: {{.*}}: in place: result into self
// WHY: remark: {{.*}}: not in place; self: the result is returned in a buffer of its own
func.func @donated(%x: tensor<2xf32> {quern.donated}) -> tensor<2xf32> {
  %0 = quern.exp %x : (tensor<2xf32>) -> tensor<2xf32>
  %1 = quern.neg %0 : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// -----

// The result belongs in argument 0: an update in place.
// CHECK-LABEL: @promised
// CHECK: %[[G:.*]] = quern.exp %arg1 :
// CHECK: quern.sub %arg0, %[[G]] into %arg0
// WHY: remark: {{.*}}: not in place; self: the argument is not donated
// WHY: remark: {{.*}}: in place: result into self
func.func @promised(%p: tensor<2xf32>, %g: tensor<2xf32>) -> (tensor<2xf32> {quern.into = 0 : i64}) {
  %0 = quern.exp %g : (tensor<2xf32>) -> tensor<2xf32>
  %1 = quern.sub %p, %0 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// -----

// A broadcast operand has another type; a constant stays.
// CHECK-LABEL: @refused
// CHECK-NOT: into
// WHY: remark: {{.*}}: not in place; self: it is a constant
// WHY: remark: {{.*}}: not in place; self: it has another type; other: it is a constant
func.func @refused(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<2x4xf32>) {
  %c = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %w = arith.constant dense<1.0> : tensor<2x4xf32>
  %0 = quern.exp %c : (tensor<4xf32>) -> tensor<4xf32>
  %1 = quern.add %0, %w : (tensor<4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %0, %1 : tensor<4xf32>, tensor<2x4xf32>
}

// -----

// Sizes without names are not known to be equal.
// CHECK-LABEL: @unnamed
// CHECK: quern.neg %{{.*}} :
// WHY-COUNT-2: remark: {{.*}}: not in place; self: its sizes have no names
func.func @unnamed(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = quern.exp %x : (tensor<?xf32>) -> tensor<?xf32>
  %1 = quern.neg %0 : (tensor<?xf32>) -> tensor<?xf32>
  return %1 : tensor<?xf32>
}
