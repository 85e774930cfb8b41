//===- Nest.h - One loop nest over a space ----------------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The direct emitter for pointwise and reduction kernels. A unit of work is a block
/// of the dims that are not reduced; inside it there is one pass over the reduced dims
/// for each level of reductions, in which all reductions and results of that level
/// share one loop and producers are pulled in at the point of use.
///
/// Two forms. *Rows*: lanes lie along the reduced dim; the partial sums are in registers,
/// whatever the vector width. *Columns*: lanes lie along a dim that is not reduced, each
/// lane reduces by itself, in a register or (partial sums) in memory; without reductions
/// it is the pointwise form, with one lane the scalar reference.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_LIB_SCHEDULE_CPU_NEST_H
#define QUERN_LIB_SCHEDULE_CPU_NEST_H

#include "Space.h"

#include <map>
#include <set>

namespace quern::cpu {

/// Where the tensors of a kernel are while one of its functions is built.
class Memory {
public:
  explicit Memory(Emitter &e) : e(e) {}
  const Buffer *operator()(mlir::Value tensor);
  /// A value between parts of the kernel.
  void set(mlir::Value tensor, Buffer buffer) { known[tensor.getAsOpaquePointer()] = buffer; }
  void clear() { known.clear(); }

private:
  Emitter &e;
  std::map<void *, Buffer> known; ///< entries keep their addresses
};

class Nest {
public:
  /// `buffer`: where a tensor in memory is.
  Nest(Emitter &e, const Space &space, std::function<const Buffer *(mlir::Value)> buffer);

  /// The number of units, from the sizes.
  mlir::Value units();
  /// Rough nanoseconds for a unit.
  mlir::Value unitCost();
  /// Units lo … hi - 1.
  void emit(mlir::Value lo, mlir::Value hi);

protected:
  using OpInfo = Space::OpInfo;
  /// Values computed so far, by tensor value and by access.
  struct Values {
    llvm::DenseMap<mlir::Value, mlir::Value> results;
    llvm::SmallVector<std::pair<const Access *, mlir::Value>> loads;
  };
  /// Where code is emitted: the index of each dim (of the first lane along the vector dim).
  struct Point {
    llvm::SmallVector<mlir::Value> index;
    Lanes lanes;
    Values *fixed = nullptr; ///< known for the whole unit (rows) or column
    Values local;            ///< known at this point only
  };
  /// A value that two passes need, kept in memory between them.
  struct Kept {
    int since = 0;
    const Access *access = nullptr; ///< the out row that holds it; null: `scratch`
    Buffer scratch;
  };

  void plan();
  unsigned groupSize();
  void planPasses();
  void planKept();
  bool isExpensive(mlir::linalg::GenericOp op);
  const OpInfo &info(mlir::linalg::GenericOp op) const { return space.info.find(op)->second; }
  bool isFixed(const llvm::SmallBitVector &deps) const;
  bool isFixed(const Access &access) const;

  void beginUnit(mlir::Value unit);
  Buffer at(const Access &access);
  mlir::Value offset(const Access &access, const Point &point);
  mlir::Value load(const Access &access, Point &point);
  void store(const Access &access, mlir::Value value, const Point &point);
  mlir::Value operandValue(mlir::linalg::GenericOp op, unsigned n, Point &point);
  mlir::Value valueOf(mlir::Value v, Point &point);
  llvm::SmallVector<mlir::Value> clone(mlir::linalg::GenericOp op, mlir::ValueRange running,
                                       Point &point);
  void computeFixed(Point &point);
  void step(Point &point, llvm::MutableArrayRef<mlir::Value> running);
  void storeFixed(Point &point);

  llvm::SmallVector<mlir::linalg::GenericOp> reductionsOfPass();
  bool hasWork();
  void emitRow();
  void emitRowPass(Point &row);
  void prefetch(mlir::Value column);
  mlir::Value joinPartials(mlir::linalg::GenericOp op, unsigned result,
                           llvm::SmallVector<mlir::Value> partials);
  void emitColumns(mlir::Value from, mlir::Value to);
  bool isStream();
  void ifStreams(llvm::function_ref<void(bool)> emit);
  llvm::SmallVector<Buffer> beginPartials(llvm::ArrayRef<mlir::linalg::GenericOp> reductions,
                                          unsigned vectors);
  void endPartials(llvm::ArrayRef<mlir::linalg::GenericOp> reductions,
                   llvm::ArrayRef<Buffer> partials, llvm::MutableArrayRef<mlir::Value> running);
  void emitColumnBlock(mlir::Value column, unsigned vectors, const Lanes &lanes);

  Emitter &e;
  mlir::OpBuilder &b;
  mlir::Location loc;
  const Space &space;
  std::function<const Buffer *(mlir::Value)> buffer;

  // The plan.
  bool rows = false;
  unsigned width = 1;  ///< lanes
  unsigned unroll = 1; ///< vectors in a step of the main loop
  int vectorDim = -1;
  int64_t block = 1; ///< elements of the vector dim in a unit (columns)
  llvm::SmallVector<unsigned> outer, passDims;
  llvm::SmallVector<unsigned> inner; ///< other dims that vary inside a unit
  llvm::SmallVector<int> storePass;  ///< of each output
  llvm::DenseMap<mlir::Operation *, std::set<int>> passes;
  llvm::DenseMap<mlir::Operation *, Kept> kept;

  // The place.
  int pass = 0;
  bool streaming = false;                   ///< results are stored past the caches
  llvm::SmallVector<mlir::Value> unitIndex; ///< of the outer dims; null for others
  llvm::DenseMap<const Access *, mlir::Value> bases;
};

} // namespace quern::cpu

#endif // QUERN_LIB_SCHEDULE_CPU_NEST_H
