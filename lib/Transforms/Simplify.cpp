//===- Simplify.cpp - Canonical form, folded constants, CSE ---------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "KernelAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "quern/Dialect/Kernel/IR/Kernel.h"
#include "quern/Dialect/Quern/IR/Quern.h"
#include "quern/Dialect/Quern/IR/ScalarBuilder.h"
#include "quern/Transforms/Passes.h"

namespace quern {
#define GEN_PASS_DEF_QUERNSIMPLIFY
#include "quern/Transforms/Passes.h.inc"
} // namespace quern

using namespace mlir;
using namespace quern;

namespace {

/// A pointwise op whose operands are constants, evaluated by its scalar body: the body is built
/// for each element on constants, and arith's and math's folders do the rest.
struct FoldConstantOp : RewritePattern {
  FoldConstantOp(MLIRContext *ctx, int64_t limit)
      : RewritePattern(Pattern::MatchAnyOpTypeTag(), 1, ctx), limit(limit) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    auto structured = dyn_cast<StructuredOp>(op);
    if (!structured || op->getNumResults() != 1 || !op->getNumOperands() ||
        !structured.getDestinations().empty() || !structured.getOpRecord().scalar)
      return failure();
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    if (!type.hasStaticShape() || type.getNumElements() > limit || type.getNumElements() == 0)
      return failure();
    SmallVector<DenseElementsAttr> operands;
    bool splat = true;
    for (Value v : op->getOperands()) {
      DenseElementsAttr value;
      if (!matchPattern(v, m_Constant(&value)))
        return failure();
      operands.push_back(value);
      splat &= value.isSplat();
    }
    SmallVector<Attribute> elements;
    for (int64_t i = 0, e = splat ? 1 : type.getNumElements(); i < e; ++i) {
      Attribute element = evaluate(structured, type, operands, i);
      if (!element)
        return failure();
      elements.push_back(element);
    }
    rewriter.replaceOpWithNewOp<arith::ConstantOp>(op, DenseElementsAttr::get(type, elements));
    return success();
  }

private:
  int64_t limit;

  /// The flat number of the operand's element that broadcasts to element `i` of the result.
  static int64_t source(ShapedType result, ShapedType operand, int64_t i) {
    int64_t index = 0, stride = 1;
    for (int64_t d = operand.getRank() - 1, r = result.getRank() - 1; r >= 0; --d, --r) {
      int64_t at = i % result.getDimSize(r);
      i /= result.getDimSize(r);
      if (d < 0)
        continue;
      if (operand.getDimSize(d) != 1)
        index += at * stride;
      stride *= operand.getDimSize(d);
    }
    return index;
  }

  static Attribute evaluate(StructuredOp op, RankedTensorType type,
                            ArrayRef<DenseElementsAttr> operands, int64_t i) {
    Location loc = op.getLoc();
    Block block;
    OpBuilder scratch(op->getContext());
    scratch.setInsertionPointToEnd(&block);
    Type dtype = type.getElementType();
    ScalarBuilder s(scratch, loc, ScalarBuilder::computeType(dtype));
    SmallVector<Scalar> inputs;
    for (DenseElementsAttr operand : operands) {
      Type from = operand.getElementType();
      auto value = operand.isSplat()
                       ? operand.getSplatValue<Attribute>()
                       : operand.getValues<Attribute>()[source(type, operand.getType(), i)];
      if (auto integer = dyn_cast<IntegerAttr>(value))
        value = IntegerAttr::get(ScalarBuilder::signless(from), integer.getValue());
      auto constant = arith::ConstantOp::create(scratch, loc, cast<TypedAttr>(value));
      inputs.push_back(s.cast(Scalar(constant, from), ScalarBuilder::computeType(from)));
    }
    Scalar result = s.cast(op.getOpRecord().scalar(op, s, inputs), dtype);
    result = s.materialize(result, dtype);
    // In order, so that each op sees its operands folded.
    llvm::DenseMap<Value, Attribute> known;
    for (Operation &inner : block) {
      SmallVector<Attribute> constants;
      for (Value v : inner.getOperands())
        constants.push_back(known.lookup(v));
      SmallVector<OpFoldResult> folded;
      if (failed(inner.fold(constants, folded)) || folded.size() != 1)
        return {};
      Attribute value = dyn_cast<Attribute>(folded[0]);
      if (!value)
        value = known.lookup(cast<Value>(folded[0]));
      if (!value)
        return {};
      known[inner.getResult(0)] = value;
    }
    Attribute value = known.lookup(result.value);
    if (auto integer = dyn_cast_or_null<IntegerAttr>(value))
      return IntegerAttr::get(dtype, integer.getValue());
    return value;
  }
};

