//===- Kernel.cpp - The kernel dialect ------------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Dialect/Kernel/IR/Kernel.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Transforms/InliningUtils.h"
#include "quern/Dialect/Quern/IR/Quern.h"
#include "llvm/ADT/SetVector.h"

#include "quern/Dialect/Kernel/IR/KernelDialect.cpp.inc"
#define GET_OP_CLASSES
#include "quern/Dialect/Kernel/IR/KernelOps.cpp.inc"

using namespace mlir;
using namespace mlir::bufferization;

namespace quern::kernel {

namespace {
/// Everything but kernels themselves may be inlined.
struct KernelInliner : DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;
  bool isLegalToInline(Operation *op, Region *, bool, IRMapping &) const override {
    return !isa<FuncOp>(op);
  }
};
} // namespace

void KernelDialect::initialize() {
  addInterfaces<KernelInliner>();
  addOperations<
#define GET_OP_LIST
#include "quern/Dialect/Kernel/IR/KernelOps.cpp.inc"
      >();
}

static bool hasPair(ArrayRef<int64_t> pairs, unsigned out, unsigned in) {
  for (size_t i = 0; i + 1 < pairs.size(); i += 2)
    if (pairs[i] == int64_t(out) && pairs[i + 1] == int64_t(in))
      return true;
  return false;
}

//===----------------------------------------------------------------------===//
// kernel.func
//===----------------------------------------------------------------------===//

bool FuncOp::mayShare(unsigned out, unsigned in) { return hasPair(getShare(), out, in); }

SmallVector<Dim> FuncOp::getSymbols() {
  llvm::SetVector<Dim> symbols;
  for (BlockArgument arg : getBody().front().getArguments())
    if (auto type = dyn_cast<RankedTensorType>(arg.getType()))
      for (Dim d : getDims(type))
        if (!d.isConstant())
          symbols.insert(d);
  return symbols.takeVector();
}

LogicalResult FuncOp::verify() {
  Block &block = getBody().front();
  auto yield = dyn_cast<YieldOp>(block.getTerminator());
  if (!yield)
    return emitOpError("expected its body to end with kernel.yield");
  if (yield.getNumOperands() > block.getNumArguments())
    return emitOpError("expected an out argument for each of ")
           << yield.getNumOperands() << " yielded values";
  for (auto [i, value] : llvm::enumerate(yield.getValues())) {
    auto out = dyn_cast<RankedTensorType>(block.getArgument(getNumIns() + i).getType());
    auto type = cast<RankedTensorType>(value.getType());
    if (!out || out.getShape() != type.getShape() || out.getElementType() != type.getElementType())
      return emitOpError("expected yielded value ")
             << i << " to have the type of its out, got " << type << " and "
             << block.getArgument(getNumIns() + i).getType();
  }
  ArrayRef<int64_t> share = getShare();
  if (share.size() % 2)
    return emitOpError("expected share to list pairs (out, in)");
  for (size_t i = 0; i < share.size(); i += 2)
    if (share[i] < 0 || share[i] >= int64_t(getNumOuts()) || share[i + 1] < 0 ||
        share[i + 1] >= int64_t(getNumIns()))
      return emitOpError("expected share to name an out and an in, got ")
             << share[i] << " and " << share[i + 1];
  for (int64_t arg : getStrided())
    if (arg < 0 || arg >= int64_t(block.getNumArguments()))
      return emitOpError("expected strided to name an argument, got ") << arg;
  for (int64_t arg : getPacked())
    if (arg < 0 || arg >= int64_t(getNumIns()))
      return emitOpError("expected packed to name an in, got ") << arg;
  return success();
}

//===----------------------------------------------------------------------===//
// kernel.launch
//===----------------------------------------------------------------------===//

bool LaunchOp::mayShare(unsigned out, unsigned in) { return hasPair(getShare(), out, in); }

void LaunchOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &e) {
  for (OpOperand &operand : getInsMutable())
    if (isa<MemRefType>(operand.get().getType()))
      e.emplace_back(MemoryEffects::Read::get(), &operand, SideEffects::DefaultResource::get());
  for (OpOperand &operand : getOutsMutable())
    if (isa<MemRefType>(operand.get().getType()))
      e.emplace_back(MemoryEffects::Write::get(), &operand, SideEffects::DefaultResource::get());
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &tables) {
  auto kernel = tables.lookupNearestSymbolFrom<FuncOp>(*this, getKernelAttr());
  if (!kernel)
    return emitOpError("unknown kernel ") << getKernelAttr();
  if (kernel.getNumIns() != getIns().size() || kernel.getNumOuts() != getOuts().size())
    return emitOpError("expected ")
           << kernel.getNumIns() << " ins and " << kernel.getNumOuts() << " outs, as @"
           << kernel.getSymName() << ", got " << getIns().size() << " and " << getOuts().size();
  // Dtypes may differ in their signs: bodies lose them before host functions.
  for (auto [i, operand] : llvm::enumerate(llvm::concat<Value>(getIns(), getOuts()))) {
    auto type = cast<ShapedType>(operand.getType());
    auto argument = dyn_cast<ShapedType>(kernel.getBody().front().getArgument(i).getType());
    bool isStrided = kernel.isStrided(i);
    auto mayDiffer = [&](int64_t a, int64_t b) {
      return a == b || ShapedType::isDynamic(a) || ShapedType::isDynamic(b) || isStrided;
    };
    auto bits = [](ShapedType t) {
      return t.getElementType().isIntOrFloat() ? t.getElementTypeBitWidth() : 0;
    };
    if (!argument || !type.hasRank() || !argument.hasRank() ||
        type.getRank() != argument.getRank() ||
        !llvm::all_of_zip(type.getShape(), argument.getShape(), mayDiffer) ||
        bits(type) != bits(argument))
      return emitOpError("expected operand ")
             << i << " to be as argument " << i << " of @" << kernel.getSymName() << ", got "
             << type << " and " << kernel.getBody().front().getArgument(i).getType();
  }
  for (size_t i = 0; i + 1 < getShare().size(); i += 2)
    if (!kernel.mayShare(getShare()[i], getShare()[i + 1]))
      return emitOpError("expected share to be among the pairs of @") << kernel.getSymName();
  return success();
}

