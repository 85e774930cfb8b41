//===- Reductions.cpp - How partial results are joined --------------------===//
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

std::optional<Combiner> matchCombiner(linalg::LinalgOp op, unsigned init) {
  Operation *combiner = combinerOf(op, init);
  TypedAttr neutral = neutralElement(combiner);
  if (!neutral)
    return std::nullopt;
  using Kind = gpu::AllReduceOperation;
  auto kind = llvm::TypeSwitch<Operation *, std::optional<Kind>>(combiner)
                  .Case<arith::AddFOp, arith::AddIOp>([](auto) { return Kind::ADD; })
                  .Case<arith::MulFOp, arith::MulIOp>([](auto) { return Kind::MUL; })
                  .Case([](arith::MaximumFOp) { return Kind::MAXIMUMF; })
                  .Case([](arith::MinimumFOp) { return Kind::MINIMUMF; })
                  .Case([](arith::MaxNumFOp) { return Kind::MAXNUMF; })
                  .Case([](arith::MinNumFOp) { return Kind::MINNUMF; })
                  .Case([](arith::MaxSIOp) { return Kind::MAXSI; })
                  .Case([](arith::MinSIOp) { return Kind::MINSI; })
                  .Case([](arith::MaxUIOp) { return Kind::MAXUI; })
                  .Case([](arith::MinUIOp) { return Kind::MINUI; })
                  .Case([](arith::AndIOp) { return Kind::AND; })
                  .Case([](arith::OrIOp) { return Kind::OR; })
                  .Case([](arith::XOrIOp) { return Kind::XOR; })
                  .Default([](Operation *) { return std::nullopt; });
  if (!kind)
    return std::nullopt;
  return Combiner{combiner, *kind, neutral};
}

} // namespace quern::cuda
