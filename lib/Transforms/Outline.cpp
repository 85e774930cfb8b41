//===- Outline.cpp - Groups of ops become kernels -------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Outline.h"
#include "KernelAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace quern {

OperandForm getOperandForm(StructuredOp op, OpOperand &operand) {
  auto type = cast<RankedTensorType>(operand.get().getType());
  if (op.getOpRecord().fusion != FusionClass::Pointwise)
    return {type};
  SmallVector<Dim> own = getDims(type);
  SmallVector<Dim> result = getDims(cast<RankedTensorType>(op->getResult(0).getType()));
  if (own.size() > result.size())
    return {type};
  OperandForm form;
  size_t lead = result.size() - own.size();
  Facts facts;
  for (auto [i, d] : llvm::enumerate(own)) {
    Dim to = result[lead + i];
    if (d == to || d.isConstant(1))
      continue;
    if (facts.decide(Condition::eq(d, to)) != Truth::True)
      form.strided = true;
    d = to;
  }
  form.type = getTensorType(own, type.getElementType());
  return form;
}

bool isRemadeInside(OpOperand &operand) {
  auto reader = dyn_cast<StructuredOp>(operand.getOwner());
  Operation *def = operand.get().getDefiningOp();
  if (!reader || !def)
    return false;
  FusionClass fusion = reader.getOpRecord().fusion;
  auto made = dyn_cast<StructuredOp>(def);
  // A contraction reads a transposed operand where it is.
  if (fusion == FusionClass::Contraction && made && reader.getDestinations().empty() &&
      made.getOpRecord().fusion == FusionClass::IndexMap && made->getNumOperands() == 1 &&
      made->getNumResults() == 1) {
    auto from = getDims(cast<RankedTensorType>(made->getOperand(0).getType()));
    auto to = getDims(cast<RankedTensorType>(operand.get().getType()));
    return from.size() == to.size() &&
           Dim::product(def->getContext(), from) == Dim::product(def->getContext(), to);
  }
  if (fusion != FusionClass::Pointwise && fusion != FusionClass::Reduction &&
      fusion != FusionClass::RowWise)
    return false;
  DenseElementsAttr value;
  if (matchPattern(def, m_Constant(&value)))
    return value.isSplat();
  // One that may have to be broadcast is read like any other operand.
  return made && !made->getNumOperands() && made.getOpRecord().fusion == FusionClass::Creation &&
         !getOperandForm(reader, operand).strided;
}

namespace {

/// Builds one kernel.
class KernelBuilder {
public:
  KernelBuilder(ArrayRef<Operation *> ops) : ops(ops), b(ops.front()->getContext()) {}

  LogicalResult build();

  /// What the launch says of the kernel's symbols: see `sizes` of kernel.launch. Null where no
  /// operand may be of size 1 instead.
  DimsAttr getSizes() const;

  SmallVector<Value> ins;  ///< the host's values
  SmallVector<Value> outs; ///< results of the group
  SmallVector<int64_t> strided;
  OwningOpRef<kernel::FuncOp> kernel;

private:
  ArrayRef<Operation *> ops;
  OpBuilder b;
  Block *block = nullptr;
  IRMapping mapping;
  llvm::DenseMap<std::pair<Value, Type>, Value> arguments;
  llvm::MapVector<Dim, Dim> local; ///< dims of the host's function to the kernel's own

