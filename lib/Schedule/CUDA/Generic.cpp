//===- Generic.cpp - A thread for every element ---------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// What no other scheduler takes: convolutions, reductions over different rows, results
// of different shapes. One thread for each element of the outs; reductions are loops in
// the thread, in order, and recomputed where several elements need one.
//
//===----------------------------------------------------------------------===//

#include "KernelBuilder.h"

using namespace mlir;

namespace quern::cuda {

static constexpr int threads = 128;

ScheduledModule scheduleGeneric(BodyInfo &info, const CudaScheduleOptions &) {
  MLIRContext *context = info.kernel.getContext();
  // Outs of one shape are computed together.
  SmallVector<SmallVector<Out>> groups;
  for (const Out &out : getOuts(info)) {
    auto group =
        llvm::find_if(groups, [&](ArrayRef<Out> g) { return g.front().sizes == out.sizes; });
    if (group == groups.end())
      groups.push_back({out});
    else
      group->push_back(out);
  }
  KernelBuilder k(info, threads);
  Indexing &indexing = *k.indexing;
  Value number =
      k.name(indexing.add(indexing.mul(k.block, indexing.constant(threads)), k.thread), "number");
  Dim blocks = Dim::constant(context, 0);
  for (ArrayRef<Out> group : groups) {
    ArrayRef<Dim> sizes = group.front().sizes;
    Dim total = Dim::product(context, sizes);
    Dim needed = Dim::ceilDiv(total, Dim::constant(context, threads));
    blocks = blocks.isConstant(0) ? needed : Dim::max(blocks, needed);
    scf::IfOp exists = k.enterIf(k.lessThan(number, indexing.size(total)));
    SmallVector<Value> indices = indexing.delinearize(number, sizes), values;
    SmallVector<Body::Store> stores;
    size_t firstLoad = k.body->loads.size();
    for (const Out &out : group) {
      values.push_back(k.body->element(out.value, indices));
      stores.push_back({out.argument, indices});
    }
    // Also by what another group overwrites, in another thread perhaps.
    if (!k.body->isReadInPlace(stores, firstLoad)) {
      info.kernel.emitError("unsupported: a CUDA kernel, of the generic kind, whose threads read "
                            "what others overwrite in place");
      return {};
    }
    for (auto [out, value] : llvm::zip(group, values))
      k.body->store(out.argument, indices, value);
    k.b.setInsertionPointAfter(exists);
  }
  return k.finish(blocks, "generic, a thread for each element");
}

} // namespace quern::cuda
