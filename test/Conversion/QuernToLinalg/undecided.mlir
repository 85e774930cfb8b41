// An operand whose broadcast is open until the call is read by its own size; a size of cat is read
// before the loops.
// RUN: quern-opt %s --quern-to-linalg | FileCheck %s

// CHECK-LABEL: func.func @expand
func.func @expand(%x: tensor<?xf32, #quern.dims<A>>, %y: tensor<2x?xf32, #quern.dims<B>>) -> tensor<2x?xf32, #quern.dims<B>> {
  // CHECK: linalg.generic
  // CHECK: %[[J:.*]] = linalg.index 1
  // CHECK: %[[A:.*]] = kernel.dim #quern.dim<A>
  // CHECK: %[[ONE:.*]] = arith.cmpi eq, %[[A]]
  // CHECK: %[[AT:.*]] = arith.select %[[ONE]], %{{.*}}, %[[J]]
  // CHECK: tensor.extract %arg0[%[[AT]]]
  %0 = quern.expand %x {size = #quern.dims<2, B>} : (tensor<?xf32, #quern.dims<A>>) -> tensor<2x?xf32, #quern.dims<B>>
  return %0 : tensor<2x?xf32, #quern.dims<B>>
}

// CHECK-LABEL: func.func @cat
func.func @cat(%x: tensor<?xf32, #quern.dims<A>>, %y: tensor<?xf32, #quern.dims<B>>) -> tensor<?xf32, #quern.dims<A + B>> {
  // CHECK: %[[SIZE:.*]] = kernel.dim #quern.dim<A>
  // CHECK: linalg.generic
  // CHECK: arith.cmpi slt, %{{.*}}, %[[SIZE]]
  // CHECK-NOT: kernel.dim
  // CHECK: return
  %0 = quern.cat [%x, %y] : (tensor<?xf32, #quern.dims<A>>, tensor<?xf32, #quern.dims<B>>) -> tensor<?xf32, #quern.dims<A + B>>
  return %0 : tensor<?xf32, #quern.dims<A + B>>
}
