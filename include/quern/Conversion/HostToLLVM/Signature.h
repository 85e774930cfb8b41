//===- Signature.h - Inputs, outputs, constants -----------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_CONVERSION_HOSTTOLLVM_SIGNATURE_H
#define QUERN_CONVERSION_HOSTTOLLVM_SIGNATURE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinAttributeInterfaces.h"
#include "quern-c/Runtime.h"
#include "quern/Shape/Dim.h"

namespace quern {

/// An input or an output of the function.
struct SignatureTensor {
  mlir::BlockArgument arg;
  mlir::MemRefType type;
  llvm::SmallVector<Dim> dims;
  DLDataType dtype;
  std::string name;
  int32_t alias; ///< of an output: the input whose buffer it is, or -1
};

/// What a bufferised function says of itself.
struct Signature {
  std::string name; ///< for users
  std::vector<SignatureTensor> inputs, outputs;
  std::vector<bool> donated; ///< by input
  std::vector<std::pair<mlir::BlockArgument, mlir::ElementsAttr>> constants;

  /// From the attributes of FunctionAttrs.h; an error is emitted at the function when
  /// they make no sense or an element type has no DLPack code.
  static mlir::FailureOr<Signature> get(mlir::func::FuncOp func);
};

} // namespace quern

#endif // QUERN_CONVERSION_HOSTTOLLVM_SIGNATURE_H
