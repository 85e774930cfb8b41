//===- Indexing.h - Index arithmetic of device kernels ----------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Index arithmetic that remembers where indices come from: an element number that
/// was split into indices and is joined again over the same sizes is the number
/// itself. So a kernel that goes through a tensor element by element never divides,
/// and views cost nothing.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_LIB_SCHEDULE_CUDA_INDEXING_H
#define QUERN_LIB_SCHEDULE_CUDA_INDEXING_H

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/Builders.h"
#include "quern/Shape/Dim.h"

namespace quern::cuda {

class Indexing {
public:
  /// Sizes and constants are emitted before `anchor`, an op of the entry block.
  /// `known`: the sizes that the kernel is told, names among them.
  Indexing(mlir::OpBuilder &builder, mlir::Operation *anchor,
           llvm::DenseMap<Dim, mlir::Value> known);

  mlir::Value constant(int64_t value);
  mlir::Value size(Dim dim);

  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value sub(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, mlir::Value b);
  /// Of numbers that are not negative.
  mlir::Value div(mlir::Value a, mlir::Value b);
  mlir::Value rem(mlir::Value a, mlir::Value b);

  /// The indices of element `linear` of a row-major space.
  llvm::SmallVector<mlir::Value> delinearize(mlir::Value linear, llvm::ArrayRef<Dim> sizes);

  /// One digit of an element number: `index` < `size`. The number is the Horner sum of its terms.
  struct Term {
    mlir::Value index;
    Dim size;
  };
  /// The terms of an address, outermost first, those of size 1 left out.
  llvm::SmallVector<Term> terms(llvm::ArrayRef<mlir::Value> indices, llvm::ArrayRef<Dim> sizes);
  mlir::Value join(llvm::ArrayRef<Term> terms);
  mlir::Value linearize(llvm::ArrayRef<mlir::Value> indices, llvm::ArrayRef<Dim> sizes) {
    return join(terms(indices, sizes));
  }
  /// The indices into the same elements seen with other sizes.
  llvm::SmallVector<mlir::Value> reshape(llvm::ArrayRef<mlir::Value> indices,
                                         llvm::ArrayRef<Dim> from, llvm::ArrayRef<Dim> to);

  /// The value of an index map's result.
  mlir::Value apply(mlir::AffineExpr expr, llvm::ArrayRef<mlir::Value> dims);

  /// The values that an index was joined from or split from; itself when neither.
  llvm::SmallVector<mlir::Value> sources(mlir::Value index) const;

  /// Whether `value` may be used where the builder stands.
  bool isAvailable(mlir::Value value) const;

private:
  struct Split {
    mlir::Value linear;
    llvm::SmallVector<Dim> sizes; ///< without those of size 1
    llvm::SmallVector<mlir::Value> parts;
  };
  struct Part {
    unsigned split, position;
  };
  struct Joined {
    llvm::SmallVector<Term> terms;
    mlir::Value value;
  };

  mlir::OpBuilder &builder;
  mlir::OpBuilder entry;
  mlir::Location loc;
  llvm::DenseMap<int64_t, mlir::Value> constants;
  llvm::DenseMap<Dim, mlir::Value> sizeValues;
  llvm::SmallVector<Split> splits;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<Part>> partOf;
  llvm::SmallVector<Joined> joins;
};

} // namespace quern::cuda

#endif // QUERN_LIB_SCHEDULE_CUDA_INDEXING_H
