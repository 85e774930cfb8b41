//===- ColumnReduction.cpp - A thread for every row -----------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Reductions along outer or middle dims: neighbouring threads have neighbouring rows, so what they
// read at a time lies together. Each reduction is a loop in the thread, in order
// (docs/numerics.md), and so are the results that have columns.
//
//===----------------------------------------------------------------------===//

#include "RowPlan.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace quern::cuda {

static constexpr int threads = 128;

ScheduledModule scheduleColumnReduction(BodyInfo &info, const CudaScheduleOptions &) {
  std::optional<RowPlan> plan = RowPlan::make(info);
  if (!plan)
    return {};
  MLIRContext *context = info.kernel.getContext();
  KernelBuilder k(info, threads);
  Indexing &indexing = *k.indexing;
  Dim rows = Dim::product(context, plan->rows);
  Value row =
      k.name(indexing.add(indexing.mul(k.block, indexing.constant(threads)), k.thread), "row");
  k.enterIf(k.lessThan(row, indexing.size(rows)));
  for (const RowReduction &reduction : plan->reductions) {
    Value result = reduction.op->getResult(0); // and with it the others
    k.body->element(result, indexing.delinearize(row, info.sizes(result)));
  }

  bool failed = false;
  k.body->onReduction = [&](OpResult result, ArrayRef<Value>) -> Value {
    failed = true; // not of this row
    return arith::ConstantOp::create(
        k.b, k.loc, k.b.getZeroAttr(cast<RankedTensorType>(result.getType()).getElementType()));
  };
  for (ArrayRef<RowOut> pass : plan->passes) {
    size_t firstLoad = k.body->loads.size();
    if (pass.front().columns.empty()) {
      failed |= !writeOuts(k, pass, row, {}, firstLoad);
      continue;
    }
    Dim count = Dim::product(context, pass.front().columns);
    scf::ForOp loop =
        k.enterFor(indexing.constant(0), indexing.size(count), indexing.constant(1), "column");
    failed |= !writeOuts(k, pass, row, loop.getInductionVar(), firstLoad);
    k.b.setInsertionPointAfter(loop);
  }
  if (failed)
    return {};
  return k.finish(Dim::ceilDiv(rows, Dim::constant(context, threads)),
                  "column reduction, a thread a row");
}

} // namespace quern::cuda
