// What a call takes, and took before each step: numbers, and expressions where sizes are free.
//
// RUN: quern-run %s --random-inputs=1 --dim=B=8 --quiet -O0 --print-memory | FileCheck %s
// CHECK: arena: 512 bytes
// CHECK-NEXT: each value in a buffer of its own: 128*B bytes
// CHECK-NEXT: after in-place: 64*B bytes
// CHECK-NEXT: planned: 64*B bytes

!t = tensor<?x16xf32, #quern.dims<B>>
func.func @f(%x: !t) -> !t {
  %0 = quern.exp %x : (!t) -> !t
  %1 = quern.tanh %0 : (!t) -> !t
  %2 = quern.mul %0, %1 : (!t, !t) -> !t
  return %2 : !t
}
