// RUN: quern-opt %s --split-input-file --verify-diagnostics --quern-schedule-cuda

// expected-error @below {{invalid: argument 0 of kernel @k has a size without a name}}
kernel.func @k kind "pointwise" {
^bb0(%x: tensor<?xf32>, %o: tensor<?xf32>):
  kernel.yield %x : tensor<?xf32>
}

// -----

// expected-error @below {{invalid: argument 1 of kernel @k has a size without a name}}
kernel.func @k kind "pointwise" {
^bb0(%x: tensor<?xf32, #quern.dims<d0>>, %o: tensor<?xf32, #quern.dims<d0 + d1>>):
  kernel.yield %x : tensor<?xf32, #quern.dims<d0>>
}

// -----

kernel.func @k kind "generic" {
^bb0(%x: tensor<4xf32>, %o: tensor<4xf32>):
  // expected-error @below {{unsupported: CUDA kernels do not take a constant tensor with different elements}}
  %1 = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  kernel.yield %1 : tensor<4xf32>
}

// -----

// A thread would read what another one overwrites.
// expected-error @below {{unsupported: a CUDA kernel, of the generic kind, whose threads read what others overwrite in place}}
kernel.func @k kind "generic" share [0, 0] {
^bb0(%x: tensor<4x4xf32>, %o: tensor<4x4xf32>):
  %1 = linalg.generic {indexing_maps = [affine_map<(r, c) -> (c, r)>, affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x4xf32>) outs(%o : tensor<4x4xf32>) {
  ^bb0(%a: f32, %d: f32):
    linalg.yield %a : f32
  } -> tensor<4x4xf32>
  kernel.yield %1 : tensor<4x4xf32>
}
