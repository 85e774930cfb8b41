//===- RowReduction.cpp - A warp or a block for every row -----------------===//
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
// Which dims of an out are its row is not read off the types: the out's element is
// emitted once into a scratch function, and what its reductions are asked for tells.
//
//===----------------------------------------------------------------------===//

#include "KernelBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace quern::cuda {

int64_t getVectorWidth(BodyInfo &info);

namespace {

/// A combiner of two partial results.
struct Combiner {
  Operation *op;
  gpu::AllReduceOperation kind;
  TypedAttr neutral;
};

struct Reduction {
  linalg::LinalgOp op;
  unsigned level; ///< one more than that of the reductions it needs
  SmallVector<Combiner> combiners;
  SmallVector<Dim> columns; ///< its reduction loops
};

struct RowOut {
  Out out;
  SmallVector<bool> isRow; ///< of its dims
  SmallVector<Dim> columns;
};

struct Plan {
  SmallVector<Reduction> reductions; ///< in order
  SmallVector<Dim> rows;
  SmallVector<RowOut> outs;
};

} // namespace

static TypedAttr floatAttr(Type type, bool infinity, bool negative) {
  const llvm::fltSemantics &semantics = cast<FloatType>(type).getFloatSemantics();
  return FloatAttr::get(type, infinity ? APFloat::getInf(semantics, negative)
                                       : APFloat::getZero(semantics, negative));
}

/// How partial results of an accumulator are joined: the one op that takes it.
static std::optional<Combiner> matchCombiner(linalg::LinalgOp op, unsigned init) {
  BlockArgument accumulator = op.getRegionOutputArgs()[init];
  if (!accumulator.hasOneUse())
    return std::nullopt;
  Operation *user = *accumulator.getUsers().begin();
  Value yielded = op.getBlock()->getTerminator()->getOperand(init);
  if (yielded.getDefiningOp() != user || user->getNumOperands() != 2)
    return std::nullopt;
  Type type = accumulator.getType();
  auto integer = [&](APInt value) { return TypedAttr(IntegerAttr::get(type, value)); };
  unsigned bits = type.isIntOrFloat() ? type.getIntOrFloatBitWidth() : 64;
  using Kind = gpu::AllReduceOperation;
  using Result = std::optional<Combiner>;
  return llvm::TypeSwitch<Operation *, Result>(user)
      .Case([&](arith::AddFOp) { return Combiner{user, Kind::ADD, floatAttr(type, false, false)}; })
      .Case([&](arith::MulFOp) {
        return Combiner{user, Kind::MUL, TypedAttr(FloatAttr::get(type, 1.0))};
      })
      .Case([&](arith::MaximumFOp) {
        return Combiner{user, Kind::MAXIMUMF, floatAttr(type, true, true)};
      })
      .Case([&](arith::MinimumFOp) {
        return Combiner{user, Kind::MINIMUMF, floatAttr(type, true, false)};
      })
      .Case([&](arith::MaxNumFOp) {
        return Combiner{user, Kind::MAXNUMF, floatAttr(type, true, true)};
      })
      .Case([&](arith::MinNumFOp) {
        return Combiner{user, Kind::MINNUMF, floatAttr(type, true, false)};
      })
      .Case([&](arith::AddIOp) { return Combiner{user, Kind::ADD, integer(APInt(bits, 0))}; })
      .Case([&](arith::MulIOp) { return Combiner{user, Kind::MUL, integer(APInt(bits, 1))}; })
      .Case([&](arith::MaxSIOp) {
        return Combiner{user, Kind::MAXSI, integer(APInt::getSignedMinValue(bits))};
      })
      .Case([&](arith::MinSIOp) {
        return Combiner{user, Kind::MINSI, integer(APInt::getSignedMaxValue(bits))};
      })
      .Case([&](arith::MaxUIOp) { return Combiner{user, Kind::MAXUI, integer(APInt(bits, 0))}; })
      .Case([&](arith::MinUIOp) {
        return Combiner{user, Kind::MINUI, integer(APInt::getAllOnes(bits))};
      })
      .Case([&](arith::AndIOp) {
        return Combiner{user, Kind::AND, integer(APInt::getAllOnes(bits))};
      })
      .Case([&](arith::OrIOp) { return Combiner{user, Kind::OR, integer(APInt(bits, 0))}; })
      .Case([&](arith::XOrIOp) { return Combiner{user, Kind::XOR, integer(APInt(bits, 0))}; })
      .Default([](Operation *) { return std::nullopt; });
}

static SmallVector<Dim> withoutOnes(ArrayRef<Dim> sizes) {
  SmallVector<Dim> result;
  for (Dim d : sizes)
    if (!d.isConstant(1))
      result.push_back(d);
  return result;
}

