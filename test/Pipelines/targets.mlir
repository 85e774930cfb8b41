// The named pipelines and quern-compile give the same: the names of kernels apart, which
// quern-compile makes of their contents.
//
// RUN: quern-opt %s --quern-cuda=emit=mlir-scheduled | sed -e 's/k_exp_sum/K/' -e '/^$/d' > %t.opt
// RUN: quern-compile %s --target=cuda --emit=mlir-scheduled | sed -e 's/row_reduction_[0-9a-f]*/K/' -e '/^\/\/ k_exp_sum$/d' -e '/^$/d' > %t.compile
// RUN: diff %t.opt %t.compile
// RUN: FileCheck %s --input-file=%t.opt --check-prefix=CUDA
// CUDA: gpu.module @K_device
// CUDA: gpu.func @K(
// CUDA: func.func @K_range(
//
// RUN: quern-opt %s --quern-cpu=emit=mlir-scheduled | sed -e 's/k_exp_sum/K/' -e '/^$/d' > %t.opt
// RUN: quern-compile %s --emit=mlir-scheduled | sed -e 's/row_reduction_[0-9a-f]*/K/' -e '/^\/\/ k_exp_sum$/d' -e '/^$/d' > %t.compile
// RUN: diff %t.opt %t.compile
// RUN: FileCheck %s --input-file=%t.opt --check-prefix=CPU
// CPU: func.func @K(
// CPU: func.func @K_range(
//
// The host function is one for both.
// RUN: quern-opt %s --quern-cpu > %t.cpu
// RUN: quern-opt %s --quern-cuda > %t.cuda
// RUN: diff %t.cpu %t.cuda
// RUN: FileCheck %s --input-file=%t.cpu --check-prefix=PLANNED
// PLANNED: func.func @f(%arg0: memref<?x64xf32>
// PLANNED: kernel.launch @k_exp_sum
//
// Options reach the passes.
// RUN: quern-opt %s --quern-cuda="emit=mlir-scheduled chips=sm_80,sm_90" | FileCheck %s --check-prefix=CHIPS
// CHIPS: gpu.module @k_exp_sum_device [#quern.nvrtc<chip = "sm_80">, #quern.nvrtc<chip = "sm_90">]
// RUN: quern-opt %s --quern-cuda="fuse=false" | FileCheck %s --check-prefix=SINGLE
// SINGLE: kernel.launch @k_exp
// SINGLE: kernel.launch @k_sum
// RUN: not quern-opt %s --quern-cuda="emit=ptx" 2>&1 | FileCheck %s --check-prefix=BAD
// BAD: ptx

func.func @f(%a: tensor<?x64xf32, #quern.dims<B>>) -> tensor<?xf32, #quern.dims<B>> {
  %e = quern.exp %a : (tensor<?x64xf32, #quern.dims<B>>) -> tensor<?x64xf32, #quern.dims<B>>
  %s = quern.sum %e {dim = array<i64: 1>, keepdim = false} : (tensor<?x64xf32, #quern.dims<B>>) -> tensor<?xf32, #quern.dims<B>>
  return %s : tensor<?xf32, #quern.dims<B>>
}
