//===- Autodiff.cpp - Gradients by the derivatives that ops declare -------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Reverse mode over one block. Every op is visited once in each direction, so the
// time is linear in the number of ops.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/IRMapping.h"
#include "quern/Dialect/Kernel/IR/Kernel.h"
#include "quern/Dialect/Quern/IR/DerivativeBuilder.h"
#include "quern/Dialect/Quern/IR/FunctionAttrs.h"
#include "quern/Dialect/Quern/IR/Quern.h"
#include "quern/Transforms/Dims.h"
#include "quern/Transforms/Passes.h"
#include "quern/Transforms/Report.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

namespace quern {
#define GEN_PASS_DEF_QUERNAUTODIFF
#include "quern/Transforms/Passes.h.inc"
} // namespace quern

using namespace mlir;
using namespace quern;

namespace {

bool isFloatTensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && isa<FloatType>(tensor.getElementType());
}

/// The record's entry for each operand of the op, destinations excluded.
SmallVector<const OperandRecord *> operandRecords(StructuredOp op) {
  SmallVector<const OperandRecord *> records;
  for (auto [i, record] : llvm::enumerate(op.getOpRecord().operands))
    records.append(op.getOperandGroup(i).size(), &record);
  return records;
}

/// Turns a copy of a function into its joint function.
class Differentiator {
public:
  Differentiator(func::FuncOp func, ArrayRef<int64_t> arguments)
      : func(func), block(func.front()), b(func.getContext()), arguments(arguments) {
    for (Operation &op : block.without_terminator())
      forward.push_back(&op);
  }

  LogicalResult run();

  /// The ops of the original function, in order; those behind them are the backward's.
  SmallVector<Operation *> forward;
  /// Cotangent arguments.
  unsigned numCotangents = 0;
  unsigned numResults = 0;

private:
  func::FuncOp func;
  Block &block;
  OpBuilder b;
  ArrayRef<int64_t> arguments;
  llvm::DenseSet<Value> varied; ///< depends on a chosen argument
  llvm::DenseMap<Value, Value> cotangents;

  LogicalResult findVaried();
  void seed(Operation *terminator);
  LogicalResult accumulate(Value value, Value cotangent);
  LogicalResult reverse(Operation *op);
  Value full(RankedTensorType type, double number, Location loc);
};

Value Differentiator::full(RankedTensorType type, double number, Location loc) {
  FailureOr<Operation *> op =
      tryCreate(b, loc, "full", {},
                {b.getNamedAttr("size", DimsAttr::get(b.getContext(), getDims(type))),
                 b.getNamedAttr("fill_value", b.getF64FloatAttr(number)),
                 b.getNamedAttr("dtype", TypeAttr::get(type.getElementType()))});
  return succeeded(op) ? (*op)->getResult(0) : Value();
}

LogicalResult Differentiator::findVaried() {
  for (int64_t i : arguments)
    varied.insert(block.getArgument(i));
  for (Operation *op : forward) {
    if (op->getNumRegions())
      return op->emitError("unsupported: quern-autodiff of '")
             << op->getName() << "', which has a region";
    auto isVaried = [&](Value v) { return varied.contains(v); };
    if (auto structured = dyn_cast<StructuredOp>(op)) {
      if (!structured.getDestinations().empty())
        return op->emitError("unsupported: quern-autodiff of an op that writes into a destination");
      bool any = false;
      for (auto [value, record] : llvm::zip(op->getOperands(), operandRecords(structured)))
        any |= isVaried(value) && record->derivative != DerivativeKind::NonDifferentiable;
      if (!any)
        continue;
      // A rule reduces over a broadcast by the names of dims.
      for (Type type : op->getOperandTypes())
        for (Dim d : getDims(cast<RankedTensorType>(type)))
          if (d.isUnknown())
            return op->emitError("unsupported: quern-autodiff of a tensor with an unnamed size; "
                                 "run quern-propagate-shapes first");
    } else if (!llvm::any_of(op->getOperands(), isVaried)) {
      continue;
    } else if (!isa<kernel::RefineOp>(op)) {
      return op->emitError("unsupported: quern-autodiff of '")
             << op->getName() << "', which declares no derivative";
    }
    for (Value result : op->getResults())
      if (isFloatTensor(result.getType()))
        varied.insert(result);
  }
  return success();
}

