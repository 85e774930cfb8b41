// RUN: quern-opt %s --quern-materialize-guards --split-input-file --verify-diagnostics

// Trap: a loop body with a bound size, cloned.
func.func @cloned(%a: tensor<?xf32>, %b: tensor<?xf32>) {
  %0 = kernel.bind_dims %a : tensor<?xf32> to tensor<?xf32, #quern.dims<S>>
  %1 = tensor.concat dim(0) %a, %b : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  // expected-error @below {{binds size S a second time; run quern-strip-dims before code is cloned}}
  %2 = kernel.bind_dims %1 : tensor<?xf32> to tensor<?xf32, #quern.dims<S>>
  return
}

// -----

func.func @unbound(%a: tensor<?xf32>) {
  // expected-error @below {{uses size S, which no argument and no kernel.bind_dims before it binds}}
  %0 = kernel.dim #quern.dim<S + 1>
  return
}

// -----

func.func @out_of_scope(%c: i1, %a: tensor<?xf32>) {
  scf.if %c {
    %0 = tensor.concat dim(0) %a, %a : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    %1 = kernel.bind_dims %0 : tensor<?xf32> to tensor<?xf32, #quern.dims<S>>
  }
  // expected-error @below {{uses size S, which no argument and no kernel.bind_dims before it binds}}
  %2 = kernel.dim #quern.dim<S>
  return
}
