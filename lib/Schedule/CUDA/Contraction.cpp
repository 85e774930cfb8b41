//===- Contraction.cpp - Tiled matrix products ----------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// One product-sum of two operands, batched, with whatever element-wise work comes
// before and after it. A block computes a 64x64 tile of the result, a thread 4x4 of
// it, in steps of 16 through shared memory. Operands come through the body, so they
// may be transposed or computed; results go through it too (bias, activation, …).
//
//===----------------------------------------------------------------------===//

#include "KernelBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace quern::cuda {

namespace {

constexpr int64_t tile = 64, depth = 16, perThread = 4, threads = 256;
/// One column more than a tile's, in fours: transposing stores hit fewer banks twice.
constexpr int64_t paddedTile = tile + 4;

/// The loops of a product-sum by what they run over.
struct Loops {
  linalg::LinalgOp op;
  SmallVector<unsigned> batch, rows, columns, sum;
  SmallVector<Dim> sizes;

  SmallVector<Dim> select(ArrayRef<unsigned> which) const {
    SmallVector<Dim> result;
    for (unsigned i : which)
      result.push_back(sizes[i]);
    return result;
  }
};

} // namespace

static bool comesFrom(Value value, BlockArgument argument) {
  while (value != argument) {
    Operation *op = value.getDefiningOp();
    if (!op || op->getNumOperands() != 1)
      return false;
    value = op->getOperand(0);
  }
  return true;
}

/// accumulator + cast(a) * cast(b), where zeros add nothing.
static bool isProductSum(linalg::LinalgOp op) {
  Block &block = *op.getBlock();
  if (op.getNumDpsInputs() != 2 || op.getNumDpsInits() != 1)
    return false;
  Operation *sum = block.getTerminator()->getOperand(0).getDefiningOp();
  if (!isa_and_nonnull<arith::AddFOp, arith::AddIOp>(sum))
    return false;
  BlockArgument accumulator = block.getArgument(2);
  if (!accumulator.hasOneUse())
    return false;
  Value other = sum->getOperand(0) == accumulator   ? sum->getOperand(1)
                : sum->getOperand(1) == accumulator ? sum->getOperand(0)
                                                    : Value();
  Operation *product = other ? other.getDefiningOp() : nullptr;
  if (!isa_and_nonnull<arith::MulFOp, arith::MulIOp>(product))
    return false;
  Value a = product->getOperand(0), b = product->getOperand(1);
  return (comesFrom(a, block.getArgument(0)) && comesFrom(b, block.getArgument(1))) ||
         (comesFrom(a, block.getArgument(1)) && comesFrom(b, block.getArgument(0)));
}

static std::optional<Loops> matchLoops(BodyInfo &info) {
  Loops loops;
  for (auto op : info.block().getOps<linalg::LinalgOp>())
    if (isReduction(op)) {
      if (loops.op)
        return std::nullopt;
      loops.op = op;
    }
  linalg::LinalgOp op = loops.op;
  if (!op || !isProductSum(op))
    return std::nullopt;
  loops.sizes = info.loopSizes(op);
  for (AffineMap map : op.getIndexingMapsArray())
    if (!map.isProjectedPermutation())
      return std::nullopt;
  auto has = [&](unsigned operand, unsigned loop) {
    return op.getIndexingMapsArray()[operand].isFunctionOfDim(loop);
  };
  for (unsigned i = 0; i < op.getNumLoops(); ++i) {
    bool a = has(0, i), b = has(1, i), result = has(2, i);
    if (a && b)
      (result ? loops.batch : loops.sum).push_back(i);
    else if (a && result)
      loops.rows.push_back(i);
    else if (b && result)
      loops.columns.push_back(i);
    else
      return std::nullopt;
  }
  return loops;
}

namespace {

class ContractionEmitter {
public:
  ContractionEmitter(BodyInfo &info, const Loops &loops, bool strict)
      : info(info), loops(loops), strict(strict), k(info, threads), indexing(*k.indexing),
        context(info.kernel.getContext()) {}

  ScheduledModule emit();

private:
  Dim product(ArrayRef<unsigned> which) { return Dim::product(context, loops.select(which)); }
  void place(SmallVector<Value> &indices, ArrayRef<unsigned> which, Value number) {
    SmallVector<Value> parts = indexing.delinearize(number, loops.select(which));
    for (auto [loop, part] : llvm::zip(which, parts))
      indices[loop] = part;
  }
  void loadTile(unsigned operand, Value shared, Value origin, ArrayRef<unsigned> outer, Value step);
  Value accumulate(Value a, Value b, Value sum);
  bool writeResults(Value sums, Value row, Value column);