/// The dims of an out that its reductions are asked by. Nothing when it needs none.
static std::optional<SmallVector<bool>> findRowDims(BodyInfo &info, const Out &out) {
  KernelBuilder scratch(info, 32);
  SmallVector<Value> indices;
  for (size_t i = 0; i < out.sizes.size(); ++i)
    indices.push_back(
        scratch.function.getBody().front().addArgument(scratch.b.getIndexType(), scratch.loc));
  llvm::SetVector<Value> asked;
  bool any = false;
  scratch.body->onReduction = [&](OpResult result, ArrayRef<Value> at) -> Value {
    any = true;
    for (Value index : at)
      for (Value source : scratch.indexing->sources(index))
        asked.insert(source);
    return arith::ConstantOp::create(
        scratch.b, scratch.loc,
        scratch.b.getZeroAttr(cast<RankedTensorType>(result.getType()).getElementType()));
  };
  scratch.body->element(out.value, indices);
  if (!any)
    return std::nullopt;
  SmallVector<bool> isRow;
  for (auto [index, size] : llvm::zip(indices, out.sizes))
    isRow.push_back(asked.contains(index) || size.isConstant(1));
  return isRow;
}

static unsigned levelOf(Value value, const llvm::DenseMap<Operation *, unsigned> &levels,
                        llvm::DenseMap<Value, unsigned> &memo) {
  Operation *op = value.getDefiningOp();
  if (!op || !isa<RankedTensorType>(value.getType()))
    return 0;
  if (auto found = levels.find(op); found != levels.end())
    return found->second;
  if (auto known = memo.find(value); known != memo.end())
    return known->second;
  unsigned level = 0;
  for (Value operand : op->getOperands())
    level = std::max(level, levelOf(operand, levels, memo));
  op->walk([&](Operation *inner) { // tensors that regions extract from
    for (Value operand : inner->getOperands())
      if (inner != op && operand.getParentRegion() != inner->getParentRegion())
        level = std::max(level, levelOf(operand, levels, memo));
  });
  return memo[value] = level;
}

static std::optional<Plan> makePlan(BodyInfo &info) {
  Plan plan;
  MLIRContext *context = info.kernel.getContext();
  llvm::DenseMap<Operation *, unsigned> levels;
  for (auto op : info.block().getOps<linalg::LinalgOp>()) {
    if (!isReduction(op))
      continue;
    Reduction reduction{op, 0, {}, {}};
    for (unsigned i = 0; i < op.getNumDpsInits(); ++i) {
      std::optional<Combiner> combiner = matchCombiner(op, i);
      if (!combiner)
        return std::nullopt;
      reduction.combiners.push_back(*combiner);
    }
    llvm::DenseMap<Value, unsigned> memo;
    for (Value operand : op->getOperands())
      reduction.level = std::max(reduction.level, levelOf(operand, levels, memo));
    levels[op] = ++reduction.level;
    SmallVector<Dim> loops = info.loopSizes(op);
    for (auto [size, iterator] : llvm::zip(loops, op.getIteratorTypesArray()))
      if (iterator == utils::IteratorType::reduction)
        reduction.columns.push_back(size);
    SmallVector<Dim> rows = withoutOnes(info.sizes(op->getResult(0)));
    if (plan.reductions.empty())
      plan.rows = rows;
    else if (Dim::product(context, rows) != Dim::product(context, plan.rows))
      return std::nullopt;
    plan.reductions.push_back(std::move(reduction));
  }
  if (plan.reductions.empty())
    return std::nullopt;

  SmallVector<Out> outs = getOuts(info);
  SmallVector<std::optional<SmallVector<bool>>> rowDims;
  for (const Out &out : outs)
    rowDims.push_back(findRowDims(info, out));
  for (auto [i, out] : llvm::enumerate(outs)) {
    // An out without reductions goes with one of its shape.
    for (size_t j = 0; j < outs.size() && !rowDims[i]; ++j)
      if (outs[j].sizes == out.sizes)
        rowDims[i] = rowDims[j];
    if (!rowDims[i])
      return std::nullopt;
    RowOut row{out, *rowDims[i], {}};
    SmallVector<Dim> rows;
    for (auto [size, isRow] : llvm::zip(out.sizes, row.isRow))
      (isRow ? rows : row.columns).push_back(size);
    if (Dim::product(context, rows) != Dim::product(context, plan.rows))
      return std::nullopt;
    plan.outs.push_back(std::move(row));
  }
  // In place: one pass must write all results, after all reductions.
  if (!info.kernel.getShare().empty())
    for (const RowOut &out : plan.outs)
      if (out.columns != plan.outs.front().columns)
        return std::nullopt;
  return plan;
}

