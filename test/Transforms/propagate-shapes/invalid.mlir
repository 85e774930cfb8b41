// RUN: quern-opt %s --quern-propagate-shapes --split-input-file --verify-diagnostics

func.func @known_false(%a: tensor<?xf32, #quern.dims<A>>, %b: tensor<?xf32, #quern.dims<B>>)
    attributes {quern.dims = {A = #quern.range<2, 4>, B = #quern.range<5, 8>}} {
  // expected-error @below {{'quern.add' op add_c2: expected other dim 0 to equal self dim 0 or to be 1, got B and A}}
  %0 = quern.add %a, %b : (tensor<?xf32, #quern.dims<A>>, tensor<?xf32, #quern.dims<B>>) -> tensor<?xf32>
  return
}

// -----

func.func @claim(%a: tensor<?xf32, #quern.dims<S>>) attributes {quern.dims = {S = #quern.range<0, mod 8>}} {
  // expected-error @below {{'quern.exp' op exp_result: expected result dim 0 to equal the inferred size, got 7 and S}}
  %0 = quern.exp %a : (tensor<?xf32, #quern.dims<S>>) -> tensor<7xf32>
  return
}

// -----

// expected-error @below {{invalid: size S in the type of argument 0 is no dim of an argument by itself}}
func.func @unbound(%a: tensor<?xf32, #quern.dims<2*S>>) {
  return
}

// -----

// expected-error @below {{invalid: quern.dims has a range of size C, which no argument and no kernel.bind_dims binds}}
func.func @nobody(%a: tensor<?xf32, #quern.dims<B>>) attributes {quern.dims = {C = #quern.range<1, 8>}} {
  return
}

// -----

func.func private @recursive(%a: tensor<?xf32>) -> tensor<?xf32> {
  %0 = call @caller2(%a) : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func private @caller2(%a: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error @below {{unsupported: recursive call of @recursive}}
  %0 = call @recursive(%a) : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// What the callee leaves for run time may be known false for one of its calls.
func.func @passes_wrong(%a: tensor<3xf32>) {
  %0 = kernel.refine %a : tensor<3xf32> to tensor<?xf32>
  // expected-error @below {{'quern.add' op add_c2: expected other dim 0 to equal self dim 0 or to be 1, got 5 and 3 (in the call of @adds)}}
  call @adds(%0) : (tensor<?xf32>) -> ()
  return
}
func.func private @adds(%a: tensor<?xf32>) {
  %five = arith.constant dense<1.0> : tensor<5xf32>
  %0 = quern.add %a, %five : (tensor<?xf32>, tensor<5xf32>) -> tensor<5xf32>
  return
}