  BodyInfo &info;
  const Loops &loops;
  bool strict;
  KernelBuilder k;
  Indexing &indexing;
  MLIRContext *context;
  Value batch;
};

} // namespace

/// Fills a tile (depth x tile) of one operand; what is past its end is zero. A thread
/// brings 4 elements that lie together: along the sum or along the rows or columns.
void ContractionEmitter::loadTile(unsigned operand, Value shared, Value origin,
                                  ArrayRef<unsigned> outer, Value step) {
  linalg::LinalgOp op = loops.op;
  Value tensor = op->getOperand(operand);
  AffineMap map = op.getIndexingMapsArray()[operand];
  bool alongSum = false;
  if (map.getNumResults())
    if (auto last = dyn_cast<AffineDimExpr>(map.getResult(map.getNumResults() - 1)))
      alongSum = llvm::is_contained(loops.sum, last.getPosition());

  Value four = indexing.constant(perThread);
  int64_t vectors = (alongSum ? depth : tile) / perThread;
  Value along = indexing.mul(indexing.rem(k.thread, indexing.constant(vectors)), four);
  Value across = indexing.div(k.thread, indexing.constant(vectors));
  k.name(along, alongSum ? "inner" : "outer");
  k.name(across, alongSum ? "outer" : "inner");
  Value first = indexing.add(alongSum ? step : origin, along);
  Value fixed = indexing.add(alongSum ? origin : step, across);
  Value end = indexing.size(product(alongSum ? loops.sum : outer));
  Value fixedEnd = indexing.size(product(alongSum ? outer : loops.sum));
  Value left =
      arith::SelectOp::create(k.b, k.named("left"), k.lessThan(fixed, fixedEnd),
                              arith::SubIOp::create(k.b, k.loc, end, first), indexing.constant(0));
  Type type = cast<RankedTensorType>(tensor.getType()).getElementType();
  // A vector load answers zeros past the end; anything else is not done there.
  bool direct = isa<BlockArgument>(tensor);
  k.body->forLanes(first, {}, perThread, {}, [&](Value index, ValueRange) {
    // The lanes that exist are fewer than the lane loop's: `left` tells the loads.
    Lanes &lanes = *k.body->lanes;
    lanes.left = left;
    lanes.mayBeEmpty = true;
    SmallVector<Value> at(op.getNumLoops());
    place(at, loops.batch, batch);
    place(at, loops.sum, alongSum ? index : fixed);
    place(at, outer, alongSum ? fixed : index);
    SmallVector<Value> indices;
    for (AffineExpr expr : map.getResults())
      indices.push_back(indexing.apply(expr, at));

    Block *block = k.b.getInsertionBlock();
    Operation *before = &block->back() == block->getTerminator()
                            ? block->getTerminator()->getPrevNode()
                            : &block->back();
    Value value = k.body->element(tensor, indices);
    Value zero = arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(type));
    Value exists = k.lessThan(lanes.loop.getInductionVar(), left);
    if (lanes.needsGuard) {
      auto guard = scf::IfOp::create(k.b, k.loc, type, exists, true);
      Block *then = guard.thenBlock();
      then->getOperations().splice(then->end(), block->getOperations(),
                                   std::next(before->getIterator()),
                                   zero.getDefiningOp()->getIterator());
      OpBuilder::InsertionGuard insertion(k.b);
      k.b.setInsertionPointToEnd(then);
      scf::YieldOp::create(k.b, k.loc, value);
      k.b.setInsertionPointToEnd(guard.elseBlock());
      scf::YieldOp::create(k.b, k.loc, zero);
      value = guard.getResult(0);
    } else if (!direct) {
      value = arith::SelectOp::create(k.b, k.loc, exists, value, zero);
    }
    Value lane = lanes.loop.getInductionVar();
    Value inner = alongSum ? indexing.add(along, lane) : across;
    Value outerAt = alongSum ? across : indexing.add(along, lane);
    memref::StoreOp::create(k.b, k.loc, value, shared, ValueRange{inner, outerAt});
    return SmallVector<Value>();
  });
}

