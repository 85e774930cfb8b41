//===- BodyInfo.cpp - Facts about a kernel body ---------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Body.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace quern::cuda {

bool isReduction(linalg::LinalgOp op) { return op.getNumReductionLoops() != 0; }

Dim BodyInfo::dimOf(Value index) const {
  MLIRContext *context = index.getContext();
  APInt number;
  if (matchPattern(index, m_ConstantInt(&number)))
    return Dim::constant(context, number.getSExtValue());
  Operation *op = index.getDefiningOp();
  if (auto dim = dyn_cast_or_null<kernel::DimOp>(op))
    return Dim(cast<DimAttr>(dim.getDim()));
  if (auto dim = dyn_cast_or_null<tensor::DimOp>(op))
    if (std::optional<int64_t> at = dim.getConstantIndex())
      return sizes(dim.getSource())[*at];
  return Dim::unknown(context);
}

SmallVector<Dim> BodyInfo::sizes(Value tensor) const {
  SmallVector<Dim> result = getDims(cast<RankedTensorType>(tensor.getType()));
  if (llvm::none_of(result, [](Dim d) { return d.isUnknown(); }))
    return result;
  Operation *op = tensor.getDefiningOp();
  auto fill = [&](auto &&dynamic) {
    unsigned next = 0;
    auto shape = cast<RankedTensorType>(tensor.getType()).getShape();
    for (auto [size, d] : llvm::zip(shape, result))
      if (ShapedType::isDynamic(size))
        d = dimOf(dynamic[next++]);
  };
  if (auto linalg = dyn_cast_or_null<linalg::LinalgOp>(op))
    return sizes(linalg.getDpsInits()[cast<OpResult>(tensor).getResultNumber()]);
  if (auto refine = dyn_cast_or_null<kernel::RefineOp>(op))
    return sizes(refine.getSource());
  if (auto empty = dyn_cast_or_null<tensor::EmptyOp>(op))
    fill(empty.getDynamicSizes());
  else if (auto view = dyn_cast_or_null<kernel::ViewOp>(op))
    fill(view.getSizes());
  return result;
}

SmallVector<Dim> BodyInfo::loopSizes(linalg::LinalgOp op) const {
  SmallVector<Dim> result(op.getNumLoops(), Dim::unknown(op.getContext()));
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<RankedTensorType>(operand.get().getType()))
      continue;
    SmallVector<Dim> own = sizes(operand.get());
    for (auto [i, expr] : llvm::enumerate(op.getMatchingIndexingMap(&operand).getResults()))
      if (auto dim = dyn_cast<AffineDimExpr>(expr))
        if (Dim &size = result[dim.getPosition()]; size.isUnknown() || own[i].isConstant())
          size = own[i];
  }
  return result;
}

/// The results' maps send the parallel loops to the elements, one to one.
static bool hasPlainResults(linalg::LinalgOp op) {
  for (OpOperand &init : op.getDpsInitsMutable()) {
    llvm::SmallBitVector seen(op.getNumLoops());
    for (AffineExpr expr : op.getMatchingIndexingMap(&init).getResults()) {
      if (isa<AffineConstantExpr>(expr))
        continue;
      auto dim = dyn_cast<AffineDimExpr>(expr);
      if (!dim || seen.test(dim.getPosition()))
        return false;
      seen.set(dim.getPosition());
    }
    for (auto [i, iterator] : llvm::enumerate(op.getIteratorTypesArray()))
      if (seen.test(i) != (iterator == utils::IteratorType::parallel))
        return false;
  }
  return true;
}

LogicalResult BodyInfo::verify() {
  auto refuse = [](Operation *op, const Twine &what) {
    return op->emitError("unsupported: CUDA kernels do not take ") << what;
  };
  llvm::StringSet<> names;
  for (Dim d : kernel.getSymbols())
    if (d.isSymbol())
      names.insert(d.getSymbol());
  for (BlockArgument argument : block().getArguments())
    for (Dim d : sizes(argument)) {
      bool known = !d.isUnknown();
      d.walkSymbols([&](StringRef name) { known &= names.contains(name); });
      if (!known)
        return kernel.emitError("invalid: argument ")
               << argument.getArgNumber() << " of kernel @" << kernel.getSymName()
               << " has a size without a name";
    }
  for (Operation &op : block()) {
    if (auto linalg = dyn_cast<linalg::LinalgOp>(op)) {
      if (!linalg.hasPureTensorSemantics() && !isa<linalg::FillOp>(op))
        return refuse(&op, "linalg on buffers");
      if (!hasPlainResults(linalg))
        return refuse(&op, "an indexing map of a result that is no permutation of loops");
      if (llvm::any_of(loopSizes(linalg), [](Dim d) { return d.isUnknown(); }))
        return refuse(&op, "a loop whose size has no name");
      WalkResult inner = linalg->walk([&](Operation *scalar) {
        auto choice = dyn_cast<scf::IfOp>(scalar);
        if (scalar == &op || (choice && choice.getNumResults()) ||
            (scalar->getNumRegions() == 0 &&
             (isa<tensor::ExtractOp>(scalar) ||
              llvm::none_of(scalar->getOperandTypes(), llvm::IsaPred<TensorType>))))
          return WalkResult::advance();
        (void)refuse(scalar, "'" + scalar->getName().getStringRef() + "' in a region");
        return WalkResult::interrupt();
      });
      if (inner.wasInterrupted())
        return failure();
      continue;
    }
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      auto dense = dyn_cast<ElementsAttr>(constant.getValue());
      if (dense && !dense.isSplat())
        return refuse(&op, "a constant tensor with different elements");
      continue;
    }
    if (isa<tensor::EmptyOp, tensor::DimOp, kernel::ViewOp, kernel::RefineOp, kernel::DimOp,
            kernel::YieldOp>(op))
      continue;
    if (op.getNumRegions() || llvm::any_of(op.getOperandTypes(), llvm::IsaPred<ShapedType>) ||
        llvm::any_of(op.getResultTypes(), llvm::IsaPred<ShapedType>))
      return refuse(&op, "'" + op.getName().getStringRef() + "'");
  }
  for (Operation &op : block())
    for (Value result : op.getResults())
      if (isa<RankedTensorType>(result.getType()))
        for (Dim d : sizes(result))
          if (d.isUnknown())
            return refuse(&op, "a result whose size has no name");
  return success();
}

} // namespace quern::cuda
