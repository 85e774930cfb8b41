// RUN: quern-opt %s --quern-lower-dims --split-input-file | FileCheck %s

// Each symbol is read where it is bound, once.
// CHECK-LABEL: func.func @arguments
// CHECK-DAG: %[[S:.*]] = tensor.dim %arg0, %{{.*}} : tensor<?x4x?xf32, #quern.dims<B, S>>
// CHECK-DAG: %[[B:.*]] = tensor.dim %arg0
// CHECK: %[[P:.*]] = arith.muli %[[B]], %[[S]]
// CHECK: %[[SUM:.*]] = arith.addi %[[P]], %{{.*}}
// CHECK: %[[HALF:.*]] = arith.divui
// CHECK: return %[[SUM]], %[[HALF]]
// CHECK-NOT: kernel.dim
func.func @arguments(%a: tensor<?x4x?xf32, #quern.dims<B, S>>, %b: tensor<?xf32, #quern.dims<B>>) -> (index, index) {
  %0 = kernel.dim #quern.dim<B*S + 1>
  %1 = kernel.dim #quern.dim<floordiv(S, 2)>
  return %0, %1 : index, index
}

// -----

// CHECK-LABEL: func.func @bound
// CHECK: %[[CONCAT:.*]] = tensor.concat
// CHECK: tensor.dim %[[CONCAT]]
func.func @bound(%a: tensor<?xf32>) -> index {
  %0 = tensor.concat dim(0) %a, %a : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  %1 = kernel.bind_dims %0 : tensor<?xf32> to tensor<?xf32, #quern.dims<T>>
  %2 = kernel.dim #quern.dim<T>
  return %2 : index
}
