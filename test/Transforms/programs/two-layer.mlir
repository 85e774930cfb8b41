// Two layers with gelu, softmax and exp, forward and backward.
//
// RUN: quern-opt %s --quern-autodiff="arguments=0,1,2" --quern-simplify -o %t.joint
// RUN: FileCheck %s --input-file=%t.joint --check-prefix=JOINT
//
// Op by op: whatever could be written in place is (the verifier finds what was missed), and each
// refusal has its reason.
// RUN: quern-opt %t.joint --quern-inplace --quern-verify-stage=stage=inplace --quern-report \
// RUN:   2>%t.why | FileCheck %s --check-prefix=INPLACE
// RUN: FileCheck %s --check-prefix=WHY --input-file=%t.why
//
// Without in-place and with a buffer for each value; then in place and planned, unfused and fused.
// RUN: quern-opt %t.joint --quern-fuse=fuse=false --quern-bufferize --quern-plan-memory \
// RUN:   --quern-verify-stage=stage=planned | FileCheck %s --check-prefix=BEFORE
// RUN: quern-opt %t.joint --quern-fuse=fuse=false --quern-inplace --quern-verify-stage=stage=inplace \
// RUN:   --quern-bufferize --quern-verify-stage=stage=bufferized \
// RUN:   --quern-plan-memory --quern-verify-stage=stage=planned | FileCheck %s --check-prefix=AFTER
// RUN: quern-opt %t.joint --quern-fuse --quern-inplace --quern-verify-stage=stage=inplace \
// RUN:   --quern-bufferize --quern-verify-stage=stage=bufferized \
// RUN:   --quern-plan-memory --quern-verify-stage=stage=planned | FileCheck %s --check-prefix=FUSED

// JOINT-LABEL: func.func @two_layer_joint
// JOINT-SAME: -> (tensor<f32>, tensor<64x128xf32>, tensor<128x128xf32>, tensor<128xf32>)
// JOINT-NOT: quern.full
// JOINT: return

// INPLACE-LABEL: func.func @two_layer_joint
// INPLACE-COUNT-28: into
// INPLACE-NOT: into
// INPLACE: return

// WHY-DAG: remark: {{.*}}: in place: result into self
// WHY-DAG: remark: {{.*}}: in place: result into other; self: it has another type
// WHY-DAG: remark: {{.*}}: not in place; self: each result element reads a whole row and column; mat2: each result element reads a whole row and column
// WHY-DAG: remark: {{.*}}: not in place; self: it is still live; other: it is still live
// WHY-DAG: remark: {{.*}}: not in place; self: elements are read at other places than they are written

// BEFORE-LABEL: func.func @two_layer_joint
// BEFORE-SAME: quern.unplanned_bytes = #quern.dim<1312000>
// AFTER-LABEL: func.func @two_layer_joint
// AFTER-SAME: quern.arena_bytes = #quern.dim<196608>, quern.functional_bytes = #quern.dim<1312000>
// FUSED-LABEL: func.func @two_layer_joint
// FUSED-SAME: quern.arena_bytes = #quern.dim<131072>
// FUSED-COUNT-9: kernel.launch
// FUSED-NOT: kernel.launch
// FUSED: return

!x = tensor<64x128xf32>
!w = tensor<128x128xf32>
!b = tensor<128xf32>

func.func @two_layer(%x: !x, %w: !w, %b: !b) -> tensor<f32> {
  %tenth = arith.constant dense<0.1> : tensor<f32>
  %0 = quern.mm %x, %w : (!x, !w) -> !x
  %1 = quern.add %0, %b : (!x, !b) -> !x
  %h = quern.tanh %1 : (!x) -> !x
  %2 = quern.mm %h, %w : (!x, !w) -> !x
  %3 = quern.add %2, %b : (!x, !b) -> !x
  %g = quern.gelu %3 : (!x) -> !x
  %4 = quern.softmax %g {dim = -1 : i64} : (!x) -> !x
  %5 = quern.mul %g, %tenth : (!x, tensor<f32>) -> !x
  %6 = quern.exp %5 : (!x) -> !x
  %y = quern.mul %4, %6 : (!x, !x) -> !x
  %7 = quern.mul %y, %y : (!x, !x) -> !x
  %loss = quern.mean %7 : (!x) -> tensor<f32>
  return %loss : tensor<f32>
}
