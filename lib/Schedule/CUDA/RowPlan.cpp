//===- RowPlan.cpp - Reductions over the same rows ------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "RowPlan.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace quern::cuda {

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

/// The fewest outer dims with this product, if there are such.
static std::optional<SmallVector<bool>> outerDims(ArrayRef<Dim> sizes, Dim rows) {
  for (size_t count = 0; count <= sizes.size(); ++count)
    if (Dim::product(rows.getContext(), sizes.take_front(count)) == rows) {
      SmallVector<bool> isRow(sizes.size());
      std::fill_n(isRow.begin(), count, true);
      return isRow;
    }
  return std::nullopt;
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

std::optional<RowPlan> RowPlan::make(BodyInfo &info) {
  RowPlan plan;
  MLIRContext *context = info.kernel.getContext();
  llvm::DenseMap<Operation *, unsigned> levels;
  for (auto op : info.block().getOps<linalg::LinalgOp>()) {
    if (!isReduction(op))
      continue;
    SmallVector<Dim> loops = info.loopSizes(op);
    RowReduction reduction{op, sumOrder(op, loops), 0, {}, {}};
    for (unsigned i = 0; i < op.getNumDpsInits(); ++i)
      if (std::optional<Combiner> combiner = matchCombiner(op, i))
        reduction.combiners.push_back(*combiner);
    if (int64_t(reduction.combiners.size()) != op.getNumDpsInits())
      reduction.combiners.clear();
    llvm::DenseMap<Value, unsigned> memo;
    for (Value operand : op->getOperands())
      reduction.level = std::max(reduction.level, levelOf(operand, levels, memo));
    levels[op] = ++reduction.level;
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
    // An out without reductions goes with one of its shape, or its outer dims are the rows.
    for (size_t j = 0; j < outs.size() && !rowDims[i]; ++j)
      if (outs[j].sizes == out.sizes)
        rowDims[i] = rowDims[j];
    if (!rowDims[i])
      rowDims[i] = outerDims(out.sizes, Dim::product(context, plan.rows));
    if (!rowDims[i])
      return std::nullopt;
    RowOut row{out, *rowDims[i], {}};
    SmallVector<Dim> rows;
    for (auto [size, isRow] : llvm::zip(out.sizes, row.isRow))
      (isRow ? rows : row.columns).push_back(size);
    if (Dim::product(context, rows) != Dim::product(context, plan.rows))
      return std::nullopt;
    auto pass =
        llvm::find_if(plan.passes, [&](auto &p) { return p.front().columns == row.columns; });
    if (pass == plan.passes.end())
      plan.passes.push_back({row});
    else
      pass->push_back(row);
  }
  return plan;
}

bool writeOuts(KernelBuilder &k, ArrayRef<RowOut> pass, Value row, Value column, size_t firstLoad) {
  Indexing &indexing = *k.indexing;
  SmallVector<Body::Store> stores;
  SmallVector<Value> values;
  for (const RowOut &out : pass) {
    SmallVector<Dim> rowSizes;
    for (auto [size, isRow] : llvm::zip(out.out.sizes, out.isRow))
      if (isRow)
        rowSizes.push_back(size);
    SmallVector<Value> rowIndex = indexing.delinearize(row, rowSizes), indices, columnIndex;
    if (!out.columns.empty())
      columnIndex = indexing.delinearize(column, out.columns);
    unsigned nextRow = 0, nextColumn = 0;
    for (bool isRow : out.isRow)
      indices.push_back(isRow ? rowIndex[nextRow++] : columnIndex[nextColumn++]);
    values.push_back(k.body->element(out.out.value, indices));
    stores.push_back({out.out.argument, indices});
  }
  for (auto [store, value] : llvm::zip(stores, values))
    k.body->store(store.argument, store.indices, value);
  return k.body->isReadInPlace(stores, firstLoad);
}

bool mayShare(BodyInfo &info, ArrayRef<RowOut> pass) {
  return llvm::any_of(pass, [&](const RowOut &row) {
    unsigned result = row.out.argument - info.kernel.getNumIns();
    for (unsigned in = 0; in < info.kernel.getNumIns(); ++in)
      if (info.kernel.mayShare(result, in))
        return true;
    return false;
  });
}

} // namespace quern::cuda
