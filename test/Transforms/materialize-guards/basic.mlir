// RUN: quern-opt %s --quern-propagate-shapes --quern-materialize-guards --split-input-file | FileCheck %s
// RUN: quern-opt %s --quern-propagate-shapes --quern-materialize-guards --canonicalize --cse --loop-invariant-code-motion --split-input-file | FileCheck %s --check-prefix=MOVED

// A guard over sizes of arguments stands in the prologue, once, with id, text and sizes.
// CHECK-LABEL: func.func @prologue
// CHECK: %[[A:.*]] = kernel.dim #quern.dim<A>
// CHECK: %[[B:.*]] = kernel.dim #quern.dim<B>
// CHECK: %[[EQ:.*]] = arith.cmpi eq, %[[A]], %[[B]]
// CHECK: kernel.guard %{{.*}}, "add_c2" "'quern.add' op add_c2: expected other dim 0 to equal self dim 0 or to be 1, got {0} and {1}"(%[[B]], %[[A]])
// CHECK: = quern.exp
// CHECK-NOT: kernel.guard
// CHECK: return
func.func @prologue(%a: tensor<?xf32, #quern.dims<A>>, %b: tensor<?xf32, #quern.dims<B>>) -> tensor<?xf32> {
  %0 = quern.exp %a : (tensor<?xf32, #quern.dims<A>>) -> tensor<?xf32>
  %1 = quern.add %0, %b : (tensor<?xf32>, tensor<?xf32, #quern.dims<B>>) -> tensor<?xf32>
  %2 = quern.mul %0, %b : (tensor<?xf32>, tensor<?xf32, #quern.dims<B>>) -> tensor<?xf32>
  %3 = quern.add %1, %2 : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return %3 : tensor<?xf32>
}

// -----

// Trap: a dead op with an undecided condition. The op goes, its guard stays.
// MOVED-LABEL: func.func @dead
// MOVED: kernel.guard %{{.*}}, "add_c2"
// MOVED-NOT: = quern.add
// MOVED: return
func.func @dead(%a: tensor<?xf32, #quern.dims<A>>, %b: tensor<?xf32, #quern.dims<B>>) {
  %0 = quern.add %a, %b : (tensor<?xf32, #quern.dims<A>>, tensor<?xf32, #quern.dims<B>>) -> tensor<?xf32>
  return
}

// -----

// Trap: loop-invariant code motion past a guard. The loop may run zero times, so the
// guard stays in it, and so do the op behind it and the sizes it reads.
// MOVED-LABEL: func.func @licm
// MOVED-NOT: quern.add %
// MOVED: scf.for
// MOVED: kernel.guard
// MOVED: = quern.add %
func.func @licm(%n: index, %a: tensor<?xf32, #quern.dims<A>>, %b: tensor<?xf32, #quern.dims<B>>,
                %init: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %init) -> tensor<4xf32> {
    %1 = quern.add %a, %b : (tensor<?xf32, #quern.dims<A>>, tensor<?xf32, #quern.dims<B>>) -> tensor<?xf32>
    %2 = quern.add %x, %1 : (tensor<4xf32>, tensor<?xf32>) -> tensor<4xf32>
    scf.yield %2 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

// In a branch that may not be taken the guard stands before its op.
// CHECK-LABEL: func.func @branch
// CHECK-NOT: kernel.guard
// CHECK: scf.if
// CHECK: kernel.guard %{{.*}}, "add_c2"
// CHECK: = quern.add
// CHECK: else
// CHECK: kernel.guard %{{.*}}, "mul_c2"
// CHECK: = quern.mul
func.func @branch(%c: i1, %a: tensor<?xf32, #quern.dims<A>>, %b: tensor<?xf32, #quern.dims<B>>) {
  scf.if %c {
    %0 = quern.add %a, %b : (tensor<?xf32, #quern.dims<A>>, tensor<?xf32, #quern.dims<B>>) -> tensor<?xf32>
  } else {
    %0 = quern.mul %a, %b : (tensor<?xf32, #quern.dims<A>>, tensor<?xf32, #quern.dims<B>>) -> tensor<?xf32>
  }
  return
}

// -----

// A size that exists only later is checked where it exists.
// CHECK-LABEL: func.func @late
// CHECK: %[[LATE:.*]] = kernel.bind_dims
// CHECK: %[[S:.*]] = kernel.dim #quern.dim<s0>
// CHECK: kernel.guard {{.*}}(%[[S]])
// CHECK: = quern.add %[[LATE]]
func.func @late(%a: tensor<?xf32, #quern.dims<A>>, %b: tensor<8xf32>) -> tensor<8xf32> {
  %plain = kernel.refine %a : tensor<?xf32, #quern.dims<A>> to tensor<?xf32>
  %0 = tensor.concat dim(0) %plain, %plain : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  %1 = quern.add %0, %b : (tensor<?xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

// Claims of result types and destinations are checked, too.
// CHECK-LABEL: func.func @claims
// CHECK-DAG: kernel.guard %{{.*}}, "exp_result" "'quern.exp' op exp_result: expected result dim 0 to equal the inferred size, got 8 and {0}"
// CHECK-DAG: kernel.guard %{{.*}}, "neg_into" "'quern.neg' op neg_into: expected into dim 0 to equal the inferred size, got {0} and {1}"
func.func @claims(%a: tensor<?xf32, #quern.dims<A>>, %b: tensor<?xf32, #quern.dims<B>>,
                  %d: tensor<?xf32, #quern.dims<D>>) -> tensor<8xf32> {
  %0 = quern.exp %a : (tensor<?xf32, #quern.dims<A>>) -> tensor<8xf32>
  %1 = quern.neg %b into %d : (tensor<?xf32, #quern.dims<B>>, tensor<?xf32, #quern.dims<D>>) -> tensor<?xf32>
  return %0 : tensor<8xf32>
}

// -----

// The signature's promises.
// CHECK-LABEL: func.func @signature
// CHECK-DAG: "'signature' argument 0 dim 0: expected at least 1, got {0}"
// CHECK-DAG: "'signature' argument 0 dim 0: expected at most 64, got {0}"
// CHECK-DAG: "'signature' argument 0 dim 0: expected a multiple of 8, got {0}"
// CHECK-DAG: "'signature' argument 1 dim 0: expected {0} (B), got {1}"
// CHECK-DAG: "'signature' argument 1 dim 1: expected {0} (2*B + 1), got {1}"
func.func @signature(%a: tensor<?xf32, #quern.dims<B>>, %b: tensor<?x?xf32, #quern.dims<B, 2*B + 1>>)
    attributes {quern.dims = {B = #quern.range<1, 64, mod 8>}} {
  return
}

// -----

// A function that is called guards what it promises of its arguments inside.
// CHECK-LABEL: func.func private @called
// CHECK: kernel.bind_dims
// CHECK: kernel.bind_dims
// CHECK: kernel.guard %{{.*}}, "signature" "'called' argument 1 dim 0: expected {0} (N), got {1}"
func.func private @called(%a: tensor<?xf32, #quern.dims<N>>, %b: tensor<?xf32, #quern.dims<N>>) {
  return
}
func.func @caller(%a: tensor<?xf32, #quern.dims<N>>) {
  call @called(%a, %a) : (tensor<?xf32, #quern.dims<N>>, tensor<?xf32, #quern.dims<N>>) -> ()
  return
}
