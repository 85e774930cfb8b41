//===- Pipelines.cpp - The order of the passes ----------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Pipelines/Pipelines.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "quern/Conversion/QuernToLinalg/LoweringBuilder.h"
#include "quern/Pipelines/Registry.h"
#include "quern/Transforms/Passes.h"

using namespace mlir;

namespace quern {

void buildHostPipeline(OpPassManager &pm, const PipelineOptions &options) {
  // What clones code comes before sizes have names.
  pm.addPass(createQuernStripDims());
  pm.addPass(createInlinerPass());
  pm.addPass(createSymbolDCEPass());
  // Checks are made before anything that removes or moves the ops they belong to.
  pm.addPass(createQuernPropagateShapes());
  pm.addNestedPass<func::FuncOp>(createQuernMaterializeGuards());
  pm.addPass(createQuernSimplify());

  QuernFuseOptions fuse;
  fuse.fuse = options.fuse;
  pm.addPass(createQuernFuse(fuse));
  if (options.inplace)
    pm.addNestedPass<func::FuncOp>(createQuernInplace());
  // Bodies in linalg, so that what is asked of them (packed constants) can be answered.
  pm.addPass(createQuernToLinalgPass());
  pm.addPass(createQuernBufferize());
  pm.addNestedPass<func::FuncOp>(createQuernPlanMemory());
}

namespace {

struct CommandLineOptions : PassPipelineOptions<CommandLineOptions> {
  Option<bool> fuse{*this, "fuse", llvm::cl::desc("groups ops into kernels"), llvm::cl::init(true)};
  Option<bool> inplace{*this, "inplace",
                       llvm::cl::desc("results take the buffers of operands that die"),
                       llvm::cl::init(true)};
};

} // namespace

void registerPipelines() {
  PassPipelineRegistration<CommandLineOptions>(
      "quern-cpu", "from quern ops to a host function with its memory planned, and kernels",
      [](OpPassManager &pm, const CommandLineOptions &options) {
        buildHostPipeline(pm, {options.fuse, options.inplace});
      });
}

} // namespace quern
