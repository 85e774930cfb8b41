//===- VerifyStage.cpp - Checks what a stage promises to the next ---------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// By other means than the passes: buffers have versions, which each write makes anew,
// and a value may be read only while its version is there.
//
//===----------------------------------------------------------------------===//

#include "KernelAnalysis.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "quern/Dialect/Kernel/IR/Kernel.h"
#include "quern/Dialect/Quern/IR/FunctionAttrs.h"
#include "quern/Dialect/Quern/IR/Quern.h"
#include "quern/Transforms/Dims.h"
#include "quern/Transforms/Passes.h"
#include "llvm/ADT/MapVector.h"
#include <map>

namespace quern {
#define GEN_PASS_DEF_QUERNVERIFYSTAGE
#include "quern/Transforms/Passes.h.inc"
} // namespace quern

using namespace mlir;
using namespace quern;

namespace {

//===----------------------------------------------------------------------===//
// After quern-inplace
//===----------------------------------------------------------------------===//

/// What is in a buffer between two writes.
struct Version {
  unsigned buffer;
  unsigned number;
  int64_t lastRead = -1;
};

class InPlaceVerifier {
public:
  InPlaceVerifier(func::FuncOp func) : func(func), block(func.front()) {}
  LogicalResult run();

private:
  func::FuncOp func;
  Block &block;
  std::vector<Version> versions;
  llvm::DenseMap<Value, unsigned> versionOf;
  std::vector<unsigned> current; ///< the version that each buffer holds
  std::vector<bool> owned;

  void fresh(Value value, bool isOwned) {
    owned.push_back(isOwned);
    current.push_back(versions.size());
    versionOf[value] = versions.size();
    versions.push_back({unsigned(owned.size() - 1), 0, -1});
  }
  /// A write of `result` to the buffer of `destination`.
  void write(Value result, Value destination) {
    unsigned buffer = versions[versionOf.lookup(destination)].buffer;
    unsigned number = versions[current[buffer]].number + 1;
    current[buffer] = versionOf[result] = versions.size();
    versions.push_back({buffer, number, -1});
  }

  static OperandRange destinations(Operation *op) {
    if (auto structured = dyn_cast<StructuredOp>(op))
      return structured.getDestinations();
    return cast<kernel::LaunchOp>(op).getOuts();
  }
  static ValueRange inputs(Operation *op) {
    if (isa<StructuredOp>(op))
      return op->getOperands().drop_back(destinations(op).size());
    return cast<kernel::LaunchOp>(op).getIns();
  }
  /// Whether result `r` may be written where input `i` is.
  static bool allows(Operation *op, unsigned r, unsigned i) {
    if (inputs(op)[i].getType() != op->getResult(r).getType())
      return false;
    if (auto launch = dyn_cast<kernel::LaunchOp>(op))
      return launch.mayShare(r, i);
    auto structured = cast<StructuredOp>(op);
    unsigned flat = 0;
    for (auto [n, record] : llvm::enumerate(structured.getOpRecord().operands)) {
      flat += structured.getOperandGroup(n).size();
      if (i < flat)
        return record.mayOverwrite;
    }
    return false;
  }
  static bool writes(Operation *op) { return isa<StructuredOp, kernel::LaunchOp>(op); }