Value ContractionEmitter::accumulate(Value a, Value b, Value sum) {
  linalg::LinalgOp op = loops.op;
  Block &block = *op.getBlock();
  IRMapping map;
  map.map(block.getArgument(0), a);
  map.map(block.getArgument(1), b);
  map.map(block.getArgument(2), sum);
  for (Operation &inner : block.without_terminator()) {
    auto add = dyn_cast<arith::AddFOp>(inner);
    Value factor =
        add ? add.getLhs() == block.getArgument(2) ? add.getRhs() : add.getLhs() : Value();
    auto mul = factor ? factor.getDefiningOp<arith::MulFOp>() : nullptr;
    if (!strict && mul && inner.getResult(0) == block.getTerminator()->getOperand(0))
      map.map(inner.getResult(0), Value(math::FmaOp::create(k.b, k.loc, map.lookup(mul.getLhs()),
                                                            map.lookup(mul.getRhs()), sum)));
    else
      k.b.clone(inner, map)->setLoc(k.loc);
  }
  return map.lookup(block.getTerminator()->getOperand(0));
}

/// The thread's 4x4 results, through what follows the product in the body.
bool ContractionEmitter::writeResults(Value sums, Value row, Value column) {
  linalg::LinalgOp op = loops.op;
  SmallVector<Out> outs = getOuts(info);
  Dim numRows = product(loops.rows), numColumns = product(loops.columns);
  Value left = k.name(indexing.sub(indexing.size(numColumns), column), "left");
  bool failed = false;
  scf::ForOp loop =
      k.enterFor(indexing.constant(0), indexing.constant(perThread), indexing.constant(1), "i");
  loop->setAttr(unrollAttrName, k.b.getUnitAttr());
  Value i = loop.getInductionVar(), rowHere = indexing.add(row, i);
  Value inside = arith::AndIOp::create(
      k.b, k.loc, k.lessThan(rowHere, indexing.size(numRows)),
      arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::sgt, left, indexing.constant(0)));
  k.enterIf(inside);
  k.body->forLanes(column, left, perThread, {}, [&](Value columnHere, ValueRange) {
    SmallVector<Value> at(op.getNumLoops());
    place(at, loops.batch, batch);
    place(at, loops.rows, rowHere);
    place(at, loops.columns, columnHere);
    SmallVector<Value> resultAt;
    for (AffineExpr expr : op.getIndexingMapsArray()[2].getResults())
      resultAt.push_back(indexing.apply(expr, at));
    Value sum = memref::LoadOp::create(k.b, k.named("sum"), sums,
                                       ValueRange{i, k.body->lanes->loop.getInductionVar()});
    // What the sum starts from, when that is not zero.
    Value init = op.getDpsInits()[0];
    auto fill = init.getDefiningOp<linalg::FillOp>();
    if (!fill ||
        !(matchPattern(fill.value(), m_AnyZeroFloat()) || matchPattern(fill.value(), m_Zero()))) {
      Value start = k.body->element(init, resultAt);
      sum = isa<FloatType>(sum.getType()) ? Value(arith::AddFOp::create(k.b, k.loc, start, sum))
                                          : Value(arith::AddIOp::create(k.b, k.loc, start, sum));
    }
    k.body->onReduction = [&](OpResult result, ArrayRef<Value> indices) -> Value {
      SmallVector<Dim> sizes = info.sizes(result);
      for (auto [asked, known, size] : llvm::zip(indices, resultAt, sizes))
        failed |= asked != known && !size.isConstant(1);
      return sum;
    };
    // Results of the product's own shape, whose indices are the product's in its order.
    SmallVector<Body::Store> stores;
    SmallVector<Value> values;
    SmallVector<Dim> shape = info.sizes(op->getResult(0));
    for (const Out &out : outs) {
      SmallVector<Value> indices =
          out.sizes == shape ? resultAt : indexing.reshape(resultAt, shape, out.sizes);
      values.push_back(k.body->element(out.value, indices));
      stores.push_back({out.argument, indices});
    }
    failed |= !k.body->isReadInPlace(stores);
    for (auto [store, value] : llvm::zip(stores, values))
      k.body->store(store.argument, store.indices, value);
    k.body->onReduction = nullptr;
    return SmallVector<Value>();
  });
  k.b.setInsertionPointAfter(loop);
  return !failed;
}

