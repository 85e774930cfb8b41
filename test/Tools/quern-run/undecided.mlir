// A size that is 1 or the result's, known only at run time: expand reads its one element.
// RUN: quern-run %s --random-inputs 1 --dim A=1 --dim B=3 | FileCheck %s
// RUN: quern-run %s --random-inputs 1 --dim A=3 --dim B=3 | FileCheck %s --check-prefix=SAME
// RUN: not quern-run %s --random-inputs 1 --dim A=2 --dim B=3 2>&1 | FileCheck %s --check-prefix=BAD
// CHECK: result0: f32[3] [[X:[-.0-9e]+]], [[X]], [[X]]
// SAME: result0: f32[3]
// BAD: error: invalid: 'quern.expand' op expand_c
func.func @f(%x: tensor<?xf32, #quern.dims<A>>, %y: tensor<?xf32, #quern.dims<B>>) -> tensor<?xf32, #quern.dims<B>> {
  %0 = quern.expand %x {size = #quern.dims<B>} : (tensor<?xf32, #quern.dims<A>>) -> tensor<?xf32, #quern.dims<B>>
  return %0 : tensor<?xf32, #quern.dims<B>>
}
