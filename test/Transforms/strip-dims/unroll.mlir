// RUN: quern-opt %s --pass-pipeline='builtin.module(quern-strip-dims,func.func(affine-loop-unroll{unroll-factor=-1}),quern-propagate-shapes)' | FileCheck %s
// RUN: not quern-opt %s --pass-pipeline='builtin.module(func.func(affine-loop-unroll{unroll-factor=-1}),quern-propagate-shapes)' 2>&1 | FileCheck %s --check-prefix=CLONED

// Trap: an unrolled loop with a growing size. With the names in place both copies would
// bind one size; that is an error. Stripped, each copy gets its own.
// CLONED: error: size G is bound a second time; run quern-strip-dims before code is cloned
// CHECK-LABEL: func.func @grow
// CHECK: kernel.bind_dims {{.*}} #quern.dims<[[A:s[0-9]+]]>
// CHECK-NOT: to tensor<?xf32, #quern.dims<[[A]]>>
// CHECK: kernel.bind_dims
func.func @grow(%a: tensor<?xf32, #quern.dims<N>>) -> tensor<?xf32> {
  %plain = kernel.refine %a : tensor<?xf32, #quern.dims<N>> to tensor<?xf32>
  %0 = affine.for %i = 0 to 2 iter_args(%x = %plain) -> tensor<?xf32> {
    %1 = tensor.concat dim(0) %x, %x : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    %2 = kernel.bind_dims %1 : tensor<?xf32> to tensor<?xf32, #quern.dims<G>>
    %3 = quern.exp %2 : (tensor<?xf32, #quern.dims<G>>) -> tensor<?xf32, #quern.dims<G>>
    %4 = kernel.refine %3 : tensor<?xf32, #quern.dims<G>> to tensor<?xf32>
    affine.yield %4 : tensor<?xf32>
  }
  return %0 : tensor<?xf32>
}
