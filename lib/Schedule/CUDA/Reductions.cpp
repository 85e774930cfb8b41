//===- Reductions.cpp - In what order a reduction goes --------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Reductions.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace quern::cuda {

Value Combiner::join(OpBuilder &builder, Value a, Value b) const {
  auto reduction = cast<linalg::LinalgOp>(op->getParentOp());
  IRMapping map;
  for (Value operand : op->getOperands())
    map.map(operand, llvm::is_contained(reduction.getRegionOutputArgs(), operand) ? a : b);
  Operation *joined = builder.clone(*op, map);
  joined->setLoc(builder.getUnknownLoc());
  return joined->getResult(0);
}

static TypedAttr floatAttr(Type type, bool infinity, bool negative) {
  const llvm::fltSemantics &semantics = cast<FloatType>(type).getFloatSemantics();
  return FloatAttr::get(type, infinity ? APFloat::getInf(semantics, negative)
                                       : APFloat::getZero(semantics, negative));
}

std::optional<Combiner> matchCombiner(linalg::LinalgOp op, unsigned init) {
  BlockArgument accumulator = op.getRegionOutputArgs()[init];
  if (!accumulator.hasOneUse())
    return std::nullopt;
  Operation *user = *accumulator.getUsers().begin();
  Value yielded = op.getBlock()->getTerminator()->getOperand(init);
  if (yielded.getDefiningOp() != user || user->getNumOperands() != 2)
    return std::nullopt;
  Type type = accumulator.getType();
  auto integer = [&](APInt value) { return TypedAttr(IntegerAttr::get(type, value)); };
  unsigned bits = type.isIntOrFloat() ? type.getIntOrFloatBitWidth() : 64;
  using Kind = gpu::AllReduceOperation;
  using Result = std::optional<Combiner>;
  return llvm::TypeSwitch<Operation *, Result>(user)
      .Case([&](arith::AddFOp) { return Combiner{user, Kind::ADD, floatAttr(type, false, false)}; })
      .Case([&](arith::MulFOp) {
        return Combiner{user, Kind::MUL, TypedAttr(FloatAttr::get(type, 1.0))};
      })
      .Case([&](arith::MaximumFOp) {
        return Combiner{user, Kind::MAXIMUMF, floatAttr(type, true, true)};
      })
      .Case([&](arith::MinimumFOp) {
        return Combiner{user, Kind::MINIMUMF, floatAttr(type, true, false)};
      })
      .Case([&](arith::MaxNumFOp) {
        return Combiner{user, Kind::MAXNUMF, floatAttr(type, true, true)};
      })
      .Case([&](arith::MinNumFOp) {
        return Combiner{user, Kind::MINNUMF, floatAttr(type, true, false)};
      })
      .Case([&](arith::AddIOp) { return Combiner{user, Kind::ADD, integer(APInt(bits, 0))}; })
      .Case([&](arith::MulIOp) { return Combiner{user, Kind::MUL, integer(APInt(bits, 1))}; })
      .Case([&](arith::MaxSIOp) {
        return Combiner{user, Kind::MAXSI, integer(APInt::getSignedMinValue(bits))};
      })
      .Case([&](arith::MinSIOp) {
        return Combiner{user, Kind::MINSI, integer(APInt::getSignedMaxValue(bits))};
      })
      .Case([&](arith::MaxUIOp) { return Combiner{user, Kind::MAXUI, integer(APInt(bits, 0))}; })
      .Case([&](arith::MinUIOp) {
        return Combiner{user, Kind::MINUI, integer(APInt::getAllOnes(bits))};
      })
      .Case([&](arith::AndIOp) {
        return Combiner{user, Kind::AND, integer(APInt::getAllOnes(bits))};
      })
      .Case([&](arith::OrIOp) { return Combiner{user, Kind::OR, integer(APInt(bits, 0))}; })
      .Case([&](arith::XOrIOp) { return Combiner{user, Kind::XOR, integer(APInt(bits, 0))}; })
      .Default([](Operation *) { return std::nullopt; });
}

SumOrder sumOrder(linalg::LinalgOp op, ArrayRef<Dim> loops) {
  bool exact = true;
  for (unsigned i = 0; i < op.getNumDpsInits(); ++i) {
    std::optional<Combiner> combiner = matchCombiner(op, i);
    if (!combiner)
      return SumOrder::Sequence;
    Operation *join = combiner->op;
    exact &= !isa<arith::AddFOp, arith::MulFOp>(join);
    Value term = join->getOperand(join->getOperand(0) == op.getRegionOutputArgs()[i]);
    if (auto product = term.getDefiningOp<arith::MulFOp>())
      if (product.getLhs() != product.getRhs())
        return SumOrder::Any;
  }
  if (exact)
    return SumOrder::Any;
  for (size_t i = loops.size(); i-- > 0;)
    if (!loops[i].isConstant(1))
      return op.getIteratorTypesArray()[i] == utils::IteratorType::reduction ? SumOrder::Parts
                                                                             : SumOrder::Sequence;
  return SumOrder::Sequence;
}

} // namespace quern::cuda
