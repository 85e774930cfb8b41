//===- Schedule.cpp - From a kernel's kind to its scheduler ---------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Schedulers.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace quern;
using namespace quern::cpu;

/// An identity copy of `v` into `out`, as an op of the body.
static Value copyInto(OpBuilder &b, Location loc, Value v, Value out) {
  auto type = cast<RankedTensorType>(out.getType());
  AffineMap identity = b.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> kinds(type.getRank(), utils::IteratorType::parallel);
  return linalg::GenericOp::create(b, loc, TypeRange(type), ValueRange(v), ValueRange(out),
                                   ArrayRef<AffineMap>{identity, identity}, kinds,
                                   [](OpBuilder &b, Location loc, ValueRange args) {
                                     linalg::YieldOp::create(b, loc, args[0]);
                                   })
      .getResult(0);
}

/// The index as an affine expression of the loops of `op`; null when it is none.
static AffineExpr affineIndex(linalg::GenericOp op, Value v) {
  APInt constant;
  if (matchPattern(v, m_ConstantInt(&constant)))
    return getAffineConstantExpr(constant.getSExtValue(), op.getContext());
  Operation *def = v.getDefiningOp();
  if (!def)
    return {};
  if (auto index = dyn_cast<linalg::IndexOp>(def))
    return getAffineDimExpr(index.getDim(), op.getContext());
  if (isa<arith::IndexCastOp, arith::ExtSIOp>(def))
    return affineIndex(op, def->getOperand(0));
  if (!isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(def))
    return {};
  AffineExpr x = affineIndex(op, def->getOperand(0)), y = affineIndex(op, def->getOperand(1));
  if (!x || !y)
    return {};
  if (isa<arith::AddIOp>(def))
    return x + y;
  if (isa<arith::SubIOp>(def))
    return x - y;
  return isa<AffineConstantExpr>(x) || isa<AffineConstantExpr>(y) ? x * y : AffineExpr();
}

/// An element that is picked at an affine function of the loops (the window of a
/// convolution without padding) is an operand with that function as its index map.
static void extractsToOperands(kernel::FuncOp kernel, linalg::GenericOp op) {
  SmallVector<std::pair<tensor::ExtractOp, AffineMap>> picked;
  for (auto extract : op.getBody()->getOps<tensor::ExtractOp>()) {
    SmallVector<AffineExpr> exprs;
    // A bare loop in a map says that the loop has the size of the operand's dim: a slice from 0, or
    // a smaller index, has not.
    for (auto [i, d] : llvm::zip(extract.getIndices(),
                                 getDims(cast<RankedTensorType>(extract.getTensor().getType())))) {
      AffineExpr expr = affineIndex(op, i);
      auto loop = dyn_cast_or_null<AffineDimExpr>(expr);
      exprs.push_back(loop && loopSize(op, loop.getPosition()) != d ? AffineExpr() : expr);
    }
    if (isInMemory(kernel, extract.getTensor()) &&
        llvm::all_of(exprs, [](AffineExpr e) { return bool(e); }))
      picked.push_back({extract, AffineMap::get(op.getNumLoops(), 0, exprs, op.getContext())});
  }
  if (picked.empty())
    return;
  SmallVector<Value> ins(op.getDpsInputs());
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  for (auto [n, pick] : llvm::enumerate(picked)) {
    maps.insert(maps.begin() + ins.size(), pick.second);
    BlockArgument arg = op.getBody()->insertArgument(
        ins.size(), getElementTypeOrSelf(pick.first.getTensor()), op.getLoc());
    ins.push_back(pick.first.getTensor());
    pick.first.getResult().replaceAllUsesWith(arg);
    pick.first.erase();
  }
  OpBuilder b(op);
  auto made = linalg::GenericOp::create(b, op.getLoc(), op.getResultTypes(), ins, op.getDpsInits(),
                                        maps, op.getIteratorTypesArray());
  made.getRegion().takeBody(op.getRegion());
  for (Operation &o : llvm::make_early_inc_range(llvm::reverse(*made.getBody())))
    if (isOpTriviallyDead(&o))
      o.erase();
  op->replaceAllUsesWith(made);
  op->erase();
}

