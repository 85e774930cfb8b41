// RUN: quern-opt %s --quern-fuse | FileCheck %s
// RUN: quern-opt %s --quern-fuse --quern-report 2>&1 | FileCheck %s --check-prefix=WHY

!t = tensor<?x16xf32, #quern.dims<B>>
!r = tensor<?x1xf32, #quern.dims<B>>
!c = tensor<16xf32>
!s = tensor<2x1x?xf32, #quern.dims<A>>

// Pointwise ops around reductions over the same rows: one kernel; what is read again in the last
// pass may still be overwritten by it.
// CHECK-LABEL: func.func @rows
// CHECK: kernel.launch @k_exp_softmax_sum_mul_and_1
// CHECK-SAME: share [0, 0]
// CHECK-NEXT: return
// WHY: remark: 'kernel.launch' @k_exp_softmax_sum_mul_and_1 {{'tensor.*'}}: 5 ops, reads 64*B and writes 64*B bytes
func.func @rows(%x: !t) -> !t {
  %0 = quern.exp %x : (!t) -> !t
  %1 = quern.softmax %0 {dim = -1 : i64} : (!t) -> !t
  %2 = quern.sum %1 {dim = array<i64: 1>, keepdim = true} : (!t) -> !r
  %3 = quern.mul %0, %1 : (!t, !t) -> !t
  %4 = quern.sub %3, %2 : (!t, !r) -> !t
  return %4 : !t
}

// Other rows are another kernel: the sum is over columns.
// CHECK-LABEL: func.func @columns
// CHECK: kernel.launch @k_softmax ins
// CHECK: kernel.launch @k_sum ins
// WHY: remark: 'kernel.launch' @k_sum {{'tensor.*'}}: 1 op, reads 64*B and writes 64 bytes; not fused with quern.softmax: the rows are not the same
func.func @columns(%x: !t) -> !c {
  %0 = quern.softmax %x {dim = -1 : i64} : (!t) -> !t
  %1 = quern.sum %0 {dim = array<i64: 0>} : (!t) -> !c
  return %1 : !c
}

// A row's sum without its dim is read as a column: not what was made, although sizes agree.
// CHECK-LABEL: func.func @square
// CHECK: kernel.launch @k_sum_0 ins
// CHECK: kernel.launch @k_sub ins
// WHY: not fused with quern.sum: it is read at other indices than it is made at, or may broadcast
func.func @square(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = quern.sum %x {dim = array<i64: 1>} : (tensor<4x4xf32>) -> tensor<4xf32>
  %1 = quern.sub %x, %0 : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}

// Bias, activation and residual on a product; the transposed operand is read where it is. The
// residual may be overwritten, the factors not.
// CHECK-LABEL: func.func @product
// CHECK: kernel.launch @k_mm_add_relu_add ins(%arg0, %arg1, %arg2, %arg3
// CHECK-SAME: share [0, 3]
// CHECK-NEXT: return
func.func @product(%x: tensor<8x16xf32>, %w: tensor<32x16xf32>, %b: tensor<32xf32>, %r: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %0 = quern.permute %w {dims = array<i64: 1, 0>} : (tensor<32x16xf32>) -> tensor<16x32xf32>
  %1 = quern.mm %x, %0 : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
  %2 = quern.add %1, %b : (tensor<8x32xf32>, tensor<32xf32>) -> tensor<8x32xf32>
  %3 = quern.relu %2 : (tensor<8x32xf32>) -> tensor<8x32xf32>
  %4 = quern.add %3, %r : (tensor<8x32xf32>, tensor<8x32xf32>) -> tensor<8x32xf32>
  return %4 : tensor<8x32xf32>
}

// A result that only another kernel reads is made there, from what is written anyway.
// CHECK-LABEL: func.func @sink
// CHECK: kernel.launch @k_mm_tanh ins
// CHECK: kernel.launch @k_mul_mm_mul ins
// CHECK-NEXT: return
func.func @sink(%x: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = quern.mm %x, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = quern.tanh %0 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = quern.mul %1, %1 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = quern.mm %1, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %4 = quern.mul %3, %2 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1, %4 : tensor<8x8xf32>, tensor<8x8xf32>
}

