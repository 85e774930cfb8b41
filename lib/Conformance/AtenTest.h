//===- AtenTest.h - One recorded call in one mode ---------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_LIB_CONFORMANCE_ATENTEST_H
#define QUERN_LIB_CONFORMANCE_ATENTEST_H

#include "Case.h"
#include "Isolation.h"
#include "Program.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace quern::conformance {

/// How a recorded call is tried.
enum class Mode : uint8_t {
  Value,    ///< static types
  Dynamic,  ///< every dim of every tensor is `?`
  Into,     ///< results into destinations, and over operands where the op allows it
  Gradient, ///< autodiff of sum <cotangent, output>
  Error,    ///< the call is refused: by the meta function, or at run time (kind `value`)
};
inline constexpr unsigned numModes = 5;
llvm::StringRef name(Mode mode);
/// An error as a result: unsupported or failed. Consumes it.
TestResult errorResult(llvm::Error error);
/// Whether the case is one of this mode.
bool applies(const OpCase &test, Mode mode);

/// Where the results of a function are written.
struct Placement {
  bool destinations = false; ///< to further arguments
  int operand = -1;          ///< over this argument
  bool loss = false;         ///< summed, weighted by further arguments, the cotangents
};

/// A recorded call in one mode: functions in a module that is compiled with others,
/// then calls and comparisons.
class AtenTest {
public:
  AtenTest(const OpCase &test, Mode mode, unsigned number)
      : test(test), mode(mode), prefix("t" + std::to_string(number)) {}

  /// Adds functions to the module. A result when there is nothing (more) to run.
  std::optional<TestResult> build(mlir::ModuleOp module);
  TestResult run(Program &program);

private:
  /// A function and its arguments for one call.
  struct Planned {
    std::string function;
    std::vector<HostTensor> inputs;
    std::string what; ///< "into a destination", for messages
  };

  mlir::FailureOr<mlir::func::FuncOp> buildFunction(mlir::ModuleOp module, llvm::StringRef name,
                                                    Placement placement = {});
  bool place(mlir::func::FuncOp func, mlir::ArrayRef<mlir::Value> results, Placement placement);
  mlir::Value sumOfProducts(mlir::Block *body, mlir::ArrayRef<mlir::Value> results);
  std::optional<TestResult> buildInto(mlir::ModuleOp module);
  std::optional<TestResult> buildGradient(mlir::ModuleOp module);
  std::optional<TestResult> checkTypes(mlir::func::FuncOp func);
  std::optional<TestResult> compareOutputs(const Planned &call, llvm::ArrayRef<HostTensor> outputs,
                                           double &maxError);
  std::vector<HostTensor> inputs() const;

  const OpCase &test;
  Mode mode;
  std::string prefix;
  std::vector<Planned> calls;
  std::vector<CaseGradient> gradients = test.gradients; ///< in the order of the results
};

} // namespace quern::conformance
#endif // QUERN_LIB_CONFORMANCE_ATENTEST_H
