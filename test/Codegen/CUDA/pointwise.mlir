// RUN: quern-opt %s --quern-emit-cuda -o /dev/null | FileCheck %s
#id = affine_map<(r, c) -> (r, c)>
#col = affine_map<(r, c) -> (c)>

// A thread does four elements; what lies together is read by one access.
// CHECK:      // pointwise, 4 elements of a row a thread
// CHECK-NEXT: extern "C" __global__ void __launch_bounds__(256)
// CHECK-NEXT: bias_tanh(const float *in0, const float *__restrict__ in1, float *out0, long long d0) {
// CHECK:        const long long number = block * 256 + thread;
// CHECK:        const long long row = number / 192;
// CHECK:        quern::load<4>(in0 + {{.*}}, left);
// CHECK:        quern::load<4>(in1 + first, left);
// CHECK:        #pragma unroll
// CHECK-NEXT:   for (int lane = 0; lane < 4; ++lane) {
// CHECK-NEXT:     result[lane] = tanhf({{.*}}[lane] + {{.*}}[lane]);
// CHECK:        quern::store(out0 + {{.*}}, result, left);
kernel.func @bias_tanh kind "pointwise" share [0, 0] {
^bb0(%x: tensor<?x768xf32, #quern.dims<d0>>, %b: tensor<768xf32>, %o: tensor<?x768xf32, #quern.dims<d0>>):
  %1 = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %b : tensor<?x768xf32, #quern.dims<d0>>, tensor<768xf32>) outs(%o : tensor<?x768xf32, #quern.dims<d0>>) {
  ^bb0(%a: f32, %c: f32, %d: f32):
    %t = arith.addf %a, %c : f32
    %h = math.tanh %t : f32
    linalg.yield %h : f32
  } -> tensor<?x768xf32, #quern.dims<d0>>
  kernel.yield %1 : tensor<?x768xf32, #quern.dims<d0>>
}

// Whole tensors need no division: the element's number is its place. Small ones use 32 bits.
// CHECK:      // pointwise, 8 elements a thread
// CHECK:        const int first = number * 8;
// CHECK-NOT:    /
// CHECK:        result[lane] = quern::toF16(-quern::toFloat({{.*}}[lane]));
kernel.func @negate kind "pointwise" {
^bb0(%x: tensor<3x5xf16>, %o: tensor<3x5xf16>):
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<3x5xf16>) outs(%o : tensor<3x5xf16>) {
  ^bb0(%a: f16, %d: f16):
    %w = arith.extf %a : f16 to f32
    %n = arith.negf %w : f32
    %r = arith.truncf %n : f32 to f16
    linalg.yield %r : f16
  } -> tensor<3x5xf16>
  kernel.yield %1 : tensor<3x5xf16>
}

// A size that is made of others: it is told like them, and may be computed from them.
// CHECK:        ends(const float *__restrict__ in0, const float *__restrict__ in1, float *__restrict__ out0,
// CHECK:             long long d0, long long d1, long long size) {
// CHECK:        = size - first;
kernel.func @ends kind "pointwise" {
^bb0(%x: tensor<?xf32, #quern.dims<d0>>, %y: tensor<?xf32, #quern.dims<d1>>, %o: tensor<?xf32, #quern.dims<d0 + d1>>):
  %1 = linalg.generic {indexing_maps = [affine_map<(r) -> (r)>], iterator_types = ["parallel"]} outs(%o : tensor<?xf32, #quern.dims<d0 + d1>>) {
  ^bb0(%d: f32):
    %i = linalg.index 0 : index
    %w = arith.index_cast %i : index to i64
    %v = arith.sitofp %w : i64 to f32
    linalg.yield %v : f32
  } -> tensor<?xf32, #quern.dims<d0 + d1>>
  kernel.yield %1 : tensor<?xf32, #quern.dims<d0 + d1>>
}