  Dim toLocal(Dim d);
  Dim attributeDim(Dim d);
  Type toLocal(RankedTensorType type);
  Value argument(Value value, RankedTensorType type, bool isStrided);
  FailureOr<Operation *> clone(StructuredOp op);
  Value remake(Value value);
  LogicalResult bindSizes();
};

/// A dim of an argument: an expression of the host counts as one name.
Dim KernelBuilder::toLocal(Dim d) {
  if (d.isConstant() || d.isUnknown())
    return d;
  auto [at, isNew] = local.insert({d, Dim()});
  if (isNew)
    at->second = Dim::symbol(d.getContext(), "d" + std::to_string(local.size() - 1));
  return at->second;
}

/// A dim in an attribute may be an expression over arguments' dims.
Dim KernelBuilder::attributeDim(Dim d) {
  auto known = local.find(d);
  if (known != local.end())
    return known->second;
  return d.substitute([&](StringRef name) { return toLocal(Dim::symbol(d.getContext(), name)); });
}

Type KernelBuilder::toLocal(RankedTensorType type) {
  SmallVector<Dim> dims = getDims(type);
  for (Dim &d : dims)
    d = toLocal(d);
  return getTensorType(dims, type.getElementType());
}

Value KernelBuilder::argument(Value value, RankedTensorType type, bool isStrided) {
  Value &argument = arguments[{value, type}];
  if (!argument) {
    if (isStrided)
      strided.push_back(ins.size());
    ins.push_back(value);
    argument = block->addArgument(toLocal(type), value.getLoc());
  }
  return argument;
}

/// A constant of one number, or an op without operands, again.
Value KernelBuilder::remake(Value value) {
  Value known = mapping.lookupOrNull(value);
  if (known)
    return known;
  Operation *def = value.getDefiningOp();
  if (auto made = dyn_cast<StructuredOp>(def)) {
    FailureOr<Operation *> copy = clone(made);
    return succeeded(copy) ? mapping.lookup(value) : Value();
  }
  Operation *copy = b.clone(*def);
  mapping.map(value, copy->getResult(0));
  return copy->getResult(0);
}

FailureOr<Operation *> KernelBuilder::clone(StructuredOp op) {
  SmallVector<OperandGroup> groups;
  for (unsigned i = 0; i < op.getOpRecord().operands.size(); ++i) {
    OperandGroup &group = groups.emplace_back();
    OperandRange range = op.getOperandGroup(i);
    for (unsigned j = 0; j < range.size(); ++j) {
      OpOperand &operand = op->getOpOperand(range.getBeginOperandIndex() + j);
      Value value = mapping.lookupOrNull(operand.get());
      if (!value && isRemadeInside(operand)) {
        value = remake(operand.get());
        if (!value)
          return failure();
      }
      if (!value) {
        OperandForm form = getOperandForm(op, operand);
        value = argument(operand.get(), form.type, form.strided);
      }
      group.push_back(value);
    }
  }
  AttrTypeReplacer replacer;
  replacer.addReplacement(
      [&](DimAttr attr) -> std::optional<Attribute> { return attributeDim(Dim(attr)).getAttr(); });
  replacer.addReplacement([&](DimsAttr attr) -> std::optional<Attribute> {
    SmallVector<Dim> dims;
    for (Dim d : attr.getDims())
      dims.push_back(attributeDim(d));
    return DimsAttr::get(attr.getContext(), dims);
  });
  SmallVector<NamedAttribute> attrs;
  for (NamedAttribute attr : op->getAttrs())
    if (attr.getName() != "operandSegmentSizes")
      attrs.push_back(b.getNamedAttr(attr.getName(), replacer.replace(attr.getValue())));
  FailureOr<Operation *> copy = tryCreate(b, op.getLoc(), op.getOpRecord().mnemonic, groups, attrs);
  if (succeeded(copy))
    mapping.map(op->getResults(), (*copy)->getResults());
  return copy;
}

/// A size that no argument has comes in with a tensor of the host that has it; the kernel reads
/// nothing else of that tensor.
LogicalResult KernelBuilder::bindSizes() {
  llvm::DenseSet<Dim> bound;
  for (BlockArgument arg : block->getArguments())
    for (Dim d : getDims(cast<RankedTensorType>(arg.getType())))
      bound.insert(d);
  for (auto &[outer, inner] : llvm::to_vector(local)) {
    if (bound.contains(inner))
      continue;
    auto func = ops.front()->getParentOfType<func::FuncOp>();
    BlockArgument source;
    for (BlockArgument arg : func.getArguments())
      if (auto type = dyn_cast<RankedTensorType>(arg.getType()))
        if (!source && llvm::is_contained(getDims(type), outer))
          source = arg;
    if (!source)
      return ops.front()->emitError("unsupported: no argument of the function has the size ")
             << outer.str();
    unsigned at = ins.size();
    block->insertArgument(at, toLocal(cast<RankedTensorType>(source.getType())), source.getLoc());
    ins.push_back(source);
    for (Dim d : getDims(cast<RankedTensorType>(source.getType())))
      bound.insert(toLocal(d));
  }
  return success();
}

LogicalResult KernelBuilder::build() {
  Location loc = ops.front()->getLoc();
  kernel = kernel::FuncOp::create(b, loc, "");
  block = &kernel->getBody().emplaceBlock();
  b.setInsertionPointToEnd(block);
  llvm::DenseSet<Operation *> inside(ops.begin(), ops.end());
  for (Operation *op : ops)
    if (failed(clone(cast<StructuredOp>(op))))
      return failure();
  SmallVector<Value> yielded;
  for (Operation *op : ops)
    for (Value result : op->getResults()) {
      // An op that writes into a destination is there for that.
      bool escapes =
          !cast<StructuredOp>(op).getDestinations().empty() ||
          llvm::any_of(result.getUsers(), [&](Operation *user) { return !inside.contains(user); });
      if (!escapes)
        continue;
      Value value = mapping.lookup(result);
      auto type = cast<RankedTensorType>(value.getType());
      for (auto [outer, inner] :
           llvm::zip(getDims(cast<RankedTensorType>(result.getType())), getDims(type)))
        if (inner.isUnknown() || outer.isUnknown())
          return op->emitError("unsupported: a result with an unnamed size; run "
                               "quern-propagate-shapes first");
      outs.push_back(result);
      yielded.push_back(value);
    }
  for (Value value : yielded)
    block->addArgument(value.getType(), value.getLoc());
  if (failed(bindSizes()))
    return failure();
  kernel::YieldOp::create(b, loc, yielded);
  kernel->setStrided(strided);
  return success();
}

DimsAttr KernelBuilder::getSizes() const {
  llvm::DenseSet<Dim> told;
  for (BlockArgument arg : block->getArguments())
    if (!llvm::is_contained(strided, int64_t(arg.getArgNumber())))
      for (Dim d : getDims(cast<RankedTensorType>(arg.getType())))
        told.insert(d);
  llvm::DenseMap<Dim, Dim> outer;
  for (auto [host, own] : local)
    outer[own] = host;
  SmallVector<Dim> sizes;
  bool isNeeded = false;
  for (Dim d : kernel::FuncOp(*kernel).getSymbols()) {
    isNeeded |= !told.contains(d);
    sizes.push_back(d.substitute(
        [&](StringRef name) { return outer.lookup(Dim::symbol(d.getContext(), name)); }));
  }
  return isNeeded ? DimsAttr::get(block->getParentOp()->getContext(), sizes) : DimsAttr();
}

/// `k_` and what the kernel computes: no name of the C library.
std::string kernelName(ArrayRef<Operation *> ops) {
  std::string name = "k";
  for (auto [i, op] : llvm::enumerate(ops)) {
    if (i == 4) {
      name += "_and_" + std::to_string(ops.size() - i);
      break;
    }
    name += "_" + cast<StructuredOp>(op).getOpRecord().mnemonic.str();
  }
  return name;
}

} // namespace

