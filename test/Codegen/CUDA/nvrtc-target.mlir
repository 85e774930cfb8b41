// The target of a device module, and what upstream's pass makes of it.
// RUN: quern-opt %s --quern-fuse --quern-to-linalg --quern-schedule-cuda="chips=sm_80,sm_90" | FileCheck %s
// RUN: quern-opt %s --quern-fuse --quern-to-linalg --quern-schedule-cuda="chips=sm_90" --gpu-module-to-binary="format=isa" | FileCheck %s --check-prefix=TEXT
// RUN: not quern-opt %s --quern-fuse --quern-to-linalg --quern-schedule-cuda="chips=sm_90" --gpu-module-to-binary="format=llvm" 2>&1 | FileCheck %s --check-prefix=LLVM
// RUN: env QUERN_NVRTC=/none not quern-opt %s --quern-fuse --quern-to-linalg --quern-schedule-cuda="chips=sm_90" --gpu-module-to-binary 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: echo 'module attributes {a = #quern.nvrtc<chip = "gfx90">} {}' | not quern-opt 2>&1 | FileCheck %s --check-prefix=CHIP

// CHECK: gpu.module @k_{{.*}}_device [#quern.nvrtc<chip = "sm_80">, #quern.nvrtc<chip = "sm_90">]
// TEXT: gpu.binary @k_{{.*}}_device [#gpu.object<#quern.nvrtc<chip = "sm_90">, assembly = "#include \22quern.cuh\22{{.*}}__global__
// LLVM: error: unsupported: #quern.nvrtc makes no LLVM IR: expected format=isa, bin or fatbin
// NONE: error: unsupported: CUDA code needs NVRTC
// CHIP: error: expected a chip such as sm_90, got 'gfx90'
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = quern.tanh %x : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
