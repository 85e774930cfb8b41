// From ops to numbers: fused and by the reference, one compilation for every size.
//
// RUN: quern-run %s --random-inputs=3 --dim=B=5 --poison > %t.1
// RUN: quern-run %s --random-inputs=3 --dim=B=5 --poison -O0 > %t.0
// RUN: FileCheck %s --input-file=%t.1
// RUN: FileCheck %s --input-file=%t.0
// RUN: quern-run %s --random-inputs=3 --dim=B=0 | FileCheck %s --check-prefix=EMPTY
// RUN: quern-compile %s -o %t.so && quern-run %t.so --random-inputs=3 --dim=B=5 > %t.2
// RUN: diff %t.1 %t.2
//
// CHECK: result0: f32[5, 2]
// EMPTY: result0: f32[0, 2]

func.func @f(%x: tensor<?x3xf32, #quern.dims<B>>) -> tensor<?x2xf32, #quern.dims<B>> {
  %w = arith.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>
  %b = arith.constant dense<[0.5, -0.5]> : tensor<2xf32>
  %h = quern.mm %x, %w : (tensor<?x3xf32, #quern.dims<B>>, tensor<3x2xf32>) -> tensor<?x2xf32, #quern.dims<B>>
  %a = quern.add %h, %b : (tensor<?x2xf32, #quern.dims<B>>, tensor<2xf32>) -> tensor<?x2xf32, #quern.dims<B>>
  %r = quern.tanh %a : (tensor<?x2xf32, #quern.dims<B>>) -> tensor<?x2xf32, #quern.dims<B>>
  return %r : tensor<?x2xf32, #quern.dims<B>>
}