bool LaunchOp::bufferizesToMemoryRead(OpOperand &operand, const AnalysisState &) {
  return !isDpsInit(&operand);
}
bool LaunchOp::bufferizesToMemoryWrite(OpOperand &operand, const AnalysisState &) {
  return isDpsInit(&operand);
}
AliasingValueList LaunchOp::getAliasingValues(OpOperand &operand, const AnalysisState &) {
  if (isDpsInit(&operand))
    return {{getTiedOpResult(&operand), BufferRelation::Equivalent}};
  return {};
}

// One-Shot asks this for operands of one op that are the same buffer: exactly the share rule.
bool LaunchOp::bufferizesToElementwiseAccess(const AnalysisState &, ArrayRef<OpOperand *> ops) {
  unsigned numIns = getIns().size();
  unsigned first =
      numIns + getOuts().size() ? getOperation()->getOpOperand(0).getOperandNumber() : 0;
  for (OpOperand *write : ops)
    if (isDpsInit(write))
      for (OpOperand *read : ops)
        if (!isDpsInit(read) &&
            !mayShare(write->getOperandNumber() - first - numIns, read->getOperandNumber() - first))
          return false;
  return true;
}

LogicalResult LaunchOp::bufferize(RewriterBase &rewriter, const BufferizationOptions &options,
                                  BufferizationState &state) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(*this);
  SmallVector<Value> ins, outs;
  for (auto [list, values] :
       {std::pair(&ins, OperandRange(getIns())), std::pair(&outs, OperandRange(getOuts()))})
    for (Value value : values) {
      FailureOr<Value> buffer = getBuffer(rewriter, value, options, state);
      if (failed(buffer))
        return failure();
      list->push_back(*buffer);
    }
  auto launch = LaunchOp::create(rewriter, getLoc(), TypeRange(), getKernelAttr(), ins, outs,
                                 getShareAttr(), getSizesAttr());
  launch->setDiscardableAttrs((*this)->getDiscardableAttrDictionary());
  replaceOpWithBufferizedValues(rewriter, *this, outs);
  return success();
}

//===----------------------------------------------------------------------===//
// kernel.view
//===----------------------------------------------------------------------===//

bool ViewOp::bufferizesToMemoryRead(OpOperand &, const AnalysisState &) { return false; }
bool ViewOp::bufferizesToMemoryWrite(OpOperand &, const AnalysisState &) { return false; }
AliasingValueList ViewOp::getAliasingValues(OpOperand &operand, const AnalysisState &) {
  if (operand.getOperandNumber() == 0)
    return {{getResult(), BufferRelation::Equivalent}};
  return {};
}

LogicalResult ViewOp::bufferize(RewriterBase &rewriter, const BufferizationOptions &options,
                                BufferizationState &state) {
  FailureOr<Value> buffer = getBuffer(rewriter, getSource(), options, state);
  if (failed(buffer))
    return failure();
  auto type = cast<RankedTensorType>(getResult().getType());
  auto memref = MemRefType::get(type.getShape(), type.getElementType());
  auto view = ViewOp::create(rewriter, getLoc(), memref, *buffer, getSizes());
  replaceOpWithBufferizedValues(rewriter, *this, view.getResult());
  return success();
}

//===----------------------------------------------------------------------===//
// kernel.refine
//===----------------------------------------------------------------------===//

LogicalResult RefineOp::verify() {
  auto from = cast<RankedTensorType>(getSource().getType());
  auto to = cast<RankedTensorType>(getType());
  if (from.getElementType() != to.getElementType() || from.getRank() != to.getRank())
    return emitOpError("expected the same dtype and rank, got ") << from << " and " << to;
  for (auto [a, b] : llvm::zip(from.getShape(), to.getShape()))
    if (!ShapedType::isDynamic(a) && !ShapedType::isDynamic(b) && a != b)
      return emitOpError("expected sizes that can be equal, got ") << from << " and " << to;
  return success();
}

OpFoldResult RefineOp::fold(FoldAdaptor) {
  if (getSource().getType() == getType())
    return getSource();
  return {};
}

bool RefineOp::bufferizesToMemoryRead(OpOperand &, const AnalysisState &) { return false; }
bool RefineOp::bufferizesToMemoryWrite(OpOperand &, const AnalysisState &) { return false; }
AliasingValueList RefineOp::getAliasingValues(OpOperand &, const AnalysisState &) {
  return {{getResult(), BufferRelation::Equivalent}};
}
LogicalResult RefineOp::bufferize(RewriterBase &rewriter, const BufferizationOptions &options,
                                  BufferizationState &state) {
  FailureOr<Value> buffer = getBuffer(rewriter, getSource(), options, state);
  if (failed(buffer))
    return failure();
  auto type = cast<RankedTensorType>(getType());
  Value result = *buffer;
  auto memref = MemRefType::get(type.getShape(), type.getElementType());
  if (result.getType() != memref)
    result = memref::CastOp::create(rewriter, getLoc(), memref, result);
  replaceOpWithBufferizedValues(rewriter, *this, result);
  return success();
}

} // namespace quern::kernel
