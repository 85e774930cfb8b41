//===- ComposeMaps.cpp - Moved elements are read where they are -----------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "quern/Conversion/QuernToLinalg/LoweringBuilder.h"

using namespace mlir;

namespace quern {

/// Whether the op only moves elements: result[i] = input[map(i)].
static bool isMove(linalg::GenericOp op) {
  if (!op || op.getNumDpsInputs() != 1 || op.getNumDpsInits() != 1 || op.getNumReductionLoops() ||
      !op.getMatchingIndexingMap(op.getDpsInitOperand(0)).isIdentity())
    return false;
  auto yield = cast<linalg::YieldOp>(op.getBody()->getTerminator());
  return yield.getOperand(0) == op.getBody()->getArgument(0);
}

/// Whether every loop still has an operand that says its size.
static bool hasAllLoops(ArrayRef<AffineMap> maps) {
  llvm::SmallBitVector found(maps.front().getNumDims());
  for (AffineMap map : maps)
    for (AffineExpr expr : map.getResults())
      if (auto dim = dyn_cast<AffineDimExpr>(expr))
        found.set(dim.getPosition());
  return found.all();
}

void composeMoves(Operation *function) {
  SmallVector<linalg::GenericOp> moves;
  function->walk([&](linalg::GenericOp reader) {
    for (OpOperand *operand : reader.getDpsInputOperands())
      // A chain of moves is short.
      while (true) {
        auto move = operand->get().getDefiningOp<linalg::GenericOp>();
        if (!isMove(move))
          break;
        SmallVector<AffineMap> maps = reader.getIndexingMapsArray();
        AffineMap &map = maps[operand->getOperandNumber()];
        map = move.getMatchingIndexingMap(move.getDpsInputOperand(0)).compose(map);
        if (!hasAllLoops(maps))
          break;
        reader.setIndexingMapsAttr(Builder(reader.getContext()).getAffineMapArrayAttr(maps));
        operand->set(move.getDpsInputOperand(0)->get());
        moves.push_back(move);
      }
  });
  // A move may have been found by several readers.
  llvm::SmallDenseSet<Operation *> erased;
  for (linalg::GenericOp move : llvm::reverse(moves))
    if (!erased.contains(move) && move->use_empty()) {
      erased.insert(move);
      move->erase();
    }
}

} // namespace quern
