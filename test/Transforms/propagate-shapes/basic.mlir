// RUN: quern-opt %s --quern-propagate-shapes --split-input-file | FileCheck %s
// RUN: quern-opt %s --pass-pipeline='builtin.module(quern-propagate-shapes,func.func(quern-verify-stage{stage=named}))' --split-input-file -o %t
// RUN: quern-opt %t --quern-propagate-shapes --split-input-file | diff %t -

// Names of arguments stay, `?` gets a fresh one that nobody uses.
// CHECK-LABEL: func.func @names
// CHECK-SAME: %arg0: tensor<?x4xf32, #quern.dims<B>>, %arg1: tensor<?x?xf32, #quern.dims<s1, s2>>, %arg2: tensor<?xf32, #quern.dims<s0>>
// CHECK-SAME: -> tensor<?x4xf32, #quern.dims<bcast(B, s1)>>
func.func @names(%a: tensor<?x4xf32, #quern.dims<B>>, %b: tensor<?x?xf32>, %c: tensor<?xf32, #quern.dims<s0>>)
    -> tensor<?x4xf32> {
  %0 = quern.add %a, %b : (tensor<?x4xf32, #quern.dims<B>>, tensor<?x?xf32>) -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// -----

// Facts decide: a dim of at least 2 is the result of the broadcast.
// CHECK-LABEL: func.func @facts
// CHECK: quern.add {{.*}} -> tensor<?xf32, #quern.dims<B>>
func.func @facts(%a: tensor<?xf32, #quern.dims<B>>, %b: tensor<?xf32, #quern.dims<C>>) -> tensor<?xf32>
    attributes {quern.dims = {B = #quern.range<2, 64, mod 8>}} {
  %0 = quern.add %a, %b : (tensor<?xf32, #quern.dims<B>>, tensor<?xf32, #quern.dims<C>>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// What was checked once holds behind: the second add needs no new name.
// CHECK-LABEL: func.func @checked
// CHECK: %[[SUM:.*]] = quern.add %arg0, %arg1 {{.*}} -> tensor<?xf32, #quern.dims<bcast(A, B)>>
// CHECK: quern.add %[[SUM]], %arg1 {{.*}} -> tensor<?xf32, #quern.dims<bcast(A, B)>>
func.func @checked(%a: tensor<?xf32, #quern.dims<A>>, %b: tensor<?xf32, #quern.dims<B>>) -> tensor<?xf32> {
  %0 = quern.add %a, %b : (tensor<?xf32, #quern.dims<A>>, tensor<?xf32, #quern.dims<B>>) -> tensor<?xf32>
  %1 = quern.add %0, %b : (tensor<?xf32>, tensor<?xf32, #quern.dims<B>>) -> tensor<?xf32>
  return %1 : tensor<?xf32>
}

// -----

// A foreign op keeps its plain types; its result gets a name behind it.
// CHECK-LABEL: func.func @foreign
// CHECK: %[[PLAIN:.*]] = kernel.refine %arg0 : tensor<?xf32, #quern.dims<s0>> to tensor<?xf32>
// CHECK: %[[CONCAT:.*]] = tensor.concat dim(0) %[[PLAIN]]
// CHECK: %[[NAMED:.*]] = kernel.bind_dims %[[CONCAT]] : tensor<?xf32> to tensor<?xf32, #quern.dims<s1>>
// CHECK: quern.exp %[[NAMED]]
// CHECK: %[[RESULT:.*]] = kernel.refine {{.*}} to tensor<?xf32>
// CHECK: return %[[RESULT]] : tensor<?xf32>
func.func @foreign(%a: tensor<?xf32>) -> tensor<?xf32> {
  %0 = tensor.concat dim(0) %a : (tensor<?xf32>) -> tensor<?xf32>
  %1 = quern.exp %0 : (tensor<?xf32>) -> tensor<?xf32>
  return %1 : tensor<?xf32>
}

// -----

// A static result type is a claim: it stays, and materialize-guards checks it.
// CHECK-LABEL: func.func @claim
// CHECK: quern.exp {{.*}} -> tensor<8xf32>
func.func @claim(%a: tensor<?xf32>) -> tensor<8xf32> {
  %0 = quern.exp %a : (tensor<?xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
