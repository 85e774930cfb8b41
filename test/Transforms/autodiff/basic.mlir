// RUN: quern-opt %s --quern-autodiff=function=f --split-input-file | FileCheck %s
// RUN: quern-opt %s --quern-autodiff="function=f mode=split" --split-input-file | FileCheck %s --check-prefix=SPLIT

!t = tensor<?x4xf32, #quern.dims<B>>

// The cotangent of the result is an argument; x is used twice, so its gradient is a sum.
// CHECK-LABEL: func.func @f_joint(
// CHECK-SAME: %[[X:.*]]: {{.*}}, %[[W:.*]]: {{.*}}, %[[G:.*]]: tensor<?x4xf32, #quern.dims<B>>)
// CHECK: %[[E:.*]] = quern.exp
// CHECK: %[[R:.*]] = quern.add %[[E]], %[[X]]
// CHECK: %[[GE:.*]] = quern.mul %[[G]], %[[E]]
// CHECK: %[[GX:.*]] = quern.mul %[[GE]], %[[W]]
// CHECK: %[[GW:.*]] = quern.mul %[[GE]], %[[X]]
// CHECK: %[[SUM:.*]] = quern.add %[[G]], %[[GX]]
// CHECK: return %[[R]], %[[SUM]], %[[GW]]

// Saved are the exponential and both factors; the sum is not.
// SPLIT-LABEL: func.func @f_forward
// SPLIT: %[[E:.*]] = quern.exp
// SPLIT: %[[R:.*]] = quern.add
// SPLIT: return %[[R]], %[[E]], %arg1, %arg0
// SPLIT-LABEL: func.func @f_backward
// SPLIT-COUNT-3: quern.mul
// SPLIT: quern.add
// SPLIT-NEXT: return
func.func @f(%x: !t, %w: !t) -> !t {
  %0 = quern.mul %x, %w : (!t, !t) -> !t
  %1 = quern.exp %0 : (!t) -> !t
  %2 = quern.add %1, %x : (!t, !t) -> !t
  return %2 : !t
}
