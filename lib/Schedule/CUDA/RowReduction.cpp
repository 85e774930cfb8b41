//===- RowReduction.cpp - A team of threads for every row -----------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Softmax, normalisations, losses, sums over rows: any chain of reductions over the
// same rows with element-wise work between. The threads of a row's team go over the
// row once for each level of reductions that depend on each other, and once for the
// results; what lies between is computed anew each time, from memory that is in cache
// by then.
//
// The order of a reduction is part of what it means (docs/numerics.md), the same on every
// target: partial result p takes the elements p, p + 64, p + 128, … in order, and the 64
// are joined pairwise, p with p + 32 first. So a team is 64 / width consecutive threads of
// a warp, of which each keeps `width` partial results.
//
//===----------------------------------------------------------------------===//

#include "RowPlan.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace quern::cuda {

int64_t getVectorWidth(BodyInfo &info);

namespace {

/// Emits one plan with a given vector width.
class RowEmitter {
public:
  RowEmitter(BodyInfo &info, const RowPlan &plan, int64_t width)
      : info(info), plan(plan), width(width), team(numParts / width), k(info, blockThreads),
        indexing(*k.indexing), context(info.kernel.getContext()) {}

  ScheduledModule emit();

private:
  static constexpr int blockThreads = 128;

  /// Goes over `columns` with the row's team: calls `body` for every column.
  void forColumns(ArrayRef<Dim> columns, function_ref<void(Value)> body);
  void reduceLevel(ArrayRef<const RowReduction *> reductions);
  /// The thread's partial results of one accumulator, for all lanes.
  Value makePartials(const Combiner &combiner);
  /// Joined over lanes and threads: the same in every thread of the team.
  Value joinPartials(const Combiner &combiner, Value partials);
  SmallVector<Value> rowIndices(ArrayRef<Dim> sizes) { return indexing.delinearize(row, sizes); }

  BodyInfo &info;
  const RowPlan &plan;
  int64_t width, team; ///< lanes of a thread, threads of a row
  KernelBuilder k;
  Indexing &indexing;
  MLIRContext *context;
  Value row, member;
  bool failed = false;
};

} // namespace

void RowEmitter::forColumns(ArrayRef<Dim> columns, function_ref<void(Value)> body) {
  Dim count = Dim::product(context, columns);
  Value from = k.name(indexing.mul(member, indexing.constant(width)), "start");
  scf::ForOp loop = k.enterFor(from, indexing.size(count), indexing.constant(numParts), "column");
  Value first = loop.getInductionVar();
  bool exact = count.isConstant() && count.getConstant() % width == 0;
  Value left = exact ? Value() : k.name(indexing.sub(indexing.size(count), first), "left");
  k.body->forLanes(first, left, width, {}, [&](Value column, ValueRange) {
    body(column);
    return SmallVector<Value>();
  });
  k.b.setInsertionPointAfter(loop);
}

Value RowEmitter::makePartials(const Combiner &combiner) {
  Type type = combiner.neutral.getType();
  Value array = memref::AllocaOp::create(k.b, k.named("partial"), MemRefType::get({width}, type));
  Value neutral = arith::ConstantOp::create(k.b, k.loc, combiner.neutral);
  Value all = vector::BroadcastOp::create(k.b, k.loc, VectorType::get({width}, type), neutral);
  vector::StoreOp::create(k.b, k.loc, all, array, indexing.constant(0));
  return array;
}

Value RowEmitter::joinPartials(const Combiner &combiner, Value partials) {
  auto type = VectorType::get({width}, combiner.neutral.getType());
  Value mine = vector::LoadOp::create(k.b, k.loc, type, partials, indexing.constant(0));
  Value lanes = gpu::SubgroupReduceOp::create(k.b, k.named("lanes"), mine, combiner.kind,
                                              /*uniform=*/false, /*cluster_size=*/team);
  SmallVector<Value> values;
  for (int64_t lane = 0; lane < width; ++lane)
    values.push_back(vector::ExtractOp::create(k.b, k.loc, lanes, lane));
  for (int64_t half = width / 2; half; half /= 2)
    for (int64_t lane = 0; lane < half; ++lane)
      values[lane] = combiner.join(k.b, values[lane], values[lane + half]);
  return k.name(values.front(), "total");
}

