// RUN: quern-opt %s --quern-schedule-cpu="cpu=x86-64-v3" | FileCheck %s
// RUN: quern-opt %s --quern-schedule-cpu="cpu=x86-64-v3 strict=true" | FileCheck %s --check-prefix=STRICT
// RUN: quern-opt %s --quern-schedule-cpu="cpu=x86-64-v3 reference=true" | FileCheck %s --check-prefix=REF
// RUN: not quern-opt %s --quern-schedule-cpu="cpu=nocpu" 2>&1 | FileCheck %s --check-prefix=CPU

// CPU: invalid: unknown CPU 'nocpu'

// STRICT-NOT: fastmath
// REF-NOT: vector<

// Vectors of four registers each, a masked remainder.
// CHECK-LABEL: func.func @scale(
// CHECK-SAME: %{{.*}}: !llvm.ptr {llvm.noalias, llvm.readonly}, %{{.*}}: !llvm.ptr {llvm.noalias, llvm.readonly}, %{{.*}}: i64, %{{.*}}: i64)
// CHECK: scf.for
// CHECK: llvm.load {{.*}} -> vector<32xf32>
// CHECK: arith.mulf {{.*}} fastmath<contract> : vector<32xf32>
// CHECK: scf.for
// CHECK: llvm.intr.masked.load
// CHECK: llvm.intr.masked.store
// CHECK-LABEL: func.func @scale_range(%{{.*}}: !llvm.ptr {llvm.noalias, llvm.readonly}) -> i64
// CHECK-LABEL: func.func @scale_unit_cost(
kernel.func @scale kind "pointwise" {
^bb0(%x: tensor<?x?xf32, #quern.dims<d0, d1>>, %o: tensor<?x?xf32, #quern.dims<d0, d1>>):
  %two = arith.constant 2.0 : f32
  %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x?xf32, #quern.dims<d0, d1>>) outs(%o : tensor<?x?xf32, #quern.dims<d0, d1>>) {
  ^bb0(%a: f32, %d: f32):
    %r = arith.mulf %a, %two : f32
    linalg.yield %r : f32
  } -> tensor<?x?xf32, #quern.dims<d0, d1>>
  kernel.yield %1 : tensor<?x?xf32, #quern.dims<d0, d1>>
}

// 64 partial sums in two vectors.
// CHECK-LABEL: func.func @sum(
// CHECK: scf.for {{.*}} iter_args({{.*}}, {{.*}}) -> (vector<32xf32>, vector<32xf32>)
// CHECK: vector.shuffle
kernel.func @sum kind "row_reduction" {
^bb0(%x: tensor<8x?xf32, #quern.dims<d0>>, %o: tensor<8xf32>):
  %zero = arith.constant 0.0 : f32
  %z = linalg.fill ins(%zero : f32) outs(%o : tensor<8xf32>) -> tensor<8xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x?xf32, #quern.dims<d0>>) outs(%z : tensor<8xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32
  } -> tensor<8xf32>
  kernel.yield %s : tensor<8xf32>
}

// Twelve accumulators of one register, a panel of the right side.
// CHECK-LABEL: func.func @product(
// CHECK: math.fma {{.*}} : vector<8xf32>
// STRICT-LABEL: func.func @product(
// STRICT-NOT: math.fma
// STRICT: arith.mulf {{.*}} : vector<8xf32>
kernel.func @product kind "contraction" {
^bb0(%x: tensor<96x64xf32>, %w: tensor<64x48xf32>, %o: tensor<96x48xf32>):
  %zero = arith.constant 0.0 : f32
  %z = linalg.fill ins(%zero : f32) outs(%o : tensor<96x48xf32>) -> tensor<96x48xf32>
  %s = linalg.matmul ins(%x, %w : tensor<96x64xf32>, tensor<64x48xf32>) outs(%z : tensor<96x48xf32>) -> tensor<96x48xf32>
  kernel.yield %s : tensor<96x48xf32>
}