void Differentiator::seed(Operation *terminator) {
  auto type = numResults ? dyn_cast<RankedTensorType>(terminator->getOperand(0).getType())
                         : RankedTensorType();
  if (type && type.getRank() == 0 && isFloatTensor(type)) {
    Value loss = terminator->getOperand(0);
    if (varied.contains(loss))
      cotangents[loss] = full(type, 1, loss.getLoc());
    return;
  }
  for (Value result : terminator->getOperands()) {
    if (!isFloatTensor(result.getType()))
      continue;
    unsigned at = func.getNumArguments();
    (void)func.insertArgument(at, result.getType(), {}, result.getLoc());
    ++numCotangents;
    if (varied.contains(result))
      (void)accumulate(result, func.getArgument(at));
  }
}

LogicalResult Differentiator::accumulate(Value value, Value cotangent) {
  Value &sum = cotangents[value];
  if (!sum) {
    sum = cotangent;
    return success();
  }
  FailureOr<Operation *> add = tryCreate(b, cotangent.getLoc(), "add", {sum, cotangent});
  if (failed(add))
    return failure();
  sum = (*add)->getResult(0);
  return success();
}

LogicalResult Differentiator::reverse(Operation *op) {
  SmallVector<Value> grads;
  bool any = false;
  for (Value result : op->getResults()) {
    grads.push_back(cotangents.lookup(result));
    any |= bool(grads.back());
  }
  if (!any)
    return success();
  if (isa<kernel::RefineOp>(op)) {
    Value source = op->getOperand(0);
    if (!varied.contains(source))
      return success();
    return accumulate(
        source, kernel::RefineOp::create(b, op->getLoc(), source.getType(), grads[0]).getResult());
  }
  auto structured = dyn_cast<StructuredOp>(op);
  if (!structured)
    return success();
  llvm::BitVector wanted(op->getNumOperands());
  for (auto [i, record] : llvm::enumerate(operandRecords(structured))) {
    if (!varied.contains(op->getOperand(i)))
      continue;
    if (record->derivative != DerivativeKind::NonDifferentiable)
      wanted.set(i);
    else if (isReporting(op))
      emitReport(op) << "no gradient for " << record->name << ": " << record->nonDifferentiable;
  }
  if (wanted.none())
    return success();
  DerivativeBuilder builder(b, op, grads, wanted);
  structured.getOpRecord().derivative(op, builder);
  if (builder.failed())
    return failure();
  for (auto [i, gradient] : llvm::enumerate(builder.getGradients()))
    if (gradient && failed(accumulate(op->getOperand(i), gradient)))
      return failure();
  return success();
}

LogicalResult Differentiator::run() {
  if (failed(findVaried()))
    return failure();
  Operation *terminator = block.getTerminator();
  numResults = terminator->getNumOperands();
  b.setInsertionPoint(terminator);
  seed(terminator);
  for (Operation *op : llvm::reverse(forward))
    if (failed(reverse(op)))
      return failure();

  SmallVector<unsigned> positions;
  SmallVector<Type> types;
  SmallVector<DictionaryAttr> attrs;
  for (int64_t i : arguments) {
    BlockArgument argument = block.getArgument(i);
    Value gradient = cotangents.lookup(argument);
    if (!gradient)
      gradient = full(cast<RankedTensorType>(argument.getType()), 0, argument.getLoc());
    if (gradient.getType() != argument.getType())
      gradient = kernel::RefineOp::create(b, argument.getLoc(), argument.getType(), gradient);
    terminator->insertOperands(terminator->getNumOperands(), gradient);
    positions.push_back(numResults);
    types.push_back(gradient.getType());
    DictionaryAttr named;
    if (auto name = func.getArgAttrOfType<StringAttr>(i, nameAttrName))
      named = b.getDictionaryAttr(
          b.getNamedAttr(nameAttrName, b.getStringAttr(name.getValue() + ".grad")));
    attrs.push_back(named);
  }
  return func.insertResults(positions, types, attrs);
}

/// Every symbol in the types and attributes of an op.
void collectSymbols(Operation *op, llvm::StringSet<> &symbols) {
  AttrTypeWalker walker;
  auto add = [&](Dim d) { d.walkSymbols([&](StringRef name) { symbols.insert(name); }); };
  walker.addWalk([&](DimAttr attr) { add(Dim(attr)); });
  walker.addWalk([&](DimsAttr attr) { llvm::for_each(attr.getDims(), add); });
  walker.walk(op->getAttrDictionary());
  for (Type type : op->getResultTypes())
    walker.walk(type);
}

