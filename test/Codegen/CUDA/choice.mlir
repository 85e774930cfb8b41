// RUN: quern-opt %s --quern-emit-cuda -o /dev/null | FileCheck %s

// An element is only read in the branch that has it: no vector, nothing before the branch.
// CHECK:      cat(const float *__restrict__ in0, const float *__restrict__ in1, float *__restrict__ out0) {
// CHECK-NOT:    in0
// CHECK:        float value;
// CHECK-NEXT:   if ({{.*}} < 3) {
// CHECK-NEXT:     const float [[A:.*]] = in0[
// CHECK-NEXT:     value = [[A]];
// CHECK-NEXT:   } else {
// CHECK-NEXT:     const float [[B:.*]] = in1[
// CHECK-NEXT:     value = [[B]];
// CHECK-NEXT:   }
// CHECK-NEXT:   out0[number] = value;
kernel.func @cat kind "generic" {
^bb0(%x: tensor<4x3xf32>, %y: tensor<4x2xf32>, %o: tensor<4x5xf32>):
  %1 = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]} outs(%o : tensor<4x5xf32>) {
  ^bb0(%out: f32):
    %r = linalg.index 0 : index
    %c = linalg.index 1 : index
    %three = arith.constant 3 : index
    %first = arith.cmpi slt, %c, %three : index
    %v = scf.if %first -> (f32) {
      %a = tensor.extract %x[%r, %c] : tensor<4x3xf32>
      scf.yield %a : f32
    } else {
      %at = arith.subi %c, %three : index
      %b = tensor.extract %y[%r, %at] : tensor<4x2xf32>
      scf.yield %b : f32
    }
    linalg.yield %v : f32
  } -> tensor<4x5xf32>
  kernel.yield %1 : tensor<4x5xf32>
}