// The same elements in the same order: a view of the buffer.
// CHECK-LABEL: func.func @view
// CHECK: %[[E:.*]] = kernel.launch @k_exp
// CHECK: %[[N:.*]] = kernel.dim #quern.dim<16*B>
// CHECK: kernel.view %[[E]] sizes(%[[N]])
func.func @view(%x: !t) -> tensor<?xf32, #quern.dims<16*B>> {
  %0 = quern.exp %x : (!t) -> !t
  %1 = quern.view %0 {size = #quern.dims<16*B>} : (!t) -> tensor<?xf32, #quern.dims<16*B>>
  return %1 : tensor<?xf32, #quern.dims<16*B>>
}

// Sizes that only an attribute has come in with a tensor that has them.
// CHECK-LABEL: func.func @sizes
// CHECK: kernel.launch @k_dim_value ins(%arg0 : tensor<?x16xf32, #quern.dims<B>>)
func.func @sizes(%x: !t) -> tensor<f32> {
  %0 = quern.dim_value {value = #quern.dim<3*B>, dtype = f32} : () -> tensor<f32>
  return %0 : tensor<f32>
}

// A row's sum may overwrite what only it and the sum read, but not what the elements of another
// result read as well: they may be computed by others (which is the row of the square is not even
// in the types).
// CHECK-LABEL: func.func @elements
// CHECK: kernel.launch @k_mul_sum_add ins
// CHECK-NOT: share
// CHECK: return
// CHECK-LABEL: func.func @sums
// CHECK: kernel.launch @k_mul_sum_add_{{[0-9]+}} ins
// CHECK-SAME: share [0, 1]
func.func @elements(%x: tensor<2x?x?xf32, #quern.dims<A, A>>, %s: !s) -> (tensor<2x?x?xf32, #quern.dims<A, A>>, !s) {
  %0 = quern.mul %x, %s : (tensor<2x?x?xf32, #quern.dims<A, A>>, !s) -> tensor<2x?x?xf32, #quern.dims<A, A>>
  %1 = quern.sum %0 {dim = array<i64: 1>, keepdim = true} : (tensor<2x?x?xf32, #quern.dims<A, A>>) -> !s
  %2 = quern.add %1, %s : (!s, !s) -> !s
  return %0, %2 : tensor<2x?x?xf32, #quern.dims<A, A>>, !s
}
func.func @sums(%x: tensor<2x?x?xf32, #quern.dims<A, A>>, %s: !s) -> !s {
  %0 = quern.mul %x, %s : (tensor<2x?x?xf32, #quern.dims<A, A>>, !s) -> tensor<2x?x?xf32, #quern.dims<A, A>>
  %1 = quern.sum %0 {dim = array<i64: 1>, keepdim = true} : (tensor<2x?x?xf32, #quern.dims<A, A>>) -> !s
  %2 = quern.add %1, %s : (!s, !s) -> !s
  return %2 : !s
}

// Results of different sizes, each over operands that the other reads in the sum only.
// CHECK-LABEL: func.func @both
// CHECK: kernel.launch @k_mul_sum_add_sub ins
// CHECK-SAME: share [0, 2, 1, 0, 1, 1]
func.func @both(%x: !t, %y: !t, %s: !r) -> (!r, !t) {
  %0 = quern.mul %x, %y : (!t, !t) -> !t
  %1 = quern.sum %0 {dim = array<i64: 1>, keepdim = true} : (!t) -> !r
  %2 = quern.add %1, %s : (!r, !r) -> !r
  %3 = quern.sub %0, %1 : (!t, !r) -> !t
  return %2, %3 : !r, !t
}

// CHECK: kernel.func @k_exp_softmax_sum_mul_and_1 kind "row_reduction"
// CHECK: kernel.func @k_sum kind "column_reduction"
// CHECK: kernel.func @k_mm_add_relu_add kind "contraction" share [0, 3]
// CHECK: kernel.func @k_dim_value
// CHECK: quern.dim_value {dtype = f32, value = #quern.dim<3*d0>}
