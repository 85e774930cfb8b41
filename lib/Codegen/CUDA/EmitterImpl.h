//===- EmitterImpl.h - The state of the CUDA printer ------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_LIB_CODEGEN_CUDA_EMITTERIMPL_H
#define QUERN_LIB_CODEGEN_CUDA_EMITTERIMPL_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"
#include <string>

namespace quern::cuda {

/// C++'s levels of binding, as far as they are printed.
enum Precedence {
  Conditional = 1,
  LogicalOr,
  LogicalAnd,
  BitOr,
  BitXor,
  BitAnd,
  Equality,
  Relational,
  Shift,
  Additive,
  Multiplicative,
  Unary,
  Primary
};

struct Expression {
  std::string text;
  int precedence = Primary;
};

/// Prints one function. Values are named variables, or expressions inside their one user.
class Printer {
public:
  explicit Printer(mlir::gpu::GPUFuncOp function, llvm::raw_ostream &os)
      : function(function), os(os) {}
  mlir::LogicalResult print();

private:
  // Emitter.cpp: statements.
  void printSignature();
  void printBlock(mlir::Block &block);
  void printOp(mlir::Operation &op);
  void printFor(mlir::scf::ForOp op);
  void printIf(mlir::scf::IfOp op);
  void define(mlir::Value value, const Expression &expression);
  bool isInlined(mlir::Operation &op);
  void assign(mlir::Value to, llvm::StringRef name, mlir::Value from);
  llvm::raw_ostream &line() { return os.indent(2 * depth); }

  /// A fresh name: the hint of the location, or `fallback`.
  std::string freshName(mlir::Location loc, llvm::StringRef fallback);
  std::string nameOf(mlir::Value value);

  // EmitterOps.cpp: expressions.
  mlir::FailureOr<Expression> expressionOf(mlir::Operation &op);
  mlir::FailureOr<Expression> arithmetic(mlir::Operation &op);
  mlir::FailureOr<Expression> conversion(mlir::Operation &op);
  mlir::FailureOr<Expression> memory(mlir::Operation &op);
  Expression constant(mlir::Attribute value, mlir::Type type);
  Expression compare(mlir::Operation &op);
  /// What is already an expression or a name.
  Expression operand(mlir::Value value) { return expressions.lookup(value); }
  std::string text(mlir::Value value, int atLeast = Conditional);
  Expression binary(llvm::StringRef sign, int precedence, mlir::Value a, mlir::Value b);
  Expression call(llvm::StringRef function, mlir::ValueRange arguments);
  std::string element(mlir::Value memref, mlir::ValueRange indices);
  std::string addressOf(mlir::Value memref, mlir::ValueRange indices);

  std::string typeName(mlir::Type type);
  mlir::LogicalResult refuse(mlir::Operation &op, const llvm::Twine &why);

  mlir::gpu::GPUFuncOp function;
  llvm::raw_ostream &os;
  unsigned depth = 1;
  bool wideIndex = true;
  bool failed = false;
  llvm::DenseMap<mlir::Value, Expression> expressions;
  llvm::StringMap<unsigned> names;
  llvm::DenseMap<mlir::Value, std::string> scratch; ///< of block reductions
  llvm::DenseMap<mlir::Value, std::string> lefts;   ///< of masks: how many lanes exist
  /// Set while a 16-bit float op is printed: its operands are converted.
  bool widen = false;
};

} // namespace quern::cuda

#endif // QUERN_LIB_CODEGEN_CUDA_EMITTERIMPL_H
