// RUN: quern-opt %s --quern-schedule-cpu="cpu=x86-64-v3" --split-input-file --verify-diagnostics

kernel.func @k kind "generic" {
^bb0(%x: tensor<8xf32>, %o: tensor<8xf32>):
  %c = arith.constant 1 : index
  %v = arith.constant 1.0 : f32
  // expected-error@below {{unsupported: 'tensor.insert' in a kernel's body}}
  %1 = tensor.insert %v into %x[%c] : tensor<8xf32>
  kernel.yield %1 : tensor<8xf32>
}

// -----

// expected-error@below {{invalid: a packed operand is read by no contraction: no reduction}}
kernel.func @k kind "pointwise" packed [0] {
^bb0(%x: tensor<8xf32>, %o: tensor<8xf32>):
  %1 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<8xf32>) outs(%o : tensor<8xf32>) {
  ^bb0(%a: f32, %d: f32):
    linalg.yield %a : f32
  } -> tensor<8xf32>
  kernel.yield %1 : tensor<8xf32>
}

// -----

// expected-error@below {{unsupported: kernel 'k' has an index map that is not linear}}
kernel.func @k kind "pointwise" {
^bb0(%x: tensor<8x?xf32>, %o: tensor<?x8xf32, #quern.dims<d0>>):
  %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x?xf32>) outs(%o : tensor<?x8xf32, #quern.dims<d0>>) {
  ^bb0(%a: f32, %d: f32):
    linalg.yield %a : f32
  } -> tensor<?x8xf32, #quern.dims<d0>>
  kernel.yield %1 : tensor<?x8xf32, #quern.dims<d0>>
}
