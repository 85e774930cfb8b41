//===- Bufferize.cpp - Host functions on buffers --------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// First, still on tensors, results get their destinations: the buffer that a result
// lives in is traced back through launches and views, and where it is a fresh one that
// is the argument. Bufferisation then has nothing to decide.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/FuncBufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotAnalysis.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotModuleBufferize.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/BufferizableOpInterfaceImpl.h"
#include "quern/Dialect/Kernel/IR/Kernel.h"
#include "quern/Dialect/Quern/IR/FunctionAttrs.h"
#include "quern/Dialect/Quern/IR/Quern.h"
#include "quern/Transforms/Dims.h"
#include "quern/Transforms/Passes.h"
#include "quern/Transforms/Report.h"

namespace quern {
#define GEN_PASS_DEF_QUERNBUFFERIZE
#include "quern/Transforms/Passes.h.inc"
} // namespace quern

using namespace mlir;
using namespace quern;

namespace {

constexpr StringLiteral writableAttrName = "bufferization.writable";

SmallVector<Value> makeSizes(OpBuilder &b, Location loc, RankedTensorType type) {
  SmallVector<Value> sizes;
  for (Dim d : getDims(type))
    if (!d.isConstant())
      sizes.push_back(kernel::DimOp::create(b, loc, b.getIndexType(), d.getAttr()));
  return sizes;
}

/// The kernel that moves a tensor of this type (of a memref's shape and dtype).
kernel::FuncOp getCopyKernel(SymbolTable &symbols, ArrayRef<int64_t> shape, Type element,
                             Location loc) {
  MLIRContext *ctx = element.getContext();
  SmallVector<Dim> dims;
  std::string name;
  llvm::raw_string_ostream os(name);
  os << "k_copy";
  unsigned next = 0;
  for (int64_t size : shape) {
    bool dynamic = ShapedType::isDynamic(size);
    dims.push_back(dynamic ? Dim::symbol(ctx, "d" + std::to_string(next++))
                           : Dim::constant(ctx, size));
    os << '_' << (dynamic ? "x" : std::to_string(size));
  }
  os << '_' << element;
  if (auto known = symbols.lookup<kernel::FuncOp>(name))
    return known;
  OpBuilder b(ctx);
  auto kernel = kernel::FuncOp::create(b, loc, name, "pointwise", ArrayRef<int64_t>{0, 0});
  Block &block = kernel.getBody().emplaceBlock();
  Type type = getTensorType(dims, element);
  BlockArgument from = block.addArgument(type, loc);
  block.addArgument(type, loc);
  b.setInsertionPointToEnd(&block);
  kernel::YieldOp::create(b, loc, ValueRange(from));
  symbols.insert(kernel);
  return kernel;
}

class HostFunction {
public:
  HostFunction(func::FuncOp func, SymbolTable &symbols) : func(func), symbols(symbols) {}

  LogicalResult check(StringRef pass);
  void separate();
  void giveDestinations();
  void moveNames();

private:
  func::FuncOp func;
  SymbolTable &symbols;

