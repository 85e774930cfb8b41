// A remark is one line: where, which op, its symbol and types, what and why.
//
// RUN: quern-run %s --no-cache --report --random-inputs=1 --quiet 2> %t.run
// RUN: quern-opt %s --quern-cpu --quern-report -o %t.mlir 2> %t.opt
// RUN: diff %t.run %t.opt
// RUN: FileCheck %s --input-file=%t.run
// RUN: not grep -v 'report.mlir:[0-9]*:[0-9]*: remark: ' %t.run
// CHECK: {{^.*}}report.mlir:[[@LINE+5]]:8: remark: 'kernel.launch' @k_exp 'tensor<?xf32, #quern.dims<B>>': 1 op, reads 4*B and writes 4*B bytes
// CHECK-NEXT: report.mlir:[[@LINE+4]]:8: remark: 'kernel.launch' @k_exp 'tensor<?xf32, #quern.dims<B>>': not in place; in 0: the argument is not donated
// CHECK: report.mlir:[[@LINE+2]]:1: remark: 'func.func' @f: arena 0 bytes (one buffer each: 0)

func.func @f(%a: tensor<?xf32, #quern.dims<B>>) -> tensor<?xf32, #quern.dims<B>> {
  %r = quern.exp %a : (tensor<?xf32, #quern.dims<B>>) -> tensor<?xf32, #quern.dims<B>>
  return %r : tensor<?xf32, #quern.dims<B>>
}