  LogicalResult checkReads(Operation *op, int64_t at);
  LogicalResult checkWrite(Operation *op, unsigned result);
  LogicalResult checkComplete(Operation *op, int64_t at);
};

LogicalResult InPlaceVerifier::checkReads(Operation *op, int64_t at) {
  unsigned numRead = writes(op) ? inputs(op).size() : op->getNumOperands();
  for (Value v : op->getOperands().take_front(numRead)) {
    auto known = versionOf.find(v);
    if (known == versionOf.end())
      continue;
    Version &version = versions[known->second];
    if (current[version.buffer] != known->second)
      return op->emitError(
          "internal: quern-verify-stage: reads a buffer that was overwritten since");
    version.lastRead = at;
  }
  return success();
}

LogicalResult InPlaceVerifier::checkWrite(Operation *op, unsigned result) {
  Value destination = destinations(op)[result];
  unsigned buffer = versions[versionOf.lookup(destination)].buffer;
  if (!owned[buffer])
    return op->emitError(
        "internal: quern-verify-stage: overwrites a buffer that the function does not own");
  for (auto [i, v] : llvm::enumerate(inputs(op))) {
    auto known = versionOf.find(v);
    if (known != versionOf.end() && versions[known->second].buffer == buffer &&
        !allows(op, result, i))
      return op->emitError("internal: quern-verify-stage: overwrites input ")
             << i << ", which its rule does not allow";
  }
  return success();
}

/// Nothing is left that could have been written in place.
LogicalResult InPlaceVerifier::checkComplete(Operation *op, int64_t at) {
  OperandRange into = destinations(op);
  llvm::DenseSet<unsigned> taken;
  for (Value v : into)
    taken.insert(versions[versionOf.lookup(v)].buffer);
  auto terminator = block.getTerminator();
  for (Value result : op->getResults()) {
    unsigned r = cast<OpResult>(result).getResultNumber();
    bool isFresh = into.empty() || into[r].getDefiningOp<tensor::EmptyOp>();
    if (!isFresh || llvm::any_of(getDims(cast<RankedTensorType>(result.getType())),
                                 [](Dim d) { return d.isUnknown(); }))
      continue;
    for (auto [i, v] : llvm::enumerate(inputs(op))) {
      auto known = versionOf.find(v);
      if (known == versionOf.end() || !allows(op, r, i))
        continue;
      const Version &version = versions[known->second];
      if (!owned[version.buffer] || version.lastRead > at || taken.contains(version.buffer))
        continue;
      bool elsewhere = false; // the same buffer as another input that must not be overwritten
      for (auto [j, w] : llvm::enumerate(inputs(op)))
        elsewhere |= versionOf.count(w) && versions[versionOf[w]].buffer == version.buffer &&
                     !allows(op, r, j);
      // An argument's buffer is no place for a result, unless that is promised.
      bool argument = false;
      for (BlockArgument arg : block.getArguments())
        argument |= versions[versionOf[arg]].buffer == version.buffer;
      if (elsewhere || (argument && llvm::is_contained(terminator->getOperands(), result)))
        continue;
      bool promised = false;
      for (unsigned n = 0; n < func.getNumResults(); ++n)
        if (std::optional<unsigned> a = getResultInto(func, n))
          promised |= versions[versionOf[func.getArgument(*a)]].buffer == version.buffer;
      if (promised)
        continue;
      return op->emitError("internal: quern-verify-stage: result ")
             << r << " could have been written into input " << i;
    }
  }
  return success();
}

LogicalResult InPlaceVerifier::run() {
  for (BlockArgument argument : block.getArguments()) {
    bool isOwned = isDonated(func, argument.getArgNumber());
    for (unsigned n = 0; n < func.getNumResults(); ++n)
      isOwned |= getResultInto(func, n) == argument.getArgNumber();
    fresh(argument, isOwned);
  }
  int64_t at = 0;
  for (Operation &op : block) {
    if (op.getNumRegions())
      return op.emitError("unsupported: quern-verify-stage of an op with a region");
    if (failed(checkReads(&op, ++at)))
      return failure();
    if (Value from = viewSource(&op)) {
      if (versionOf.count(from))
        versionOf[op.getResult(0)] = versionOf.lookup(from);
      continue;
    }
    if (!writes(&op) || destinations(&op).empty()) {
      for (Value result : op.getResults())
        fresh(result, isa<StructuredOp, tensor::EmptyOp>(op));
      continue;
    }
    for (unsigned r = 0; r < op.getNumResults(); ++r)
      if (failed(checkWrite(&op, r)))
        return failure();
    for (auto [result, destination] : llvm::zip(op.getResults(), destinations(&op)))
      write(result, destination);
  }
  at = 0;
  for (Operation &op : block) {
    ++at;
    if (writes(&op) && !viewSource(&op) && failed(checkComplete(&op, at)))
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// After quern-bufferize
//===----------------------------------------------------------------------===//

Value rootOf(Value v) {
  while (Operation *op = v.getDefiningOp()) {
    if (!isa<ViewLikeOpInterface, kernel::ViewOp>(op))
      break;
    v = op->getOperand(0);
  }
  return v;
}

LogicalResult verifyBufferized(func::FuncOp func) {
  if (func.getNumResults())
    return func.emitError("internal: quern-verify-stage: a result is left");
  WalkResult result = func.walk([&](Operation *op) -> WalkResult {
    if (llvm::any_of(op->getOperandTypes(), llvm::IsaPred<TensorType>) ||
        llvm::any_of(op->getResultTypes(), llvm::IsaPred<TensorType>))
      return op->emitError("internal: quern-verify-stage: a tensor is left");
    if (isa<memref::CopyOp>(op))
      return op->emitError("internal: quern-verify-stage: a copy is left");
    auto launch = dyn_cast<kernel::LaunchOp>(op);
    if (!launch)
      return WalkResult::advance();
    auto bound = launch->getAttrOfType<DenseI64ArrayAttr>("quern.bound");
    for (int64_t i = 0; bound && i + 1 < bound.size(); i += 2) {
      if (uint64_t(bound[i]) >= launch.getOuts().size() ||
          uint64_t(bound[i + 1]) >= launch.getIns().size())
        return launch.emitError("invalid: quern.bound: expected pairs of an out and an in, got ")
               << bound;
      if (rootOf(launch.getOuts()[bound[i]]) != rootOf(launch.getIns()[bound[i + 1]]))
        return launch.emitError("internal: quern-verify-stage: out ")
               << bound[i] << " is not in the buffer of in " << bound[i + 1];
    }
    for (auto [o, out] : llvm::enumerate(launch.getOuts())) {
      Value root = rootOf(out);
      for (auto [i, in] : llvm::enumerate(launch.getIns()))
        if (rootOf(in) == root && !launch.mayShare(o, i))
          return launch.emitError("internal: quern-verify-stage: out ")
                 << o << " is the buffer of in " << i << ", which the kernel does not allow";
      if (auto argument = dyn_cast<BlockArgument>(root))
        if (unsigned n = argument.getArgNumber();
            !isDonated(func, n) && !func.getArgAttr(n, resultAttrName))
          return launch.emitError("internal: quern-verify-stage: writes argument ")
                 << n << ", which the function does not own";
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

//===----------------------------------------------------------------------===//
// After quern-plan-memory
//===----------------------------------------------------------------------===//

/// The value of an index as an expression; null when it is none.
Dim asDim(Value v) {
  if (auto dim = v.getDefiningOp<kernel::DimOp>())
    return Dim(cast<DimAttr>(dim.getDim()));
  IntegerAttr constant;
  if (matchPattern(v, m_Constant(&constant)))
    return Dim::constant(v.getContext(), constant.getInt());
  return {};
}

struct Placed {
  memref::ViewOp op;
  Dim from, to;
  int64_t first, last;
};

/// An expression as its constant factor and the rest.
std::pair<int64_t, Dim> splitFactor(Dim d) {
  MLIRContext *ctx = d.getContext();
  if (d.isConstant())
    return {d.getConstant(), Dim::constant(ctx, 1)};
  if (d.kind() == DimKind::Product && d.operands()[0].isConstant())
    return {d.operands()[0].getConstant(), Dim::product(ctx, d.operands().drop_front())};
  return {1, d};
}

/// Buffers [base + low * unit, base + high * unit): compared as numbers.
struct Lane {
  Dim unit, base;
  int64_t low, high;
};
Lane laneOf(const Placed &p) {
  auto [size, unit] = splitFactor(p.to - p.from);
  int64_t low = 0;
  SmallVector<Dim> terms{p.from};
  if (p.from.kind() == DimKind::Sum)
    terms.assign(p.from.operands().begin(), p.from.operands().end());
  for (Dim term : terms)
    if (auto [factor, rest] = splitFactor(term); rest == unit)
      low = factor;
  return {unit, p.from - unit * low, low, low + size};
}

LogicalResult overlap(const Placed &p, const Placed &q) {
  memref::ViewOp op = p.op;
  return op.emitError("internal: quern-verify-stage: overlaps another buffer that is needed: [")
         << p.from.str() << ", " << p.to.str() << ") and [" << q.from.str() << ", " << q.to.str()
         << ")";
}

/// Buffers that are needed at one time do not overlap. Those with one unit and base are compared
/// as numbers, with their neighbours only; lanes of different units must lie apart as a whole, or
/// else all pairs are looked at.
LogicalResult verifyApart(std::vector<Placed> &placed) {
  Facts facts;
  auto isApart = [&](Dim aFrom, Dim aTo, Dim bFrom, Dim bTo) {
    return facts.decide(Condition::le(aTo, bFrom)) == Truth::True ||
           facts.decide(Condition::le(bTo, aFrom)) == Truth::True;
  };
  llvm::sort(placed, [](const Placed &a, const Placed &b) { return a.first < b.first; });
  llvm::MapVector<std::pair<Dim, Dim>, std::pair<int64_t, int64_t>> hulls;
  std::vector<Lane> lanes;
  for (const Placed &p : placed) {
    Lane lane = laneOf(p);
    lanes.push_back(lane);
    auto [hull, isNew] = hulls.insert({{lane.unit, lane.base}, {lane.low, lane.high}});
    hull->second.first = std::min(hull->second.first, lane.low);
    hull->second.second = std::max(hull->second.second, lane.high);
  }
  bool lanesApart = true;
  for (auto a = hulls.begin(); a != hulls.end(); ++a)
    for (auto b = std::next(a); b != hulls.end(); ++b) {
      auto at = [](auto hull, int64_t units) {
        return hull->first.second + hull->first.first * units;
      };
      lanesApart &= isApart(at(a, a->second.first), at(a, a->second.second), at(b, b->second.first),
                            at(b, b->second.second));
    }

  std::map<std::pair<void *, void *>, std::map<int64_t, size_t>> live;
  std::multimap<int64_t, size_t> ends;
  auto laneMap = [&](const Lane &lane) -> std::map<int64_t, size_t> & {
    return live[{const_cast<void *>(lane.unit.getAttr().getAsOpaquePointer()),
                 const_cast<void *>(lane.base.getAttr().getAsOpaquePointer())}];
  };
  for (size_t n = 0; n < placed.size(); ++n) {
    const Placed &p = placed[n];
    while (!ends.empty() && ends.begin()->first < p.first) {
      laneMap(lanes[ends.begin()->second]).erase(lanes[ends.begin()->second].low);
      ends.erase(ends.begin());
    }
    auto &lane = laneMap(lanes[n]);
    auto next = lane.lower_bound(lanes[n].low);
    if (next != lane.end() && next->first < lanes[n].high)
      return overlap(p, placed[next->second]);
    if (next != lane.begin() && lanes[std::prev(next)->second].high > lanes[n].low)
      return overlap(p, placed[std::prev(next)->second]);
    if (!lanesApart)
      for (auto [end, other] : ends)
        if (&laneMap(lanes[other]) != &lane &&
            !isApart(p.from, p.to, placed[other].from, placed[other].to))
          return overlap(p, placed[other]);
    // A buffer of no bytes overlaps nothing.
    if (lanes[n].low < lanes[n].high) {
      lane[lanes[n].low] = n;
      ends.insert({p.last, n});
    }
  }
  return success();
}

/// Every buffer is within the arena, and apart from others while it is needed.
LogicalResult verifyPlanned(func::FuncOp func) {
  std::vector<Placed> placed;
  Block &block = func.front();
  llvm::DenseMap<Operation *, int64_t> position;
  int64_t next = 0;
  for (Operation &op : block)
    position[&op] = next++;
  // The last op that reaches the buffer, from its users backwards through views.
  llvm::DenseMap<Value, std::pair<int64_t, int64_t>> uses;
  for (Operation &op : llvm::reverse(block)) {
    int64_t at = position[&op];
    for (Value v : op.getOperands()) {
      auto [entry, isNew] = uses.insert({v, {at, at}});
      entry->second.first = std::min(entry->second.first, at);
      entry->second.second = std::max(entry->second.second, at);
      if (op.getNumResults() && isa<MemRefType>(v.getType()) && uses.count(op.getResult(0))) {
        auto inner = uses.lookup(op.getResult(0));
        auto &outer = uses[v];
        outer.second = std::max(outer.second, inner.second);
      }
    }
  }
  Dim arena;
  if (auto bytes = func->getAttrOfType<DimAttr>(arenaBytesAttrName))
    arena = Dim(bytes);
  Facts facts;
  for (Operation &op : block) {
    if (auto alloc = dyn_cast<memref::AllocOp>(op);
        alloc && !alloc.getType().getElementType().isInteger(8))
      return alloc.emitError("internal: quern-verify-stage: a buffer outside the arena");
    auto view = dyn_cast<memref::ViewOp>(op);
    if (!view)
      continue;
    Dim offset = asDim(view.getByteShift());
    Dim bytes = Dim::constant(func.getContext(), (view.getType().getElementTypeBitWidth() + 7) / 8);
    auto sizes = view.getSizes().begin();
    for (int64_t size : view.getType().getShape()) {
      Dim d =
          ShapedType::isDynamic(size) ? asDim(*sizes++) : Dim::constant(func.getContext(), size);
      bytes = d && bytes ? bytes * d : Dim();
    }
    if (!offset || !bytes)
      return view.emitError("internal: quern-verify-stage: a size or offset that is no expression");
    auto use = uses.find(view);
    if (use == uses.end())
      continue;
    placed.push_back({view, offset, offset + bytes, use->second.first, use->second.second});
    if (!arena || facts.decide(Condition::le(placed.back().to, arena)) != Truth::True)
      return view.emitError("internal: quern-verify-stage: a buffer that ends at ")
             << placed.back().to.str() << " in an arena of " << (arena ? arena.str() : "no")
             << " bytes";
  }
  return verifyApart(placed);
}

struct VerifyStage : quern::impl::QuernVerifyStageBase<VerifyStage> {
  using Base::Base;
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (func.isExternal())
      return markAllAnalysesPreserved();
    if (stage == "named") {
      if (failed(verifyNamed(func)))
        signalPassFailure();
      return markAllAnalysesPreserved();
    }
    if (!func.getBody().hasOneBlock()) {
      func.emitError("unsupported: quern-verify-stage of a function that is not one block");
      return signalPassFailure();
    }
    LogicalResult result = failure();
    if (stage == "inplace")
      result = success(succeeded(verifyTensors(func, "quern-verify-stage=stage=inplace")) &&
                       succeeded(InPlaceVerifier(func).run()));
    else if (stage == "bufferized")
      result = verifyBufferized(func);
    else if (stage == "planned")
      result = verifyPlanned(func);
    else
      func.emitError("invalid: expected stage to be named, inplace, bufferized or planned, got '")
          << stage << "'";
    if (failed(result))
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