void RowEmitter::reduceLevel(ArrayRef<const RowReduction *> reductions) {
  SmallVector<Value> partials;
  for (const RowReduction *reduction : reductions)
    for (const Combiner &combiner : reduction->combiners)
      partials.push_back(makePartials(combiner));
  auto columns = reductions.front()->columns;
  forColumns(columns, [&](Value column) {
    SmallVector<Value> columnIndices = indexing.delinearize(column, columns);
    Value lane = k.body->lanes->loop.getInductionVar();
    k.body->lanes->needsGuard = true; // what is past the end is no part of the sum
    ArrayRef<Value> arrays = partials;
    for (const RowReduction *reduction : reductions) {
      linalg::LinalgOp op = reduction->op;
      SmallVector<Value> loops, rowIndex = rowIndices(info.sizes(op->getResult(0)));
      AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
      loops.resize(op.getNumLoops());
      for (auto [expr, index] : llvm::zip(map.getResults(), rowIndex))
        if (auto dim = dyn_cast<AffineDimExpr>(expr))
          loops[dim.getPosition()] = index;
      unsigned nextColumn = 0;
      for (Value &loop : loops)
        if (!loop)
          loop = columnIndices[nextColumn++];
      SmallVector<Value> current;
      for (Value array : arrays.take_front(reduction->combiners.size()))
        current.push_back(memref::LoadOp::create(k.b, k.loc, array, lane));
      for (auto [array, next] : llvm::zip(arrays, k.body->region(op, loops, current)))
        memref::StoreOp::create(k.b, k.loc, next, array, lane);
      arrays = arrays.drop_front(reduction->combiners.size());
    }
  });

  // Joined over the team, then with what the reduction starts from.
  size_t at = 0;
  for (const RowReduction *reduction : reductions)
    for (auto [i, combiner] : llvm::enumerate(reduction->combiners)) {
      Value value = joinPartials(combiner, partials[at++]);
      SmallVector<Dim> sizes = info.sizes(reduction->op->getResult(i));
      SmallVector<Value> indices = rowIndices(sizes);
      for (auto [index, size] : llvm::zip(indices, sizes))
        if (size.isConstant(1))
          index = indexing.constant(0);
      linalg::LinalgOp op = reduction->op;
      Value init = op.getDpsInits()[i];
      auto fill = init.getDefiningOp<linalg::FillOp>();
      auto constant = fill ? fill.value().getDefiningOp<arith::ConstantOp>() : nullptr;
      if (!constant || constant.getValue() != combiner.neutral)
        value = combiner.join(k.b, k.body->element(init, indices), value);
      k.body->pin(reduction->op->getResult(i), indices, value);
    }
}

ScheduledModule RowEmitter::emit() {
  Dim rows = Dim::product(context, plan.rows);
  int64_t rowsPerBlock = blockThreads / team;
  member = k.name(indexing.rem(k.thread, indexing.constant(team)), "member");
  row = k.name(indexing.add(indexing.mul(k.block, indexing.constant(rowsPerBlock)),
                            indexing.div(k.thread, indexing.constant(team))),
               "row");
  // The same for a whole team.
  k.enterIf(k.lessThan(row, indexing.size(rows)));
  k.body->onReduction = [&](OpResult result, ArrayRef<Value>) -> Value {
    failed = true; // not of this row
    return arith::ConstantOp::create(
        k.b, k.loc, k.b.getZeroAttr(cast<RankedTensorType>(result.getType()).getElementType()));
  };

  unsigned levels = 0;
  for (const RowReduction &reduction : plan.reductions)
    levels = std::max(levels, reduction.level);
  for (unsigned level = 1; level <= levels; ++level) {
    // Those over the same columns share a loop.
    SmallVector<SmallVector<const RowReduction *>> loops;
    for (const RowReduction &reduction : plan.reductions) {
      if (reduction.level != level)
        continue;
      auto same =
          llvm::find_if(loops, [&](auto &l) { return l.front()->columns == reduction.columns; });
      if (same == loops.end())
        loops.push_back({&reduction});
      else
        same->push_back(&reduction);
    }
    for (ArrayRef<const RowReduction *> loop : loops)
      reduceLevel(loop);
  }

  for (ArrayRef<RowOut> pass : plan.passes) {
    // Other threads of the team may still read, in a reduction, what the results overwrite.
    if (mayShare(info, pass))
      gpu::BarrierOp::create(k.b, k.loc)->setAttr(teamAttrName, k.b.getI64IntegerAttr(team));
    size_t firstLoad = k.body->loads.size();
    auto write = [&](Value column) { failed |= !writeOuts(k, pass, row, column, firstLoad); };
    if (!pass.front().columns.empty()) {
      forColumns(pass.front().columns, write);
      continue;
    }
    scf::IfOp one = k.enterIf(
        arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::eq, member, indexing.constant(0)));
    write({});
    k.b.setInsertionPointAfter(one);
  }
  if (failed)
    return {};
  Dim blocks = Dim::ceilDiv(rows, Dim::constant(context, rowsPerBlock));
  return k.finish(blocks, "row reduction, " + Twine(team) + " threads a row, " + Twine(width) +
                              " elements a thread" + (k.body->vectorised ? "" : ", one by one"));
}

ScheduledModule scheduleRowReduction(BodyInfo &info, const CudaScheduleOptions &) {
  std::optional<RowPlan> plan = RowPlan::make(info);
  if (!plan || llvm::any_of(plan->reductions, [](const RowReduction &r) {
        return r.combiners.empty() || r.order == SumOrder::Sequence;
      }))
    return {};
  // Threads that go along a row that does not lie together read badly: only for the order's sake.
  if (info.kernel.getKind() != "row_reduction" &&
      llvm::none_of(plan->reductions,
                    [](const RowReduction &r) { return r.order == SumOrder::Parts; }))
    return {};
  return RowEmitter(info, *plan, std::max<int64_t>(2, getVectorWidth(info))).emit();
}

} // namespace quern::cuda
