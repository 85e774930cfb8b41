// The model of docs/internals.md; here each stage's promise is checked on it.
// RUN: quern-opt %s --quern-propagate-shapes --quern-verify-stage=stage=named \
// RUN:   --quern-materialize-guards --quern-simplify --quern-fuse \
// RUN:   --quern-inplace --quern-verify-stage=stage=inplace --quern-to-linalg \
// RUN:   --quern-bufferize --quern-verify-stage=stage=bufferized \
// RUN:   --quern-plan-memory --quern-verify-stage=stage=planned
func.func @classify(%x: tensor<?x?xf32, #quern.dims<B, K>>, %weight: tensor<10x64xf32>,
                    %bias: tensor<10xf32>) -> tensor<?x10xf32> {
  %four = arith.constant dense<4.0> : tensor<f32>
  %scale = quern.sqrt %four : (tensor<f32>) -> tensor<f32>
  %0 = quern.linear %x, %weight, %bias : (tensor<?x?xf32, #quern.dims<B, K>>, tensor<10x64xf32>, tensor<10xf32>) -> tensor<?x10xf32>
  %1 = quern.gelu %0 : (tensor<?x10xf32>) -> tensor<?x10xf32>
  %2 = quern.mul %1, %scale : (tensor<?x10xf32>, tensor<f32>) -> tensor<?x10xf32>
  %3 = quern.softmax %2 {dim = 1} : (tensor<?x10xf32>) -> tensor<?x10xf32>
  return %3 : tensor<?x10xf32>
}
