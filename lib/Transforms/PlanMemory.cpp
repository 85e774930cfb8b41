//===- PlanMemory.cpp - All buffers of a call in one arena ----------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A size is a number of bytes times an expression over the function's symbols. Buffers
// with the same expression are packed like numbers; those of different expressions
// lie in parts of the arena of their own. Within a part several orders of packing are
// tried and the smallest result kept.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "quern/Dialect/Kernel/IR/Kernel.h"
#include "quern/Dialect/Quern/IR/FunctionAttrs.h"
#include "quern/Dialect/Quern/IR/Quern.h"
#include "quern/Transforms/Dims.h"
#include "quern/Transforms/Passes.h"
#include "quern/Transforms/Report.h"
#include "llvm/ADT/MapVector.h"

namespace quern {
#define GEN_PASS_DEF_QUERNPLANMEMORY
#include "quern/Transforms/Passes.h.inc"
} // namespace quern

using namespace mlir;
using namespace quern;

namespace {

/// A buffer: needed from op `first` to op `last`, both included.
struct Buffer {
  memref::AllocOp alloc;
  int64_t first = 0, last = 0;
  int64_t units = 0; ///< size in units of its part
  int64_t offset = 0;
};

/// Buffers whose sizes are multiples of one expression.
struct Part {
  Dim unit;
  SmallVector<Buffer *> buffers;
  int64_t units = 0; ///< what the plan needs
};

/// Offsets for the buffers in this order, each as low as those placed before allow, into the gap
/// that it fills best (or the first). Returns the end of the last.
int64_t pack(ArrayRef<Buffer *> order, bool bestFit, SmallVectorImpl<int64_t> &offsets) {
  int64_t peak = 0;
  offsets.assign(order.size(), 0);
  SmallVector<std::pair<int64_t, int64_t>> taken;
  for (auto [i, buffer] : llvm::enumerate(order)) {
    taken.clear();
    for (size_t j = 0; j < i; ++j)
      if (order[j]->first <= buffer->last && buffer->first <= order[j]->last)
        taken.push_back({offsets[j], offsets[j] + order[j]->units});
    llvm::sort(taken);
    int64_t end = 0, best = -1, bestGap = 0;
    for (auto [from, to] : taken) {
      int64_t gap = from - end;
      if (gap >= buffer->units && (best < 0 || (bestFit && gap < bestGap))) {
        best = end;
        bestGap = gap;
      }
      end = std::max(end, to);
    }
    offsets[i] = best < 0 ? end : best;
    peak = std::max(peak, offsets[i] + buffer->units);
  }
  return peak;
}

/// Only equal sizes share: linear in the number of buffers, for very long functions.
int64_t packSlots(ArrayRef<Buffer *> order, SmallVectorImpl<int64_t> &offsets) {
  int64_t peak = 0;
  offsets.assign(order.size(), 0);
  // For each size the slots that are free, and those in use by when they become free.
  llvm::DenseMap<int64_t, SmallVector<int64_t>> open;
  std::multimap<int64_t, std::pair<int64_t, int64_t>> busy;
  for (auto [i, buffer] : llvm::enumerate(order)) {
    while (!busy.empty() && busy.begin()->first < buffer->first) {
      auto [units, offset] = busy.begin()->second;
      open[units].push_back(offset);
      busy.erase(busy.begin());
    }
    auto &slots = open[buffer->units];
    if (slots.empty()) {
      offsets[i] = peak;
      peak += buffer->units;
    } else {
      offsets[i] = slots.pop_back_val();
    }
    busy.insert({buffer->last, {buffer->units, offsets[i]}});
  }
  return peak;
}

void plan(Part &part) {
  using Order = llvm::function_ref<bool(Buffer *, Buffer *)>;
  auto byTime = [](Buffer *a, Buffer *b) { return a->first < b->first; };
  auto bySize = [](Buffer *a, Buffer *b) {
    return std::pair(-a->units, a->first) < std::pair(-b->units, b->first);
  };
  auto byArea = [](Buffer *a, Buffer *b) {
    return a->units * (a->last - a->first + 1) > b->units * (b->last - b->first + 1);
  };
  part.units = std::numeric_limits<int64_t>::max();
  auto keep = [&](ArrayRef<Buffer *> order, int64_t peak, ArrayRef<int64_t> offsets) {
    if (peak >= part.units)
      return;
    part.units = peak;
    for (auto [buffer, offset] : llvm::zip(order, offsets))
      buffer->offset = offset;
  };
  SmallVector<int64_t> offsets;
  SmallVector<Buffer *> order(part.buffers);
  llvm::stable_sort(order, byTime);
  int64_t peak = packSlots(order, offsets);
  keep(order, peak, offsets);
  // The other planners compare each buffer with all before it.
  if (part.buffers.size() > 600)
    return;
  for (Order less : {Order(bySize), Order(byTime), Order(byArea)}) {
    llvm::stable_sort(order, less);
    for (bool bestFit : {true, false}) {
      peak = pack(order, bestFit, offsets);
      keep(order, peak, offsets);
    }
  }
}

struct PlanMemory : quern::impl::QuernPlanMemoryBase<PlanMemory> {
  using Base::Base;

