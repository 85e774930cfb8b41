//===- Pointwise.cpp - A thread for every few elements --------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Each thread computes V consecutive elements, 16 bytes of the widest type. Either
// of the whole tensor (when every operand is a whole tensor or a single number), or
// of one innermost row, so that a bias along the row is read by vectors too.
//
//===----------------------------------------------------------------------===//

#include "KernelBuilder.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace quern::cuda {

static constexpr int threads = 256;

/// Whether element i of every out needs only element i of each operand, or a single number.
static bool isFlat(BodyInfo &info) {
  if (!info.kernel.getStrided().empty())
    return false;
  for (Operation &op : info.block()) {
    if (isa<kernel::ViewOp>(op))
      return false;
    auto linalg = dyn_cast<linalg::LinalgOp>(op);
    if (!linalg || isa<linalg::FillOp>(op))
      continue;
    for (AffineMap map : linalg.getIndexingMapsArray())
      if (!map.isIdentity() && map.getNumResults() != 0)
        return false;
    if (linalg
            ->walk([](Operation *inner) {
              return isa<linalg::IndexOp, tensor::ExtractOp>(inner) ? WalkResult::interrupt()
                                                                    : WalkResult::advance();
            })
            .wasInterrupted())
      return false;
  }
  return true;
}

/// Elements of the widest type of the kernel in 16 bytes.
int64_t getVectorWidth(BodyInfo &info) {
  unsigned widest = 8;
  for (BlockArgument argument : info.block().getArguments())
    widest = std::max(widest, cast<RankedTensorType>(argument.getType()).getElementTypeBitWidth());
  return std::max<int64_t>(1, 128 / widest);
}

static ScheduledModule emit(BodyInfo &info, ArrayRef<Out> outs, int64_t width) {
  ArrayRef<Dim> sizes = outs.front().sizes;
  MLIRContext *context = info.kernel.getContext();
  bool flat = isFlat(info) || width == 1 || sizes.empty();
  KernelBuilder k(info, threads);
  Indexing &indexing = *k.indexing;
  Dim total = Dim::product(context, sizes);
  Dim one = Dim::constant(context, 1), perBlock = Dim::constant(context, threads);

  // The number of this thread in the grid.
  Value number =
      k.name(indexing.add(indexing.mul(k.block, indexing.constant(threads)), k.thread), "number");
  Dim work = one;
  Value first, left, row;
  SmallVector<Dim> outer;
  if (flat) {
    work = Dim::ceilDiv(total, Dim::constant(context, width));
    first = k.name(indexing.mul(number, indexing.constant(width)), "first");
    left = k.name(indexing.sub(indexing.size(total), first), "left");
    k.enterIf(
        arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::sgt, left, indexing.constant(0)));
  } else {
    outer.assign(sizes.begin(), sizes.end() - 1);
    Dim pieces = Dim::ceilDiv(sizes.back(), Dim::constant(context, width));
    work = Dim::product(context, outer) * pieces;
    k.enterIf(k.lessThan(number, indexing.size(work)));
    row = k.name(indexing.div(number, indexing.size(pieces)), "row");
    first =
        k.name(indexing.mul(indexing.rem(number, indexing.size(pieces)), indexing.constant(width)),
               "first");
    left = k.name(indexing.sub(indexing.size(sizes.back()), first), "left");
  }
  bool exact = sizes.empty() || (flat ? total : sizes.back()).isConstant(1);
  k.body->forLanes(first, exact ? Value() : left, width, {}, [&](Value index, ValueRange) {
    SmallVector<Value> indices;
    if (flat) {
      indices = indexing.delinearize(index, sizes);
    } else {
      indices = indexing.delinearize(row, outer);
      indices.push_back(index);
    }
    SmallVector<Value> values;
    for (const Out &out : outs)
      values.push_back(k.body->element(out.value, indices));
    for (auto [out, value] : llvm::zip(outs, values))
      k.body->store(out.argument, indices, value);
    return SmallVector<Value>();
  });
  if (width > 1 && !k.body->vectorised)
    return {};
  return k.finish(Dim::ceilDiv(work, perBlock), "pointwise, " + Twine(width) +
                                                    (flat ? " elements" : " elements of a row") +
                                                    " a thread");
}

ScheduledModule schedulePointwise(BodyInfo &info, const CudaScheduleOptions &) {
  SmallVector<Out> outs = getOuts(info);
  if (outs.empty())
    return {};
  for (const Out &out : outs)
    if (out.sizes != outs.front().sizes)
      return {};
  for (auto op : info.block().getOps<linalg::LinalgOp>())
    if (isReduction(op))
      return {};
  int64_t width = getVectorWidth(info);
  // Rows shorter than a vector go element by element.
  ArrayRef<Dim> sizes = outs.front().sizes;
  if (!isFlat(info) && !sizes.empty() && sizes.back().isConstant() &&
      sizes.back().getConstant() < width)
    width = 1;
  ScheduledModule module = width > 1 ? emit(info, outs, width) : nullptr;
  return module ? std::move(module) : emit(info, outs, 1);
}

} // namespace quern::cuda