  bool placeRoot(Value result, BlockArgument destination);
  Value copyTo(OpBuilder &b, Value from, Value to);
};

LogicalResult HostFunction::check(StringRef pass) {
  if (failed(verifyTensors(func, pass)))
    return failure();
  for (auto [what, types] :
       {std::pair("argument ", func.getArgumentTypes()), {"result ", func.getResultTypes()}})
    for (auto [i, type] : llvm::enumerate(types))
      if (!isa<TensorType>(type))
        return func.emitError("unsupported: ")
               << what << i << " of '" << func.getSymName() << "' is no tensor but " << type;
  if (!func.getBody().hasOneBlock())
    return func.emitError("unsupported: quern-bufferize of a function that is not one block");
  for (Operation &op : func.front()) {
    if (isa<StructuredOp>(op))
      return op.emitError("invalid: quern-bufferize runs after quern-fuse, found '")
             << op.getName() << "'";
    if (isa<CallOpInterface>(op))
      return op.emitError("unsupported: quern-bufferize of '")
             << op.getName() << "'; inline it first";
    // Upstream ops, legal in a graph: only those that move and measure tensors have buffers.
    bool onTensors = llvm::any_of(op.getOperandTypes(), llvm::IsaPred<TensorType>) ||
                     llvm::any_of(op.getResultTypes(), llvm::IsaPred<TensorType>);
    if (op.getNumRegions() || (onTensors && !isa<bufferization::BufferizableOpInterface>(op)))
      return op.emitError("unsupported: '") << op.getName() << "' in a host function";
  }
  llvm::DenseSet<unsigned> promised;
  for (unsigned i = 0; i < func.getNumResults(); ++i)
    if (std::optional<unsigned> argument = getResultInto(func, i)) {
      if (func.getArgument(*argument).getType() != func.getResultTypes()[i])
        return func.emitError("invalid: result ")
               << i << " and the argument that it is promised to have different types, got "
               << func.getResultTypes()[i] << " and " << func.getArgument(*argument).getType();
      if (!promised.insert(*argument).second)
        return func.emitError("invalid: argument ")
               << *argument << " is promised to several results";
    }
  return success();
}

/// A destination whose content is needed later, or is not the function's to overwrite, or is read
/// by the same launch at other indices, is replaced by a fresh buffer: outs are never read.
void HostFunction::separate() {
  Block &block = func.front();
  llvm::DenseMap<Value, int64_t> lastUses;
  int64_t at = 0;
  for (Operation &op : block) {
    ++at;
    auto launch = dyn_cast<kernel::LaunchOp>(op);
    for (Value v : launch ? launch.getIns() : op.getOperands())
      lastUses[v] = at;
  }
  struct Buffer {
    int64_t lastUse;
    bool owned;
  };
  std::vector<Buffer> buffers;
  llvm::DenseMap<Value, unsigned> bufferOf;
  auto define = [&](Value v, bool owned) {
    bufferOf[v] = buffers.size();
    buffers.push_back({lastUses.lookup(v), owned});
  };
  llvm::DenseSet<unsigned> promised;
  for (unsigned i = 0; i < func.getNumResults(); ++i)
    if (std::optional<unsigned> argument = getResultInto(func, i))
      promised.insert(*argument);
  for (BlockArgument argument : block.getArguments())
    define(argument,
           isDonated(func, argument.getArgNumber()) || promised.contains(argument.getArgNumber()));
  OpBuilder b(func.getContext());
  at = 0;
  for (Operation &op : block) {
    ++at;
    if (isa<kernel::ViewOp, kernel::RefineOp>(op) && bufferOf.count(op.getOperand(0))) {
      unsigned buffer = bufferOf[op.getResult(0)] = bufferOf.lookup(op.getOperand(0));
      buffers[buffer].lastUse = std::max(buffers[buffer].lastUse, lastUses.lookup(op.getResult(0)));
      continue;
    }
    auto launch = dyn_cast<kernel::LaunchOp>(op);
    if (!launch) {
      for (Value result : op.getResults())
        define(result, isa<tensor::EmptyOp>(op));
      continue;
    }
    llvm::SmallDenseSet<unsigned> written;
    for (OpOperand &out : launch.getOutsMutable()) {
      unsigned number = out.getOperandNumber() - launch.getIns().size();
      unsigned buffer = bufferOf.lookup(out.get());
      bool conflict =
          !buffers[buffer].owned || buffers[buffer].lastUse > at || !written.insert(buffer).second;
      for (auto [i, in] : llvm::enumerate(launch.getIns()))
        conflict |= bufferOf.lookup(in) == buffer && !launch.mayShare(number, i);
      if (!conflict)
        continue;
      b.setInsertionPoint(launch);
      auto type = cast<RankedTensorType>(out.get().getType());
      out.set(
          tensor::EmptyOp::create(b, launch.getLoc(), type, makeSizes(b, launch.getLoc(), type)));
      define(out.get(), /*owned=*/true);
      if (isReporting(func))
        emitReport(launch) << "out " << number
                           << " is not written to its destination, whose content is needed";
    }
    for (auto [result, out] : llvm::zip(launch->getResults(), launch.getOuts())) {
      unsigned buffer = bufferOf[result] = bufferOf.lookup(out);
      buffers[buffer].lastUse = lastUses.lookup(result);
    }
  }
}

/// The value whose buffer holds `root`, and the launch's operand that brought it there.
std::pair<Value, OpOperand *> rootOf(Value root) {
  OpOperand *use = nullptr;
  while (Operation *op = root.getDefiningOp()) {
    if (auto launch = dyn_cast<kernel::LaunchOp>(op)) {
      use = &launch.getOutsMutable()[cast<OpResult>(root).getResultNumber()];
      root = use->get();
    } else if (isa<kernel::ViewOp, kernel::RefineOp>(op)) {
      root = op->getOperand(0);
    } else {
      break;
    }
  }
  return {root, use};
}

/// Whether `launch` may begin to overwrite the argument: nobody reads its content later, through
/// views included, nor does the launch itself at other indices than it writes.
bool mayOverwrite(BlockArgument argument, OpOperand &out) {
  auto launch = cast<kernel::LaunchOp>(out.getOwner());
  unsigned number = out.getOperandNumber() - launch.getIns().size();
  SmallVector<Value> names{argument};
  while (!names.empty())
    for (OpOperand &use : names.pop_back_val().getUses()) {
      Operation *reader = launch->getBlock()->findAncestorOpInBlock(*use.getOwner());
      if (isa<kernel::ViewOp, kernel::RefineOp>(use.getOwner()))
        names.push_back(use.getOwner()->getResult(0));
      else if (!reader || launch->isBeforeInBlock(reader) ||
               (reader == launch && !launch.mayShare(number, use.getOperandNumber())))
        return false;
    }
  return true;
}

/// When the result's buffer is a fresh one, puts the destination there. Whether the result is in
/// the destination.
bool HostFunction::placeRoot(Value result, BlockArgument destination) {
  auto [root, use] = rootOf(result);
  if (root == destination)
    return true;
  auto empty = root.getDefiningOp<tensor::EmptyOp>();
  if (!empty || !use || !mayOverwrite(destination, *use))
    return false;
  OpBuilder b(use->getOwner());
  Value target = destination;
  if (target.getType() != empty.getType())
    target = kernel::ViewOp::create(b, empty.getLoc(), empty.getType(), target,
                                    makeSizes(b, empty.getLoc(), empty.getType()));
  use->set(target);
  if (empty->use_empty())
    empty->erase();
  return true;
}

Value HostFunction::copyTo(OpBuilder &b, Value from, Value to) {
  auto type = cast<RankedTensorType>(to.getType());
  kernel::FuncOp copy =
      getCopyKernel(symbols, type.getShape(), type.getElementType(), from.getLoc());
  return kernel::LaunchOp::create(b, from.getLoc(), TypeRange(type), copy.getSymName(),
                                  ValueRange(from), ValueRange(to), copy.getShareAttr(),
                                  /*sizes=*/Attribute())
      .getResult(0);
}

void HostFunction::giveDestinations() {
  Block &block = func.front();
  OpBuilder b(func.getContext());
  // A fresh buffer for each out, also where equal ones were merged.
  for (auto empty : llvm::to_vector(block.getOps<tensor::EmptyOp>()))
    for (OpOperand &use : llvm::make_early_inc_range(llvm::drop_begin(empty->getUses()))) {
      b.setInsertionPoint(empty);
      use.set(b.clone(*empty)->getResult(0));
    }

  // Out arguments stand behind the inputs.
  unsigned at = 0;
  while (at < func.getNumArguments() && !func.getArgAttr(at, constantAttrName))
    ++at;
  SmallVector<Attribute> names;
  bool named = false;
  Operation *terminator = block.getTerminator();
  SmallVector<BlockArgument> destinations;
  for (unsigned i = 0; i < func.getNumResults(); ++i) {
    auto name = func.getResultAttrOfType<StringAttr>(i, nameAttrName);
    named |= bool(name);
    names.push_back(name ? name : b.getStringAttr(""));
    unsigned argument;
    if (std::optional<unsigned> into = getResultInto(func, i)) {
      argument = *into;
    } else {
      argument = at++;
      SmallVector<NamedAttribute> attrs{b.getNamedAttr(outAttrName, b.getUnitAttr())};
      (void)func.insertArgument(argument, func.getResultTypes()[i], b.getDictionaryAttr(attrs),
                                terminator->getOperand(i).getLoc());
    }
    func.setArgAttr(argument, resultAttrName, b.getI64IntegerAttr(i));
  }
  if (named)
    func->setAttr(resultNamesAttrName, b.getArrayAttr(names));
  for (unsigned i = 0; i < func.getNumArguments(); ++i)
    func.setArgAttr(i, writableAttrName,
                    b.getBoolAttr(isDonated(func, i) || func.getArgAttr(i, resultAttrName)));
  destinations.resize(func.getNumResults());
  for (BlockArgument argument : func.getArguments())
    if (auto i = func.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), resultAttrName))
      destinations[i.getInt()] = argument;

  // A buffer serves one result; what is left is copied, promised arguments last: others may
  // still read them.
  llvm::DenseSet<Value> placed;
  SmallVector<unsigned> left;
  for (OpOperand &operand : terminator->getOpOperands()) {
    unsigned i = operand.getOperandNumber();
    if (!placed.insert(operand.get()).second || !placeRoot(operand.get(), destinations[i]))
      left.push_back(i);
  }
  llvm::stable_sort(left, [&](unsigned x, unsigned y) {
    return bool(func.getArgAttr(destinations[x].getArgNumber(), outAttrName)) >
           bool(func.getArgAttr(destinations[y].getArgNumber(), outAttrName));
  });
  b.setInsertionPoint(terminator);
  // Arguments that change places: what another copy will overwrite is kept aside.
  SmallVector<Value> sources;
  for (unsigned i : left) {
    Value &from = sources.emplace_back(terminator->getOperand(i));
    Value root = rootOf(from).first;
    if (llvm::any_of(ArrayRef(left).take_front(sources.size() - 1),
                     [&](unsigned earlier) { return destinations[earlier] == root; })) {
      auto type = cast<RankedTensorType>(from.getType());
      Value aside =
          tensor::EmptyOp::create(b, from.getLoc(), type, makeSizes(b, from.getLoc(), type));
      from = copyTo(b, from, aside);
    }
  }
  for (auto [i, from] : llvm::zip(left, sources)) {
    if (isReporting(func))
      emitReport(func, from.getLoc()) << "result " << i << " is copied to its buffer at the end";
    terminator->setOperand(i, copyTo(b, from, destinations[i]));
  }
}

