// The named pipeline: calls are inlined, sizes named, and what the gradient leaves is simplified.
// RUN: quern-opt %s --quern-backward="function=f arguments=0" | FileCheck %s

func.func private @square(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = quern.mul %x, %x : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// CHECK-NOT: @square
// CHECK-LABEL: func.func @f_joint(
// CHECK-SAME: %[[X:.*]]: tensor<?xf32, #quern.dims<[[N:.*]]>>, %[[G:.*]]: tensor<?xf32, #quern.dims<[[N]]>>)
// CHECK: %[[R:.*]] = quern.mul %[[X]], %[[X]]
// CHECK: %[[HALF:.*]] = quern.mul %[[G]], %[[X]]
// CHECK-NEXT: %[[GX:.*]] = quern.add %[[HALF]], %[[HALF]]
// CHECK-NEXT: return %[[R]], %[[GX]]
func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = call @square(%x) : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
