//===- Dims.cpp - Sizes over a function -----------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Transforms/Dims.h"
#include "mlir/IR/Dominance.h"
#include "quern-c/Runtime.h"
#include "quern/Dialect/Kernel/IR/Kernel.h"
#include "quern/Dialect/Quern/IR/DTypes.h"
#include "quern/Dialect/Quern/IR/FunctionAttrs.h"
#include "quern/Dialect/Quern/IR/Quern.h"

using namespace mlir;

namespace quern {

Dim getTensorBytes(ArrayRef<Dim> sizes, Type element) {
  Dim bytes = Dim::constant(element.getContext(), (element.getIntOrFloatBitWidth() + 7) / 8);
  for (Dim size : sizes)
    bytes = bytes * size;
  return bytes;
}

Dim getBufferBytes(ArrayRef<Dim> sizes, Type element) {
  Dim unit = Dim::constant(element.getContext(), bufferAlignment);
  return Dim::ceilDiv(getTensorBytes(sizes, element), unit) * unit;
}

/// What is wrong with a type; "" if nothing is.
static std::string refuseType(Type type) {
  auto shaped = dyn_cast<ShapedType>(type);
  if (!shaped)
    return "";
  if (!shaped.hasRank())
    return "unsupported: a rank that is not known";
  if (!getDType(shaped.getElementType())) {
    std::string text;
    llvm::raw_string_ostream(text) << "unsupported: elements of type " << shaped.getElementType();
    return text;
  }
  int64_t bytes = 8;
  for (int64_t size : shaped.getShape())
    if (size == 0)
      return "";
  for (int64_t size : shaped.getShape())
    if (!ShapedType::isDynamic(size) && llvm::MulOverflow(bytes, size, bytes))
      return "invalid: more elements than 64 bits can count";
  return "";
}

LogicalResult verifySignature(func::FuncOp func) {
  auto check = [&](const Twine &what, Type type) -> LogicalResult {
    std::string wrong = refuseType(type);
    if (wrong.empty())
      return success();
    auto [prefix, rest] = StringRef(wrong).split(": ");
    return func.emitError(prefix + ": " + what + " of '" + func.getSymName() + "' has " + rest);
  };
  for (auto [i, type] : llvm::enumerate(func.getArgumentTypes())) {
    if (failed(check("argument " + Twine(i), type)))
      return failure();
    if (func.getArgAttr(i, resultIntoAttrName))
      return func.emitError("invalid: ")
             << resultIntoAttrName << " is for results, got it on argument " << i;
    if (Attribute donated = func.getArgAttr(i, donatedAttrName); donated && !isa<UnitAttr>(donated))
      return func.emitError("invalid: ")
             << donatedAttrName << " of argument " << i << ": expected no value, got " << donated;
  }
  for (auto [i, type] : llvm::enumerate(func.getResultTypes())) {
    if (failed(check("result " + Twine(i), type)))
      return failure();
    if (func.getResultAttr(i, donatedAttrName))
      return func.emitError("invalid: ")
             << donatedAttrName << " is for arguments, got it on result " << i;
    Attribute into = func.getResultAttr(i, resultIntoAttrName);
    auto number = dyn_cast_or_null<IntegerAttr>(into);
    if (into && (!number || !number.getType().isInteger(64) || number.getInt() < 0 ||
                 number.getInt() >= int64_t(func.getNumArguments())))
      return func.emitError("invalid: ")
             << resultIntoAttrName << " of result " << i << ": expected the number of one of "
             << func.getNumArguments() << " arguments, as i64, got " << into;
  }
  return success();
}

FailureOr<Facts> getSignatureFacts(func::FuncOp func) {
  Facts facts;
  Attribute attr = func->getAttr(dimRangesAttrName);
  if (!attr)
    return facts;
  auto ranges = dyn_cast<DictionaryAttr>(attr);
  for (NamedAttribute entry : ranges ? ranges.getValue() : ArrayRef<NamedAttribute>()) {
    auto range = dyn_cast<RangeAttr>(entry.getValue());
    if (!range)
      return func.emitOpError("expected a #quern.range for size ")
             << entry.getName().getValue() << " in " << dimRangesAttrName << ", got "
             << entry.getValue();
    facts.setRange(entry.getName(), range.getRange());
  }
  if (!ranges)
    return func.emitOpError("expected ")
           << dimRangesAttrName << " to be a dictionary, got " << attr;
  return facts;
}

/// Whether a tensor of these sizes takes at most QUERN_MAX_BYTES.
static Condition fits(ArrayRef<Dim> dims, Type element) {
  MLIRContext *ctx = element.getContext();
  Dim bytes = getTensorBytes(dims, element);
  // A coefficient that 64 bits do not hold makes the product unknown.
  if (bytes.isUnknown() && llvm::none_of(dims, [](Dim d) { return d.isUnknown(); }))
    bytes = Dim::constant(ctx, INT64_MAX);
  return Condition::le(bytes, Dim::constant(ctx, QUERN_MAX_BYTES));
}

void assumeArgumentsFit(func::FuncOp func, Facts &facts) {
  for (BlockArgument arg : func.getArguments())
    if (auto tensor = dyn_cast<RankedTensorType>(arg.getType());
        tensor && getDType(tensor.getElementType()))
      facts.assume(fits(getDims(tensor), tensor.getElementType()));
}

/// Adds a check that no meta function makes.
static bool addCheck(Operation *op, MetaResult &result, Facts &facts, StringRef id,
                     const Condition &condition, const Twine &text, ArrayRef<MetaArg> args) {
  MetaContext context(op->getContext(), op->getName().stripDialect(), &facts);
  bool ok = context.checkRule(id, condition, text.str(), args);
  MetaResult found = context.take();
  if (!ok) {
    result.ok = false;
    result.error = found.error;
    return false;
  }
  for (UndecidedCheck &check : found.undecided) {
    facts.assume(check.condition);
    result.undecided.push_back(std::move(check));
  }
  return true;
}

/// Adds the checks that the sizes of a result are numbers that a tensor can have.
static bool checkSizes(Operation *op, MetaResult &result, Facts &facts, RankedTensorType type) {
  SmallVector<Dim> dims = getDims(type);
  Dim zero = Dim::constant(op->getContext(), 0);
  // A size that is not exact has no value to tell: its symbols have.
  std::string text = "expected dims [";
  llvm::raw_string_ostream os(text);
  llvm::interleaveComma(dims, os);
  os << "] of " << dtypeName(type.getElementType());
  std::string symbols;
  SmallVector<MetaArg> args;
  for (Dim d : dims)
    d.walkSymbols([&](StringRef name) {
      Dim symbol = Dim::symbol(op->getContext(), name);
      if (llvm::is_contained(args, MetaArg(symbol)))
        return;
      symbols += (args.empty() ? ", got " : ", ") + symbol.str() + " = {" +
                 std::to_string(args.size()) + "}";
      args.push_back(symbol);
    });
  auto check = [&](const Condition &condition, const Twine &what) {
    return addCheck(op, result, facts, "result", condition, text + what + symbols, args);
  };
  for (Dim d : dims)
    if (!check(Condition::exact(d), " to be at least 0 and to fit 64 bits") ||
        !check(Condition::le(zero, d), " to be at least 0 and to fit 64 bits"))
      return false;
  return check(fits(dims, type.getElementType()),
               " to take at most " + Twine(QUERN_MAX_BYTES) + " bytes");
}

MetaResult runChecks(Operation *op, const Facts &facts) {
  MetaResult result = runMeta(op, &facts);
  if (!result.ok)
    return result;
  Facts known(&facts);
  for (const UndecidedCheck &check : result.undecided)
    known.assume(check.condition);

  auto claim = [&](StringRef id, StringRef what, Value value, const TensorMeta &output) {
    for (auto [i, dims] :
         llvm::enumerate(llvm::zip(getDims(cast<RankedTensorType>(value.getType())), output.dims)))
      if (!addCheck(op, result, known, id, Condition::eq(std::get<0>(dims), std::get<1>(dims)),
                    "expected " + what + " dim " + Twine(i) +
                        " to equal the inferred size, got {0} and {1}",
                    {std::get<0>(dims), std::get<1>(dims)}))
        return false;
    return true;
  };
  for (auto [value, output] : llvm::zip(op->getResults(), result.outputs))
    if (!claim("result", output.name.empty() ? "result" : output.name, value, output) ||
        !checkSizes(op, result, known, cast<RankedTensorType>(value.getType())))
      return result;
  for (auto [value, output] : llvm::zip(cast<StructuredOp>(op).getDestinations(), result.outputs))
    if (!claim("into", "into", value, output))
      return result;
  return result;
}

//===----------------------------------------------------------------------===//
// Bindings
//===----------------------------------------------------------------------===//

/// The symbols of types and attributes that an op uses.
static void walkUsedSymbols(Operation *op, llvm::function_ref<void(StringRef)> fn) {
  auto walkAttr = [&](Attribute attr) {
    if (auto dim = dyn_cast_or_null<DimAttr>(attr))
      Dim(dim).walkSymbols(fn);
    else if (auto dims = dyn_cast_or_null<DimsAttr>(attr))
      for (Dim d : dims.getDims())
        d.walkSymbols(fn);
  };
  for (NamedAttribute attr : op->getAttrs())
    walkAttr(attr.getValue());
  if (isa<kernel::BindDimsOp>(op))
    return;
  for (Type type : op->getResultTypes())
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      walkAttr(tensor.getEncoding());
}

FailureOr<DimBindings> DimBindings::get(func::FuncOp func) {
  DimBindings result;
  if (func.isExternal())
    return result;
  Block *entry = &func.getBody().front();
  auto isArgument = [&](Value value) {
    auto arg = dyn_cast<BlockArgument>(value);
    return arg && arg.getOwner() == entry;
  };

  // A symbol that stands alone in a dim of an argument is bound by the first of them.
  for (BlockArgument arg : func.getArguments())
    if (auto type = dyn_cast<RankedTensorType>(arg.getType()))
      for (auto [i, d] : llvm::enumerate(getDims(type)))
        if (d.isSymbol())
          result.bindings.insert({d.getSymbol(), {arg, unsigned(i), true}});

  WalkResult walk = func.walk([&](kernel::BindDimsOp bind) {
    SmallVector<Dim> source = getDims(bind.getSource().getType());
    bool inPrologue = bind->getBlock() == entry && isArgument(bind.getSource());
    if (inPrologue)
      result.lastInPrologue = bind;
    for (auto [i, d] : llvm::enumerate(getDims(bind.getType()))) {
      if (d == source[i] || !d.isSymbol())
        continue;
      auto [it, isNew] =
          result.bindings.insert({d.getSymbol(), {bind.getSource(), unsigned(i), inPrologue}});
      if (isNew || (inPrologue && it->second.inPrologue))
        continue;
      bind.emitOpError("binds size ")
          << d << " a second time; run quern-strip-dims before code is cloned";
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();

  DominanceInfo dominance(func);
  walk = func.walk([&](Operation *op) {
    if (op == func)
      return WalkResult::advance();
    bool ok = true;
    walkUsedSymbols(op, [&](StringRef symbol) {
      const Binding *binding = result.lookup(symbol);
      if (!ok || (binding && (binding->inPrologue || dominance.dominates(binding->value, op))))
        return;
      op->emitOpError("uses size ")
          << Dim::symbol(op->getContext(), symbol)
          << ", which no argument and no kernel.bind_dims before it binds";
      ok = false;
    });
    return ok ? WalkResult::advance() : WalkResult::interrupt();
  });
  if (walk.wasInterrupted())
    return failure();
  return result;
}

const DimBindings::Binding *DimBindings::lookup(StringRef symbol) const {
  auto it = bindings.find(symbol);
  return it == bindings.end() ? nullptr : &it->second;
}

bool DimBindings::inPrologue(const Condition &condition) const {
  bool known = true;
  condition.walkSymbols([&](StringRef symbol) {
    const Binding *binding = lookup(symbol);
    known &= binding && binding->inPrologue;
  });
  return known;
}

LogicalResult verifyNamed(func::FuncOp func) {
  if (failed(DimBindings::get(func)))
    return failure();
  WalkResult walk = func.walk([](StructuredOp op) {
    // A result that is only a step to its name may have none.
    auto isNamed = [](Value value) {
      return llvm::none_of(getDims(cast<RankedTensorType>(value.getType())),
                           [](Dim d) { return d.isUnknown(); }) ||
             llvm::all_of(value.getUsers(),
                          llvm::IsaPred<kernel::RefineOp, kernel::BindDimsOp, func::ReturnOp>);
    };
    if (llvm::all_of(op->getResults(), isNamed))
      return WalkResult::advance();
    op->emitError("internal: quern-verify-stage: a size without a name");
    return WalkResult::interrupt();
  });
  return failure(walk.wasInterrupted());
}

llvm::DenseSet<StringAttr> getCalledFunctions(ModuleOp module) {
  llvm::DenseSet<StringAttr> called;
  module.walk([&](Operation *op) {
    op->getAttrDictionary().walk(
        [&](FlatSymbolRefAttr symbol) { called.insert(symbol.getAttr()); });
  });
  return called;
}

} // namespace quern
