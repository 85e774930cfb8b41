// RUN: quern-opt %s --quern-propagate-shapes --quern-strip-dims --split-input-file | FileCheck %s
// RUN: quern-opt %s --quern-propagate-shapes --quern-strip-dims --inline --quern-propagate-shapes --split-input-file | FileCheck %s --check-prefix=AGAIN
// RUN: quern-opt %s --quern-propagate-shapes -o %t --split-input-file
// RUN: quern-opt %t --quern-strip-dims --quern-propagate-shapes --split-input-file | diff %t -

// Trap: two calls of one function with different sizes, inlined. Each clone gets
// names of its own.
// CHECK-LABEL: func.func @two_calls
// CHECK-SAME: %arg0: tensor<?xf32, #quern.dims<A>>
// CHECK: %[[A:.*]] = kernel.refine %arg0 : tensor<?xf32, #quern.dims<A>> to tensor<?xf32>
// CHECK: call @callee(%[[A]])
// AGAIN-LABEL: func.func @two_calls
// AGAIN: %[[X:.*]] = quern.exp %arg0 {{.*}} -> tensor<?xf32, #quern.dims<A>>
// AGAIN: kernel.bind_dims {{.*}} to tensor<?xf32, #quern.dims<[[S:s[0-9]+]]>>
// AGAIN: quern.exp %arg1 {{.*}} -> tensor<?xf32, #quern.dims<B>>
// AGAIN-NOT: to tensor<?xf32, #quern.dims<[[S]]>>
// AGAIN: kernel.bind_dims
func.func @two_calls(%a: tensor<?xf32, #quern.dims<A>>, %b: tensor<?xf32, #quern.dims<B>>) -> (tensor<?xf32>, tensor<?xf32>) {
  %pa = kernel.refine %a : tensor<?xf32, #quern.dims<A>> to tensor<?xf32>
  %pb = kernel.refine %b : tensor<?xf32, #quern.dims<B>> to tensor<?xf32>
  %0 = call @callee(%pa) : (tensor<?xf32>) -> tensor<?xf32>
  %1 = call @callee(%pb) : (tensor<?xf32>) -> tensor<?xf32>
  %2 = quern.exp %0 : (tensor<?xf32>) -> tensor<?xf32>
  %3 = quern.exp %1 : (tensor<?xf32>) -> tensor<?xf32>
  return %2, %3 : tensor<?xf32>, tensor<?xf32>
}
// CHECK-LABEL: func.func private @callee
// CHECK-NOT: quern.dims
func.func private @callee(%a: tensor<?xf32>) -> tensor<?xf32> {
  %0 = quern.exp %a : (tensor<?xf32>) -> tensor<?xf32>
  %1 = tensor.concat dim(0) %0, %0 : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  %2 = quern.exp %1 : (tensor<?xf32>) -> tensor<?xf32>
  return %2 : tensor<?xf32>
}
