// RUN: quern-opt %s --quern-bufferize -split-input-file -verify-diagnostics

func.func @unfused(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error@+1 {{invalid: quern-bufferize runs after quern-fuse, found 'quern.exp'}}
  %0 = quern.exp %x : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
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

// -----

// expected-error@+1 {{unsupported: argument 1 of 'scalar' is no tensor but 'f32'}}
func.func @scalar(%x: tensor<2xf32>, %y: f32) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}

// -----

// expected-error@+1 {{unsupported: result 0 of 'size' is no tensor but 'index'}}
func.func @size(%x: tensor<2xf32>) -> index {
  %0 = arith.constant 2 : index
  return %0 : index
}

// -----

func.func @upstream(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error@+1 {{unsupported: 'math.absf' in a host function}}
  %0 = math.absf %x : tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

func.func @upstream(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error@+1 {{unsupported: 'arith.addf' in a host function}}
  %0 = arith.addf %x, %x : tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

func.func @loop(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{unsupported: 'scf.for' in a host function}}
  %0 = scf.for %i = %c0 to %c1 step %c1 iter_args(%a = %x) -> tensor<2xf32> {
    scf.yield %a : tensor<2xf32>
  }
  return %0 : tensor<2xf32>
}

// -----

func.func @branch(%x: tensor<2xf32>, %p: tensor<i1>) -> tensor<2xf32> {
  %c = tensor.extract %p[] : tensor<i1>
  // expected-error@+1 {{unsupported: 'scf.if' in a host function}}
  %0 = scf.if %c -> tensor<2xf32> {
    scf.yield %x : tensor<2xf32>
  } else {
    scf.yield %x : tensor<2xf32>
  }
  return %0 : tensor<2xf32>
}
