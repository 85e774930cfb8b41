// RUN: quern-opt %s --pass-pipeline='builtin.module(func.func(quern-verify-stage{stage=named}))' --split-input-file --verify-diagnostics

func.func @unnamed(%a: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error @below {{internal: quern-verify-stage: a size without a name}}
  %0 = quern.exp %a : (tensor<?xf32>) -> tensor<?xf32>
  %1 = quern.exp %0 : (tensor<?xf32>) -> tensor<?xf32>
  return %1 : tensor<?xf32>
}

// -----

func.func @unbound(%a: tensor<?xf32>) -> tensor<?xf32, #quern.dims<S>> {
  // expected-error @below {{'quern.exp' op uses size S, which no argument and no kernel.bind_dims before it binds}}
  %0 = quern.exp %a : (tensor<?xf32>) -> tensor<?xf32, #quern.dims<S>>
  return %0 : tensor<?xf32, #quern.dims<S>>
}
