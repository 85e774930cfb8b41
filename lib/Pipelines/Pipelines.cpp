//===- Pipelines.cpp - The order of the passes ----------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Pipelines/Pipelines.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/Passes.h"
#include "quern/Conversion/QuernToLinalg/LoweringBuilder.h"
#include "quern/Transforms/Passes.h"

using namespace mlir;

namespace quern {

void buildHostPipeline(OpPassManager &pm, const PipelineOptions &options) {
  // What clones code runs before sizes are named.
  pm.addPass(createInlinerPass());
  pm.addPass(createQuernPropagateShapes());
  pm.addNestedPass<func::FuncOp>(createQuernMaterializeGuards());
  pm.addPass(createQuernSimplify());
  QuernFuseOptions fuse;
  fuse.fuse = options.fuse;
  pm.addPass(createQuernFuse(fuse));
  if (options.inplace)
    pm.addNestedPass<func::FuncOp>(createQuernInplace());
  pm.addPass(createQuernToLinalgPass());
  pm.addPass(createQuernBufferize());
  pm.addNestedPass<func::FuncOp>(createQuernPlanMemory());
}

} // namespace quern
