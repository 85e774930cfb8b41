//===- QuernToLinalg.cpp - Lowers all ops of a kernel ---------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "quern/Conversion/QuernToLinalg/LoweringBuilder.h"
#include "quern/Dialect/Kernel/IR/Kernel.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace quern {

static LoweringFunction lookupLowering(StringRef name) {
  static const llvm::StringMap<LoweringFunction> table = {
      {"", nullptr},
#include "quern/Dialect/Quern/IR/LoweringTable.inc"
  };
  return table.lookup(name);
}

FailureOr<SmallVector<Value>> lowerOp(Operation *op, LoweringBuilder &builder) {
  const OpRecord &record = cast<StructuredOp>(op).getOpRecord();
  if (LoweringFunction lower = lookupLowering(record.name))
    return lower(op, builder);
  SmallVector<Value> inputs;
  SmallVector<Type> dtypes;
  for (unsigned i = 0; i < record.operands.size(); ++i)
    if (Value v = builder.operand(i)) {
      inputs.push_back(v);
      dtypes.push_back(builder.dtype(i));
    }
  return SmallVector<Value>{builder.broadcast(
      builder.resultDims(), builder.resultDtype(), inputs, dtypes,
      [&](ScalarBuilder &s, ArrayRef<Scalar> in) { return record.scalar(op, s, in); })};
}

static Type signlessTensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return type;
  return tensor.clone(ScalarBuilder::signless(tensor.getElementType()));
}

/// Two sizes without a name may be equal or not: no map can be chosen for them.
static LogicalResult checkNamed(Operation *op) {
  auto isNamed = [](Value v) {
    return llvm::none_of(getDims(cast<RankedTensorType>(v.getType())),
                         [](Dim d) { return d.isUnknown(); });
  };
  if (llvm::all_of(op->getOperands(), isNamed) && llvm::all_of(op->getResults(), isNamed))
    return success();
  return op->emitError("unsupported: lowering an op with an unnamed size; run "
                       "quern-propagate-shapes first");
}

LogicalResult lowerToLinalg(Operation *function) {
  SmallVector<Operation *> ops;
  function->walk([&](Operation *op) {
    if (isa<StructuredOp>(op))
      ops.push_back(op);
  });
  // Lowered values by the original ones: the originals keep their types until all are lowered.
  IRMapping lowered;
  OpBuilder b(function->getContext());
  // Values of other ops and arguments lose their sign at the end; a cast stands for that until
  // then.
  SmallVector<UnrealizedConversionCastOp> casts;
  auto lookup = [&](Value v) {
    Type type = signlessTensor(v.getType());
    if (Value known = lowered.lookupOrNull(v))
      return known;
    if (type == v.getType())
      return v;
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointAfterValue(v);
    casts.push_back(UnrealizedConversionCastOp::create(b, v.getLoc(), type, v));
    lowered.map(v, casts.back().getResult(0));
    return casts.back().getResult(0);
  };
  for (Operation *op : ops) {
    b.setInsertionPoint(op);
    if (!cast<StructuredOp>(op).getDestinations().empty())
      return op->emitError("invalid: quern-to-linalg comes after quern-fuse for '")
             << op->getName() << "', which writes into a destination";
    if (failed(checkNamed(op)))
      return failure();
    SmallVector<Value> operands;
    for (Value v : op->getOperands())
      operands.push_back(lookup(v));
    LoweringBuilder builder(b, op, operands);
    FailureOr<SmallVector<Value>> results = lowerOp(op, builder);
    if (failed(results))
      return failure();
    for (auto [from, to] : llvm::zip(op->getResults(), *results))
      lowered.map(from, to);
  }
  for (Operation *op : llvm::reverse(ops)) {
    for (Value result : op->getResults()) {
      Value value = lowered.lookup(result);
      for (OpOperand &use : llvm::make_early_inc_range(result.getUses()))
        if (!isa<StructuredOp>(use.getOwner()))
          use.set(value);
    }
  }
  for (Operation *op : llvm::reverse(ops)) {
    op->dropAllUses();
    op->erase();
  }
  function->walk([&](Operation *op) {
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (BlockArgument arg : block.getArguments())
          arg.setType(signlessTensor(arg.getType()));
    for (Value result : op->getResults())
      result.setType(signlessTensor(result.getType()));
    auto constant = dyn_cast<arith::ConstantOp>(op);
    auto type = constant ? dyn_cast<ShapedType>(constant.getType()) : ShapedType();
    if (!type || constant.getValue().getType() == type)
      return;
    if (auto dense = dyn_cast<DenseElementsAttr>(constant.getValue()))
      constant.setValueAttr(cast<TypedAttr>(dense.bitcast(type.getElementType())));
    else if (auto resource = dyn_cast<DenseResourceElementsAttr>(constant.getValue()))
      constant.setValueAttr(DenseResourceElementsAttr::get(type, resource.getRawHandle()));
  });
  for (UnrealizedConversionCastOp cast : casts) {
    cast.getResult(0).replaceAllUsesWith(cast.getOperand(0));
    cast.erase();
  }
  if (auto func = dyn_cast<func::FuncOp>(function)) {
    SmallVector<Type> results;
    for (Type type : func.getResultTypes())
      results.push_back(signlessTensor(type));
    func.setType(FunctionType::get(func.getContext(), func.front().getArgumentTypes(), results));
  }
  composeMoves(function);
  return success();
}

namespace {
struct QuernToLinalgPass : PassWrapper<QuernToLinalgPass, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(QuernToLinalgPass)
  StringRef getArgument() const override { return "quern-to-linalg"; }
  StringRef getDescription() const override {
    return "lower the ops of kernels and functions to linalg on tensors";
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<QuernDialect, arith::ArithDialect, kernel::KernelDialect, linalg::LinalgDialect,
                    math::MathDialect, scf::SCFDialect, tensor::TensorDialect>();
  }
  void runOnOperation() override {
    auto result = getOperation()->walk([](Operation *op) {
      if (!isa<kernel::FuncOp, func::FuncOp>(op))
        return WalkResult::advance();
      // A host function has launches in place of ops by now; its types, signs included, are its
      // signature.
      bool hasOps = op->walk([](StructuredOp) { return WalkResult::interrupt(); }).wasInterrupted();
      if (isa<func::FuncOp>(op) && !hasOps)
        return WalkResult::skip();
      return failed(lowerToLinalg(op)) ? WalkResult::interrupt() : WalkResult::skip();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace

std::unique_ptr<Pass> createQuernToLinalgPass() { return std::make_unique<QuernToLinalgPass>(); }
void registerQuernToLinalgPass() { PassRegistration<QuernToLinalgPass>(); }

} // namespace quern
