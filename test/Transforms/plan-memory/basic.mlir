// RUN: quern-opt %s --quern-fuse=fuse=false --quern-bufferize --quern-plan-memory -split-input-file | FileCheck %s --check-prefix=OWN
// RUN: quern-opt %s --quern-fuse=fuse=false --quern-inplace --quern-verify-stage=stage=inplace \
// RUN:   --quern-bufferize --quern-verify-stage=stage=bufferized \
// RUN:   --quern-plan-memory --quern-verify-stage=stage=planned --quern-report \
// RUN:   -split-input-file 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REPORT --input-file=%t

// Six values; the last is the caller's. Without in-place two buffers take turns; with it all of
// them live in the caller's.
// OWN-LABEL: func.func @chain
// OWN-SAME: quern.arena_bytes = #quern.dim<512>, {{(quern.functional_bytes = .*, )?}}quern.unplanned_bytes = #quern.dim<1280>
// OWN: memref.alloc() {alignment = 64 : i64} : memref<512xi8>
// CHECK-LABEL: func.func @chain
// CHECK-SAME: quern.arena_bytes = #quern.dim<0>, {{(quern.functional_bytes = .*, )?}}quern.unplanned_bytes = #quern.dim<0>
// CHECK-COUNT-6: outs(%arg1 :
// REPORT: remark: 'func.func' @{{.*}}: arena 0 bytes (one buffer each: 0)
func.func @chain(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = quern.exp %x : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = quern.tanh %0 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = quern.neg %1 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = quern.exp %2 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %4 = quern.add %3, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %5 = quern.add %4, %4 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %5 : tensor<8x8xf32>
}

// -----

!b = tensor<?x16xf32, #quern.dims<B>>
!s = tensor<?xf64, #quern.dims<S>>

// Sizes in B and in S lie apart; 64-byte rows need no rounding, single f64 do. Four of five and two of
// three values are needed at one time.
// OWN-LABEL: func.func @symbolic
// OWN-SAME: quern.arena_bytes = #quern.dim<256*B + 128*floordiv(S + 7, 8)>, {{(quern.functional_bytes = .*, )?}}quern.unplanned_bytes = #quern.dim<320*B + 192*floordiv(S + 7, 8)>
// CHECK-LABEL: func.func @symbolic
// CHECK-SAME: quern.arena_bytes = #quern.dim<128*B>, {{(quern.functional_bytes = .*, )?}}quern.unplanned_bytes = #quern.dim<128*B>
// CHECK: %[[BYTES:.*]] = kernel.dim #quern.dim<128*B>
// CHECK: memref.alloc(%[[BYTES]])
// CHECK: kernel.dim #quern.dim<64*B>
// CHECK: memref.view
// REPORT: remark: 'func.func' @{{.*}}: arena 128*B bytes (one buffer each: 128*B)
func.func @symbolic(%x: !b, %y: !s) -> (!b, !b, !s) {
  %0 = quern.exp %x : (!b) -> !b
  %1 = quern.tanh %x : (!b) -> !b
  %2 = quern.mul %0, %1 : (!b, !b) -> !b
  %3 = quern.sub %0, %1 : (!b, !b) -> !b
  %4 = quern.exp %y : (!s) -> !s
  %5 = quern.mul %4, %y : (!s, !s) -> !s
  %6 = quern.exp %5 : (!s) -> !s
  %7 = quern.add %6, %y : (!s, !s) -> !s
  %8 = quern.add %2, %3 : (!b, !b) -> !b
  %9 = quern.add %8, %2 : (!b, !b) -> !b
  %10 = quern.add %9, %3 : (!b, !b) -> !b
  return %8, %10, %7 : !b, !b, !s
}