namespace {

/// Emits one plan with a given vector width.
class RowEmitter {
public:
  RowEmitter(BodyInfo &info, const Plan &plan, int64_t width)
      : info(info), plan(plan), width(width), k(info, threadsFor(plan)), indexing(*k.indexing),
        context(info.kernel.getContext()) {}

  ScheduledModule emit();

private:
  static constexpr int blockThreads = 128;
  static int threadsFor(const Plan &) { return blockThreads; }
  /// Short rows take a warp, so that a block has four.
  bool isWarpRow() const {
    Dim columns = Dim::product(context, plan.reductions.front().columns);
    return columns.isConstant() && columns.getConstant() <= 1024;
  }

  /// Goes over `columns` with the row's team: calls `body` for every column.
  SmallVector<Value> forColumns(ArrayRef<Dim> columns, ValueRange carried,
                                function_ref<SmallVector<Value>(Value, ValueRange)> body);
  void reduceLevel(ArrayRef<const Reduction *> reductions);
  SmallVector<Value> rowIndices(ArrayRef<Dim> sizes) { return indexing.delinearize(row, sizes); }

  BodyInfo &info;
  const Plan &plan;
  int64_t width;
  KernelBuilder k;
  Indexing &indexing;
  MLIRContext *context;
  Value row, member;
  int64_t team = 0;
  bool failed = false;
};

} // namespace

SmallVector<Value>
RowEmitter::forColumns(ArrayRef<Dim> columns, ValueRange carried,
                       function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  Dim count = Dim::product(context, columns);
  Value from = k.name(indexing.mul(member, indexing.constant(width)), "start");
  scf::ForOp loop =
      k.enterFor(from, indexing.size(count), indexing.constant(team * width), "column", carried);
  Value first = loop.getInductionVar();
  bool exact = count.isConstant() && count.getConstant() % width == 0;
  Value left = exact ? Value() : k.name(indexing.sub(indexing.size(count), first), "left");
  SmallVector<Value> next = k.body->forLanes(first, left, width, loop.getRegionIterArgs(), body);
  if (!carried.empty())
    scf::YieldOp::create(k.b, k.loc, next);
  k.b.setInsertionPointAfter(loop);
  return llvm::to_vector_of<Value>(loop.getResults());
}

void RowEmitter::reduceLevel(ArrayRef<const Reduction *> reductions) {
  // The partial results of a thread.
  SmallVector<Value> carried;
  for (const Reduction *reduction : reductions)
    for (const Combiner &combiner : reduction->combiners)
      carried.push_back(arith::ConstantOp::create(k.b, k.loc, combiner.neutral));
  auto columns = reductions.front()->columns;
  SmallVector<Value> partial = forColumns(columns, carried, [&](Value column, ValueRange current) {
    SmallVector<Value> next, columnIndices = indexing.delinearize(column, columns);
    for (const Reduction *reduction : reductions) {
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
      size_t count = reduction->combiners.size();
      llvm::append_range(next,
                         k.body->region(op, loops, llvm::to_vector(current.take_front(count))));
      current = current.drop_front(count);
    }
    return next;
  });

  // Joined over the team, then with what the reduction starts from.
  size_t at = 0;
  for (const Reduction *reduction : reductions)
    for (auto [i, combiner] : llvm::enumerate(reduction->combiners)) {
      Value value = partial[at++];
      auto kind = gpu::AllReduceOperationAttr::get(context, combiner.kind);
      if (isWarpRow())
        value = gpu::SubgroupReduceOp::create(k.b, k.named("total"), value, combiner.kind, true);
      else
        value = gpu::AllReduceOp::create(k.b, k.named("total"), value, kind, true);
      SmallVector<Dim> sizes = info.sizes(reduction->op->getResult(i));
      SmallVector<Value> indices = rowIndices(sizes);
      for (auto [index, size] : llvm::zip(indices, sizes))
        if (size.isConstant(1))
          index = indexing.constant(0);
      linalg::LinalgOp op = reduction->op;
      Value init = op.getDpsInits()[i];
      auto fill = init.getDefiningOp<linalg::FillOp>();
      auto constant = fill ? fill.value().getDefiningOp<arith::ConstantOp>() : nullptr;
      if (!constant || constant.getValue() != combiner.neutral) {
        IRMapping map;
        for (Value operand : combiner.op->getOperands())
          map.map(operand, value);
        map.map(op.getRegionOutputArgs()[i], k.body->element(init, indices));
        Operation *joined = k.b.clone(*combiner.op, map);
        joined->setLoc(k.loc);
        value = joined->getResult(0);
      }
      k.body->pin(reduction->op->getResult(i), indices, value);
    }
}

