// What a function may take and promise.
// RUN: quern-opt %s --quern-propagate-shapes --split-input-file --verify-diagnostics
// RUN: quern-opt %s --quern-inplace --split-input-file --verify-diagnostics

// expected-error@+1 {{invalid: quern.into of result 0: expected the number of one of 1 arguments, as i64, got 7 : i64}}
func.func @range(%x: tensor<2xf32>) -> (tensor<2xf32> {quern.into = 7 : i64}) {
  return %x : tensor<2xf32>
}

// -----

// expected-error@+1 {{invalid: quern.into of result 0: expected the number of one of 1 arguments, as i64, got "x"}}
func.func @kind(%x: tensor<2xf32>) -> (tensor<2xf32> {quern.into = "x"}) {
  return %x : tensor<2xf32>
}

// -----

// expected-error@+1 {{invalid: quern.into is for results, got it on argument 0}}
func.func @argument(%x: tensor<2xf32> {quern.into = 0 : i64}) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}

// -----

// expected-error@+1 {{invalid: quern.donated is for arguments, got it on result 0}}
func.func @result(%x: tensor<2xf32>) -> (tensor<2xf32> {quern.donated}) {
  return %x : tensor<2xf32>
}

// -----

// expected-error@+1 {{invalid: quern.donated of argument 0: expected no value, got false}}
func.func @value(%x: tensor<2xf32> {quern.donated = false}) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}

// -----

// expected-error@+1 {{unsupported: argument 0 of 'unranked' has a rank that is not known}}
func.func @unranked(%x: tensor<*xf32>) -> tensor<*xf32> {
  return %x : tensor<*xf32>
}

// -----

// expected-error@+1 {{unsupported: argument 0 of 'complex' has elements of type complex<f32>}}
func.func @complex(%x: tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>> {
  return %x : tensor<2xcomplex<f32>>
}

// -----

// expected-error@+1 {{invalid: argument 0 of 'large' has more elements than 64 bits can count}}
func.func @large(%x: tensor<4294967296x4294967296xf32>) -> tensor<4294967296x4294967296xf32> {
  return %x : tensor<4294967296x4294967296xf32>
}
