//===- Conformance.h - Recorded results, run against Quern ------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What `quern-conformance` does, as functions: the subcommands are thin mains.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_CONFORMANCE_CONFORMANCE_H
#define QUERN_CONFORMANCE_CONFORMANCE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace quern::conformance {

enum class Target : uint8_t { CPU, CUDAEmulated };

/// How tests run.
struct RunOptions {
  Target target = Target::CPU;
  /// Regular expression; only tests whose id matches (ONNX: the folder's path).
  std::string filter;
  /// Lines of `<mode> <id> <reason>`; waived tests are not run and never passed.
  std::string waiversFile;
  std::string jsonFile;
  unsigned workers = 2;
  unsigned timeout = 30;
  /// Tests in one process (of ATen: in one module, compiled together).
  unsigned batch = 32;
  bool verbose = false;
};

/// `quern-conformance aten`: recorded calls of ATen operators.
struct AtenOptions : RunOptions {
  /// A file with one overload a line (`#` starts a comment): only their cases.
  std::string overloadsFile;
  /// Only these modes (value, dynamic, into, grad, error); empty: all of them.
  std::vector<std::string> modes;
};

/// Runs the cases of all files, prints the table and the misses, and writes the
/// JSON. The answer is whether every test passed or was waived.
llvm::Expected<bool> runAten(const AtenOptions &options, const std::vector<std::string> &files);

/// `quern-conformance onnx`, ONNX's backend tests and whole models with data: runs every folder
/// with a model.onnx in the given folders (see TestFolder.h), prints the misses and a table by op,
/// and writes the JSON.
llvm::Expected<bool> runOnnx(const RunOptions &options, const std::vector<std::string> &folders);

/// `quern-conformance training`: the graphs of two_layer.safetensors and digits_mlp.safetensors
/// (test/Conformance/README.md) with sizes read from the files, forward, backward and optimiser
/// steps, in f32 and, on the CPU, in f64. Prints each quantity's largest difference. The answer
/// is whether all are small enough.
llvm::Expected<bool> runTraining(llvm::StringRef folder, Target target);

} // namespace quern::conformance
#endif // QUERN_CONFORMANCE_CONFORMANCE_H