/// Whether it is as cheap to make the value again as to keep it.
bool isRemade(Operation *op) {
  return op->hasTrait<OpTrait::ConstantLike>() || (isa<StructuredOp>(op) && !op->getNumOperands());
}

/// Cuts a joint function in two: it becomes the forward, the backward is made beside it.
LogicalResult split(func::FuncOp joint, const Differentiator &d, StringRef name) {
  Block &block = joint.front();
  Operation *terminator = block.getTerminator();
  llvm::DenseSet<Operation *> isForward(d.forward.begin(), d.forward.end());
  unsigned numInputs = joint.getNumArguments() - d.numCotangents;

  SmallVector<Operation *> backward;
  for (Operation &op : block.without_terminator())
    if (!isForward.contains(&op))
      backward.push_back(&op);
  llvm::SetVector<Value> saved;
  llvm::SetVector<Operation *> remade;
  llvm::StringSet<> symbols;
  auto read = [&](Value v) {
    if (auto argument = dyn_cast<BlockArgument>(v)) {
      if (argument.getArgNumber() < numInputs)
        saved.insert(v);
    } else if (isForward.contains(v.getDefiningOp())) {
      if (isRemade(v.getDefiningOp()))
        remade.insert(v.getDefiningOp());
      else
        saved.insert(v);
    }
  };
  for (Operation *op : backward) {
    llvm::for_each(op->getOperands(), read);
    collectSymbols(op, symbols);
  }
  llvm::for_each(terminator->getOperands().drop_front(d.numResults), read);

  // Sizes need a tensor that has them.
  auto bind = [&](Type type) {
    for (Dim dim : getDims(cast<RankedTensorType>(type)))
      if (dim.isSymbol())
        symbols.erase(dim.getSymbol());
  };
  for (Value v : saved)
    bind(v.getType());
  for (unsigned i = numInputs; i < joint.getNumArguments(); ++i)
    bind(joint.getArgument(i).getType());
  for (unsigned i = 0; i < numInputs && !symbols.empty(); ++i) {
    auto type = dyn_cast<RankedTensorType>(joint.getArgument(i).getType());
    if (type && llvm::any_of(getDims(type), [&](Dim dim) {
          return dim.isSymbol() && symbols.contains(dim.getSymbol());
        })) {
      saved.insert(joint.getArgument(i));
      bind(type);
    }
  }

  OpBuilder b(joint);
  b.setInsertionPointAfter(joint);
  SmallVector<Type> inputs, outputs;
  for (Value v : saved)
    inputs.push_back(v.getType());
  for (unsigned i = numInputs; i < joint.getNumArguments(); ++i)
    inputs.push_back(joint.getArgument(i).getType());
  for (Value v : terminator->getOperands().drop_front(d.numResults))
    outputs.push_back(v.getType());
  auto result = func::FuncOp::create(b, joint.getLoc(), (name + "_backward").str(),
                                     b.getFunctionType(inputs, outputs));
  // What is promised of the sizes that are left.
  if (auto ranges = joint->getAttrOfType<DictionaryAttr>(dimRangesAttrName)) {
    llvm::StringSet<> bound;
    for (Type type : inputs)
      for (Dim dim : getDims(cast<RankedTensorType>(type)))
        if (dim.isSymbol())
          bound.insert(dim.getSymbol());
    SmallVector<NamedAttribute> kept;
    llvm::copy_if(ranges, std::back_inserter(kept),
                  [&](NamedAttribute range) { return bound.contains(range.getName()); });
    result->setAttr(dimRangesAttrName, b.getDictionaryAttr(kept));
  }
  for (unsigned i = 0; i < outputs.size(); ++i)
    if (DictionaryAttr attrs = joint.getResultAttrDict(d.numResults + i))
      result.setResultAttrs(i, attrs);
  Block *entry = result.addEntryBlock();
  IRMapping mapping;
  for (auto [i, v] : llvm::enumerate(saved))
    mapping.map(v, entry->getArgument(i));
  for (unsigned i = 0; i < d.numCotangents; ++i)
    mapping.map(joint.getArgument(numInputs + i), entry->getArgument(saved.size() + i));
  b.setInsertionPointToEnd(entry);
  for (Operation *op : remade)
    b.clone(*op, mapping);
  for (Operation *op : backward)
    b.clone(*op, mapping);
  SmallVector<Value> returned;
  for (Value v : terminator->getOperands().drop_front(d.numResults))
    returned.push_back(mapping.lookup(v));
  func::ReturnOp::create(b, joint.getLoc(), returned);

  // The forward keeps its results and gives what is saved.
  llvm::BitVector gradients(joint.getNumResults());
  gradients.set(d.numResults, joint.getNumResults());
  terminator->eraseOperands(d.numResults, terminator->getNumOperands() - d.numResults);
  if (failed(joint.eraseResults(gradients)))
    return failure();
  for (Operation *op : llvm::reverse(backward))
    op->erase();
  llvm::BitVector extra(joint.getNumArguments());
  extra.set(numInputs, joint.getNumArguments());
  if (failed(joint.eraseArguments(extra)))
    return failure();
  joint.setSymName((name + "_forward").str());
  SmallVector<unsigned> positions(saved.size(), d.numResults);
  SmallVector<Type> types;
  for (Value v : saved) {
    types.push_back(v.getType());
    terminator->insertOperands(terminator->getNumOperands(), v);
  }
  return joint.insertResults(positions, types, SmallVector<DictionaryAttr>(saved.size()));
}

