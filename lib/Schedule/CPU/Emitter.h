//===- Emitter.h - Building kernel functions --------------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What all CPU schedulers build with: the entry of a kernel (buffers, sizes), i64
/// arithmetic that folds as it goes, loads and stores at any vector width, and the
/// cloning of scalar regions on vectors. There is no list of ops in here: regions
/// are cloned op by op, whatever they are.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_LIB_SCHEDULE_CPU_EMITTER_H
#define QUERN_LIB_SCHEDULE_CPU_EMITTER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "quern/Schedule/CPU.h"
#include "llvm/ADT/DenseMap.h"

namespace quern::cpu {

/// A tensor in memory, row-major over `strides` (in elements).
struct Buffer {
  mlir::Value ptr;
  mlir::Type element;
  llvm::SmallVector<Dim> shape, strides;
};

/// Lanes of a vector access: how many, and for a vector that is not full, how many of
/// them exist (`left`, i64) and their mask. One lane means scalars.
struct Lanes {
  unsigned count = 1;
  mlir::Value left, mask;
};

class Emitter {
public:
  Emitter(kernel::FuncOp kernel, mlir::ModuleOp module, const MachineModel &machine,
          const ScheduleOptions &options);

  kernel::FuncOp kernel;
  mlir::ModuleOp module;
  mlir::OpBuilder b;
  mlir::Location loc;
  const MachineModel &machine;
  const ScheduleOptions &options;
  mlir::MLIRContext *ctx;
  mlir::Type i64Type, ptrType;

  //===--- The function being built ---------------------------------------===//

  /// Begins `@name(bufs, dims, lo, hi)`, or `@name(dims) -> i64` when `sizesOnly`;
  /// the builder stands before its return.
  void beginFunction(llvm::StringRef name, bool sizesOnly);
  /// Ends a `sizesOnly` function with its value.
  void endFunction(mlir::Value result);
  mlir::Value lo, hi;
  /// The kernel's arguments (null pointers in a `sizesOnly` function).
  llvm::SmallVector<Buffer, 0> args;
  /// The value of a size, computed once at the function's entry.
  mlir::Value size(Dim d);
  /// Runs `fn` with the builder at the end of the function's entry.
  void atEntry(llvm::function_ref<void()> fn);
  /// A scalar of the kernel's body (outside the linalg ops), cloned at the entry.
  mlir::Value scalar(mlir::Value v);
  /// Elements from the stack, allocated at the entry.
  mlir::Value stack(mlir::Type element, int64_t count);

  //===--- Arithmetic -----------------------------------------------------===//

  mlir::Value i64(int64_t v);
  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value sub(mlir::Value x, mlir::Value y);
  mlir::Value mul(mlir::Value x, mlir::Value y);
  mlir::Value div(mlir::Value x, mlir::Value y); ///< both are at least 0
  mlir::Value rem(mlir::Value x, mlir::Value y);
  mlir::Value min(mlir::Value x, mlir::Value y);
  mlir::Value max(mlir::Value x, mlir::Value y);
  mlir::Value ceilDiv(mlir::Value x, mlir::Value y);
  /// A counted loop; `body` gets the index and the carried values, and returns the next.
  llvm::SmallVector<mlir::Value>
  loop(mlir::Value from, mlir::Value to, int64_t step, mlir::ValueRange carried,
       llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value, mlir::ValueRange)> body);
  void loop(mlir::Value from, mlir::Value to, int64_t step,
            llvm::function_ref<void(mlir::Value)> body);

  //===--- Vectors --------------------------------------------------------===//

  /// The type of `lanes` elements: the element type itself for one lane.
  static mlir::Type vec(mlir::Type element, unsigned lanes);
  mlir::Value splat(mlir::Value v, unsigned lanes);
  mlir::Value constant(mlir::TypedAttr value);
  mlir::Value zero(mlir::Type type);
  /// 0, 1, 2, … as i64 lanes.
  mlir::Value iota(unsigned lanes);
  /// The lanes that exist of `count`, when `left` (at least 1) do.
  Lanes lanesLeft(unsigned count, mlir::Value left);

  //===--- Memory ---------------------------------------------------------===//

