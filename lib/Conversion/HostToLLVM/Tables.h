//===- Tables.h - Constant C structures as LLVM globals ---------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_LIB_CONVERSION_HOSTTOLLVM_TABLES_H
#define QUERN_LIB_CONVERSION_HOSTTOLLVM_TABLES_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

namespace quern {

/// A constant value: an integer, an address, or a structure of constants.
struct Init {
  mlir::Type type;
  int64_t number = 0;
  std::string symbol; ///< an address; empty: null
  std::vector<Init> fields;
};

/// Builds globals in a module.
class Tables {
public:
  Tables(mlir::ModuleOp module, mlir::StringRef prefix);

  Init i8(int64_t v) { return integer(8, v); }
  Init i16(int64_t v) { return integer(16, v); }
  Init i32(int64_t v) { return integer(32, v); }
  Init i64(int64_t v) { return integer(64, v); }
  Init null() { return address(""); }
  /// The address of a symbol, which is defined or declared elsewhere.
  Init address(mlir::StringRef symbol);
  Init structure(std::vector<Init> fields);
  /// The address of a string with a 0 at its end. Equal strings are one.
  Init string(mlir::StringRef text);
  /// The address of bytes.
  Init bytes(mlir::StringRef data, unsigned alignment);
  /// The address of an array; null for an empty one. All elements have one type.
  Init array(std::vector<Init> elements);

  /// A global with this value.
  mlir::LLVM::GlobalOp global(mlir::StringRef name, const Init &value, mlir::LLVM::Linkage linkage);
  /// Declares a global that another object defines.
  void declareGlobal(mlir::StringRef name, mlir::Type type);
  /// Declares a function, once.
  mlir::LLVM::LLVMFuncOp declare(mlir::StringRef name, mlir::Type result,
                                 mlir::ArrayRef<mlir::Type> arguments);

  mlir::LLVM::LLVMPointerType pointer;

private:
  Init integer(unsigned bits, int64_t v);
  mlir::Value emit(const Init &value);
  std::string fresh();

  mlir::ModuleOp module;
  mlir::OpBuilder b;
  std::string prefix;
  unsigned count = 0;
  llvm::StringMap<Init> strings;
};

} // namespace quern

#endif // QUERN_LIB_CONVERSION_HOSTTOLLVM_TABLES_H