struct Autodiff : quern::impl::QuernAutodiffBase<Autodiff> {
  using Base::Base;

  func::FuncOp findFunction() {
    if (!function.empty()) {
      auto func = getOperation().lookupSymbol<func::FuncOp>(function);
      if (!func)
        getOperation().emitError("invalid: quern-autodiff: no function @") << function;
      return func;
    }
    SmallVector<func::FuncOp> all(getOperation().getOps<func::FuncOp>());
    if (all.size() == 1)
      return all.front();
    getOperation().emitError("invalid: quern-autodiff: expected the name of one of ")
        << all.size() << " functions";
    return {};
  }

  LogicalResult differentiate() {
    func::FuncOp func = findFunction();
    if (!func)
      return failure();
    if (mode != "joint" && mode != "split")
      return func.emitError("invalid: quern-autodiff: expected mode to be joint or split, got ")
             << mode;
    if (!func.getBody().hasOneBlock())
      return func.emitError("unsupported: quern-autodiff of a function that is not one block");
    if (failed(verifyTensors(func, getArgument())))
      return failure();
    SmallVector<int64_t> chosen(arguments.begin(), arguments.end());
    if (chosen.empty())
      for (auto [i, type] : llvm::enumerate(func.getArgumentTypes()))
        if (isFloatTensor(type))
          chosen.push_back(i);
    llvm::SmallDenseSet<int64_t> seen;
    for (int64_t i : chosen) {
      if (!seen.insert(i).second)
        return func.emitError("invalid: quern-autodiff: argument ") << i << " is given twice";
      if (i < 0 || i >= func.getNumArguments())
        return func.emitError("invalid: quern-autodiff: expected the number of an argument, got ")
               << i;
      if (!isFloatTensor(func.getArgument(i).getType()))
        return func.emitError("invalid: quern-autodiff: argument ")
               << i << " is not a float tensor but " << func.getArgument(i).getType();
    }
    for (auto [what, types] : {std::pair("argument", func.getArgumentTypes()),
                               std::pair("result", func.getResultTypes())})
      if (llvm::none_of(types, isFloatTensor))
        return func.emitError("invalid: quern-autodiff: @")
               << func.getSymName() << " has no " << what << " of a float dtype";
    for (StringRef suffix : {"_joint", "_forward", "_backward"})
      if ((mode == "joint") == (suffix == "_joint") &&
          getOperation().lookupSymbol((func.getSymName() + suffix).str()))
        return func.emitError("invalid: quern-autodiff: @")
               << func.getSymName() << suffix << " exists already";

    OpBuilder b(func);
    b.setInsertionPointAfter(func);
    auto joint = cast<func::FuncOp>(b.clone(*func));
    joint.setSymName((func.getSymName() + "_joint").str());
    Differentiator differentiator(joint, chosen);
    if (failed(differentiator.run()) ||
        (mode == "split" && failed(split(joint, differentiator, func.getSymName())))) {
      joint.erase();
      return failure();
    }
    return success();
  }

  void runOnOperation() override {
    if (failed(differentiate()))
      signalPassFailure();
  }
};

} // namespace
