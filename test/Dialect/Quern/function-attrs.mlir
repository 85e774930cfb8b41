// What a function promises is verified wherever it stands, without any pass.
// RUN: quern-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{invalid: unknown attribute quern.donatd on argument 0}}
func.func @argument(%x: tensor<2xf32> {quern.donatd}) {
  return
}

// -----

// expected-error@+1 {{invalid: unknown attribute quern.output on result 0}}
func.func @result(%x: tensor<2xf32>) -> (tensor<2xf32> {quern.output = 1}) {
  return %x : tensor<2xf32>
}

// -----

// expected-error@+1 {{invalid: unknown attribute quern.ranges on the function}}
func.func @function() attributes {quern.ranges = {B = #quern.range<1, 8>}} {
  return
}

// -----

// expected-error@+1 {{invalid: quern.into is for results, got it on argument 0}}
func.func @place(%x: tensor<2xf32> {quern.into = 0 : i64}) {
  return
}

// -----

// expected-error@+1 {{invalid: quern.donated is for arguments, got it on result 0}}
func.func @place(%x: tensor<2xf32>) -> (tensor<2xf32> {quern.donated}) {
  return %x : tensor<2xf32>
}

// -----

// expected-error@+1 {{invalid: quern.dims is for functions and arguments, got it on result 0}}
func.func @place(%x: tensor<2xf32>) -> (tensor<2xf32> {quern.dims = #quern.dims<B>}) {
  return %x : tensor<2xf32>
}

// -----

// expected-error@+1 {{invalid: quern.donated on argument 0: expected no value, got false}}
func.func @value(%x: tensor<2xf32> {quern.donated = false}) {
  return
}

// -----

// expected-error@+1 {{invalid: quern.into on result 0: expected the number of an argument, as i64, got 7 : i64}}
func.func @value(%x: tensor<2xf32>) -> (tensor<2xf32> {quern.into = 7 : i64}) {
  return %x : tensor<2xf32>
}

// -----

// expected-error@+1 {{invalid: quern.into on result 0: expected the number of an argument, as i64, got 0 : i32}}
func.func @value(%x: tensor<2xf32>) -> (tensor<2xf32> {quern.into = 0 : i32}) {
  return %x : tensor<2xf32>
}

// -----

// expected-error@+1 {{invalid: quern.name on argument 0: expected a string, got 3 : i64}}
func.func @value(%x: tensor<2xf32> {quern.name = 3}) {
  return
}

// -----

// expected-error@+1 {{invalid: quern.dims on the function: expected a dictionary of #quern.range by names of sizes, got {B = 8 : i64}}}
func.func @value(%a: tensor<?xf32, #quern.dims<B>>) attributes {quern.dims = {B = 8}} {
  return
}

// -----

// expected-error@+1 {{invalid: quern.dims on argument 0: expected #quern.dims, got 8 : i64}}
func.func @value(%a: memref<?xf32> {quern.dims = 8}) {
  return
}

// -----

// expected-error@+1 {{invalid: quern.result on argument 0: expected the number of a result, as i64, got "y"}}
func.func @value(%a: memref<2xf32> {quern.result = "y"}) {
  return
}

// -----

// expected-error@+1 {{invalid: quern.constant on argument 0: expected elements, got 1 : i64}}
func.func @value(%a: memref<2xf32> {quern.constant = 1}) {
  return
}

// -----

// expected-error@+1 {{invalid: quern.result_names on the function: expected a list of strings, got [1]}}
func.func @value() attributes {quern.result_names = [1]} {
  return
}

// -----

// expected-error@+1 {{invalid: quern.arena_bytes on the function: expected #quern.dim, got 64 : i64}}
func.func @value() attributes {quern.arena_bytes = 64} {
  return
}
