// RUN: quern-opt --quern-simplify %s | FileCheck %s

// CHECK-LABEL: func.func @identities
// CHECK-SAME: %[[X:.*]]: tensor<2x3xf32>
// CHECK-NOT: = quern
// CHECK: return %[[X]], %[[X]], %[[X]], %[[X]]
func.func @identities(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) {
  %one = quern.full {size = #quern.dims<>, fill_value = 1.0, dtype = f32} : ()
  %zero = quern.full {size = #quern.dims<3>, fill_value = 0.0, dtype = f32} : ()
  %nothing = arith.constant dense<-0.0> : tensor<2x3xf32>
  %0 = quern.mul %x, %one : (tensor<2x3xf32>, tensor<f32>)
  %1 = quern.add %nothing, %x : (tensor<2x3xf32>, tensor<2x3xf32>)
  %2 = quern.sub %x, %zero : (tensor<2x3xf32>, tensor<3xf32>)
  %3 = quern.div %x, %one : (tensor<2x3xf32>, tensor<f32>)
  return %0, %1, %2, %3 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
}

// x + 0 is no identity for x = -0; a factor of alpha and a broadcast keep the op; so does a destination.
// CHECK-LABEL: func.func @kept
// CHECK: quern.add
// CHECK: quern.add
// CHECK: quern.mul
// CHECK: quern.mul {{.*}} into
func.func @kept(%x: tensor<3xf32>, %d: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<2x3xf32>, tensor<3xf32>) {
  %zero = quern.full {size = #quern.dims<>, fill_value = 0.0, dtype = f32} : ()
  %nothing = quern.full {size = #quern.dims<>, fill_value = -0.0, dtype = f32} : ()
  %ones = quern.full {size = #quern.dims<2, 3>, fill_value = 1, dtype = f32} : ()
  %one = quern.full {size = #quern.dims<>, fill_value = 1, dtype = f32} : ()
  %0 = quern.add %x, %zero : (tensor<3xf32>, tensor<f32>)
  %1 = quern.add %nothing, %x {alpha = 2} : (tensor<f32>, tensor<3xf32>)
  %2 = quern.mul %x, %ones : (tensor<3xf32>, tensor<2x3xf32>)
  %3 = quern.mul %x, %one into %d : (tensor<3xf32>, tensor<f32>, tensor<3xf32>) -> tensor<3xf32>
  return %0, %1, %2, %3 : tensor<3xf32>, tensor<3xf32>, tensor<2x3xf32>, tensor<3xf32>
}

// CHECK-LABEL: func.func @integers
// CHECK-SAME: %[[X:.*]]: tensor<2xi64>
// CHECK: return %[[X]], %[[X]]
func.func @integers(%x: tensor<2xi64>) -> (tensor<2xi64>, tensor<2xi64>) {
  %zero = arith.constant dense<0> : tensor<2xi64>
  %0 = quern.add %x, %zero : (tensor<2xi64>, tensor<2xi64>)
  %1 = quern.sub %x, %zero : (tensor<2xi64>, tensor<2xi64>)
  return %0, %1 : tensor<2xi64>, tensor<2xi64>
}

// CHECK-LABEL: func.func @same_type
// CHECK-SAME: %[[X:[^:]*]]: tensor<?x3xf32, #quern.dims<B>>, %[[Y:[^:]*]]: tensor<?xf32>
// CHECK-NEXT: %[[V:.*]] = quern.view %[[Y]]
// CHECK-NEXT: return %[[X]], %[[X]], %[[X]], %[[V]]
func.func @same_type(%x: tensor<?x3xf32, #quern.dims<B>>, %y: tensor<?xf32>)
    -> (tensor<?x3xf32, #quern.dims<B>>, tensor<?x3xf32, #quern.dims<B>>, tensor<?x3xf32, #quern.dims<B>>, tensor<?xf32>) {
  %0 = quern.convert %x {dtype = f32} : (tensor<?x3xf32, #quern.dims<B>>)
  %1 = quern.view %x {size = #quern.dims<-1, 3>} : (tensor<?x3xf32, #quern.dims<B>>)
  %2 = quern.slice %x {start = #quern.dim<0>} : (tensor<?x3xf32, #quern.dims<B>>)
  %3 = quern.view %y {size = #quern.dims<_>} : (tensor<?xf32>)
  return %0, %1, %2, %3 : tensor<?x3xf32, #quern.dims<B>>, tensor<?x3xf32, #quern.dims<B>>, tensor<?x3xf32, #quern.dims<B>>, tensor<?xf32>
}

// CHECK-LABEL: func.func @views
// CHECK-NEXT: quern.view %arg0 {size = #quern.dims<6, 4>}
// CHECK-NEXT: return %arg0, %{{.*}}
func.func @views(%x: tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<6x4xf32>) {
  %0 = quern.permute %x {dims = array<i64: 2, 0, 1>} : (tensor<2x3x4xf32>)
  %1 = quern.permute %0 {dims = array<i64: 1, 2, 0>} : (tensor<4x2x3xf32>)
  %2 = quern.view %1 {size = #quern.dims<24>} : (tensor<2x3x4xf32>)
  %3 = quern.view %2 {size = #quern.dims<6, 4>} : (tensor<24xf32>)
  return %1, %3 : tensor<2x3x4xf32>, tensor<6x4xf32>
}
