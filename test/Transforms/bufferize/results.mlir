// RUN: quern-opt %s --quern-fuse --quern-inplace --quern-bufferize --quern-verify-stage=stage=bufferized --quern-report 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=WHY --input-file=%t

// An update in place, named results, a donated argument.
// CHECK-LABEL: func.func @step(
// CHECK-SAME: %arg0: memref<4xf32> {quern.donated, quern.result = 0 : i64}, %arg1: memref<4xf32>,
// CHECK-SAME: %arg2: memref<4xf32> {quern.out, quern.result = 1 : i64}) attributes {{.*}}quern.result_names = ["w", "loss"]} {
// CHECK-NEXT: kernel.launch @k_tanh_sub ins(%arg1, %arg0 : memref<4xf32>, memref<4xf32>) outs(%arg2, %arg0 : memref<4xf32>, memref<4xf32>)
// CHECK-SAME: {quern.bound = array<i64: 1, 1>}
// CHECK-NEXT: return
func.func @step(%w: tensor<4xf32> {quern.donated}, %g: tensor<4xf32>)
    -> (tensor<4xf32> {quern.into = 0 : i64, quern.name = "w"}, tensor<4xf32> {quern.name = "loss"}) {
  %0 = quern.tanh %g : (tensor<4xf32>) -> tensor<4xf32>
  %1 = quern.sub %w, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1, %0 : tensor<4xf32>, tensor<4xf32>
}

// What is no fresh buffer is copied: an argument, a value returned twice, a constant.
// CHECK-LABEL: func.func @copies(
// CHECK-SAME: %arg1: memref<2xf32> {quern.out, quern.result = 0 : i64}, %arg2: {{.*}}result = 1 : i64}, %arg3: {{.*}}result = 2 : i64}, %arg4: {{.*}}result = 3 : i64}, %arg5: memref<2xf32> {quern.constant = dense<[1.000000e+00, 2.000000e+00]>
// CHECK: kernel.launch @k_exp ins(%arg0 : memref<2xf32>) outs(%arg2 :
// CHECK: kernel.launch @[[COPY:k_copy_2_f32]] ins(%arg0 : memref<2xf32>) outs(%arg1 :
// CHECK: kernel.launch @[[COPY]] ins(%arg2 : memref<2xf32>) outs(%arg3 :
// CHECK: kernel.launch @[[COPY]] ins(%arg5 : memref<2xf32>) outs(%arg4 :
// CHECK-NEXT: return
// WHY: remark: 'func.func' @{{.*}}: result 0 is copied to its buffer at the end
// WHY: remark: 'func.func' @{{.*}}: result 2 is copied to its buffer at the end
// WHY: remark: 'func.func' @{{.*}}: result 3 is copied to its buffer at the end
func.func @copies(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %c = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %0 = quern.exp %x : (tensor<2xf32>) -> tensor<2xf32>
  return %x, %0, %0, %c : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}

// Two arguments change places: one old value is kept aside.
// CHECK-LABEL: func.func @swap(
// CHECK: %[[KEPT:.*]] = memref.alloc
// CHECK: kernel.launch @[[COPY]] ins(%arg0 : memref<2xf32>) outs(%[[KEPT]]
// CHECK: kernel.launch @[[COPY]] ins(%arg1 : memref<2xf32>) outs(%arg0
// CHECK: kernel.launch @[[COPY]] ins(%[[KEPT]] : memref<2xf32>) outs(%arg1
// CHECK-NEXT: return
func.func @swap(%a: tensor<2xf32>, %b: tensor<2xf32>)
    -> (tensor<2xf32> {quern.into = 0 : i64}, tensor<2xf32> {quern.into = 1 : i64}) {
  return %b, %a : tensor<2xf32>, tensor<2xf32>
}

// A destination whose old content is needed: written elsewhere, with the right result.
// CHECK-LABEL: func.func @conflict(
// CHECK: kernel.launch @k_exp ins(%arg0 : memref<2xf32>) outs(%arg1 :
// CHECK: kernel.launch @k_neg ins(%arg0 : memref<2xf32>) outs(%arg2 :
// WHY: remark: 'kernel.launch' @{{.*}}: out 0 is not written to its destination, whose content is needed
func.func @conflict(%x: tensor<2xf32> {quern.donated}) -> (tensor<2xf32>, tensor<2xf32>) {
  %0 = quern.exp %x into %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = quern.neg %x : (tensor<2xf32>) -> tensor<2xf32>
  return %0, %1 : tensor<2xf32>, tensor<2xf32>
}

// A promise that the kernel cannot keep, for it reads the argument at other indices: copied at the end.
// CHECK-LABEL: func.func @product(
// CHECK: %[[NEW:.*]] = memref.alloc
// CHECK: kernel.launch @k_mm ins(%arg0, %arg1 :{{.*}} outs(%[[NEW]]
// CHECK-NEXT: kernel.launch @{{.*}} ins(%[[NEW]] :{{.*}} outs(%arg0 :
// CHECK-NEXT: return
func.func @product(%a: tensor<2x2xf32>, %b: tensor<2x2xf32>) -> (tensor<2x2xf32> {quern.into = 0 : i64}) {
  %0 = quern.mm %a, %b : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}

// The same of an argument that is read after the result is computed.
// CHECK-LABEL: func.func @late(
// CHECK: %[[NEW:.*]] = memref.alloc
// CHECK: kernel.launch @{{.*}} ins(%arg0 : memref<2x2xf32>) outs(%[[NEW]]
// CHECK: kernel.launch @{{.*}} ins(%[[NEW]], %arg0 :{{.*}} outs(%arg1 :
// CHECK: kernel.launch @{{.*}} ins(%[[NEW]] : memref<2x2xf32>) outs(%arg0
// CHECK-NEXT: return
func.func @late(%x: tensor<2x2xf32>) -> (tensor<2x2xf32> {quern.into = 0 : i64}, tensor<2x2xf32>) {
  %0 = quern.exp %x : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = quern.mm %0, %x : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %0, %1 : tensor<2x2xf32>, tensor<2x2xf32>
}

// CHECK: kernel.func @[[COPY]] kind "pointwise" share [0, 0]