  /// How an element stands in memory: i1 as a byte.
  mlir::Type storage(mlir::Type element);
  mlir::Value address(mlir::Value ptr, mlir::Type element, mlir::Value index);
  /// Consecutive elements from `index`; lanes that do not exist are not read.
  mlir::Value load(const Buffer &buffer, mlir::Value index, const Lanes &lanes);
  /// Elements at `index + lane * stride`.
  mlir::Value loadStrided(const Buffer &buffer, mlir::Value index, mlir::Value stride,
                          const Lanes &lanes);
  /// Elements at a vector of indices.
  mlir::Value gather(const Buffer &buffer, mlir::Value indices, const Lanes &lanes);
  /// `stream`: past the caches; the address is a multiple of the machine's vectors.
  void store(const Buffer &buffer, mlir::Value index, mlir::Value value, const Lanes &lanes,
             bool stream = false);
  void storeStrided(const Buffer &buffer, mlir::Value index, mlir::Value stride, mlir::Value value,
                    const Lanes &lanes);
  void prefetch(const Buffer &buffer, mlir::Value index);
  /// A constant that is not a splat, as read-only data of the module.
  Buffer constantBuffer(mlir::DenseElementsAttr value);

  //===--- Regions --------------------------------------------------------===//

  /// What a region needs to know of the place where it is cloned.
  struct Place {
    Lanes lanes;
    /// The value of linalg.index: an i64, or lanes of them.
    llvm::function_ref<mlir::Value(unsigned)> index;
    /// The first lane of a linalg.index whose lanes count up by one; null for others.
    llvm::function_ref<mlir::Value(unsigned)> firstIndex;
    /// The memory behind the tensor of a tensor.extract; null: not in memory.
    llvm::function_ref<const Buffer *(mlir::Value)> buffer;
    /// A product of this op may be divided by multiplying with the reciprocal.
    bool reciprocal = false;
    /// The block argument that is a reduction's running value, if there is one.
    llvm::SmallVector<mlir::Value, 1> accumulators;
  };
  /// The region of `op` on these block arguments; what it yields.
  llvm::SmallVector<mlir::Value> cloneRegion(mlir::linalg::GenericOp op, mlir::ValueRange args,
                                             const Place &place);
  /// One op of a region on `operands` (all vectors or all scalars), expanded where
  /// there is something better than the op itself. `accumulator`: the operand that is
  /// a reduction's running value, or -1.
  mlir::Value cloneOp(mlir::Operation *op, mlir::ValueRange operands, int accumulator,
                      bool reciprocal = false);
  /// Whether every op of the region can be cloned on vectors.
  static bool isVectorizable(mlir::linalg::GenericOp op);

private:
  mlir::Operation *entryEnd = nullptr;
  mlir::Value bufs, dims;
  llvm::DenseMap<Dim, mlir::Value> sizes;
  mlir::IRMapping scalars;
  mlir::Value elementAt(const Buffer &buffer, mlir::Value index);
  mlir::Value extract(mlir::Operation *op, mlir::IRMapping &map, const Place &place);
  void trackLanes(mlir::Operation *op, mlir::ValueRange operands, mlir::Value result);
  /// The first lanes of index vectors that count up by one.
  llvm::DenseMap<mlir::Value, mlir::Value> counting;
};

/// Strides of a contiguous row-major tensor.
llvm::SmallVector<Dim> rowMajorStrides(mlir::MLIRContext *ctx, llvm::ArrayRef<Dim> shape);

//===--- VectorMath.cpp ---------------------------------------------------===//

/// exp, erf, tanh, log of f32 vectors at any width, within 2 ulp; null for other ops.
mlir::Value expandMath(Emitter &e, mlir::Operation *op, mlir::ValueRange operands);
/// max and min with few instructions; null where the op is neither.
mlir::Value expandMinMax(Emitter &e, mlir::Operation *op, mlir::ValueRange operands,
                         int accumulator);
/// x * y + z, in one rounding where the machine can.
mlir::Value fusedMultiplyAdd(Emitter &e, mlir::Value x, mlir::Value y, mlir::Value z);

//===--- Legalize.cpp -----------------------------------------------------===//

/// Math ops without an instruction become calls of libm, lane by lane.
void legalize(Emitter &e);

} // namespace quern::cpu

#endif // QUERN_LIB_SCHEDULE_CPU_EMITTER_H
