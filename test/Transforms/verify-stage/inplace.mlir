// RUN: quern-opt %s --quern-verify-stage=stage=inplace -split-input-file -verify-diagnostics

!t = tensor<2x2xf32>

func.func @live(%x: !t) -> (!t, !t) {
  %0 = quern.exp %x : (!t) -> !t
  %1 = quern.tanh %0 into %0 : (!t, !t) -> !t
  // expected-error@+1 {{reads a buffer that was overwritten since}}
  return %0, %1 : !t, !t
}

// -----

!t = tensor<2x2xf32>
func.func @caller(%x: !t) -> !t {
  // expected-error@+1 {{overwrites a buffer that the function does not own}}
  %0 = quern.exp %x into %x : (!t, !t) -> !t
  return %0 : !t
}

// -----

!t = tensor<2x2xf32>
func.func @missed(%x: !t) -> !t {
  %0 = quern.exp %x : (!t) -> !t
  // expected-error@+1 {{result 0 could have been written into input 0}}
  %1 = quern.tanh %0 : (!t) -> !t
  return %1 : !t
}

// -----

!t = tensor<2x2xf32>
kernel.func @rows kind "row_reduction" {
^bb0(%a: !t, %o: !t):
  kernel.yield %a : !t
}
func.func @rule(%x: !t) -> !t {
  %0 = quern.exp %x : (!t) -> !t
  // expected-error@+1 {{overwrites input 0, which its rule does not allow}}
  %1 = kernel.launch @rows ins(%0 : !t) outs(%0 : !t) -> !t
  return %1 : !t
}