/// The names of dims move from the types to the arguments.
void HostFunction::moveNames() {
  for (BlockArgument argument : func.getArguments())
    if (auto type = dyn_cast<RankedTensorType>(argument.getType()))
      if (auto dims = dyn_cast_or_null<DimsAttr>(type.getEncoding()))
        func.setArgAttr(argument.getArgNumber(), dimsAttrName, dims);
  auto strip = [](Value v) {
    if (auto type = dyn_cast<RankedTensorType>(v.getType()))
      v.setType(stripEncoding(type));
  };
  llvm::for_each(func.getArguments(), strip);
  func.walk([&](Operation *op) {
    llvm::for_each(op->getResults(), strip);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        llvm::for_each(block.getArguments(), strip);
  });
  func.setType(FunctionType::get(func.getContext(), func.front().getArgumentTypes(),
                                 func.front().getTerminator()->getOperandTypes()));
}

Value memrefRoot(Value v) {
  while (Operation *op = v.getDefiningOp()) {
    if (!isa<memref::CastOp, kernel::ViewOp>(op))
      break;
    v = op->getOperand(0);
  }
  return v;
}

/// A launch says which of its kernel's pairs really share a buffer: a kernel that none of its
/// launches runs in place needs no care.
void narrowShare(kernel::LaunchOp launch) {
  auto bufferOf = [](Value v) {
    v = memrefRoot(v);
    while (auto part = v.getDefiningOp<memref::SubViewOp>())
      v = memrefRoot(part.getSource());
    return v;
  };
  SmallVector<int64_t> share;
  for (auto [o, out] : llvm::enumerate(launch.getOuts()))
    for (auto [i, in] : llvm::enumerate(launch.getIns()))
      if (launch.mayShare(o, i) && bufferOf(in) == bufferOf(out))
        share.append({int64_t(o), int64_t(i)});
  launch.setShare(share);
}

