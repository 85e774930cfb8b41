// Functions on tensors, with fixed, named and unnamed sizes.
func.func @step(%w: tensor<4xf32> {quern.donated}, %g: tensor<4xf32>)
    -> (tensor<4xf32> {quern.into = 0 : i64, quern.name = "w"}, tensor<4xf32>) {
  %0 = quern.tanh %g : (tensor<4xf32>) -> tensor<4xf32>
  %1 = quern.sub %w, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1, %0 : tensor<4xf32>, tensor<4xf32>
}

// -----

func.func @cat(%x: tensor<?xf32, #quern.dims<A>>, %y: tensor<?xf32, #quern.dims<B>>)
    -> tensor<?xf32, #quern.dims<A + B>> attributes {quern.dims = {A = #quern.range<1, 64, mod 8>}} {
  %0 = quern.cat [%x, %y] : (tensor<?xf32, #quern.dims<A>>, tensor<?xf32, #quern.dims<B>>) -> tensor<?xf32, #quern.dims<A + B>>
  return %0 : tensor<?xf32, #quern.dims<A + B>>
}

// -----

func.func @undecided(%x: tensor<?xf32, #quern.dims<A>>, %y: tensor<2x?xf32, #quern.dims<B>>) -> tensor<2x?xf32, #quern.dims<B>> {
  %0 = quern.expand %x {size = #quern.dims<2, B>} : (tensor<?xf32, #quern.dims<A>>) -> tensor<2x?xf32, #quern.dims<B>>
  return %0 : tensor<2x?xf32, #quern.dims<B>>
}

// -----

func.func @unnamed(%x: tensor<?x3xf32>, %y: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %0 = quern.add %x, %y : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}

// -----

func.func @plain(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

func.func @into(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %0 = quern.exp %x into %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = quern.add %0, %c : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// -----

// Sizes, as values.
func.func @sizes(%a: tensor<?x4x?xf32, #quern.dims<B, S>>, %b: tensor<?xf32, #quern.dims<B>>) -> (index, index) {
  %0 = kernel.dim #quern.dim<B*S + 1>
  %1 = kernel.dim #quern.dim<floordiv(S, 2)>
  return %0, %1 : index, index
}

// -----

func.func @bound(%a: tensor<?xf32>) -> tensor<?xf32> {
  %0 = tensor.concat dim(0) %a, %a : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  %1 = kernel.bind_dims %0 : tensor<?xf32> to tensor<?xf32, #quern.dims<T>>
  %2 = quern.neg %1 : (tensor<?xf32, #quern.dims<T>>) -> tensor<?xf32, #quern.dims<T>>
  %3 = kernel.refine %2 : tensor<?xf32, #quern.dims<T>> to tensor<?xf32>
  return %3 : tensor<?xf32>
}

// -----

func.func @no_size() {
  %0 = kernel.dim "S"
  return
}

// -----

// Control flow, calls, other dialects.
func.func @loop(%c: i1, %x: tensor<2xf32>) -> tensor<2xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = scf.for %i = %c0 to %c1 step %c1 iter_args(%a = %x) -> tensor<2xf32> {
    %1 = quern.relu %a : (tensor<2xf32>) -> tensor<2xf32>
    %2 = scf.if %c -> tensor<2xf32> {
      %3 = quern.neg %1 : (tensor<2xf32>) -> tensor<2xf32>
      scf.yield %3 : tensor<2xf32>
    } else {
      scf.yield %1 : tensor<2xf32>
    }
    scf.yield %2 : tensor<2xf32>
  }
  return %0 : tensor<2xf32>
}

// -----

func.func @blocks(%a: tensor<2xf32>, %c: i1) -> tensor<2xf32> {
  cf.cond_br %c, ^bb1, ^bb2
^bb1:
  return %a : tensor<2xf32>
^bb2:
  %0 = quern.neg %a : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

func.func private @callee(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = quern.neg %x : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func private @declared(tensor<3xf32>) -> tensor<3xf32>
func.func @caller(%x: tensor<3xf32>) -> tensor<?xf32> {
  %0 = call @declared(%x) : (tensor<3xf32>) -> tensor<3xf32>
  %1 = tensor.cast %0 : tensor<3xf32> to tensor<?xf32>
  %2 = call @callee(%1) : (tensor<?xf32>) -> tensor<?xf32>
  return %2 : tensor<?xf32>
}

// -----

func.func @upstream(%x: tensor<4xf32>, %y: f32, %z: memref<2xf32>) -> tensor<1xf32> {
  %0 = math.absf %x : tensor<4xf32>
  %1 = tensor.extract_slice %0[0] [1] [1] : tensor<4xf32> to tensor<1xf32>
  return %1 : tensor<1xf32>
}

// -----

// Functions on buffers, and kernels.
kernel.func @k kind "pointwise" {
^bb0(%x: tensor<?x4xf32, #quern.dims<d0>>, %y: tensor<?x4xf32, #quern.dims<d0>>):
  kernel.yield %x : tensor<?x4xf32, #quern.dims<d0>>
}
func.func @host(%x: memref<?x4xf32> {quern.dims = #quern.dims<B>},
                %y: memref<?x4xf32> {quern.out, quern.result = 0 : i64, quern.dims = #quern.dims<B>},
                %c: memref<2xf32> {quern.constant = dense<0.0> : tensor<2xf32>}) {
  %b = kernel.dim #quern.dim<B>
  %c8 = arith.constant 8 : index
  %ok = arith.cmpi sle, %b, %c8 : index
  kernel.guard %ok, "f_c1" "expected B to be at most 8, got {0}" (%b)
  %t = memref.alloc(%b) : memref<?x4xf32>
  kernel.launch @k ins(%x : memref<?x4xf32>) outs(%t : memref<?x4xf32>)
  kernel.launch @k ins(%t : memref<?x4xf32>) outs(%y : memref<?x4xf32>) {quern.bound = array<i64: 7, 9>}
  return
}

// -----

func.func @wrong(%x: memref<*xf32>, %y: memref<4xf32, strided<[2]>>) {
  %0 = memref.alloca() : memref<4xf32>
  memref.copy %y, %0 : memref<4xf32, strided<[2]>> to memref<4xf32>
  return
}

// -----

kernel.func @mm kind "contraction" {
^bb0(%a: tensor<4x8xf32>, %b: tensor<8x4xf32>, %y: tensor<4x4xf32>):
  %r = quern.mm %a, %b : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  kernel.yield %r : tensor<4x4xf32>
}
func.func @launches(%a: tensor<4x8xf32>, %b: tensor<8x4xf32>) -> tensor<4x4xf32> {
  %e = tensor.empty() : tensor<4x4xf32>
  %0 = kernel.launch @mm ins(%a, %b : tensor<4x8xf32>, tensor<8x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
