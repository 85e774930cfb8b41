//===- PropagateShapes.cpp - Names every size of a program ----------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// One walk over a function sets the types of all values to what the meta functions
/// say, without touching the ops: where an op cannot have such a type (its result is
/// `?` by its own rules, as with calls, branches, loops, foreign ops) the type that it
/// can have is noted. Loops are walked again until the sizes that vary are known.
/// Then one rewrite puts `kernel.bind_dims` and `kernel.refine` between the two.
///
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "quern/Dialect/Kernel/IR/Kernel.h"
#include "quern/Dialect/Quern/IR/FunctionAttrs.h"
#include "quern/Dialect/Quern/IR/Quern.h"
#include "quern/Transforms/Dims.h"
#include "quern/Transforms/Passes.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

namespace quern {
#define GEN_PASS_DEF_QUERNPROPAGATESHAPES
#include "quern/Transforms/Passes.h.inc"
} // namespace quern

using namespace mlir;
using namespace quern;

namespace {

/// What a call needs to know of a function, in sizes of its arguments.
struct Summary {
  enum { Running, Done, Failed } state = Running;
  SmallVector<SmallVector<Dim>> args; ///< empty for what is no tensor
  SmallVector<SmallVector<Dim>> results;
  std::vector<UndecidedCheck> checks;
};

/// Summaries of the functions that are called.
class Summaries {
public:
  explicit Summaries(ModuleOp module) : symbols(module), called(getCalledFunctions(module)) {}
  /// The summary of the called function, which is propagated first; null after an error.
  const Summary *get(func::CallOp call);
  LogicalResult run(func::FuncOp func);

private:
  SymbolTable symbols;
  llvm::DenseSet<StringAttr> called;
  llvm::DenseMap<Operation *, std::unique_ptr<Summary>> summaries;
};

/// Values that control flow joins: each input gets the value of one of the uses, so all
/// of them have one type.
struct JoinGroup {
  SmallVector<Value> inputs;
  SmallVector<OpOperand *> uses;
  SmallVector<Dim> dims; ///< what all uses agree on so far; null where none was seen
  SmallVector<bool> varies;
};

class FunctionShapes {
public:
  FunctionShapes(func::FuncOp func, bool plainSignature, Summaries &summaries, Summary &summary)
      : func(func), plainSignature(plainSignature), summaries(summaries), summary(summary),
        ctx(func.getContext()) {}
  LogicalResult run();

private:
  // Analysis.
  LogicalResult nameArguments();
  LogicalResult visit(Region &region, Facts &facts);
  LogicalResult visit(Block &block, Facts &facts);
  LogicalResult visit(Operation *op, Facts &facts);
  LogicalResult visitStructured(Operation *op, Facts &facts);
  LogicalResult visitCall(func::CallOp call, Facts &facts);
  LogicalResult visitBranch(RegionBranchOpInterface op, Facts &facts);
  LogicalResult visitBind(kernel::BindDimsOp bind, Facts &facts);
  void visitRefine(kernel::RefineOp refine);
  LogicalResult visitForeign(Operation *op, Facts &facts);
  SmallVector<RankedTensorType> joinReturns();

  void setType(Value value, RankedTensorType type);
  Type typeBefore(Value value) const {
    Type type = before.lookup(value);
    return type ? type : value.getType();
  }
  void name(Value value, RankedTensorType plain, SmallVector<Dim> dims);
  void name(Value value, RankedTensorType plain) { name(value, plain, getDims(plain)); }
  Dim fresh(Value value, unsigned dim);
  LogicalResult bind(StringRef symbol, Region *region, void *by, Location loc);
  bool isVisibleAfter(Dim d, Operation *op) const;
  SmallVector<JoinGroup> joinGroups(RegionBranchOpInterface op);
  bool join(JoinGroup &group, ArrayRef<Dim> dims, Operation *op, const Facts &facts);
  RankedTensorType typeOf(const JoinGroup &group) const;

  // Rewrite.
  void rewrite();

  func::FuncOp func;
  bool plainSignature;
  Summaries &summaries;
  Summary &summary;
  MLIRContext *ctx;