struct Bufferize : quern::impl::QuernBufferizeBase<Bufferize> {
  using Base::Base;

  void getDependentDialects(DialectRegistry &registry) const override {
    Base::getDependentDialects(registry);
    arith::registerBufferizableOpInterfaceExternalModels(registry);
    bufferization::func_ext::registerBufferizableOpInterfaceExternalModels(registry);
    tensor::registerBufferizableOpInterfaceExternalModels(registry);
  }

  /// The results are arguments now; copies that One-Shot made are kernels like any other.
  LogicalResult finish(func::FuncOp func, SymbolTable &symbols) {
    Operation *terminator = func.front().getTerminator();
    for (OpOperand &operand : terminator->getOpOperands()) {
      auto root = dyn_cast<BlockArgument>(memrefRoot(operand.get()));
      auto result = root ? func.getArgAttrOfType<IntegerAttr>(root.getArgNumber(), resultAttrName)
                         : IntegerAttr();
      if (!result || result.getInt() != operand.getOperandNumber())
        return func.emitError("internal: result ")
               << operand.getOperandNumber() << " is not in its buffer";
    }
    terminator->eraseOperands(0, terminator->getNumOperands());
    func.setType(FunctionType::get(func.getContext(), func.front().getArgumentTypes(), {}));
    func.setAllResultAttrs(ArrayRef<DictionaryAttr>());
    for (unsigned i = 0; i < func.getNumArguments(); ++i)
      func.removeArgAttr(i, writableAttrName);
    IRRewriter rewriter(func.getContext());
    func.walk([&](Operation *op) {
      if (auto copy = dyn_cast<memref::CopyOp>(op)) {
        rewriter.setInsertionPoint(copy);
        auto type = cast<MemRefType>(copy.getTarget().getType());
        kernel::FuncOp kernel =
            getCopyKernel(symbols, type.getShape(), type.getElementType(), copy.getLoc());
        auto launch =
            kernel::LaunchOp::create(rewriter, copy.getLoc(), TypeRange(), kernel.getSymName(),
                                     copy.getSource(), copy.getTarget(), kernel.getShareAttr(),
                                     /*sizes=*/Attribute());
        if (isReporting(func))
          emitReport(launch) << "a buffer is copied: its old content is needed later";
        copy.erase();
      }
    });
    func.walk(narrowShare);
    SmallVector<Operation *> all;
    func.walk([&](Operation *op) { all.push_back(op); });
    for (Operation *op : llvm::reverse(all))
      if (isa<memref::AllocOp, memref::CastOp, memref::DimOp, kernel::DimOp, kernel::ViewOp>(op) &&
          op->use_empty())
        op->erase();
    return success();
  }

  LogicalResult run() {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    SmallVector<func::FuncOp> functions(module.getOps<func::FuncOp>());
    for (func::FuncOp func : functions) {
      if (func.isExternal())
        continue;
      HostFunction host(func, symbols);
      if (failed(host.check(getArgument())))
        return failure();
      host.separate();
      host.giveDestinations();
      host.moveNames();
    }
    bufferization::OneShotBufferizationOptions options;
    options.bufferizeFunctionBoundaries = true;
    options.setFunctionBoundaryTypeConversion(bufferization::LayoutMapOption::IdentityLayoutMap);
    options.opFilter.denyOperation([](Operation *op) {
      return isa<kernel::FuncOp>(op) || op->getParentOfType<kernel::FuncOp>();
    });
    bufferization::BufferizationState state;
    // Without One-Shot's analysis, which is quadratic in the length of a chain of updates in
    // place: straight-line functions have no conflict left.
    if (failed(bufferization::bufferizeModuleOp(module, options, state)))
      return failure();
    for (func::FuncOp func : functions)
      if (!func.isExternal() && failed(finish(func, symbols)))
        return failure();
    return success();
  }

  void runOnOperation() override {
    if (failed(run()))
      signalPassFailure();
  }
};

} // namespace
