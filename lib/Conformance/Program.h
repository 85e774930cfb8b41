//===- Program.h - Compiled functions, called on host tensors ---*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_LIB_CONFORMANCE_PROGRAM_H
#define QUERN_LIB_CONFORMANCE_PROGRAM_H

#include "mlir/IR/BuiltinOps.h"
#include "quern/Compiler/Compiler.h"
#include "quern/Compiler/Execute.h"
#include "quern/Conformance/Conformance.h"

namespace quern::conformance {

/// The dialects that tests are written in.
void loadDialects(mlir::MLIRContext &context);

/// The compiled functions of a module, and a context to call them in.
class Program {
public:
  /// Changes the module. Nothing is read from the disk cache: tests test the compiler.
  static llvm::Expected<std::unique_ptr<Program>> compile(mlir::ModuleOp module, Target target,
                                                          unsigned threads = 1);

  /// Calls a function. Outputs are allocated with the sizes that the function answers and filled
  /// with a pattern first; an output that is always some input's buffer is that tensor. Fails
  /// also when the call changed an input that it may not write to.
  llvm::Expected<std::vector<HostTensor>> call(llvm::StringRef function,
                                               llvm::MutableArrayRef<HostTensor> inputs);

  /// The signature; null when there is no such function.
  const quern_function *lookup(llvm::StringRef function) const { return model->lookup(function); }
  quern_context *context() { return runner.context(); }

private:
  Program(std::unique_ptr<Device> device, std::unique_ptr<CompiledModel> model, unsigned threads)
      : device(std::move(device)), model(std::move(model)),
        runner(int32_t(threads), this->device->get()) {}

  std::unique_ptr<Device> device;
  std::unique_ptr<CompiledModel> model;
  Runner runner;
};

} // namespace quern::conformance
#endif // QUERN_LIB_CONFORMANCE_PROGRAM_H