ScheduledModule RowEmitter::emit() {
  Dim rows = Dim::product(context, plan.rows);
  team = isWarpRow() ? 32 : blockThreads;
  int64_t rowsPerBlock = blockThreads / team;
  if (rowsPerBlock > 1) {
    Value warp = k.name(indexing.div(k.thread, indexing.constant(32)), "warp");
    member = k.name(indexing.rem(k.thread, indexing.constant(32)), "laneId");
    row = k.name(indexing.add(indexing.mul(k.block, indexing.constant(rowsPerBlock)), warp), "row");
    // The same for a whole warp, and no barrier follows.
    k.enterIf(k.lessThan(row, indexing.size(rows)));
  } else {
    row = k.block;
    member = k.thread;
  }
  k.body->onReduction = [&](OpResult result, ArrayRef<Value>) -> Value {
    failed = true; // not of this row
    return arith::ConstantOp::create(
        k.b, k.loc, k.b.getZeroAttr(cast<RankedTensorType>(result.getType()).getElementType()));
  };

  unsigned levels = 0;
  for (const Reduction &reduction : plan.reductions)
    levels = std::max(levels, reduction.level);
  for (unsigned level = 1; level <= levels; ++level) {
    // Those over the same columns share a loop.
    SmallVector<SmallVector<const Reduction *>> loops;
    for (const Reduction &reduction : plan.reductions) {
      if (reduction.level != level)
        continue;
      auto same =
          llvm::find_if(loops, [&](auto &l) { return l.front()->columns == reduction.columns; });
      if (same == loops.end())
        loops.push_back({&reduction});
      else
        same->push_back(&reduction);
    }
    for (ArrayRef<const Reduction *> loop : loops)
      reduceLevel(loop);
  }

  // Other threads of the team may still read what the results overwrite. (A block's threads
  // have met at the barrier of the last reduction.)
  if (!info.kernel.getShare().empty() && isWarpRow())
    gpu::BarrierOp::create(k.b, k.loc)->setAttr(warpAttrName, k.b.getUnitAttr());
  size_t reductionLoads = k.body->loads.size();
  SmallVector<SmallVector<const RowOut *>> passes;
  for (const RowOut &out : plan.outs) {
    auto same = llvm::find_if(passes, [&](auto &p) { return p.front()->columns == out.columns; });
    if (same == passes.end())
      passes.push_back({&out});
    else
      same->push_back(&out);
  }
  for (ArrayRef<const RowOut *> pass : passes) {
    auto write = [&](Value column, ValueRange) {
      SmallVector<SmallVector<Value>> places;
      SmallVector<Value> values;
      for (const RowOut *out : pass) {
        SmallVector<Dim> rowSizes;
        for (auto [size, isRow] : llvm::zip(out->out.sizes, out->isRow))
          if (isRow)
            rowSizes.push_back(size);
        SmallVector<Value> rowIndex = rowIndices(rowSizes), indices;
        SmallVector<Value> columnIndex = out->columns.empty()
                                             ? SmallVector<Value>()
                                             : indexing.delinearize(column, out->columns);
        unsigned nextRow = 0, nextColumn = 0;
        for (bool isRow : out->isRow)
          indices.push_back(isRow ? rowIndex[nextRow++] : columnIndex[nextColumn++]);
        values.push_back(k.body->element(out->out.value, indices));
        places.push_back(indices);
      }
      for (auto [out, indices, value] : llvm::zip(pass, places, values)) {
        failed |= !k.body->isReadInPlace(out->out.argument, indices, reductionLoads);
        k.body->store(out->out.argument, indices, value);
      }
      return SmallVector<Value>();
    };
    if (!pass.front()->columns.empty()) {
      forColumns(pass.front()->columns, {}, write);
      continue;
    }
    scf::IfOp one = k.enterIf(
        arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::eq, member, indexing.constant(0)));
    write({}, {});
    k.b.setInsertionPointAfter(one);
  }
  if (failed || (width > 1 && !k.body->vectorised))
    return {};
  Dim blocks = Dim::ceilDiv(rows, Dim::constant(context, rowsPerBlock));
  return k.finish(blocks, "row reduction, a " + Twine(isWarpRow() ? "warp" : "block") + " a row, " +
                              Twine(width) + " elements a step");
}

ScheduledModule scheduleRowReduction(BodyInfo &info, const CudaScheduleOptions &) {
  std::optional<Plan> plan = makePlan(info);
  if (!plan)
    return {};
  int64_t width = getVectorWidth(info);
  ScheduledModule module;
  if (width > 1)
    module = RowEmitter(info, *plan, width).emit();
  return module ? std::move(module) : RowEmitter(info, *plan, 1).emit();
}

} // namespace quern::cuda
