//===- KernelAnalysis.cpp - What a lowered body says ----------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "KernelAnalysis.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/OwningOpRef.h"
#include "quern/Conversion/QuernToLinalg/LoweringBuilder.h"

using namespace mlir;

namespace quern {

Value viewSource(Operation *op) {
  if (isa<kernel::ViewOp, kernel::RefineOp, kernel::BindDimsOp>(op))
    return op->getOperand(0);
  if (auto structured = dyn_cast<StructuredOp>(op))
    if (structured.getOpRecord().fusion == FusionClass::Reshape &&
        structured.getDestinations().empty())
      return op->getOperand(0);
  return {};
}

SmallVector<Dim> LoopSpace::kept(bool withOnes) const {
  SmallVector<Dim> dims;
  for (auto [i, d] : llvm::enumerate(full))
    if (!reduced.test(i))
      dims.push_back(d);
    else if (withOnes)
      dims.push_back(Dim::constant(d.getContext(), 1));
  return dims;
}

/// The loops of a linalg op with the sizes that its operands' types say.
static LoopSpace loopSpace(linalg::LinalgOp op) {
  LoopSpace space;
  space.full.resize(op.getNumLoops());
  space.reduced.resize(op.getNumLoops());
  for (auto [i, kind] : llvm::enumerate(op.getIteratorTypesArray()))
    if (kind == utils::IteratorType::reduction)
      space.reduced.set(i);
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = dyn_cast<RankedTensorType>(operand.get().getType());
    if (!type)
      continue;
    SmallVector<Dim> dims = getDims(type);
    for (auto [expr, d] : llvm::zip(op.getMatchingIndexingMap(&operand).getResults(), dims))
      if (auto loop = dyn_cast<AffineDimExpr>(expr); loop && !space.full[loop.getPosition()])
        space.full[loop.getPosition()] = d;
  }
  for (Dim &d : space.full)
    if (!d)
      d = Dim::unknown(op.getContext());
  return space;
}

std::optional<LoweredAlone> lowerAlone(StructuredOp op) {
  LoweredAlone alone;
  alone.module = ModuleOp::create(op.getLoc());
  OpBuilder b(alone.module->getBodyRegion());
  auto func =
      func::FuncOp::create(b, op.getLoc(), "scratch", b.getFunctionType(op->getOperandTypes(), {}));
  alone.block = func.addEntryBlock();
  b.setInsertionPointToEnd(alone.block);
  alone.op = b.clone(*op);
  alone.op->setOperands(alone.block->getArguments());
  LoweringBuilder builder(b, alone.op, alone.block->getArguments());
  // What cannot be lowered is reported when its kernel is made.
  ScopedDiagnosticHandler silence(op.getContext(), [](Diagnostic &) { return success(); });
  FailureOr<SmallVector<Value>> lowered = lowerOp(alone.op, builder);
  if (failed(lowered))
    return std::nullopt;
  alone.results = std::move(*lowered);
  return alone;
}

