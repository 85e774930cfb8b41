// RUN: quern-opt %s --quern-propagate-shapes --split-input-file | FileCheck %s
// RUN: quern-opt %s --pass-pipeline='builtin.module(quern-propagate-shapes,func.func(quern-verify-stage{stage=named}))' --split-input-file -o %t
// RUN: quern-opt %t --quern-propagate-shapes --split-input-file | diff %t -

// Branch results: what agrees keeps its name, what differs gets a new one.
// CHECK-LABEL: func.func @branch
// CHECK: %[[IF:.*]] = scf.if %arg0 -> (tensor<?x?xf32, #quern.dims<_, S>>)
// CHECK: kernel.bind_dims %[[IF]] : tensor<?x?xf32, #quern.dims<_, S>> to tensor<?x?xf32, #quern.dims<s0, S>>
func.func @branch(%c: i1, %a: tensor<?x?xf32, #quern.dims<A, S>>, %b: tensor<?x?xf32, #quern.dims<B, S>>)
    -> tensor<?x?xf32> {
  %0 = scf.if %c -> tensor<?x?xf32> {
    %1 = quern.exp %a : (tensor<?x?xf32, #quern.dims<A, S>>) -> tensor<?x?xf32>
    scf.yield %1 : tensor<?x?xf32>
  } else {
    %1 = quern.exp %b : (tensor<?x?xf32, #quern.dims<B, S>>) -> tensor<?x?xf32>
    scf.yield %1 : tensor<?x?xf32>
  }
  %2 = quern.exp %0 : (tensor<?x?xf32>) -> tensor<?x?xf32>
  return %2 : tensor<?x?xf32>
}

// -----

// What a branch checks does not hold behind it.
// CHECK-LABEL: func.func @branch_facts
// CHECK: quern.add %arg1, %arg2 {{.*}} -> tensor<?xf32, #quern.dims<bcast(A, B)>>
// CHECK: scf.if
// CHECK: quern.add %arg1, %arg2 {{.*}} -> tensor<?xf32, #quern.dims<bcast(A, B)>>
func.func @branch_facts(%c: i1, %a: tensor<?xf32, #quern.dims<A>>, %b: tensor<?xf32, #quern.dims<B>>) {
  scf.if %c {
    %1 = quern.add %a, %b : (tensor<?xf32, #quern.dims<A>>, tensor<?xf32, #quern.dims<B>>) -> tensor<?xf32>
  }
  scf.if %c {
    %1 = quern.add %a, %b : (tensor<?xf32, #quern.dims<A>>, tensor<?xf32, #quern.dims<B>>) -> tensor<?xf32>
  }
  return
}

// -----

// A loop: a size that stays keeps its name; one that grows is `?`, named inside of
// each iteration, and named anew behind the loop.
// CHECK-LABEL: func.func @loop
// CHECK: scf.for {{.*}} iter_args(%[[X:.*]] = %{{.*}}, %[[Y:.*]] = %arg2)
// CHECK-SAME: -> (tensor<?xf32>, tensor<?xf32, #quern.dims<S>>)
// CHECK: kernel.bind_dims %[[X]] : tensor<?xf32> to tensor<?xf32, #quern.dims<[[IN:s[0-9]+]]>>
// CHECK: quern.exp {{.*}} -> tensor<?xf32, #quern.dims<S>>
// CHECK: }
// CHECK-NOT: #quern.dims<[[IN]]>
// CHECK: kernel.bind_dims {{.*}} : tensor<?xf32> to tensor<?xf32, #quern.dims<s
func.func @loop(%n: index, %a: tensor<?xf32, #quern.dims<B>>, %b: tensor<?xf32, #quern.dims<S>>)
    -> (tensor<?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %plain = kernel.refine %a : tensor<?xf32, #quern.dims<B>> to tensor<?xf32>
  %plainS = kernel.refine %b : tensor<?xf32, #quern.dims<S>> to tensor<?xf32>
  %0:2 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %plain, %y = %plainS) -> (tensor<?xf32>, tensor<?xf32>) {
    %1 = quern.exp %y : (tensor<?xf32>) -> tensor<?xf32>
    %2 = quern.exp %x : (tensor<?xf32>) -> tensor<?xf32>
    %3 = tensor.concat dim(0) %2, %2 : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    scf.yield %3, %1 : tensor<?xf32>, tensor<?xf32>
  }
  %4 = quern.exp %0#0 : (tensor<?xf32>) -> tensor<?xf32>
  return %4, %0#1 : tensor<?xf32>, tensor<?xf32>
}

// -----

// Two carried values that change places.
// CHECK-LABEL: func.func @swap
// CHECK: scf.for {{.*}} -> (tensor<?xf32>, tensor<?xf32>)
func.func @swap(%n: index, %a: tensor<?xf32>, %b: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0:2 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a, %y = %b) -> (tensor<?xf32>, tensor<?xf32>) {
    scf.yield %y, %x : tensor<?xf32>, tensor<?xf32>
  }
  return %0#0 : tensor<?xf32>
}

// -----

// scf.while: the condition passes its values to the body and to the results.
// CHECK-LABEL: func.func @while
// CHECK: scf.while (%{{.*}} = %arg0) : (tensor<?xf32, #quern.dims<s0>>) -> tensor<?xf32, #quern.dims<s0>>
func.func @while(%a: tensor<?xf32>, %c: i1) -> tensor<?xf32> {
  %0 = scf.while (%x = %a) : (tensor<?xf32>) -> tensor<?xf32> {
    %1 = quern.exp %x : (tensor<?xf32>) -> tensor<?xf32>
    scf.condition(%c) %1 : tensor<?xf32>
  } do {
  ^bb0(%y: tensor<?xf32>):
    %1 = quern.exp %y : (tensor<?xf32>) -> tensor<?xf32>
    scf.yield %1 : tensor<?xf32>
  }
  return %0 : tensor<?xf32>
}

// -----

// Blocks: what comes by a branch is named in its block.
// CHECK-LABEL: func.func @blocks
// CHECK: ^bb1(%[[X:.*]]: tensor<?xf32>):
// CHECK: kernel.bind_dims %[[X]] : tensor<?xf32> to tensor<?xf32, #quern.dims<s2>>
func.func @blocks(%c: i1, %a: tensor<?xf32>, %b: tensor<?xf32>) -> tensor<?xf32> {
  cf.cond_br %c, ^bb1(%a : tensor<?xf32>), ^bb1(%b : tensor<?xf32>)
^bb1(%x: tensor<?xf32>):
  %0 = quern.exp %x : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
