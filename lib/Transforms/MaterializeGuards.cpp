//===- MaterializeGuards.cpp - Open conditions become guards --------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "quern/Dialect/Kernel/IR/Kernel.h"
#include "quern/Dialect/Quern/IR/Quern.h"
#include "quern/Transforms/Dims.h"
#include "quern/Transforms/Passes.h"

namespace quern {
#define GEN_PASS_DEF_QUERNMATERIALIZEGUARDS
#include "quern/Transforms/Passes.h.inc"
} // namespace quern

using namespace mlir;
using namespace quern;

namespace {

/// Walks a function as propagation does, with the same facts at each op, so that it
/// finds the same open conditions.
class GuardBuilder {
public:
  GuardBuilder(func::FuncOp func, const DimBindings &bindings)
      : func(func), bindings(bindings), prologue(func.getContext()) {
    if (Operation *last = bindings.getLastInPrologue())
      prologue.setInsertionPointAfter(last);
    else
      prologue.setInsertionPointToStart(&func.getBody().front());
  }

  LogicalResult run() {
    Facts facts = getSignatureFacts(func);
    guardSignature(facts);
    assumeArgumentsFit(func, facts);
    return visit(func.getBody(), facts, /*always=*/true);
  }

private:
  LogicalResult visit(Region &region, Facts &facts, bool always) {
    for (Block &block : region) {
      Facts inner(&facts);
      // Only the entry block runs in any case, and what it checks holds behind it.
      for (Operation &op : llvm::make_early_inc_range(block))
        if (failed(
                visit(&op, block.isEntryBlock() ? facts : inner, always && block.isEntryBlock())))
          return failure();
    }
    return success();
  }

  LogicalResult visit(Operation *op, Facts &facts, bool always) {
    if (isa<StructuredOp>(op)) {
      MetaResult result = runChecks(op, facts);
      if (!result.ok)
        return emitError(op->getLoc()) << result.error;
      for (const UndecidedCheck &check : result.undecided) {
        if (always && bindings.inPrologue(check.condition)) {
          guard(prologue, op->getLoc(), check);
        } else {
          OpBuilder before(op);
          guard(before, op->getLoc(), check);
        }
        facts.assume(check.condition);
      }
    }
    for (Region &region : op->getRegions()) {
      Facts inner(&facts);
      if (failed(visit(region, inner, /*always=*/false)))
        return failure();
    }
    return success();
  }

  Value dim(OpBuilder &builder, Location loc, Dim d) {
    return kernel::DimOp::create(builder, loc, builder.getIndexType(), d.getAttr());
  }

  void guard(OpBuilder &builder, Location loc, const UndecidedCheck &check) {
    llvm::DenseMap<Dim, Value> dims;
    auto valueOf = [&](Dim d) {
      Value &value = dims[d];
      return value ? value : value = dim(builder, loc, d);
    };
    Value condition = check.condition.emit(builder, loc, [&](StringRef symbol) {
      return valueOf(Dim::symbol(builder.getContext(), symbol));
    });
    SmallVector<Value> values = llvm::map_to_vector(check.values, valueOf);
    kernel::GuardOp::create(builder, loc, condition, check.id, check.text, values);
  }

  /// What the signature says of the sizes that a caller passes.
  void guardSignature(const Facts &facts) {
    for (BlockArgument arg : func.getArguments())
      if (auto type = dyn_cast<RankedTensorType>(arg.getType()))
        for (auto [i, d] : llvm::enumerate(getDims(type)))
          if (type.isDynamicDim(i))
            guardDim(arg, i, d, facts);
    // Arguments of a function that is called are named in its body.
    for (Operation &op : func.getBody().front())
      if (auto bind = dyn_cast<kernel::BindDimsOp>(op);
          bind && isa<BlockArgument>(bind.getSource()))
        for (auto [i, d] : llvm::enumerate(getDims(bind.getType())))
          if (bind.getType().isDynamicDim(i))
            guardDim(cast<BlockArgument>(bind.getSource()), i, d, facts);
  }

  void guardDim(BlockArgument arg, unsigned i, Dim d, const Facts &facts) {
    if (d.isUnknown() || d.isConstant())
      return;
    Location loc = arg.getLoc();
    std::string where = ("'" + func.getSymName() + "' argument " + Twine(arg.getArgNumber()) +
                         " dim " + Twine(i) + ": expected ")
                            .str();
    const DimBindings::Binding *binding = d.isSymbol() ? bindings.lookup(d.getSymbol()) : nullptr;
    if (!binding || binding->value != arg || binding->dim != i) {
      Value index = arith::ConstantIndexOp::create(prologue, loc, i);
      Value actual = tensor::DimOp::create(prologue, loc, arg, index);
      Value expected = dim(prologue, loc, d);
      Value equal =
          arith::CmpIOp::create(prologue, loc, arith::CmpIPredicate::eq, actual, expected);
      if (!d.isExact()) {
        Value exact = Condition::exact(d).emit(prologue, loc, [&](StringRef symbol) {
          return dim(prologue, loc, Dim::symbol(prologue.getContext(), symbol));
        });
        equal = arith::AndIOp::create(prologue, loc, equal, exact);
      }
      kernel::GuardOp::create(prologue, loc, equal, "signature",
                              where + "{0} (" + d.str() + "), got {1}",
                              ValueRange{expected, actual});
      return;
    }
    Facts::Range range = facts.getRange(d.getSymbol());
    MLIRContext *ctx = func.getContext();
    auto promise = [&](const Condition &condition, const Twine &text) {
      UndecidedCheck check{"signature", condition, (where + text + ", got {0}").str(), {d}};
      if (Facts().decide(condition) == Truth::Undecided)
        guard(prologue, loc, check);
    };
    promise(Condition::le(Dim::constant(ctx, range.min), d), "at least " + Twine(range.min));
    if (range.max)
      promise(Condition::le(d, Dim::constant(ctx, *range.max)), "at most " + Twine(*range.max));
    promise(Condition::divides(Dim::constant(ctx, range.divisor), d),
            "a multiple of " + Twine(range.divisor));
  }

  func::FuncOp func;
  const DimBindings &bindings;
  OpBuilder prologue;
};

struct MaterializeGuards : quern::impl::QuernMaterializeGuardsBase<MaterializeGuards> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (func.isExternal())
      return;
    if (failed(verifyTensors(func, getArgument())))
      return signalPassFailure();
    FailureOr<DimBindings> bindings = DimBindings::get(func);
    if (failed(bindings) || failed(GuardBuilder(func, *bindings).run()))
      signalPassFailure();
  }
};

} // namespace
