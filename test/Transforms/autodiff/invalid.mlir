// RUN: not quern-opt %s --quern-autodiff=function=nowhere 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not quern-opt %s --quern-autodiff 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: not quern-opt %s --quern-autodiff="function=f mode=forward" 2>&1 | FileCheck %s --check-prefix=MODE
// RUN: not quern-opt %s --quern-autodiff="function=f arguments=2" 2>&1 | FileCheck %s --check-prefix=RANGE
// RUN: not quern-opt %s --quern-autodiff="function=ints arguments=0" 2>&1 | FileCheck %s --check-prefix=DTYPE
// RUN: not quern-opt %s --quern-autodiff="function=unnamed" 2>&1 | FileCheck %s --check-prefix=UNNAMED
// RUN: not quern-opt %s --quern-autodiff="function=into" 2>&1 | FileCheck %s --check-prefix=INTO
// RUN: not quern-opt %s --quern-autodiff="function=region" 2>&1 | FileCheck %s --check-prefix=REGION
// RUN: not quern-opt %s --quern-autodiff="function=call" 2>&1 | FileCheck %s --check-prefix=CALL
// RUN: not quern-opt %s --quern-autodiff="function=f arguments=0,0" 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not quern-opt %s --quern-autodiff="function=ints" 2>&1 | FileCheck %s --check-prefix=NOTHING
// RUN: not quern-opt %s --quern-autodiff="function=rounded" 2>&1 | FileCheck %s --check-prefix=RESULT
// RUN: not quern-opt %s --quern-backward="function=f arguments=0,0" 2>&1 | FileCheck %s --check-prefix=TWICE

// NAME: invalid.mlir: error: invalid: quern-autodiff: no function @nowhere
// MANY: invalid.mlir: error: invalid: quern-autodiff: expected the name of one of 7 functions
// MODE: error: invalid: quern-autodiff: expected mode to be joint or split, got forward
// RANGE: error: invalid: quern-autodiff: expected the number of an argument, got 2
// DTYPE: error: invalid: quern-autodiff: argument 0 is not a float tensor but 'tensor<2xi32>'
// UNNAMED: error: unsupported: quern-autodiff of a tensor with an unnamed size; run quern-propagate-shapes first
// INTO: error: unsupported: quern-autodiff of an op that writes into a destination
// REGION: error: unsupported: quern-autodiff of 'scf.if', which has a region
// CALL: error: unsupported: quern-autodiff of 'func.call', which declares no derivative
// TWICE: error: invalid: quern-autodiff: argument 0 is given twice
// NOTHING: error: invalid: quern-autodiff: @ints has no argument of a float dtype
// RESULT: error: invalid: quern-autodiff: @rounded has no result of a float dtype

func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = quern.exp %x : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
func.func @ints(%x: tensor<2xi32>) -> tensor<2xi32> {
  %0 = quern.neg %x : (tensor<2xi32>) -> tensor<2xi32>
  return %0 : tensor<2xi32>
}
func.func @unnamed(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = quern.exp %x : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func @into(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = quern.exp %x into %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
func.func @region(%c: i1, %x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = scf.if %c -> tensor<2xf32> {
    scf.yield %x : tensor<2xf32>
  } else {
    %1 = quern.exp %x : (tensor<2xf32>) -> tensor<2xf32>
    scf.yield %1 : tensor<2xf32>
  }
  return %0 : tensor<2xf32>
}
func.func @call(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = call @f(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
func.func @rounded(%x: tensor<2xf32>) -> tensor<2xi32> {
  %0 = quern.convert %x {dtype = i32} : (tensor<2xf32>) -> tensor<2xi32>
  return %0 : tensor<2xi32>
}
