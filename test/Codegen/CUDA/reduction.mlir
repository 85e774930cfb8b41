// RUN: quern-opt %s --quern-emit-cuda -o /dev/null | FileCheck %s
// RUN: quern-opt %s --quern-schedule-cuda | FileCheck %s --check-prefix=RANGE
#id = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>

// A short row has a warp: four rows a block.
// CHECK:      // row reduction, a warp a row, 4 elements a step
// CHECK:        float totalPartial = 0.0f;
// CHECK-NEXT:   for (int column = start; column < 128; column += 128) {
// CHECK:        const float total = quern::warpReduce<quern::Add>(totalPartial);
// CHECK:        / total
// CHECK-NOT:    __syncthreads

// RANGE-LABEL: gpu.func @normalise
// RANGE-SAME:    kernel attributes {known_block_size = array<i32: 128, 1, 1>, quern.index_bits = 64 : i32
// RANGE:       gpu.subgroup_reduce add
// RANGE-LABEL: func.func @normalise_range(%arg0: !llvm.ptr) -> i64
kernel.func @normalise kind "row_reduction" {
^bb0(%x: tensor<?x128xf32, #quern.dims<d0>>, %o: tensor<?x128xf32, #quern.dims<d0>>):
  %zero = arith.constant 0.0 : f32
  %n = kernel.dim #quern.dim<d0>
  %e = tensor.empty(%n) : tensor<?xf32, #quern.dims<d0>>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32, #quern.dims<d0>>) -> tensor<?xf32, #quern.dims<d0>>
  %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?x128xf32, #quern.dims<d0>>) outs(%z : tensor<?xf32, #quern.dims<d0>>) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32
  } -> tensor<?xf32, #quern.dims<d0>>
  %q = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : tensor<?x128xf32, #quern.dims<d0>>, tensor<?xf32, #quern.dims<d0>>) outs(%o : tensor<?x128xf32, #quern.dims<d0>>) {
  ^bb0(%a: f32, %b: f32, %d: f32):
    %r = arith.divf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<?x128xf32, #quern.dims<d0>>
  kernel.yield %q : tensor<?x128xf32, #quern.dims<d0>>
}
