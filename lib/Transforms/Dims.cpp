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

/// Reports what is wrong with a type of the signature, if anything is.
static LogicalResult verifyType(func::FuncOp func, const Twine &where, Type type, StringRef pass,
                                bool isBuffers) {
  auto error = [&](StringRef status) {
    return func.emitError(status) << where << " of '" << func.getSymName() << "' ";
  };
  auto shaped = dyn_cast<ShapedType>(type);
  if (!shaped)
    return success();
  if (isa<BaseMemRefType>(type) && isBuffers)
    return error("invalid: ") << "is a buffer: " << pass << " comes before quern-bufferize";
  if (!isa<TensorType>(type))
    return error("unsupported: ") << "is no tensor but " << type;
  if (!shaped.hasRank())
    return error("unsupported: ") << "has a rank that is not known";
  if (!getDType(shaped.getElementType()))
    return error("unsupported: ") << "has elements of type " << shaped.getElementType();
  auto dims = dyn_cast_or_null<DimsAttr>(cast<RankedTensorType>(type).getEncoding());
  if (dims && dims.getDims().size() != size_t(shaped.getNumDynamicDims()))
    return error("invalid: ") << "has names for " << dims.getDims().size() << " sizes, of which "
                              << shaped.getNumDynamicDims() << " are `?`";
  int64_t bytes = 8;
  if (llvm::is_contained(shaped.getShape(), 0))
    return success();
  for (int64_t size : shaped.getShape())
    if (!ShapedType::isDynamic(size) && llvm::MulOverflow(bytes, size, bytes))
      return error("invalid: ") << "has more elements than 64 bits can count";
  return success();
}

LogicalResult verifyTensors(func::FuncOp func, StringRef pass) {
  // What quern-bufferize makes: no tensor and no result.
  bool isBuffers = func.getNumResults() == 0 &&
                   llvm::none_of(func.getArgumentTypes(), llvm::IsaPred<TensorType>);
  for (auto [i, type] : llvm::enumerate(func.getArgumentTypes()))
    if (failed(verifyType(func, "argument " + Twine(i), type, pass, isBuffers)))
      return failure();
  for (auto [i, type] : llvm::enumerate(func.getResultTypes()))
    if (failed(verifyType(func, "result " + Twine(i), type, pass, isBuffers)))
      return failure();
  return success();
}

LogicalResult verifyBuffers(func::FuncOp func, StringRef pass) {
  auto refuse = [&](Operation *op, Type type) {
    return op->emitError("invalid: ") << pass << " comes after quern-bufferize, found " << type;
  };
  for (Type type : func.getArgumentTypes())
    if (isa<TensorType>(type))
      return refuse(func, type);
  if (func.getNumResults())
    return refuse(func, func.getResultTypes().front());
  WalkResult walk = func.walk([&](Operation *op) {
    for (Type type : op->getResultTypes())
      // Sources of constants may stay.
      if (isa<TensorType>(type) && !op->hasTrait<OpTrait::ConstantLike>())
        return (void)refuse(op, type), WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

Facts getSignatureFacts(func::FuncOp func) {
  Facts facts;
  if (auto ranges = func->getAttrOfType<DictionaryAttr>(dimRangesAttrName))
    for (NamedAttribute entry : ranges)
      facts.setRange(entry.getName(), cast<RangeAttr>(entry.getValue()).getRange());
  return facts;
}

/// Whether a tensor of these sizes takes at most QUERN_MAX_BYTES.
static Condition fits(ArrayRef<Dim> dims, Type element) {
  MLIRContext *ctx = element.getContext();
  Dim bytes = Dim::constant(ctx, (element.getIntOrFloatBitWidth() + 7) / 8);
  Dim most = Dim::constant(ctx, QUERN_MAX_BYTES);
  for (Dim d : dims) {
    // A product that has no expression (64 bits do not hold a coefficient, or it has too many
    // parts) is compared factor by factor: x * d <= y is x <= floordiv(y, d).
    Dim product = bytes * d;
    if (!product.isUnknown() || d.isUnknown())
      bytes = product;
    else
      most = Dim::floorDiv(most, Dim::max(d, Dim::constant(ctx, 1)));
  }
  return Condition::le(bytes, most);
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

/// The symbols of sizes as the end of a message, `, got B = {0}`, and what fills it: a size that
/// is not exact has no value to tell.
static std::string tellSymbols(ArrayRef<Dim> dims, SmallVectorImpl<MetaArg> &args) {
  std::string text;
  for (Dim d : dims)
    d.walkSymbols([&](StringRef name) {
      Dim symbol = Dim::symbol(d.getContext(), name);
      if (llvm::is_contained(args, MetaArg(symbol)))
        return;
      text += (args.empty() ? ", got " : ", ") + symbol.str() + " = {" +
              std::to_string(args.size()) + "}";
      args.push_back(symbol);
    });
  return text;
}

/// Adds the checks that the sizes of a result are numbers that a tensor can have.
static bool checkSizes(Operation *op, MetaResult &result, Facts &facts, RankedTensorType type) {
  SmallVector<Dim> dims = getDims(type);
  std::string text = "expected dims [";
  llvm::raw_string_ostream os(text);
  llvm::interleaveComma(dims, os);
  os << "] of " << dtypeName(type.getElementType());
  SmallVector<MetaArg> args;
  std::string symbols = tellSymbols(dims, args);
  auto check = [&](const Condition &condition, const Twine &what) {
    return addCheck(op, result, facts, "result", condition, text + what + symbols, args);
  };
  Dim zero = Dim::constant(op->getContext(), 0);
  for (Dim d : dims)
    if (!check(Condition::exact(d), " to be at least 0 and to fit 64 bits") ||
        !check(Condition::le(zero, d), " to be at least 0 and to fit 64 bits"))
      return false;
  return check(fits(dims, type.getElementType()),
               " to take at most " + Twine(QUERN_MAX_BYTES) + " bytes");
}

/// Adds the checks that the sizes in attributes have a value.
static bool checkAttributes(Operation *op, MetaResult &result, Facts &facts) {
  auto check = [&](Dim d) {
    if (d.isExact())
      return true;
    SmallVector<MetaArg> args;
    std::string symbols = tellSymbols(d, args);
    return addCheck(op, result, facts, "sizes", Condition::exact(d),
                    "expected " + d.str() + " to fit 64 bits and its divisors to be at least 1" +
                        symbols,
                    args);
  };
  for (NamedAttribute attr : op->getAttrs()) {
    if (auto dim = dyn_cast<DimAttr>(attr.getValue()); dim && !check(Dim(dim)))
      return false;
    if (auto dims = dyn_cast<DimsAttr>(attr.getValue()))
      if (!llvm::all_of(dims.getDims(), check))
        return false;
  }
  return true;
}

MetaResult runChecks(Operation *op, const Facts &facts) {
  MetaResult result = runMeta(op, &facts);
  if (!result.ok)
    return result;
  Facts known(&facts);
  for (const UndecidedCheck &check : result.undecided)
    known.assume(check.condition);

  if (!checkAttributes(op, result, known))
    return result;
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
