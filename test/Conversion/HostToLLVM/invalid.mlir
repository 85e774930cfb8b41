// RUN: quern-opt %s --quern-convert-host-to-llvm --split-input-file --verify-diagnostics

func.func @copies_are_kernels(%x: memref<4xf32>,
                              %y: memref<4xf32> {quern.out, quern.result = 0 : i64}) {
  // expected-error@+1 {{unsupported: 'memref.copy' in the host function}}
  memref.copy %x, %y : memref<4xf32> to memref<4xf32>
  return
}

// -----

// expected-error@+1 {{unsupported: a size that no argument gives}}
func.func @nameless(%y: memref<?xf32> {quern.out, quern.result = 0 : i64}) {
  return
}

// -----

// expected-error@+1 {{invalid: out buffer 0 is no result's}}
func.func @nobodys(%y: memref<4xf32> {quern.out}) {
  return
}

// -----

// expected-error@+1 {{invalid: expected a function on buffers, as quern-bufferize makes it, without results}}
func.func @tensors(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// expected-error@+1 {{invalid: expected a function on buffers, as quern-bufferize makes it, got argument 0 of type 'tensor<4xf32>'}}
func.func @tensor(%x: tensor<4xf32>) {
  return
}

// -----

// expected-error@+1 {{invalid: expected each result to have one buffer, got result 0}}
func.func @twice(%x: memref<4xf32> {quern.result = 0 : i64}, %y: memref<4xf32> {quern.result = 0 : i64}) {
  return
}
