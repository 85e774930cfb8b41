// RUN: quern-opt %s --quern-convert-host-to-llvm | FileCheck %s

kernel.func @k kind "pointwise" {
^bb0(%x: tensor<?x4xf32, #quern.dims<d0>>, %y: tensor<?x4xf32, #quern.dims<d0>>):
  kernel.yield %y : tensor<?x4xf32, #quern.dims<d0>>
}

// CHECK-DAG: llvm.func @quern_rt_launch(!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr) -> i32
// CHECK-DAG: llvm.func @k(!llvm.ptr, !llvm.ptr, i64, i64)
// CHECK-DAG: llvm.func @k_range(!llvm.ptr) -> i64
// CHECK-DAG: llvm.func @k_unit_cost(!llvm.ptr) -> i64
// CHECK-NOT: kernel.func

// CHECK-LABEL: llvm.func internal @f_prepare
// CHECK: quern_rt_guard_failed
// CHECK-NOT: quern_rt_launch
// CHECK-LABEL: llvm.func internal @f_run
// CHECK-NOT: quern_rt_guard_failed
// CHECK: llvm.call @quern_rt_launch
// CHECK: llvm.return
func.func @f(%x: memref<?x4xf32> {quern.dims = #quern.dims<B>},
             %y: memref<?x4xf32> {quern.out, quern.result = 0 : i64, quern.dims = #quern.dims<B>},
             %c: memref<2xf32> {quern.constant = dense<0.0> : tensor<2xf32>}) {
  %b = kernel.dim #quern.dim<B>
  %c8 = arith.constant 8 : index
  %ok = arith.cmpi sle, %b, %c8 : index
  kernel.guard %ok, "f_c1" "expected B to be at most 8, got {0}" (%b)
  kernel.launch @k ins(%x : memref<?x4xf32>) outs(%y : memref<?x4xf32>)
  return
}
// Weights are not copied into the code: another object defines them.
// CHECK: llvm.mlir.global external hidden constant @f_constant_0() {{.*}} : !llvm.array<8 x i8>
// CHECK: llvm.mlir.global external constant @f()
// CHECK: llvm.mlir.global weak_odr constant @quern_artefact_table()
