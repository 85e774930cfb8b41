//===- Legalize.cpp - Functions that have no instruction ------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace quern;
using namespace quern::cpu;

/// Instructions, or a few of them, on the targets that there are.
static bool isInstruction(Operation *op) {
  return isa<math::AbsFOp, math::CopySignOp, math::FmaOp, math::SqrtOp, math::RsqrtOp,
             math::FloorOp, math::CeilOp, math::TruncOp, math::RoundEvenOp, math::RoundOp>(op);
}

/// The op as a call of libm for each lane, in the place of the builder.
static Value callLibm(Emitter &e, Operation *op) {
  OpBuilder &b = e.b;
  Location loc = op->getLoc();
  auto vector = dyn_cast<VectorType>(op->getResult(0).getType());
  unsigned lanes = vector ? vector.getNumElements() : 1;
  Type element = getElementTypeOrSelf(op->getResult(0).getType());
  Type computed = element.isF64() ? b.getF64Type() : b.getF32Type();
  StringRef name = isa<math::PowFOp, math::FPowIOp>(op) ? "pow" : op->getName().stripDialect();
  std::string symbol = (name + (computed.isF64() ? "" : "f")).str();
  if (!e.module.lookupSymbol(symbol)) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(e.module.getBody());
    SmallVector<Type> types(op->getNumOperands(), computed);
    func::FuncOp::create(b, loc, symbol, b.getFunctionType(types, computed)).setPrivate();
  }
  SmallVector<Value> in;
  for (Value v : op->getOperands()) {
    Type from = getElementTypeOrSelf(v);
    if (from != computed && isa<IntegerType>(from))
      v = arith::SIToFPOp::create(b, loc, Emitter::vec(computed, lanes), v);
    else if (from != computed)
      v = arith::ExtFOp::create(b, loc, Emitter::vec(computed, lanes), v);
    in.push_back(v);
  }
  Value result;
  if (lanes == 1) {
    result = func::CallOp::create(b, loc, symbol, computed, in).getResult(0);
  } else { // a loop over memory: eight calls in a row are more code than they are worth
    SmallVector<Value> arrays;
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(&op->getParentOfType<func::FuncOp>().getBody().front());
      for (unsigned i = 0; i <= in.size(); ++i)
        arrays.push_back(LLVM::AllocaOp::create(b, loc, e.ptrType, computed, e.i64(lanes), 64));
    }
    unsigned align = computed.getIntOrFloatBitWidth() / 8;
    for (auto [v, array] : llvm::zip(in, arrays))
      LLVM::StoreOp::create(b, loc, v, array, align);
    e.loop(e.i64(0), e.i64(lanes), 1, [&](Value lane) {
      SmallVector<Value> scalars;
      for (unsigned i = 0; i < in.size(); ++i)
        scalars.push_back(
            LLVM::LoadOp::create(b, loc, computed, e.address(arrays[i], computed, lane), align));
      Value r = func::CallOp::create(b, loc, symbol, computed, scalars).getResult(0);
      LLVM::StoreOp::create(b, loc, r, e.address(arrays.back(), computed, lane), align);
    });
    result = LLVM::LoadOp::create(b, loc, Emitter::vec(computed, lanes), arrays.back(), align);
  }
  if (computed != element)
    result = arith::TruncFOp::create(b, loc, Emitter::vec(element, lanes), result);
  return result;
}

void cpu::legalize(Emitter &e) {
  OpBuilder::InsertionGuard guard(e.b);
  SmallVector<Operation *> calls;
  e.module.walk([&](Operation *op) {
    if (isa_and_nonnull<math::MathDialect>(op->getDialect()) && op->getNumResults() == 1 &&
        isa<FloatType>(getElementTypeOrSelf(op->getResult(0).getType())) && !isInstruction(op))
      calls.push_back(op);
  });
  for (Operation *op : calls) {
    e.b.setInsertionPoint(op);
    op->getResult(0).replaceAllUsesWith(callLibm(e, op));
    op->erase();
  }
}
