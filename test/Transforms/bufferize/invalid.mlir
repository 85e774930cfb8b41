// RUN: quern-opt %s --quern-bufferize -split-input-file -verify-diagnostics

func.func @unfused(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error@+1 {{invalid: quern-bufferize runs after quern-fuse, found 'quern.exp'}}
  %0 = quern.exp %x : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// expected-error@+1 {{invalid: quern.into of result 0: expected the number of one of}}
func.func @nowhere(%x: tensor<2xf32>) -> (tensor<2xf32> {quern.into = 3 : i64}) {
  return %x : tensor<2xf32>
}

// -----

// expected-error@+1 {{invalid: result 0 and the argument that it is promised to have different types, got 'tensor<2xf32>' and 'tensor<3xf32>'}}
func.func @type(%x: tensor<2xf32>, %y: tensor<3xf32>) -> (tensor<2xf32> {quern.into = 1 : i64}) {
  return %x : tensor<2xf32>
}

// -----

// expected-error@+1 {{invalid: argument 0 is promised to several results}}
func.func @twice(%x: tensor<2xf32>) -> (tensor<2xf32> {quern.into = 0 : i64}, tensor<2xf32> {quern.into = 0 : i64}) {
  return %x, %x : tensor<2xf32>, tensor<2xf32>
}

// -----

func.func private @g(%x: tensor<2xf32>) -> tensor<2xf32>
func.func @call(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error@+1 {{unsupported: quern-bufferize of 'func.call'; inline it first}}
  %0 = call @g(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
