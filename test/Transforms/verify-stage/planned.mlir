// RUN: quern-opt %s --quern-verify-stage=stage=planned -split-input-file -verify-diagnostics
// RUN: not quern-opt %s --quern-verify-stage=stage=fused -split-input-file 2>&1 | FileCheck %s

// CHECK: error: invalid: expected stage to be named, inplace, bufferized or planned, got 'fused'

kernel.func @k kind "pointwise" {
^bb0(%a: tensor<16xf32>, %b: tensor<16xf32>, %o: tensor<16xf32>):
  kernel.yield %a : tensor<16xf32>
}
func.func @overlap(%x: memref<16xf32>, %y: memref<16xf32>) attributes {quern.arena_bytes = #quern.dim<128>} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %arena = memref.alloc() : memref<128xi8>
  // expected-error@+1 {{overlaps another buffer that is needed: [0, 64) and [32, 96)}}
  %a = memref.view %arena[%c0][] : memref<128xi8> to memref<16xf32>
  %b = memref.view %arena[%c32][] : memref<128xi8> to memref<16xf32>
  kernel.launch @k ins(%x, %x : memref<16xf32>, memref<16xf32>) outs(%b : memref<16xf32>)
  kernel.launch @k ins(%x, %b : memref<16xf32>, memref<16xf32>) outs(%a : memref<16xf32>)
  kernel.launch @k ins(%a, %b : memref<16xf32>, memref<16xf32>) outs(%y : memref<16xf32>)
  return
}

// -----

kernel.func @k kind "pointwise" {
^bb0(%a: tensor<?xf32, #quern.dims<d0>>, %o: tensor<?xf32, #quern.dims<d0>>):
  kernel.yield %a : tensor<?xf32, #quern.dims<d0>>
}
func.func @beyond(%x: memref<?xf32> {quern.dims = #quern.dims<B>}) attributes {quern.arena_bytes = #quern.dim<4*B>} {
  %bytes = kernel.dim #quern.dim<4*B>
  %n = kernel.dim #quern.dim<B>
  %c64 = arith.constant 64 : index
  %arena = memref.alloc(%bytes) : memref<?xi8>
  // expected-error@+1 {{a buffer that ends at 4*B + 64 in an arena of 4*B bytes}}
  %a = memref.view %arena[%c64][%n] : memref<?xi8> to memref<?xf32>
  kernel.launch @k ins(%x : memref<?xf32>) outs(%a : memref<?xf32>)
  kernel.launch @k ins(%a : memref<?xf32>) outs(%x : memref<?xf32>)
  return
}