LogicalResult cpu::normalize(kernel::FuncOp kernel) {
  IRRewriter rewriter(kernel.getContext());
  Block &body = kernel.getBody().front();
  auto yield = cast<kernel::YieldOp>(body.getTerminator());
  SmallVector<linalg::LinalgOp> named;
  for (Operation &op : body.without_terminator())
    if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op); linalgOp && !isa<linalg::GenericOp>(op))
      if (!isa<linalg::FillOp>(op) || llvm::is_contained(op.getUsers(), yield.getOperation()))
        named.push_back(linalgOp);
  for (linalg::LinalgOp op : named) {
    rewriter.setInsertionPoint(op);
    if (failed(linalg::generalizeNamedOp(rewriter, op)))
      return op.emitError("unsupported: an op without a general form in a kernel");
  }
  // What only the results that nobody asked for need.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (isOpTriviallyDead(&op))
      op.erase();
  for (auto op : llvm::make_early_inc_range(body.getOps<linalg::GenericOp>()))
    extractsToOperands(kernel, op);
  for (Operation &op : body.without_terminator()) {
    bool onTensors = llvm::any_of(op.getResultTypes(), llvm::IsaPred<TensorType>);
    if (isa<linalg::GenericOp, linalg::FillOp, tensor::EmptyOp, tensor::CastOp,
            tensor::ExpandShapeOp, tensor::CollapseShapeOp, kernel::RefineOp, kernel::ViewOp>(op) ||
        op.hasTrait<OpTrait::ConstantLike>() || (!onTensors && op.getNumResults() == 1))
      continue;
    return op.emitError("unsupported: '") << op.getName() << "' in a kernel's body";
  }
  for (auto [n, operand] : llvm::enumerate(yield->getOpOperands())) {
    // A view of a result is the result: the out is contiguous.
    Value v = operand.get(), root = throughViews(v);
    bool seen = llvm::is_contained(yield->getOperands().take_front(n), root);
    if (root.getDefiningOp<linalg::GenericOp>() && !seen) {
      operand.set(root);
      continue;
    }
    rewriter.setInsertionPoint(yield);
    operand.set(copyInto(rewriter, v.getLoc(), v, body.getArgument(kernel.getNumIns() + n)));
  }
  return success();
}

/// Whether every result is known to have no elements.
static bool writesNothing(kernel::FuncOp kernel) {
  return llvm::all_of(kernel.getBody().front().getTerminator()->getOperandTypes(), [](Type type) {
    return llvm::is_contained(cast<RankedTensorType>(type).getShape(), 0);
  });
}

/// A kernel of no units.
static void scheduleNothing(Emitter &e) {
  std::string name = e.kernel.getSymName().str();
  e.beginFunction(name, /*sizesOnly=*/false);
  for (const char *suffix : {"_range", "_unit_cost"}) {
    e.beginFunction(name + suffix, /*sizesOnly=*/true);
    e.endFunction(e.i64(0));
  }
}

FailureOr<OwningOpRef<ModuleOp>> quern::scheduleKernel(kernel::FuncOp original,
                                                       const MachineModel &machine,
                                                       const ScheduleOptions &options) {
  OwningOpRef<Operation *> copy = original->clone();
  auto kernel = cast<kernel::FuncOp>(*copy);
  OwningOpRef<ModuleOp> module = ModuleOp::create(original.getLoc());
  if (writesNothing(kernel)) {
    Emitter emitter(kernel, *module, machine, options);
    scheduleNothing(emitter);
    return module;
  }
  if (failed(normalize(kernel)))
    return failure();
  Emitter emitter(kernel, *module, machine, options);
  std::string reason;
  if (options.reference || !scheduleContraction(emitter, reason)) {
    if (!kernel.getPacked().empty())
      return original.emitError("invalid: a packed operand is read by no contraction: ")
             << (options.reference ? "the reference reads plain constants" : reason);
    if (failed(scheduleNest(emitter)))
      return failure();
  }
  legalize(emitter);
  return module;
}
