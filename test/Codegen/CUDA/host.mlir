// What launches the kernels is no obstacle to looking at them.
// RUN: quern-opt %s --quern-fuse --quern-to-linalg --quern-schedule-cuda | FileCheck %s
// RUN: quern-opt %s --quern-fuse --quern-to-linalg --quern-emit-cuda -o /dev/null | FileCheck %s --check-prefix=TEXT

// CHECK-NOT:   @main
// CHECK:       gpu.module @[[K:k_.*]]_device
// CHECK-NEXT:    gpu.func @[[K]](
// CHECK:       func.func @[[K]]_range
// CHECK:       gpu.module @[[K2:k_.*]]_device
// CHECK:       func.func @[[K2]]_range
// CHECK-NOT:   kernel.

// TEXT:        // pointwise, 4 elements a thread
// TEXT:        // row reduction, 16 threads a row, 4 elements a thread
// TEXT-NOT:    func.func
func.func @main(%x: tensor<4x128xf32>) -> (tensor<4x128xf32>, tensor<4x1xf32>) {
  %0 = quern.tanh %x : (tensor<4x128xf32>) -> tensor<4x128xf32>
  %1 = quern.sum %x {dim = array<i64: 1>, keepdim = true} : (tensor<4x128xf32>) -> tensor<4x1xf32>
  return %0, %1 : tensor<4x128xf32>, tensor<4x1xf32>
}