Outliner::Outliner(ModuleOp module) : module(module), symbols(module) {}

kernel::LaunchOp Outliner::outline(ArrayRef<Operation *> ops, Operation *before) {
  KernelBuilder builder(ops);
  if (failed(builder.build()))
    return {};
  DimsAttr symbolSizes = builder.getSizes();
  std::string text;
  llvm::raw_string_ostream os(text);
  builder.kernel->getOperation()->print(os, OpPrintingFlags().useLocalScope());
  kernel::FuncOp &kernel = kernels[text];
  if (!kernel) {
    kernel = builder.kernel.release();
    kernel.setSymName(kernelName(ops));
    symbols.insert(kernel, module.getBody()->end());
    if (failed(deriveKernelFacts(kernel)))
      return {};
  }

  OpBuilder b(before);
  Location loc = ops.front()->getLoc();
  SmallVector<Value> destinations;
  SmallVector<Type> types;
  for (Value out : builder.outs) {
    auto type = cast<RankedTensorType>(out.getType());
    types.push_back(type);
    auto structured = cast<StructuredOp>(out.getDefiningOp());
    if (!structured.getDestinations().empty()) {
      destinations.push_back(structured.getDestinations()[cast<OpResult>(out).getResultNumber()]);
      continue;
    }
    SmallVector<Value> sizes;
    for (Dim d : getDims(type))
      if (!d.isConstant())
        sizes.push_back(kernel::DimOp::create(b, loc, b.getIndexType(), d.getAttr()));
    destinations.push_back(tensor::EmptyOp::create(b, loc, type, sizes));
  }
  auto launch = kernel::LaunchOp::create(b, loc, types, kernel.getSymName(), builder.ins,
                                         destinations, kernel.getShareAttr(), symbolSizes);
  for (auto [out, result] : llvm::zip(builder.outs, launch->getResults()))
    out.replaceAllUsesWith(result);
  for (Operation *op : llvm::reverse(ops)) {
    op->dropAllUses();
    op->erase();
  }
  return launch;
}

} // namespace quern
