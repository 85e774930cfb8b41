// A model whose memory is planned already: what `quern-compile --emit=mlir-planned` prints.
//
// RUN: quern-run %s --no-cache --random-inputs=1 --dim=B=3 --poison --print-memory | FileCheck %s
// RUN: quern-run %s --no-cache -O0 --random-inputs=1 --dim=B=3 --poison | FileCheck %s --check-prefix=O0
// CHECK: arena: 64 bytes
// CHECK: y: f32[3, 4]
// O0: y: f32[3, 4]

kernel.func @exp kind "pointwise" {
^bb0(%x: tensor<?x4xf32, #quern.dims<d0>>, %y: tensor<?x4xf32, #quern.dims<d0>>):
  %r = quern.exp %x : (tensor<?x4xf32, #quern.dims<d0>>) -> tensor<?x4xf32, #quern.dims<d0>>
  kernel.yield %r : tensor<?x4xf32, #quern.dims<d0>>
}
kernel.func @add kind "pointwise" {
^bb0(%x: tensor<?x4xf32, #quern.dims<d0>>, %w: tensor<4xf32>, %y: tensor<?x4xf32, #quern.dims<d0>>):
  %r = quern.add %x, %w : (tensor<?x4xf32, #quern.dims<d0>>, tensor<4xf32>) -> tensor<?x4xf32, #quern.dims<d0>>
  kernel.yield %r : tensor<?x4xf32, #quern.dims<d0>>
}
func.func @f(%x: memref<?x4xf32> {quern.name = "x", quern.dims = #quern.dims<B>},
             %y: memref<?x4xf32> {quern.out, quern.result = 0 : i64, quern.dims = #quern.dims<B>},
             %w: memref<4xf32> {quern.constant = dense<[10.0, 20.0, 30.0, 40.0]> : tensor<4xf32>})
    attributes {quern.result_names = ["y"]} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %b = kernel.dim #quern.dim<B>
  %bytes = arith.muli %b, %c16 : index
  %arena = memref.alloc(%bytes) {alignment = 64} : memref<?xi8>
  %t = memref.view %arena[%c0][%b] : memref<?xi8> to memref<?x4xf32>
  kernel.launch @exp ins(%x : memref<?x4xf32>) outs(%t : memref<?x4xf32>)
  kernel.launch @add ins(%t, %w : memref<?x4xf32>, memref<4xf32>) outs(%y : memref<?x4xf32>)
  return
}
