//===- SumOrder.cpp - In what order a reduction goes ----------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Schedule/SumOrder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace quern {

Operation *combinerOf(linalg::LinalgOp op, unsigned i) {
  Value running = op.getRegionOutputArgs()[i];
  if (!running.hasOneUse())
    return nullptr;
  Operation *user = *running.user_begin();
  if (user->getBlock() != op.getBlock() || user->getNumOperands() != 2 ||
      user->getNumResults() != 1 || user->getResult(0).getType() != running.getType() ||
      !user->getResult(0).hasOneUse() ||
      op.getBlock()->getTerminator()->getOperand(i) != user->getResult(0))
    return nullptr;
  return user;
}

TypedAttr neutralElement(Operation *combiner) {
  if (!combiner)
    return {};
  Type type = combiner->getResult(0).getType();
  // Upstream says NaN; an infinity is as good, and keeps max one instruction.
  if (isa<arith::MaxNumFOp, arith::MinNumFOp>(combiner))
    return FloatAttr::get(type, APFloat::getInf(cast<FloatType>(type).getFloatSemantics(),
                                                isa<arith::MaxNumFOp>(combiner)));
  return arith::getNeutralElement(combiner).value_or(TypedAttr());
}

SumOrder sumOrder(linalg::LinalgOp op, ArrayRef<Dim> loops) {
  bool exact = true;
  for (unsigned i = 0; i < op.getNumDpsInits(); ++i) {
    Operation *combiner = combinerOf(op, i);
    if (!neutralElement(combiner))
      return SumOrder::Sequence;
    exact &= !isa<arith::AddFOp, arith::MulFOp>(combiner);
    Value term = combiner->getOperand(combiner->getOperand(0) == op.getRegionOutputArgs()[i]);
    if (auto product = term.getDefiningOp<arith::MulFOp>())
      if (product.getLhs() != product.getRhs())
        return SumOrder::Any;
  }
  if (exact)
    return SumOrder::Any;
  for (size_t l = loops.size(); l-- > 0;)
    if (!loops[l].isConstant(1))
      return op.getIteratorTypesArray()[l] == utils::IteratorType::reduction ? SumOrder::Parts
                                                                             : SumOrder::Sequence;
  return SumOrder::Sequence;
}

} // namespace quern
