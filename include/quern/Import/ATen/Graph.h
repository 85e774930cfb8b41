//===- Graph.h - Functions written as ATen calls ----------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Builds a `func.func` from calls of ATen overloads:
///
/// \code
/// GraphBuilder g(module, "loss");
/// Value x = g.input("x", DType::F32, {64, 128}), w = …;
/// Value h = g.call("tanh.default", {{"self", g.call("mm.default", {{"self", x}, {"mat2", w}})}});
/// g.output("h", h);
/// FailureOr<func::FuncOp> f = g.finish();
/// \endcode
///
/// After the first bad call (which is reported as a diagnostic) every value is null and
/// `finish` fails, so that nothing has to be checked in between.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_IMPORT_ATEN_GRAPH_H
#define QUERN_IMPORT_ATEN_GRAPH_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "quern/Import/ATen/ATen.h"

namespace quern::aten {

class GraphBuilder {
public:
  /// Adds a function to the end of the module.
  GraphBuilder(mlir::ModuleOp module, llvm::StringRef name);

  /// A size of -1 is free. A donated input may be overwritten by the call.
  mlir::Value input(llvm::StringRef name, DType dtype, llvm::ArrayRef<int64_t> dims,
                    bool donated = false);
  mlir::Value input(llvm::StringRef name, mlir::Type type, bool donated = false);

  using NamedArgument = std::pair<llvm::StringRef, Argument>;
  /// The first result.
  mlir::Value call(llvm::StringRef overload, llvm::ArrayRef<NamedArgument> arguments);
  /// All results; empty after an error.
  llvm::SmallVector<mlir::Value> calls(llvm::StringRef overload,
                                       llvm::ArrayRef<NamedArgument> arguments);
  /// An op of the quern dialect that ATen does not have (optimiser steps).
  llvm::SmallVector<mlir::Value> op(llvm::StringRef mnemonic, llvm::ArrayRef<mlir::Value> operands,
                                    llvm::ArrayRef<mlir::NamedAttribute> attrs = {});
  /// What a function of one block computes, copied in.
  llvm::SmallVector<mlir::Value> inlined(mlir::func::FuncOp callee,
                                         llvm::ArrayRef<mlir::Value> arguments);

  /// `into`: the input whose buffer the result is.
  void output(llvm::StringRef name, mlir::Value value, mlir::Value into = {});

  mlir::OpBuilder &builder() { return ops; }
  mlir::FailureOr<mlir::func::FuncOp> finish();

private:
  struct Output {
    std::string name;
    mlir::Value value, into;
  };
  mlir::func::FuncOp func;
  mlir::OpBuilder ops;
  std::vector<Output> outputs;
  bool hasFailed = false;
};

} // namespace quern::aten
#endif // QUERN_IMPORT_ATEN_GRAPH_H
