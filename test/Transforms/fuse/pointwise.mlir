// RUN: quern-opt %s --quern-fuse | FileCheck %s
// RUN: quern-opt %s --quern-fuse=fuse=false | FileCheck %s --check-prefix=EACH
// RUN: quern-opt %s --quern-fuse --quern-report 2>&1 | FileCheck %s --check-prefix=WHY

!t = tensor<?x4xf32, #quern.dims<B>>
!u = tensor<?x4xf32, #quern.dims<2*B>>
!v = tensor<?x4xf32, #quern.dims<C>>
!r = tensor<?x4xf32, #quern.dims<bcast(B, C)>>

// One kernel for the chain. The number is made inside, the table is an argument.
// CHECK-LABEL: func.func @chain
// CHECK-SAME: %arg3: tensor<4xf32> {quern.constant = dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]> : tensor<4xf32>}
// CHECK: kernel.launch @k_mul_exp_add_mul_and_1 ins(%arg0, %arg1, %arg3 :
// CHECK-SAME: share [0, 0, 0, 1]
// CHECK: kernel.launch @[[EXP:k_exp]] ins(%arg2
// CHECK: return
// EACH-LABEL: func.func @chain
// EACH-COUNT-6: kernel.launch
// WHY: remark: 'kernel.launch' @k_mul_exp_add_mul_and_1 'tensor<?x4xf32, #quern.dims<B>>': 5 ops, reads 32*B + 16 and writes 16*B bytes
func.func @chain(%x: !t, %w: !t, %y: !u) -> (!t, !u) {
  %c = arith.constant dense<2.0> : tensor<f32>
  %k = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %0 = quern.mul %x, %w : (!t, !t) -> !t
  %1 = quern.exp %0 : (!t) -> !t
  %2 = quern.add %1, %x : (!t, !t) -> !t
  %4 = quern.mul %2, %c : (!t, tensor<f32>) -> !t
  %5 = quern.mul %4, %k : (!t, tensor<4xf32>) -> !t
  %3 = quern.exp %y : (!u) -> !u
  return %5, %3 : !t, !u
}

// A broadcast that is decided at run time: strided arguments, and no fusion through it. The
// kernel for rows of B serves rows of 2*B as well.
// CHECK-LABEL: func.func @undecided
// CHECK: kernel.launch @[[EXP]] ins(%arg0
// CHECK: kernel.launch @k_add_exp ins(
// CHECK-NOT: share
// CHECK: return
// WHY: remark: 'kernel.launch' @k_add_exp 'tensor<{{.*}}>': 2 ops, reads 16*B + 16*C and writes 16*bcast(B, C) bytes; not fused with quern.exp: the loops are not the same
func.func @undecided(%x: !t, %y: !v) -> (!r, !t) {
  %1 = quern.exp %x : (!t) -> !t
  %2 = quern.add %1, %y : (!t, !v) -> !r
  %3 = quern.exp %2 : (!r) -> !r
  return %3, %1 : !r, !t
}

// A value that another kernel needs first: what follows that kernel cannot join.
// CHECK-LABEL: func.func @between
// CHECK: %[[A:.*]]:2 = kernel.launch @k_exp_neg
// CHECK: %[[B:.*]] = kernel.launch @k_add ins(%[[A]]#0, %arg1
// CHECK: return %[[A]]#1, %[[B]]
func.func @between(%x: tensor<4xf32>, %y: tensor<2x4xf32>) -> (tensor<4xf32>, tensor<2x4xf32>) {
  %0 = quern.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = quern.add %0, %y : (tensor<4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %2 = quern.neg %0 : (tensor<4xf32>) -> tensor<4xf32>
  return %2, %1 : tensor<4xf32>, tensor<2x4xf32>
}

// A destination is the launch's out.
// CHECK-LABEL: func.func @into
// CHECK: kernel.launch @[[EXP2:.*]] ins(%arg0 : tensor<4xf32>) outs(%arg0 : tensor<4xf32>)
func.func @into(%x: tensor<4xf32> {quern.donated}) -> tensor<4xf32> {
  %0 = quern.tanh %x into %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK: kernel.func @k_mul_exp_add_mul_and_1 kind "pointwise" share [0, 0, 0, 1] {
// CHECK-NEXT: ^bb0(%{{.*}}: tensor<?x4xf32, #quern.dims<d0>>, %{{.*}}: tensor<?x4xf32, #quern.dims<d0>>, %{{.*}}: tensor<4xf32>, %{{.*}}: tensor<?x4xf32, #quern.dims<d0>>):
// CHECK: arith.constant dense<2.000000e+00> : tensor<f32>
// CHECK: kernel.func @[[EXP]] kind "pointwise" share [0, 0]
// CHECK: kernel.func @k_add_exp kind "pointwise" strided [0, 1] {
