//===- Program.h - Compiled functions, called on host tensors ---*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_LIB_CONFORMANCE_PROGRAM_H
#define QUERN_LIB_CONFORMANCE_PROGRAM_H

#include "mlir/IR/BuiltinOps.h"
#include "quern-c/Runtime.h"
#include "quern/Conformance/Conformance.h"
#include "quern/Support/HostTensor.h"
#include "llvm/Support/Error.h"

namespace quern::conformance {

/// The dialects that tests are written in.
void loadDialects(mlir::MLIRContext &context);

/// The compiled functions of a module, and a context to call them in.
class Program {
public:
  virtual ~Program() = default;
  static llvm::Expected<std::unique_ptr<Program>> compile(mlir::ModuleOp module, Target target,
                                                          unsigned threads = 1);

  /// Calls a function through the C ABI. Outputs are allocated with the sizes that the function
  /// answers and filled with a pattern first; an output that is always some input's buffer
  /// shares its bytes. Fails also when the call changed an input that is not donated.
  llvm::Expected<std::vector<HostTensor>> call(llvm::StringRef function,
                                               llvm::MutableArrayRef<HostTensor> inputs);

  /// The signature; null when there is no such function.
  virtual const quern_function *lookup(llvm::StringRef function) const = 0;
  virtual quern_context *context() const = 0;
};

} // namespace quern::conformance
#endif // QUERN_LIB_CONFORMANCE_PROGRAM_H