  /// The bytes of a buffer as an expression; null, after an error, when a size is not one.
  Dim bytesOf(memref::AllocOp alloc) {
    MemRefType type = alloc.getType();
    SmallVector<Dim> dims;
    auto sizes = alloc.getDynamicSizes().begin();
    for (int64_t size : type.getShape()) {
      if (!ShapedType::isDynamic(size)) {
        dims.push_back(Dim::constant(&getContext(), size));
        continue;
      }
      Value value = *sizes++;
      IntegerAttr constant;
      if (auto dim = value.getDefiningOp<kernel::DimOp>()) {
        dims.push_back(Dim(cast<DimAttr>(dim.getDim())));
      } else if (matchPattern(value, m_Constant(&constant))) {
        dims.push_back(Dim::constant(&getContext(), constant.getInt()));
      } else {
        alloc.emitError("unsupported: the size of a buffer is not an expression over the "
                        "function's symbols");
        return {};
      }
    }
    return getBufferBytes(dims, type.getElementType());
  }

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (func.isExternal())
      return;
    if (failed(verifyBuffers(func, getArgument())))
      return signalPassFailure();
    if (!func.getBody().hasOneBlock()) {
      func.emitError("unsupported: quern-plan-memory of a function that is not one block");
      return signalPassFailure();
    }
    Block &block = func.front();
    llvm::DenseMap<Operation *, int64_t> position;
    for (Operation &op : block)
      position.try_emplace(&op, position.size());

    MLIRContext *ctx = &getContext();
    std::deque<Buffer> buffers;
    llvm::MapVector<Dim, Part> parts;
    Dim separate = Dim::constant(ctx, 0);
    SmallVector<memref::AllocOp> allocs;
    func.walk([&](memref::AllocOp op) { allocs.push_back(op); });
    for (memref::AllocOp alloc : allocs) {
      if (alloc->getBlock() != &block) {
        alloc.emitError("unsupported: a buffer inside a region");
        return signalPassFailure();
      }
      Dim bytes = bytesOf(alloc);
      if (!bytes)
        return signalPassFailure();
      separate = separate + bytes;
      Buffer &buffer = buffers.emplace_back();
      buffer.alloc = alloc;
      buffer.first = std::numeric_limits<int64_t>::max();
      SmallVector<Value> names{alloc.getResult()};
      while (!names.empty()) {
        Value name = names.pop_back_val();
        for (Operation *user : name.getUsers()) {
          if (isa<ViewLikeOpInterface, kernel::ViewOp>(user))
            names.push_back(user->getResult(0));
          int64_t at = position.lookup(block.findAncestorOpInBlock(*user));
          buffer.first = std::min(buffer.first, at);
          buffer.last = std::max(buffer.last, at);
        }
      }
      if (names.empty() && buffer.last < buffer.first)
        buffer.first = buffer.last = position.lookup(alloc);
      // The constant factor apart: 64*B and 128*B are one and two units of B.
      Dim unit = bytes;
      int64_t factor = 1;
      if (bytes.isConstant()) {
        unit = Dim::constant(ctx, 1);
        factor = bytes.getConstant();
      } else if (bytes.kind() == DimKind::Product && bytes.operands()[0].isConstant()) {
        factor = bytes.operands()[0].getConstant();
        unit = Dim::product(ctx, bytes.operands().drop_front());
      }
      buffer.units = factor;
      Part &part = parts[unit];
      part.unit = unit;
      part.buffers.push_back(&buffer);
    }
    Dim total = Dim::constant(ctx, 0);
    SmallVector<Dim> starts;
    for (auto &entry : parts) {
      plan(entry.second);
      starts.push_back(total);
      total = total + entry.second.unit * entry.second.units;
    }
    if (total.isUnknown()) {
      func.emitError("unsupported: the bytes of all buffers as one expression: it has more than ")
          << Dim::maxNodes << " parts";
      return signalPassFailure();
    }
    func->setAttr(arenaBytesAttrName, total.getAttr());
    func->setAttr(unplannedBytesAttrName, separate.getAttr());
    if (isReporting(func))
      emitReport(func) << "arena " << total.str() << " bytes (one buffer each: " << separate.str()
                       << ")";
    if (buffers.empty())
      return;

    OpBuilder b = OpBuilder::atBlockBegin(&block);
    Location loc = func.getLoc();
    auto value = [&](Dim d) -> Value {
      if (d.isConstant())
        return arith::ConstantIndexOp::create(b, loc, d.getConstant());
      return kernel::DimOp::create(b, loc, b.getIndexType(), d.getAttr());
    };
    bool isStatic = total.isConstant();
    auto arenaType =
        MemRefType::get({isStatic ? total.getConstant() : ShapedType::kDynamic}, b.getI8Type());
    SmallVector<Value> sizes;
    if (!isStatic)
      sizes.push_back(value(total));
    Value arena =
        memref::AllocOp::create(b, loc, arenaType, sizes, b.getI64IntegerAttr(bufferAlignment));
    for (auto [start, entry] : llvm::zip(starts, parts))
      for (Buffer *buffer : entry.second.buffers) {
        b.setInsertionPoint(buffer->alloc);
        loc = buffer->alloc.getLoc();
        Value view = memref::ViewOp::create(b, loc, buffer->alloc.getType(), arena,
                                            value(start + entry.second.unit * buffer->offset),
                                            buffer->alloc.getDynamicSizes());
        buffer->alloc.replaceAllUsesWith(view);
        buffer->alloc.erase();
      }
  }
};

} // namespace
