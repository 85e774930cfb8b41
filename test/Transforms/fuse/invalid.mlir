// RUN: quern-opt %s --quern-fuse -split-input-file -verify-diagnostics

func.func @unnamed(%x: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error@+1 {{unsupported: a result with an unnamed size; run quern-propagate-shapes first}}
  %0 = quern.exp %x : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

func.func @view(%x: tensor<?x4xf32>) -> tensor<?xf32> {
  // expected-error@+1 {{unsupported: a view with an unnamed size; run quern-propagate-shapes first}}
  %0 = quern.view %x {size = #quern.dims<_>} : (tensor<?x4xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

func.func @nowhere() -> tensor<f32> {
  // expected-error@+1 {{unsupported: no argument of the function has the size B}}
  %0 = quern.dim_value {value = #quern.dim<B>, dtype = f32} : () -> tensor<f32>
  return %0 : tensor<f32>
}
