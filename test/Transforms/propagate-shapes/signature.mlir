// What a function on tensors may take, for every pass up to quern-bufferize.
// RUN: quern-opt %s --quern-propagate-shapes --split-input-file --verify-diagnostics
// RUN: quern-opt %s --quern-materialize-guards --split-input-file --verify-diagnostics
// RUN: quern-opt %s --quern-autodiff --split-input-file --verify-diagnostics
// RUN: quern-opt %s --quern-fuse --split-input-file --verify-diagnostics
// RUN: quern-opt %s --quern-inplace --split-input-file --verify-diagnostics
// RUN: quern-opt %s --quern-bufferize --split-input-file --verify-diagnostics

// expected-error@+1 {{unsupported: argument 0 of 'unranked' has a rank that is not known}}
func.func @unranked(%x: tensor<*xf32>) -> tensor<*xf32> {
  return %x : tensor<*xf32>
}

// -----

// expected-error@+1 {{unsupported: argument 0 of 'complex' has elements of type 'complex<f32>'}}
func.func @complex(%x: tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>> {
  return %x : tensor<2xcomplex<f32>>
}

// -----

// expected-error@+1 {{invalid: argument 0 of 'large' has more elements than 64 bits can count}}
func.func @large(%x: tensor<4294967296x4294967296xf32>) -> tensor<4294967296x4294967296xf32> {
  return %x : tensor<4294967296x4294967296xf32>
}

// -----

// expected-error@+1 {{unsupported: argument 0 of 'small' has elements of type 'f8E4M3FN'}}
func.func @small(%x: tensor<2xf8E4M3FN>) -> tensor<2xf8E4M3FN> {
  return %x : tensor<2xf8E4M3FN>
}

// -----

// expected-error@+1 {{unsupported: argument 0 of 'memref' is no tensor but 'memref<2xf32>'}}
func.func @memref(%x: memref<2xf32>) -> memref<2xf32> {
  return %x : memref<2xf32>
}

// -----

// expected-error@+1 {{unsupported: result 0 of 'vector' is no tensor but 'vector<2xf32>'}}
func.func @vector(%x: tensor<2xf32>) -> vector<2xf32> {
  %0 = arith.constant dense<0.0> : vector<2xf32>
  return %0 : vector<2xf32>
}

// -----

// expected-error@+1 {{invalid: argument 0 of 'static' has names for 2 sizes, of which 1 are `?`}}
func.func @static(%x: tensor<2x?xf32, #quern.dims<A, B>>) -> tensor<2x?xf32, #quern.dims<A, B>> {
  return %x : tensor<2x?xf32, #quern.dims<A, B>>
}