/// What is one number everywhere is a constant: by its linalg form a fill, or elements of such a
/// constant moved elsewhere.
struct FoldSplat : RewritePattern {
  FoldSplat(MLIRContext *ctx) : RewritePattern(Pattern::MatchAnyOpTypeTag(), 1, ctx) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    auto structured = dyn_cast<StructuredOp>(op);
    if (!structured || op->getNumResults() != 1 || op->getNumOperands() > 1 ||
        !structured.getDestinations().empty())
      return failure();
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    FusionClass fusion = structured.getOpRecord().fusion;
    if (!type.hasStaticShape() ||
        (fusion != FusionClass::Creation && fusion != FusionClass::IndexMap &&
         fusion != FusionClass::Reshape))
      return failure();
    DenseElementsAttr operand;
    if (op->getNumOperands() &&
        (!matchPattern(op->getOperand(0), m_Constant(&operand)) || !operand.isSplat()))
      return failure();
    Attribute number;
    if (fusion == FusionClass::Reshape) {
      number = operand.getSplatValue<Attribute>();
    } else {
      std::optional<LoweredAlone> alone = lowerAlone(structured);
      if (!alone)
        return failure();
      if (auto fill = alone->results[0].getDefiningOp<linalg::FillOp>()) {
        if (operand || !matchPattern(fill.value(), m_Constant(&number)))
          return failure();
      } else {
        auto generic = alone->results[0].getDefiningOp<linalg::GenericOp>();
        if (!generic || !operand || generic.getNumDpsInputs() != 1 ||
            generic.getNumReductionLoops() ||
            cast<linalg::YieldOp>(generic.getBody()->getTerminator()).getOperand(0) !=
                generic.getBody()->getArgument(0))
          return failure();
        number = operand.getSplatValue<Attribute>();
      }
    }
    if (auto integer = dyn_cast<IntegerAttr>(number))
      number = IntegerAttr::get(type.getElementType(), integer.getValue());
    rewriter.replaceOpWithNewOp<arith::ConstantOp>(op, DenseElementsAttr::get(type, number));
    return success();
  }
};

struct Simplify : quern::impl::QuernSimplifyBase<Simplify> {
  using Base::Base;

  void runOnOperation() override {
    // No frozen set from initialize(): the ops of all loaded dialects are known only here.
    RewritePatternSet patterns(&getContext());
    for (Dialect *dialect : getContext().getLoadedDialects())
      dialect->getCanonicalizationPatterns(patterns);
    for (RegisteredOperationName op : getContext().getRegisteredOperations())
      op.getCanonicalizationPatterns(patterns, &getContext());
    patterns.add<FoldConstantOp>(&getContext(), foldLimit);
    patterns.add<FoldSplat>(&getContext());
    FrozenRewritePatternSet frozen(std::move(patterns));
    GreedyRewriteConfig config;
    config.setMaxIterations(4);
    IRRewriter rewriter(&getContext());
    for (unsigned round = 0; round < 4; ++round) {
      bool changed = false, merged = false;
      (void)applyPatternsGreedily(getOperation(), frozen, config, &changed);
      auto &dominance = getAnalysis<DominanceInfo>();
      eliminateCommonSubExpressions(rewriter, dominance, getOperation(), &merged);
      if (!merged)
        break;
    }
  }
};

} // namespace
