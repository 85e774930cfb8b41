//===- TestFolder.h - ONNX's backend tests ----------------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A test folder of ONNX: `model.onnx`, `test_data_set_N/{input,output}_k.pb`, and
/// maybe `data.json` with other tolerances. k counts the graph's inputs that are no
/// initializers, and its outputs.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_IMPORT_ONNX_TESTFOLDER_H
#define QUERN_IMPORT_ONNX_TESTFOLDER_H

#include "quern/Import/ONNX/Model.h"
#include "quern/Support/Error.h"
#include <functional>

namespace quern::onnx {

/// A compiled model: its inputs in order to its outputs in order.
using Callable =
    std::function<llvm::Expected<std::vector<HostTensor>>(std::vector<HostTensor> inputs)>;
using Compile = llvm::function_ref<llvm::Expected<Callable>(const Model &model)>;

struct TestOutcome {
  unsigned dataSets = 0;
  double maxError = 0; ///< the largest absolute difference; infinity where it has no number
  /// "test_data_set_1: output 0 'y': element [2]: got …"; empty when all is right.
  std::string mismatch;
};

/// Compiles the model of a folder once and runs every data set. An error where the
/// model or the data cannot be read, compiled or run; a wrong result is no error.
/// `writeOutputs` is a folder for `test_data_set_N/output_k.pb`, or empty.
llvm::Expected<TestOutcome> runTestFolder(llvm::StringRef folder, Compile compile,
                                          llvm::StringRef writeOutputs = "");

/// What `quern-run --onnx-test` does: runTestFolder, `max_error=…` on stdout, the
/// reason on stderr, and the exit code.
int runTestFolderCommand(llvm::StringRef folder, Compile compile, llvm::StringRef writeOutputs);

} // namespace quern::onnx
#endif // QUERN_IMPORT_ONNX_TESTFOLDER_H
