// A layer and a softmax, for any number of rows:
// build/release/bin/quern-run examples/classify.mlir --random-inputs 1 --dim rows=3

func.func @classify(%pixels: tensor<?x64xf32, #quern.dims<rows>>, %weight: tensor<10x64xf32>,
                    %bias: tensor<10xf32>)
    -> (tensor<?x10xf32, #quern.dims<rows>> {quern.name = "probabilities"}) {
  %scores = quern.linear %pixels, %weight, %bias : (tensor<?x64xf32, #quern.dims<rows>>, tensor<10x64xf32>, tensor<10xf32>) -> tensor<?x10xf32, #quern.dims<rows>>
  %p = quern.softmax %scores {dim = -1 : i64} : (tensor<?x10xf32, #quern.dims<rows>>) -> tensor<?x10xf32, #quern.dims<rows>>
  return %p : tensor<?x10xf32, #quern.dims<rows>>
}
