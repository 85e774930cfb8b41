//===- Body.h - Elements of a kernel's tensors, on demand -------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The one piece that all CUDA schedulers share: it emits the scalar computation of
/// one element of any tensor of a kernel body, pulling in what that element needs
/// and cloning scalar regions (there is no list of ops). A scheduler decides which
/// thread computes which element of the outs, and pins elements that it has computed
/// otherwise (the sum of a row, an accumulator).
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_LIB_SCHEDULE_CUDA_BODY_H
#define QUERN_LIB_SCHEDULE_CUDA_BODY_H

#include "Indexing.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "quern/Dialect/Kernel/IR/Kernel.h"

namespace quern::cuda {

/// Facts about a body that need no code.
class BodyInfo {
public:
  explicit BodyInfo(kernel::FuncOp kernel) : kernel(kernel) {}
  /// Fails, with an `unsupported:` error at the op, when a body holds something that
  /// `Body` cannot emit, or a size without a name.
  mlir::LogicalResult verify();

  /// The sizes of a tensor, from its type or from what it was made of.
  llvm::SmallVector<Dim> sizes(mlir::Value tensor) const;
  /// The sizes of an op's loops.
  llvm::SmallVector<Dim> loopSizes(mlir::linalg::LinalgOp op) const;
  mlir::Block &block() { return kernel.getBody().front(); }

  kernel::FuncOp kernel;

private:
  Dim dimOf(mlir::Value index) const;
};

/// Whether an op has a loop that is a reduction.
bool isReduction(mlir::linalg::LinalgOp op);

/// V consecutive elements that one thread computes in an unrolled loop, so that what
/// lies together in memory is read and written by one access.
struct Lanes {
  mlir::scf::ForOp loop;
  mlir::Value first; ///< index of lane 0
  mlir::Value index; ///< first + lane, in the loop
  mlir::Value left;  ///< lanes from here on are past the end; may exceed the width
  int64_t width;
  /// Not even lane 0 may exist: what all lanes read is no more there than what each does.
  bool mayBeEmpty = false;
  /// Something in the loop may only be done for lanes that exist.
  bool needsGuard = false;
  /// Some access became a vector.
  bool vectorised = false;

  bool isInvariant(mlir::Value value) const;
};

class Body {
public:
  /// `buffers`: a flat memref for each argument; `strides`: the values of an argument's
  /// strides, empty when it is contiguous.
  Body(mlir::OpBuilder &builder, Indexing &indexing, BodyInfo &info,
       llvm::ArrayRef<mlir::Value> buffers, llvm::ArrayRef<llvm::SmallVector<mlir::Value>> strides)
      : b(builder), indexing(indexing), info(info), buffers(buffers), strides(strides) {}

  /// One element of a tensor.
  mlir::Value element(mlir::Value tensor, llvm::ArrayRef<mlir::Value> indices);
  /// From here on, in this block, that element is `value`.
  void pin(mlir::Value tensor, llvm::ArrayRef<mlir::Value> indices, mlir::Value value);
  /// Clones the region of an op at one point of its loops; `accumulators` are the current
  /// elements of its outs (null where unused). The yielded values.
  llvm::SmallVector<mlir::Value> region(mlir::linalg::LinalgOp op,
                                        llvm::ArrayRef<mlir::Value> loops,
                                        llvm::ArrayRef<mlir::Value> accumulators);
  /// A value that is no tensor, computed in the body outside of regions.
  mlir::Value scalar(mlir::Value value);
  /// Stores an element of out `out` (an argument number), at `indices`. Inside lanes the store
  /// becomes a part of a vector, written after the lane loop, where elements lie together.
  void store(unsigned argument, llvm::ArrayRef<mlir::Value> indices, mlir::Value value);

  /// Runs `body` for lanes 0 … width-1 of an unrolled loop, from `first` on, with values that
  /// are carried from lane to lane. `left` null: all lanes exist. Answers the carried values.
  llvm::SmallVector<mlir::Value>
  forLanes(mlir::Value first, mlir::Value left, int64_t width, mlir::ValueRange carried,
           llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value, mlir::ValueRange)> body);

  /// Answers an element of a reduction's result instead of a loop in the thread.
  std::function<mlir::Value(mlir::OpResult, llvm::ArrayRef<mlir::Value>)> onReduction;
  /// Whether any access became a vector.
  bool vectorised = false;
  /// Every element of an argument that was loaded.
  struct Load {
    unsigned argument;
    llvm::SmallVector<mlir::Value> indices;
  };
  llvm::SmallVector<Load> loads;
  /// What a thread writes of an out.
  struct Store {
    unsigned argument;
    llvm::SmallVector<mlir::Value> indices;
  };
  /// Whether the loads from number `first` on read what outs may overwrite only where `stores` do
  /// so: in the same thread, which computes all values before it writes the first.
  bool isReadInPlace(llvm::ArrayRef<Store> stores, size_t first = 0) const;
  Lanes *lanes = nullptr;

private:
  struct Pin {
    llvm::SmallVector<mlir::Value> indices;
    mlir::Value value;
  };
  struct VectorLoad {
    mlir::Value buffer, address, vector;
  };
  struct VectorStore {
    mlir::Value buffer, address, elements;
  };

  mlir::Value load(mlir::BlockArgument argument, llvm::ArrayRef<mlir::Value> indices);
  mlir::Value reduce(mlir::OpResult result, llvm::ArrayRef<mlir::Value> indices);
  mlir::Value reduceInParts(mlir::linalg::LinalgOp op, mlir::OpResult result,
                            llvm::ArrayRef<mlir::Value> indices,
                            llvm::SmallVector<mlir::Value> loops,
                            llvm::ArrayRef<mlir::Value> inits);
  mlir::Value elementOf(mlir::linalg::LinalgOp op, mlir::OpResult result,
                        llvm::ArrayRef<mlir::Value> indices);
  mlir::Value address(unsigned argument, llvm::ArrayRef<mlir::Value> indices,
                      llvm::SmallVectorImpl<Indexing::Term> &terms);
  /// In a lane loop: the terms' address for lane 0 when the lane is its last digit, else null.
  bool isLaneAddress(llvm::ArrayRef<Indexing::Term> terms) const;
  mlir::Value laneAddress(llvm::SmallVector<Indexing::Term> terms);
  mlir::Value laneNumber() { return lanes->loop.getInductionVar(); }
  void cloneBlock(mlir::Block &block, mlir::IRMapping &map, llvm::ArrayRef<mlir::Value> loops);
  void cloneIf(mlir::scf::IfOp op, mlir::IRMapping &map, llvm::ArrayRef<mlir::Value> loops);
  mlir::Value operandOf(mlir::Value value, mlir::IRMapping &map);
  /// Clones an op; before the lane loop when nothing in it depends on the lane.
  mlir::Operation *cloneScalar(mlir::Operation &op, mlir::IRMapping &map);

  mlir::OpBuilder &b;
  Indexing &indexing;
  BodyInfo &info;
  llvm::SmallVector<mlir::Value> buffers;
  llvm::SmallVector<llvm::SmallVector<mlir::Value>> strides;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<Pin>> pins;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Value>> scalars;
  /// In a branch of a region: an element is only there when the branch is taken.
  bool isConditional = false;
  llvm::SmallVector<VectorLoad> vectorLoads;
  llvm::SmallVector<VectorStore> vectorStores;
};

} // namespace quern::cuda

#endif // QUERN_LIB_SCHEDULE_CUDA_BODY_H
