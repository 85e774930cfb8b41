//===- HostEmitter.h - Bodies of prepare and run ----------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_LIB_CONVERSION_HOSTTOLLVM_HOSTEMITTER_H
#define QUERN_LIB_CONVERSION_HOSTTOLLVM_HOSTEMITTER_H

#include "Tables.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"
#include "quern/Conversion/HostToLLVM/Signature.h"
#include "quern/Dialect/Kernel/IR/Kernel.h"

namespace quern {

/// Emits `prepare` or `run` from the body of the host function: the same walk, in
/// which `prepare` has sizes and guards and `run` has pointers and launches.
class HostEmitter {
public:
  enum Kind { Prepare, Run };

  HostEmitter(Tables &tables, const Signature &signature, llvm::ArrayRef<kernel::FuncOp> kernels,
              llvm::StringRef kernelArray, mlir::Type kernelType)
      : tables(tables), signature(signature), kernels(kernels), kernelArray(kernelArray),
        kernelType(kernelType), b(tables.pointer.getContext()) {}

  mlir::LogicalResult emit(mlir::func::FuncOp func, llvm::StringRef name, Kind kind);

private:
  /// A memref: its first element, and sizes and strides (in elements) as index values.
  struct Buffer {
    mlir::Value pointer; ///< null in `prepare`
    llvm::SmallVector<mlir::Value> sizes, strides;
    bool contiguous = true;
  };

  mlir::Value index(int64_t value);
  mlir::Value toI64(mlir::Value index);
  mlir::Value fromI64(mlir::Value i64);
  mlir::Value mul(mlir::Value a, mlir::Value b);
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value value(mlir::OpFoldResult v);
  /// The address `i` elements of `type` after `pointer`.
  mlir::Value at(mlir::Value pointer, mlir::Type type, mlir::LLVM::GEPArg i);
  void rowMajorStrides(Buffer &buffer);
  llvm::SmallVector<mlir::Value> sizesOf(mlir::MemRefType type, mlir::ValueRange freeSizes);
  static std::optional<int64_t> known(mlir::Value index);

  void openBlock();
  /// Ends the function with the status when it is not 0.
  void returnIfFailed(mlir::Value status);
  void guard(mlir::Value condition, llvm::StringRef text, mlir::ValueRange values);

  mlir::LogicalResult bindArguments(mlir::func::FuncOp func);
  mlir::FailureOr<mlir::Value> evaluate(mlir::Operation *where, Dim dim);
  mlir::LogicalResult emitOp(mlir::Operation *op);
  mlir::LogicalResult emitAlloc(mlir::memref::AllocOp op);
  mlir::LogicalResult emitSubview(mlir::memref::SubViewOp op);
  mlir::LogicalResult emitLaunch(kernel::LaunchOp op);
  mlir::FailureOr<Buffer *> buffer(mlir::Operation *user, mlir::Value memref);
  mlir::LogicalResult finishPrepare(mlir::func::FuncOp func);

  Tables &tables;
  const Signature &signature;
  llvm::ArrayRef<kernel::FuncOp> kernels;
  std::string kernelArray;
  mlir::Type kernelType;
  mlir::OpBuilder b;
  mlir::Location loc = b.getUnknownLoc();

  Kind kind = Prepare;
  mlir::LLVM::LLVMFuncOp out;
  mlir::Block *failed = nullptr; ///< returns its argument
  mlir::IRMapping scalars;
  llvm::DenseMap<mlir::Value, Buffer> buffers;
  llvm::StringMap<mlir::Value> symbols;
  mlir::Value arenaBytes;
  mlir::Value launchBufs, launchDims; ///< the arrays of every launch
};

} // namespace quern

#endif // QUERN_LIB_CONVERSION_HOSTTOLLVM_HOSTEMITTER_H
