// RUN: quern-opt %s --quern-propagate-shapes --split-input-file | FileCheck %s
// RUN: quern-opt %s --pass-pipeline='builtin.module(quern-propagate-shapes,func.func(quern-verify-stage{stage=named}))' --split-input-file -o %t
// RUN: quern-opt %t --quern-propagate-shapes --split-input-file | diff %t -

// Two calls of one function with different sizes: the callee's signature stays
// plain, each call's result has the sizes that this call passes.

// CHECK-LABEL: func.func @two_calls
// CHECK: %[[X:.*]] = call @callee
// CHECK: kernel.refine %[[X]] : tensor<?x?xf32> to tensor<?x?xf32, #quern.dims<B, S>>
// CHECK: %[[Y:.*]] = call @callee
// CHECK: kernel.refine %[[Y]] : tensor<?x?xf32> to tensor<?x7xf32, #quern.dims<2*B + 1>>
// CHECK: return {{.*}} : tensor<?x?xf32, #quern.dims<B, S>>, tensor<?x7xf32, #quern.dims<2*B + 1>>
func.func @two_calls(%a: tensor<?x?xf32, #quern.dims<B, S>>, %b: tensor<?x7xf32, #quern.dims<2*B+1>>)
    -> (tensor<?x?xf32>, tensor<?x?xf32>) {
  %0 = kernel.refine %a : tensor<?x?xf32, #quern.dims<B, S>> to tensor<?x?xf32>
  %1 = kernel.refine %b : tensor<?x7xf32, #quern.dims<2*B+1>> to tensor<?x?xf32>
  %2 = call @callee(%0) : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %3 = call @callee(%1) : (tensor<?x?xf32>) -> tensor<?x?xf32>
  return %2, %3 : tensor<?x?xf32>, tensor<?x?xf32>
}
// CHECK-LABEL: func.func private @callee(%arg0: tensor<?x?xf32>) -> tensor<?x?xf32>
// CHECK: kernel.bind_dims %arg0 : tensor<?x?xf32> to tensor<?x?xf32, #quern.dims<s0, s1>>
func.func private @callee(%a: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %0 = quern.exp %a : (tensor<?x?xf32>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// What the callee cannot say gets a name of its own for each call.
// CHECK-LABEL: func.func @opaque
// CHECK: kernel.bind_dims {{.*}} #quern.dims<s1>
// CHECK: kernel.bind_dims {{.*}} #quern.dims<s2>
// CHECK: quern.add {{.*}} -> tensor<?xf32, #quern.dims<bcast(s1, s2)>>
func.func @opaque(%a: tensor<?xf32>) -> tensor<?xf32> {
  %0 = call @outside(%a) : (tensor<?xf32>) -> tensor<?xf32>
  %1 = call @outside(%a) : (tensor<?xf32>) -> tensor<?xf32>
  %2 = quern.add %0, %1 : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return %2 : tensor<?xf32>
}
func.func private @outside(tensor<?xf32>) -> tensor<?xf32>

// -----

// The names that a called function gives its arguments are bound inside.
// CHECK-LABEL: func.func private @named(%arg0: tensor<?xf32>, %arg1: tensor<?xf32>)
// CHECK: kernel.bind_dims %arg0 : tensor<?xf32> to tensor<?xf32, #quern.dims<N>>
// CHECK: kernel.bind_dims %arg1 : tensor<?xf32> to tensor<?xf32, #quern.dims<2*N>>
func.func private @named(%a: tensor<?xf32, #quern.dims<N>>, %b: tensor<?xf32, #quern.dims<2*N>>)
    -> (tensor<?xf32>, tensor<?xf32>) {
  %0 = quern.exp %a : (tensor<?xf32, #quern.dims<N>>) -> tensor<?xf32>
  %1 = quern.exp %b : (tensor<?xf32, #quern.dims<2*N>>) -> tensor<?xf32>
  return %0, %1 : tensor<?xf32>, tensor<?xf32>
}
// CHECK-LABEL: func.func @caller
// CHECK: kernel.refine {{.*}} to tensor<?xf32, #quern.dims<N>>
// CHECK: kernel.refine {{.*}} to tensor<?xf32, #quern.dims<2*N>>
func.func @caller(%a: tensor<?xf32, #quern.dims<N>>, %b: tensor<?xf32, #quern.dims<2*N>>)
    -> (tensor<?xf32>, tensor<?xf32>) {
  %0:2 = call @named(%a, %b) : (tensor<?xf32, #quern.dims<N>>, tensor<?xf32, #quern.dims<2*N>>)
      -> (tensor<?xf32>, tensor<?xf32>)
  return %0#0, %0#1 : tensor<?xf32>, tensor<?xf32>
}