std::optional<RowFacts> analyzeRows(StructuredOp op) {
  std::optional<LoweredAlone> alone = lowerAlone(op);
  if (!alone)
    return std::nullopt;
  std::optional<RowFacts> facts;
  for (auto generic : alone->block->getOps<linalg::GenericOp>()) {
    LoopSpace space = loopSpace(generic);
    if (space.reduced.none())
      continue;
    if (!facts)
      facts = RowFacts{space, llvm::SmallBitVector(op->getNumOperands(), true)};
    else if (!(facts->space == space))
      return std::nullopt;
  }
  if (!facts || llvm::any_of(facts->space.full, [](Dim d) { return d.isUnknown(); }))
    return std::nullopt;
  for (BlockArgument argument : alone->block->getArguments())
    for (OpOperand &use : argument.getUses()) {
      if (use.getOwner() == alone->op)
        continue;
      auto generic = dyn_cast<linalg::GenericOp>(use.getOwner());
      if (!generic || !generic.getMatchingIndexingMap(&use).isIdentity() ||
          generic.getNumLoops() != facts->space.full.size())
        facts->identity.reset(argument.getArgNumber());
    }
  return facts;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

namespace {

/// A kernel's body as linalg, looked at as a whole.
class Body {
public:
  explicit Body(kernel::FuncOp kernel) : kernel(kernel), block(kernel.getBody().front()) {
    for (auto op : block.getOps<linalg::LinalgOp>())
      if (!isa<linalg::FillOp>(op))
        ops.push_back(op);
    kernel.walk([&](tensor::ExtractOp op) { extracted.insert(op.getTensor()); });
    for (Operation &inner : block) {
      if (Value source = unitReshape(&inner))
        levels[inner.getResult(0)] = levels.lookup(source);
      auto op = dyn_cast<linalg::LinalgOp>(inner);
      if (!op || isa<linalg::FillOp>(inner))
        continue;
      LoopSpace own = loopSpace(op);
      int level = own.reduced.any();
      for (Value v : op->getOperands())
        level = std::max(level, levels.lookup(v) + int(own.reduced.any()));
      op->walk([&](tensor::ExtractOp extract) {
        level = std::max(level, levels.lookup(extract.getTensor()));
      });
      for (Value v : op->getResults())
        levels[v] = level;
      if (own.reduced.none())
        continue;
      if (!space)
        space = own;
      else if (!(*space == own))
        mixed = true;
    }
  }

  StringRef kind() const;
  /// Asks for the kernel's kind.
  bool mayShare(unsigned out, unsigned in);

private:
  kernel::FuncOp kernel;
  Block &block;
  SmallVector<linalg::LinalgOp> ops;
  llvm::DenseSet<Value> extracted;
  llvm::DenseMap<Value, int> levels; ///< reductions below a value
  std::optional<LoopSpace> space;    ///< of all reductions
  bool mixed = false;                ///< reductions over different loops

  bool readsOwnIndex(linalg::LinalgOp op, AffineMap map) const;
  bool hasRows();
  static bool sameSizes(Value a, Value b);
  /// What the op only adds or drops unit dims of; null for any other op.
  static Value unitReshape(Operation *op);
};

StringRef Body::kind() const {
  if (mixed || !extracted.empty() || ops.empty())
    return "generic";
  if (!space)
    return "pointwise";
  // Unit dims stand nowhere.
  SmallVector<bool> reduced;
  for (auto [i, d] : llvm::enumerate(space->full))
    if (!d.isConstant(1))
      reduced.push_back(space->reduced.test(i));
  if (llvm::is_sorted(reduced))
    return "row_reduction";
  if (std::is_sorted(reduced.begin(), reduced.end(), std::greater<>()))
    return "column_reduction";
  return "generic";
}

Value Body::unitReshape(Operation *op) {
  if (!isa<kernel::ViewOp, kernel::RefineOp>(op))
    return {};
  auto withoutOnes = [](Value v) {
    SmallVector<Dim> dims = getDims(cast<RankedTensorType>(v.getType()));
    llvm::erase_if(dims, [](Dim d) { return d.isConstant(1); });
    return dims;
  };
  SmallVector<Dim> from = withoutOnes(op->getOperand(0)), to = withoutOnes(op->getResult(0));
  bool known = llvm::none_of(from, [](Dim d) { return d.isUnknown(); });
  return known && from == to ? op->getOperand(0) : Value();
}

/// Whether the map reads, of a value of the kernel's loop space, what belongs to the same rows:
/// all loops in order, or those that are not reduced.
bool Body::readsOwnIndex(linalg::LinalgOp op, AffineMap map) const {
  if (map.isIdentity())
    return true;
  if (!space || map.getNumDims() != space->full.size())
    return false;
  SmallVector<unsigned> kept;
  for (unsigned i = 0; i < map.getNumDims(); ++i)
    if (!space->reduced.test(i))
      kept.push_back(i);
  unsigned next = 0;
  for (AffineExpr expr : map.getResults()) {
    if (auto constant = dyn_cast<AffineConstantExpr>(expr); constant && constant.getValue() == 0)
      continue;
    auto loop = dyn_cast<AffineDimExpr>(expr);
    if (!loop || next == kept.size() || loop.getPosition() != kept[next++])
      return false;
  }
  return next == kept.size();
}

bool Body::sameSizes(Value a, Value b) {
  SmallVector<Dim> dims = getDims(cast<RankedTensorType>(a.getType()));
  return a == b || (dims == getDims(cast<RankedTensorType>(b.getType())) &&
                    llvm::none_of(dims, [](Dim d) { return d.isUnknown(); }));
}

/// Whether the kernel goes row by row on every target: what is reduced is read in its own row only,
/// and each result has rows, its own or those of another result of its sizes.
bool Body::hasRows() {
  bool otherKind =
      llvm::is_contained<StringRef>({"contraction", "convolution", "gather"}, kernel.getKind());
  if (otherKind || mixed || !space || !extracted.empty())
    return false;
  for (Operation &inner : block.without_terminator()) {
    auto op = dyn_cast<linalg::LinalgOp>(inner);
    for (OpOperand &operand : inner.getOpOperands())
      if (levels.lookup(operand.get()) && !unitReshape(&inner) &&
          (!op || !readsOwnIndex(op, op.getMatchingIndexingMap(&operand))))
        return false;
  }
  auto results = block.getTerminator()->getOperands();
  return llvm::all_of(results, [&](Value v) {
    return llvm::any_of(results,
                        [&](Value other) { return levels.lookup(other) && sameSizes(v, other); });
  });
}

/// Out may be the buffer of in when each of its elements is read only where it is overwritten, and
/// by the last of the passes: for the same element of a result of this shape, or by reductions
/// over its row, which end before results are written.
bool Body::mayShare(unsigned out, unsigned in) {
  if (mixed || kernel.isStrided(in) || kernel.isStrided(kernel.getNumIns() + out))
    return false;
  BlockArgument from = block.getArgument(in);
  if (from.getType() != block.getArgument(kernel.getNumIns() + out).getType())
    return false;
  Value result = block.getTerminator()->getOperand(out);
  // How an element of a value comes from `in`: through reductions of its row; by a read of the
  // row's element of `in`; by a read of its own element.
  enum class Read { Reduced, Row, Own };
  llvm::DenseMap<Value, Read> seen{{from, Read::Own}};
  bool reduces = false;
  int last = 0;
  for (Operation &inner : block.without_terminator()) {
    if (Value source = unitReshape(&inner)) {
      if (auto known = seen.find(source); known != seen.end())
        seen.insert({inner.getResult(0), Read(known->second)});
      continue;
    }
    auto op = dyn_cast<linalg::LinalgOp>(inner);
    if (!op || isa<linalg::FillOp>(inner)) {
      if (llvm::any_of(inner.getOperands(), [&](Value v) { return seen.contains(v); }))
        return false;
      continue;
    }
    std::optional<Read> reads;
    for (OpOperand &operand : op->getOpOperands()) {
      auto known = seen.find(operand.get());
      if (known == seen.end() ||
          (op.isDpsInit(&operand) && !op.payloadUsesValueFromOperand(&operand)))
        continue;
      AffineMap map = op.getMatchingIndexingMap(&operand);
      // A product sums over what other results need as well: only the rows of one space are safe.
      if (op.getNumReductionLoops() ? !map.isIdentity() : !readsOwnIndex(op, map))
        return false;
      Read read = known->second;
      if (op.getNumReductionLoops()) {
        reduces = true;
        read = Read::Reduced;
      } else if (read == Read::Own && !map.isIdentity()) {
        read = Read::Row;
      }
      // Reads of the row's element are the ones that others have to end before.
      if (!reads || *reads == Read::Reduced || read == Read::Row)
        reads = read;
    }
    if (!reads)
      continue;
    for (OpOperand &init : op.getDpsInitsMutable())
      if (!readsOwnIndex(op, op.getMatchingIndexingMap(&init)))
        return false;
    for (Value v : op->getResults()) {
      seen.insert({v, *reads});
      last = std::max(last, levels.lookup(v));
    }
  }
  if (llvm::any_of(seen, [&](auto &known) { return extracted.contains(known.first); }) ||
      (reduces && !hasRows()))
    return false;
  // Nobody else reads it when results are written.
  for (Value v : block.getTerminator()->getOperands())
    if (auto known = seen.find(v); known != seen.end() && known->second != Read::Reduced &&
                                   (known->second == Read::Row || !sameSizes(v, result)))
      return false;
  return seen.contains(result) && result != from && levels.lookup(result) == last;
}

} // namespace

LogicalResult deriveKernelFacts(kernel::FuncOp kernel) {
  bool contraction = false, convolution = false, gather = false;
  for (auto op : kernel.getBody().front().getOps<StructuredOp>()) {
    FusionClass fusion = op.getOpRecord().fusion;
    contraction |= fusion == FusionClass::Contraction;
    convolution |= fusion == FusionClass::Convolution;
    gather |= fusion == FusionClass::Gather || fusion == FusionClass::Scatter;
  }
  OwningOpRef<Operation *> lowered = kernel->clone();
  auto copy = cast<kernel::FuncOp>(*lowered);
  if (failed(lowerToLinalg(copy)))
    return failure();
  Body body(copy);
  kernel.setKind(contraction   ? "contraction"
                 : convolution ? "convolution"
                 : gather      ? "gather"
                               : body.kind());
  copy.setKind(kernel.getKind());
  SmallVector<int64_t> share;
  for (unsigned out = 0; out < kernel.getNumOuts(); ++out)
    for (unsigned in = 0; in < kernel.getNumIns(); ++in)
      if (body.mayShare(out, in))
        share.append({out, in});
  kernel.setShare(share);
  return success();
}

} // namespace quern