  llvm::DenseMap<Value, Type> before; ///< types that were there, where they changed
  /// The type that its op gives a value, where it is not the one that it has now.
  llvm::MapVector<Value, RankedTensorType> plainTypes;
  /// The type that an op needs an operand to have.
  llvm::MapVector<OpOperand *, RankedTensorType> needed;
  llvm::DenseMap<std::pair<Value, unsigned>, Dim> freshDims;
  struct Owner {
    Region *region;
    void *by;
    bool isArgument; ///< of the function, so that it means something outside
  };
  llvm::StringMap<Owner> bound;
  llvm::StringSet<> usedNames;
  unsigned nextName = 0;
  SmallVector<func::ReturnOp> returns;
};

} // namespace

static RankedTensorType stripNames(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && isa_and_nonnull<DimsAttr>(tensor.getEncoding()) ? stripEncoding(tensor) : tensor;
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

void FunctionShapes::setType(Value value, RankedTensorType type) {
  before.insert({value, value.getType()});
  value.setType(type);
}

/// The name of a size that nothing else says; the same each time that it is asked.
Dim FunctionShapes::fresh(Value value, unsigned dim) {
  Dim &result = freshDims[{value, dim}];
  if (result)
    return result;
  auto arg = dyn_cast<BlockArgument>(value);
  bool isArgument = arg && arg.getOwner() == &func.getBody().front();
  // A name that the program gives already stays.
  auto given = [&](Value of) -> Dim {
    for (Operation *user : of.getUsers()) {
      auto bindOp = dyn_cast<kernel::BindDimsOp>(user);
      if (!bindOp || bindOp->getParentRegion() != value.getParentRegion())
        continue;
      Dim d = getDims(cast<RankedTensorType>(typeBefore(bindOp.getResult())))[dim];
      // An expression is a promise of an argument, which a guard checks.
      if (!d.isSymbol() && isArgument && !d.isConstant() && !d.isUnknown())
        return d;
      auto it = d.isSymbol() ? bound.find(d.getSymbol()) : bound.end();
      if (d.isSymbol() && (it == bound.end() || it->second.by == bindOp))
        return d;
    }
    return Dim();
  };
  result = given(value);
  for (Operation *user : value.getUsers())
    if (auto refine = dyn_cast<kernel::RefineOp>(user); refine && !result)
      result = given(refine.getResult());
  while (!result) {
    std::string name = "s" + std::to_string(nextName++);
    if (!usedNames.contains(name))
      result = Dim::symbol(ctx, name);
  }
  if (result.isSymbol())
    bound[result.getSymbol()] = {value.getParentRegion(), value.getAsOpaquePointer(), isArgument};
  return result;
}

/// Gives a value the sizes `dims`, with fresh names for the unknown; its op gives `plain`.
void FunctionShapes::name(Value value, RankedTensorType plain, SmallVector<Dim> dims) {
  for (auto [i, d] : llvm::enumerate(dims))
    if (d.isUnknown())
      d = fresh(value, i);
  setType(value, getTensorType(dims, plain.getElementType()));
  plainTypes[value] = plain;
}

LogicalResult FunctionShapes::bind(StringRef symbol, Region *region, void *by, Location loc) {
  auto [it, isNew] = bound.insert({symbol, {region, by, false}});
  if (!isNew && it->second.by != by)
    return emitError(loc) << "size " << Dim::symbol(ctx, symbol)
                          << " is bound a second time; run quern-strip-dims before code is cloned";
  return success();
}

/// Whether all its symbols are bound outside of the op's regions.
bool FunctionShapes::isVisibleAfter(Dim d, Operation *op) const {
  bool visible = true;
  d.walkSymbols([&](StringRef symbol) {
    auto it = bound.find(symbol);
    if (it != bound.end() && op->isAncestor(it->second.region->getParentOp()))
      visible = false;
  });
  return visible;
}

LogicalResult FunctionShapes::nameArguments() {
  // The user's names come first, so that fresh ones are others.
  func.walk([&](Operation *op) {
    auto collect = [&](Type type) {
      if (auto tensor = dyn_cast<RankedTensorType>(type))
        for (Dim d : getDims(tensor))
          d.walkSymbols([&](StringRef symbol) { usedNames.insert(symbol); });
    };
    llvm::for_each(op->getResultTypes(), collect);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        llvm::for_each(block.getArgumentTypes(), collect);
    for (NamedAttribute attr : op->getAttrs())
      if (auto dims = dyn_cast<DimsAttr>(attr.getValue())) {
        for (Dim d : dims.getDims())
          d.walkSymbols([&](StringRef symbol) { usedNames.insert(symbol); });
      } else if (auto dim = dyn_cast<DimAttr>(attr.getValue())) {
        Dim(dim).walkSymbols([&](StringRef symbol) { usedNames.insert(symbol); });
      }
  });
  Region *body = &func.getBody();
  for (BlockArgument arg : func.getArguments()) {
    auto type = dyn_cast<RankedTensorType>(arg.getType());
    for (Dim d : type ? getDims(type) : SmallVector<Dim>())
      if (d.isSymbol())
        bound.insert({d.getSymbol(), {body, arg.getAsOpaquePointer(), true}});
  }
  for (BlockArgument arg : func.getArguments()) {
    auto type = dyn_cast<RankedTensorType>(arg.getType());
    if (!type)
      continue;
    // A function that is called binds its names inside; what they promise is guarded there.
    for (auto [i, d] : llvm::enumerate(getDims(type)))
      if (!d.isUnknown() && !d.isConstant())
        freshDims[{arg, unsigned(i)}] = d;
    name(arg, stripNames(type), getDims(type));
    if (!plainSignature)
      plainTypes.erase(arg);
  }
  for (BlockArgument arg : func.getArguments()) {
    auto type = dyn_cast<RankedTensorType>(arg.getType());
    summary.args.push_back(type ? getDims(type) : SmallVector<Dim>());
    for (Dim d : summary.args.back()) {
      std::string missing;
      d.walkSymbols([&](StringRef symbol) {
        if (!bound.contains(symbol))
          missing = Dim::symbol(ctx, symbol).str();
      });
      if (!missing.empty())
        return func.emitError() << "invalid: size " << missing << " in the type of argument "
                                << arg.getArgNumber() << " is no dim of an argument by itself";
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// The walk
//===----------------------------------------------------------------------===//

LogicalResult FunctionShapes::visit(Region &region, Facts &facts) {
  // With several blocks, what one of them checks need not hold in the next.
  if (region.hasOneBlock())
    return visit(region.front(), facts);
  for (Block &block : region) {
    if (!block.isEntryBlock())
      for (BlockArgument arg : block.getArguments())
        if (RankedTensorType type = stripNames(typeBefore(arg)))
          name(arg, type);
    Facts inner(&facts);
    if (failed(visit(block, inner)))
      return failure();
  }
  return success();
}

LogicalResult FunctionShapes::visit(Block &block, Facts &facts) {
  for (Operation &op : block)
    if (failed(visit(&op, facts)))
      return failure();
  return success();
}

LogicalResult FunctionShapes::visit(Operation *op, Facts &facts) {
  if (isa<StructuredOp>(op))
    return visitStructured(op, facts);
  if (auto call = dyn_cast<func::CallOp>(op))
    return visitCall(call, facts);
  if (auto bindOp = dyn_cast<kernel::BindDimsOp>(op))
    return visitBind(bindOp, facts);
  if (auto refine = dyn_cast<kernel::RefineOp>(op))
    return visitRefine(refine), success();
  if (auto returnOp = dyn_cast<func::ReturnOp>(op)) {
    if (!llvm::is_contained(returns, returnOp))
      returns.push_back(returnOp);
    return success();
  }
  if (auto branch = dyn_cast<RegionBranchOpInterface>(op))
    return visitBranch(branch, facts);
  // The op around it says what its operands are for.
  if (isa<RegionBranchTerminatorOpInterface>(op) && isa<RegionBranchOpInterface>(op->getParentOp()))
    return success();
  return visitForeign(op, facts);
}

LogicalResult FunctionShapes::visitStructured(Operation *op, Facts &facts) {
  // Names on results are what this pass finds; a static size is a claim that is checked.
  for (Value value : op->getResults())
    setType(value, stripNames(typeBefore(value)));
  MetaResult result = runChecks(op, facts);
  if (!result.ok)
    return emitError(op->getLoc()) << result.error;
  for (UndecidedCheck &check : result.undecided) {
    facts.assume(check.condition);
    if (plainSignature)
      summary.checks.push_back(std::move(check));
  }
  for (auto [value, output] : llvm::zip(op->getResults(), result.outputs)) {
    SmallVector<Dim> claimed = getDims(cast<RankedTensorType>(value.getType()));
    for (auto [d, claim] : llvm::zip(output.dims, claimed))
      if (!d.isUnknown() && claim.isConstant())
        d = claim;
    name(value, getTensorType(output.dims, output.dtype));
  }
  return success();
}

LogicalResult FunctionShapes::visitCall(func::CallOp call, Facts &facts) {
  const Summary *callee = summaries.get(call);
  if (!callee)
    return failure();
  llvm::StringMap<Dim> passed;
  for (auto [operand, dims, type] :
       llvm::zip(call->getOpOperands(), callee->args, call.getCalleeType().getInputs()))
    if (auto tensor = dyn_cast<RankedTensorType>(operand.get().getType()))
      for (auto [d, size] : llvm::zip(dims, getDims(tensor)))
        if (d.isSymbol())
          passed.insert({d.getSymbol(), size});
  auto substitute = [&](StringRef symbol) {
    auto it = passed.find(symbol);
    return it == passed.end() ? Dim::unknown(ctx) : it->second;
  };

  for (const UndecidedCheck &check : callee->checks)
    if (facts.decide(check.condition.substitute(substitute)) == Truth::False) {
      SmallVector<Dim> values;
      for (Dim d : check.values)
        values.push_back(d.substitute(substitute));
      return emitError(call.getLoc())
             << getMessage(check, values) << " (in the call of @" << call.getCallee() << ")";
    }

  auto type = cast<func::FuncOp>(SymbolTable::lookupNearestSymbolFrom(call, call.getCalleeAttr()))
                  .getFunctionType();
  for (auto [operand, input] : llvm::zip(call->getOpOperands(), type.getInputs()))
    if (auto tensor = dyn_cast<RankedTensorType>(input))
      needed[&operand] = tensor;
  for (auto [value, result, dims] :
       llvm::zip(call.getResults(), type.getResults(), callee->results)) {
    auto plain = dyn_cast<RankedTensorType>(result);
    if (!plain)
      continue;
    SmallVector<Dim> sizes;
    for (Dim d : dims)
      sizes.push_back(d.substitute(substitute));
    name(value, plain, sizes);
  }
  return success();
}

LogicalResult FunctionShapes::visitBind(kernel::BindDimsOp bindOp, Facts &facts) {
  SmallVector<Dim> dims = getDims(cast<RankedTensorType>(bindOp.getSource().getType()));
  SmallVector<Dim> given = getDims(cast<RankedTensorType>(typeBefore(bindOp.getResult())));
  for (auto [d, givenName] : llvm::zip(dims, given)) {
    if (!givenName.isSymbol() || givenName == d)
      continue;
    // A second name for a known size: both stay, and are known equal.
    if (failed(bind(givenName.getSymbol(), bindOp->getParentRegion(), bindOp, bindOp.getLoc())))
      return failure();
    facts.assume(Condition::eq(d, givenName));
    d = givenName;
  }
  setType(bindOp.getResult(), getTensorType(dims, bindOp.getType().getElementType()));
  return success();
}

/// What a refine says is proved or guarded: it stays where its symbols are bound.
void FunctionShapes::visitRefine(kernel::RefineOp refine) {
  SmallVector<Dim> dims = getDims(cast<RankedTensorType>(refine.getSource().getType()));
  SmallVector<Dim> given = getDims(cast<RankedTensorType>(typeBefore(refine.getResult())));
  for (auto [d, claim] : llvm::zip(dims, given)) {
    bool known = !claim.isUnknown();
    claim.walkSymbols([&](StringRef symbol) { known &= bound.contains(symbol); });
    if (known)
      d = claim;
  }
  setType(refine.getResult(),
          getTensorType(dims, cast<RankedTensorType>(refine.getType()).getElementType()));
}

/// An op that knows nothing of names: it keeps its plain types.
LogicalResult FunctionShapes::visitForeign(Operation *op, Facts &facts) {
  for (OpOperand &operand : op->getOpOperands())
    if (RankedTensorType type = stripNames(typeBefore(operand.get())))
      needed[&operand] = type;
  for (Value value : op->getResults())
    if (RankedTensorType type = stripNames(typeBefore(value)))
      name(value, type);
  for (Region &region : op->getRegions()) {
    Facts inner(&facts);
    if (!region.empty())
      for (BlockArgument arg : region.getArguments())
        if (RankedTensorType type = stripNames(typeBefore(arg)))
          name(arg, type);
    if (failed(visit(region, inner)))
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Branches and loops
//===----------------------------------------------------------------------===//

SmallVector<JoinGroup> FunctionShapes::joinGroups(RegionBranchOpInterface op) {
  llvm::EquivalenceClasses<void *> classes;
  SmallVector<std::pair<Value, OpOperand *>> edges;
  for (RegionBranchPoint point : op.getAllRegionBranchPoints()) {
    SmallVector<RegionSuccessor> successors;
    op.getSuccessorRegions(point, successors);
    for (RegionSuccessor successor : successors) {
      OperandRange operands =
          point.isParent()
              ? op.getEntrySuccessorOperands(successor)
              : cast<RegionBranchTerminatorOpInterface>(point.getTerminatorPredecessorOrNull())
                    .getSuccessorOperands(successor);
      for (auto [i, input] : llvm::enumerate(successor.getSuccessorInputs())) {
        if (i >= operands.size() || !isa<RankedTensorType>(input.getType()))
          continue;
        OpOperand *use = operands.getBase() + i;
        edges.push_back({input, use});
        classes.unionSets(input.getAsOpaquePointer(), use);
      }
    }
  }
  SmallVector<JoinGroup> groups;
  llvm::DenseMap<void *, unsigned> indexOf;
  for (auto [input, use] : edges) {
    auto [it, isNew] =
        indexOf.insert({classes.getLeaderValue(input.getAsOpaquePointer()), groups.size()});
    if (isNew) {
      JoinGroup &group = groups.emplace_back();
      int64_t rank = cast<RankedTensorType>(input.getType()).getRank();
      group.dims.resize(rank);
      group.varies.resize(rank, false);
    }
    JoinGroup &group = groups[it->second];
    if (!llvm::is_contained(group.inputs, input))
      group.inputs.push_back(input);
    if (!llvm::is_contained(group.uses, use))
      group.uses.push_back(use);
  }
  return groups;
}

RankedTensorType FunctionShapes::typeOf(const JoinGroup &group) const {
  SmallVector<Dim> dims;
  for (auto [d, varies] : llvm::zip(group.dims, group.varies))
    dims.push_back(varies || !d ? Dim::unknown(ctx) : d);
  return getTensorType(dims,
                       cast<RankedTensorType>(group.inputs.front().getType()).getElementType());
}

/// Takes in the sizes of one more use. Returns whether a size turned out to vary.
bool FunctionShapes::join(JoinGroup &group, ArrayRef<Dim> dims, Operation *op, const Facts &facts) {
  bool changed = false;
  for (auto [i, d] : llvm::enumerate(dims)) {
    if (group.varies[i])
      continue;
    Dim &joined = group.dims[i];
    if (!joined && !d.isUnknown() && isVisibleAfter(d, op)) {
      joined = d;
    } else if (!joined || facts.decide(Condition::eq(joined, d)) != Truth::True) {
      group.varies[i] = true;
      changed = true;
    }
  }
  return changed;
}

LogicalResult FunctionShapes::visitBranch(RegionBranchOpInterface op, Facts &facts) {
  SmallVector<JoinGroup> groups = joinGroups(op);
  auto dimsOf = [](OpOperand *use) {
    return getDims(cast<RankedTensorType>(use->get().getType()));
  };
  auto nameInputs = [&](JoinGroup &group, Region *region) {
    RankedTensorType type = typeOf(group);
    for (Value input : group.inputs) {
      auto arg = dyn_cast<BlockArgument>(input);
      if ((arg ? arg.getOwner()->getParent() : nullptr) != region)
        continue;
      name(input, type);
      // What a region starts with as unknown stays so.
      if (region)
        for (auto [d, varies] : llvm::zip(group.dims, group.varies))
          varies |= !d;
    }
  };

  // Every round but the last finds a carried size that varies.
  for (bool changed = true; changed;) {
    changed = false;
    for (JoinGroup &group : groups)
      for (OpOperand *use : group.uses)
        if (use->getOwner() == op)
          join(group, dimsOf(use), op, facts);
    for (Region &region : op->getRegions()) {
      for (JoinGroup &group : groups)
        nameInputs(group, &region);
      Facts inner(&facts);
      if (failed(visit(region, inner)))
        return failure();
      for (JoinGroup &group : groups)
        for (OpOperand *use : group.uses)
          if (use->getOwner()->getParentRegion() == &region && join(group, dimsOf(use), op, inner))
            changed |= llvm::any_of(group.inputs, llvm::IsaPred<BlockArgument>);
    }
  }
  for (JoinGroup &group : groups) {
    nameInputs(group, nullptr);
    for (OpOperand *use : group.uses)
      needed[use] = typeOf(group);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// The types of the function's results, and their sizes for the summary.
SmallVector<RankedTensorType> FunctionShapes::joinReturns() {
  SmallVector<RankedTensorType> types;
  for (unsigned i = 0; i < func.getNumResults(); ++i) {
    summary.results.emplace_back();
    types.emplace_back();
    for (func::ReturnOp returnOp : returns) {
      auto type = dyn_cast<RankedTensorType>(returnOp.getOperand(i).getType());
      if (!type)
        break;
      SmallVector<Dim> dims = getDims(type);
      for (auto [k, d] : llvm::enumerate(dims)) {
        // What only the body binds has no name outside.
        bool known = true;
        d.walkSymbols([&](StringRef symbol) {
          auto it = bound.find(symbol);
          known &= it != bound.end() && it->second.isArgument;
        });
        if (!known || (types[i] && summary.results[i][k] != d))
          d = Dim::unknown(ctx);
      }
      summary.results[i] = dims;
      types[i] = getTensorType(dims, type.getElementType());
    }
    if (types[i] && plainSignature)
      types[i] = stripEncoding(types[i]);
  }
  for (func::ReturnOp returnOp : returns)
    for (auto [operand, type] : llvm::zip(returnOp->getOpOperands(), types))
      if (type)
        needed[&operand] = type;
  return types;
}

//===----------------------------------------------------------------------===//
// Rewrite
//===----------------------------------------------------------------------===//

/// Gives operands the types that their ops need, and values those that their ops give.
void FunctionShapes::rewrite() {
  llvm::DenseSet<OpOperand *> keepPlain;
  for (auto [use, type] : needed) {
    Value value = use->get();
    if (value.getType() == type)
      continue;
    if (plainTypes.lookup(value) == type) {
      keepPlain.insert(use);
      continue;
    }
    OpBuilder builder(use->getOwner());
    use->set(kernel::RefineOp::create(builder, use->getOwner()->getLoc(), type, value));
  }

  // Values get the types that their ops give, and their names behind.
  llvm::DenseMap<void *, Operation *> lastBehind;
  for (auto [value, plain] : plainTypes) {
    auto named = cast<RankedTensorType>(value.getType());
    bool used =
        llvm::any_of(value.getUses(), [&](OpOperand &use) { return !keepPlain.contains(&use); });
    if (named == plain || (!used && value.getDefiningOp())) {
      value.setType(plain);
      continue;
    }
    SmallVector<Dim> known = getDims(named);
    for (auto [i, d] : llvm::enumerate(known))
      if (d == freshDims.lookup({value, unsigned(i)}))
        d = Dim::unknown(ctx);
    RankedTensorType proved = getTensorType(known, named.getElementType());

    OpBuilder builder(ctx);
    Operation *defining = value.getDefiningOp();
    Operation *&last = lastBehind[defining ? (void *)defining : (void *)value.getParentBlock()];
    if (last)
      builder.setInsertionPointAfter(last);
    else
      builder.setInsertionPointAfterValue(value);
    value.setType(plain);
    Value result = value;
    llvm::SmallPtrSet<Operation *, 2> created;
    auto behind = [&](Operation *op) {
      created.insert(op);
      last = op;
      result = op->getResult(0);
    };
    if (proved != plain)
      behind(kernel::RefineOp::create(builder, value.getLoc(), proved, result));
    if (named != proved)
      behind(kernel::BindDimsOp::create(builder, value.getLoc(), named, result));
    value.replaceUsesWithIf(result, [&](OpOperand &use) {
      return !created.contains(use.getOwner()) && !keepPlain.contains(&use);
    });
  }

  // What an earlier run put there and now says nothing.
  func.walk([](Operation *op) {
    if (isa<kernel::RefineOp, kernel::BindDimsOp>(op) &&
        op->getResult(0).getType() == op->getOperand(0).getType()) {
      op->getResult(0).replaceAllUsesWith(op->getOperand(0));
      op->erase();
    }
  });
}

LogicalResult FunctionShapes::run() {
  Facts facts = getSignatureFacts(func);
  if (failed(nameArguments()))
    return failure();
  assumeArgumentsFit(func, facts);
  if (failed(visit(func.getBody(), facts)))
    return failure();
  SmallVector<Type> results(func.getResultTypes());
  for (auto [type, joined] : llvm::zip(results, joinReturns()))
    if (joined)
      type = joined;
  rewrite();
  func.setFunctionType(FunctionType::get(ctx, func.getBody().front().getArgumentTypes(), results));
  FailureOr<DimBindings> bindings = DimBindings::get(func);
  if (failed(bindings))
    return failure();
  auto ranges = func->getAttrOfType<DictionaryAttr>(dimRangesAttrName);
  for (NamedAttribute range : ranges ? ranges.getValue() : ArrayRef<NamedAttribute>())
    if (!bindings->lookup(range.getName()))
      return func.emitError("invalid: ")
             << dimRangesAttrName << " has a range of size " << range.getName().getValue()
             << ", which no argument and no kernel.bind_dims binds";
  return success();
}

//===----------------------------------------------------------------------===//
// The program
//===----------------------------------------------------------------------===//

LogicalResult Summaries::run(func::FuncOp func) {
  auto [it, isNew] = summaries.insert({func, nullptr});
  if (!isNew)
    return success(it->second->state == Summary::Done);
  it->second = std::make_unique<Summary>();
  Summary &summary = *it->second;
  bool plain = called.contains(func.getSymNameAttr());
  if (func.isExternal()) {
    auto strip = [](TypeRange types, auto &dims) {
      SmallVector<Type> stripped(types);
      for (Type &type : stripped) {
        RankedTensorType tensor = stripNames(type);
        type = tensor ? tensor : type;
        dims.push_back(tensor ? getDims(tensor) : SmallVector<Dim>());
      }
      return stripped;
    };
    SmallVector<Type> inputs = strip(func.getArgumentTypes(), summary.args);
    SmallVector<Type> results = strip(func.getResultTypes(), summary.results);
    func.setFunctionType(FunctionType::get(func.getContext(), inputs, results));
    summary.state = Summary::Done;
    return success();
  }
  bool ok = succeeded(FunctionShapes(func, plain, *this, summary).run());
  summary.state = ok ? Summary::Done : Summary::Failed;
  return success(ok);
}

const Summary *Summaries::get(func::CallOp call) {
  auto func = symbols.lookup<func::FuncOp>(call.getCallee());
  auto it = summaries.find(func);
  if (it != summaries.end() && it->second->state == Summary::Running) {
    call.emitError() << "unsupported: recursive call of @" << call.getCallee();
    return nullptr;
  }
  if (failed(run(func)))
    return nullptr;
  return summaries.find(func)->second.get();
}

namespace {
struct PropagateShapes : quern::impl::QuernPropagateShapesBase<PropagateShapes> {
  void runOnOperation() override {
    for (func::FuncOp func : getOperation().getOps<func::FuncOp>())
      if (failed(verifyTensors(func, getArgument())))
        return signalPassFailure();
    Summaries summaries(getOperation());
    for (func::FuncOp func : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      if (failed(summaries.run(func)))
        return signalPassFailure();
  }
};
} // namespace
