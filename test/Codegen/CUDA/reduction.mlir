// RUN: quern-opt %s --quern-emit-cuda -o /dev/null | FileCheck %s
// RUN: quern-opt %s --quern-schedule-cuda | FileCheck %s --check-prefix=RANGE
#id = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>

// 64 partial sums a row, four a thread, joined pairwise.
// CHECK:      // row reduction, 16 threads a row, 4 elements a thread
// CHECK:        partial = quern::splat<4>(0.0f);
// CHECK:        for (int column = start; column < 128; column += 64) {
// CHECK:            partial[lane] = [[OLD:.*]] + {{.*}}[lane];
// CHECK:        const quern::vec<float, 4> lanes = quern::teamReduce<quern::Add, 16>(partial);
// CHECK-NEXT:   const float total = lanes[0] + lanes[2] + (lanes[1] + lanes[3]);
// CHECK:        / total
// CHECK-NOT:    __syncthreads

// RANGE-LABEL: gpu.func @normalise
// RANGE-SAME:    kernel attributes {known_block_size = array<i32: 128, 1, 1>, quern.index_bits = 64 : i32
// RANGE:       gpu.subgroup_reduce add {{.*}} cluster(size = 16) : (vector<4xf32>)
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

// Along an outer dim a thread has the whole row, in order; in place, it reads before it writes.
// CHECK:      // column reduction, a thread a row
// CHECK:      softmax_columns(const float *in0, float *out0, long long d0) {
// CHECK:        if (row < d0) {
// CHECK:          for (int i = 0; i < 5; ++i) {
// CHECK:            = in0[i * d0 + row];
// CHECK:          for (int column = 0; column < 5; ++column) {
// CHECK:            const float [[X:.*]] = in0[[AT:.*]];
// CHECK-NEXT:       out0[[AT]] = [[X]] / partial;
kernel.func @softmax_columns kind "column_reduction" share [0, 0] {
^bb0(%x: tensor<5x?xf32, #quern.dims<d0>>, %o: tensor<5x?xf32, #quern.dims<d0>>):
  %zero = arith.constant 0.0 : f32
  %n = kernel.dim #quern.dim<d0>
  %e = tensor.empty(%n) : tensor<?xf32, #quern.dims<d0>>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32, #quern.dims<d0>>) -> tensor<?xf32, #quern.dims<d0>>
  %s = linalg.generic {indexing_maps = [#id, affine_map<(r, c) -> (c)>], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<5x?xf32, #quern.dims<d0>>) outs(%z : tensor<?xf32, #quern.dims<d0>>) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32
  } -> tensor<?xf32, #quern.dims<d0>>
  %q = linalg.generic {indexing_maps = [#id, affine_map<(r, c) -> (c)>, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : tensor<5x?xf32, #quern.dims<d0>>, tensor<?xf32, #quern.dims<d0>>) outs(%o : tensor<5x?xf32, #quern.dims<d0>>) {
  ^bb0(%a: f32, %b: f32, %d: f32):
    %r = arith.divf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<5x?xf32, #quern.dims<d0>>
  kernel.yield %q : tensor<5x?xf32, #quern.dims<d0>>
}
