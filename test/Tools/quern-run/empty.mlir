// Tensors known to have no elements: kernels of no units, whatever the order of their sizes.
// RUN: quern-run %s --random-inputs 1 | FileCheck %s
// CHECK: result0: f32[2, 0, 3]
func.func @f(%x: tensor<2x0x3xf32>, %y: tensor<2x1x1xf32>) -> tensor<2x0x3xf32> {
  %0 = quern.exp %x : (tensor<2x0x3xf32>) -> tensor<2x0x3xf32>
  %1 = quern.add %0, %y : (tensor<2x0x3xf32>, tensor<2x1x1xf32>) -> tensor<2x0x3xf32>
  return %1 : tensor<2x0x3xf32>
}
