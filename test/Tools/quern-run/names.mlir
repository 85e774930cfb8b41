// Inputs are called what the text calls the arguments, where it gives a name and not a number;
// `quern.name` comes first.
//
// RUN: quern-compile %s --no-cache -o %t.so --header=%t.h
// RUN: FileCheck %s --input-file=%t.h --check-prefix=HEADER
// HEADER: input  0  'image': f32[B, 2]
// HEADER: input  1  'a scale': f32[2]
// HEADER: input  2  'arg2': f32[2]
//
// RUN: not quern-run %s --no-cache 2>&1 | FileCheck %s --check-prefix=ERROR
// ERROR: error: invalid: expected 3 inputs
//
// Bytecode has no names, and text that has been planned says itself what its outputs are called.
// RUN: quern-opt %s --emit-bytecode -o %t.mlir && quern-compile %t.mlir --no-cache -o %t.so --header=%t.h
// RUN: FileCheck %s --input-file=%t.h --check-prefix=BYTECODE
// BYTECODE: input  0  'arg0': f32[B, 2]
// BYTECODE: input  1  'a scale': f32[2]
// RUN: quern-compile %s --no-cache --emit=mlir-planned -o %t.mlir && quern-compile %t.mlir --no-cache -o %t.so --header=%t.h
// RUN: FileCheck %s --input-file=%t.h --check-prefixes=HEADER,OUTPUT
// OUTPUT: output 0  'result0': f32[B, 2]

func.func @f(%image: tensor<?x2xf32, #quern.dims<B>>, %s: tensor<2xf32> {quern.name = "a scale"}, %2: tensor<2xf32>) -> tensor<?x2xf32, #quern.dims<B>> {
  %a = quern.mul %image, %s : (tensor<?x2xf32, #quern.dims<B>>, tensor<2xf32>) -> tensor<?x2xf32, #quern.dims<B>>
  %r = quern.add %a, %2 : (tensor<?x2xf32, #quern.dims<B>>, tensor<2xf32>) -> tensor<?x2xf32, #quern.dims<B>>
  return %r : tensor<?x2xf32, #quern.dims<B>>
}
