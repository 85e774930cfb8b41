//===- Pipelines.cpp - The order of the passes ----------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Pipelines/Pipelines.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/Passes.h"
#include "quern/Transforms/Passes.h"

using namespace mlir;

namespace quern {

void buildHostPipeline(OpPassManager &pm, const PipelineOptions &options) {
  pm.addPass(createInlinerPass());
  pm.addPass(createQuernSimplify());
  if (options.inplace)
    pm.addNestedPass<func::FuncOp>(createQuernInplace());
}

} // namespace quern