ScheduledModule ContractionEmitter::emit() {
  linalg::LinalgOp op = loops.op;
  Block &region = *op.getBlock();
  Type aType = region.getArgument(0).getType(), bType = region.getArgument(1).getType();
  Type sumType = region.getArgument(2).getType();
  Dim rows = product(loops.rows), columns = product(loops.columns), sum = product(loops.sum);
  Dim tileSize = Dim::constant(context, tile);
  Dim rowTiles = Dim::ceilDiv(rows, tileSize), columnTiles = Dim::ceilDiv(columns, tileSize);
  Dim batches = product(loops.batch);

  Value aTile = k.shared({depth, paddedTile}, aType, "aTile");
  Value bTile = k.shared({depth, paddedTile}, bType, "bTile");
  Value tileNumber = k.block;
  Value columnOrigin = k.name(
      indexing.mul(indexing.rem(tileNumber, indexing.size(columnTiles)), indexing.constant(tile)),
      "columnOrigin");
  tileNumber = indexing.div(tileNumber, indexing.size(columnTiles));
  Value rowOrigin = k.name(
      indexing.mul(indexing.rem(tileNumber, indexing.size(rowTiles)), indexing.constant(tile)),
      "rowOrigin");
  batch = k.name(indexing.div(tileNumber, indexing.size(rowTiles)), "batch");
  Value perRow = indexing.constant(tile / perThread), four = indexing.constant(perThread);
  Value threadRow = k.name(indexing.mul(indexing.div(k.thread, perRow), four), "threadRow");
  Value threadColumn = k.name(indexing.mul(indexing.rem(k.thread, perRow), four), "threadColumn");

  Value zeroIndex = indexing.constant(0), one = indexing.constant(1);
  Value sums = memref::AllocaOp::create(k.b, k.named("sums"),
                                        MemRefType::get({perThread, perThread}, sumType));
  auto forFour = [&](StringRef name) {
    scf::ForOp loop = k.enterFor(zeroIndex, four, one, name);
    loop->setAttr(unrollAttrName, k.b.getUnitAttr());
    return loop;
  };
  {
    scf::ForOp i = forFour("i"), j = forFour("j");
    Value zero = arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(sumType));
    memref::StoreOp::create(k.b, k.loc, zero, sums,
                            ValueRange{i.getInductionVar(), j.getInductionVar()});
    k.b.setInsertionPointAfter(i);
  }
  scf::ForOp steps = k.enterFor(zeroIndex, indexing.size(sum), indexing.constant(depth), "step");
  loadTile(0, aTile, rowOrigin, loops.rows, steps.getInductionVar());
  loadTile(1, bTile, columnOrigin, loops.columns, steps.getInductionVar());
  k.barrier();
  {
    scf::ForOp inner = k.enterFor(zeroIndex, indexing.constant(depth), one, "inner");
    inner->setAttr(unrollAttrName, k.b.getUnitAttr());
    Value at = inner.getInductionVar();
    Value a = vector::LoadOp::create(k.b, k.named("a"), VectorType::get(perThread, aType), aTile,
                                     ValueRange{at, threadRow});
    Value b = vector::LoadOp::create(k.b, k.named("b"), VectorType::get(perThread, bType), bTile,
                                     ValueRange{at, threadColumn});
    scf::ForOp i = forFour("i"), j = forFour("j");
    SmallVector<Value> place = {i.getInductionVar(), j.getInductionVar()};
    Value old = memref::LoadOp::create(k.b, k.named("sum"), sums, place);
    Value aHere = vector::ExtractOp::create(k.b, k.loc, a, OpFoldResult(place[0]));
    Value bHere = vector::ExtractOp::create(k.b, k.loc, b, OpFoldResult(place[1]));
    memref::StoreOp::create(k.b, k.loc, accumulate(aHere, bHere, old), sums, place);
    k.b.setInsertionPointAfter(inner);
  }
  k.barrier();
  k.b.setInsertionPointAfter(steps);
  if (!writeResults(sums, k.name(indexing.add(rowOrigin, threadRow), "row"),
                    k.name(indexing.add(columnOrigin, threadColumn), "column")))
    return {};
  return k.finish(batches * rowTiles * columnTiles,
                  "contraction, a tile of 64x64 a block, 4x4 a thread, steps of 16");
}

ScheduledModule scheduleContraction(BodyInfo &info, const CudaScheduleOptions &options) {
  std::optional<Loops> loops = matchLoops(info);
  if (!loops)
    return {};
  MLIRContext *context = info.kernel.getContext();
  Dim elements = Dim::product(context, info.sizes(loops->op->getResult(0)));
  for (const Out &out : getOuts(info))
    if (Dim::product(context, out.sizes) != elements)
      return {};
  return ContractionEmitter(info, *loops, options.strict).emit();
}

} // namespace quern::cuda
