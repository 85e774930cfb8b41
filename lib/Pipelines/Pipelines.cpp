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
#include "quern/Schedule/CPU.h"
#include "quern/Schedule/CUDA.h"
#include "quern/Transforms/Passes.h"

using namespace mlir;

namespace quern {

/// Calls are inlined, and then sizes get names: what clones code comes first.
static void addNaming(OpPassManager &pm) {
  pm.addPass(createQuernStripDims());
  pm.addPass(createInlinerPass());
  pm.addPass(createSymbolDCEPass());
  pm.addPass(createQuernPropagateShapes());
}

void buildBackwardPipeline(OpPassManager &pm, const BackwardOptions &options) {
  addNaming(pm);
  QuernAutodiffOptions autodiff;
  autodiff.function = options.function;
  autodiff.arguments.assign(options.arguments.begin(), options.arguments.end());
  autodiff.mode = options.mode;
  pm.addPass(createQuernAutodiff(autodiff));
  pm.addPass(createQuernSimplify());
}

void buildHostPipeline(OpPassManager &pm, const PipelineOptions &options) {
  addNaming(pm);
  // Checks are made before anything that removes or moves the ops they belong to.
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

struct BackwardCommandLine : PassPipelineOptions<BackwardCommandLine> {
  Option<std::string> function{*this, "function",
                               llvm::cl::desc("the function (the only one if left out)")};
  ListOption<int64_t> arguments{*this, "arguments",
                                llvm::cl::desc("numbers of the arguments (all of a float dtype)")};
  Option<std::string> mode{*this, "mode", llvm::cl::desc("joint or split"),
                           llvm::cl::init("joint")};
};

/// What quern-compile prints for --emit of the same name.
enum class Emit { Planned, Scheduled };

template <typename Options> struct TargetCommandLine : PassPipelineOptions<Options> {
  template <typename T> using Option = mlir::detail::PassOptions::Option<T>;
  Option<bool> fuse{*this, "fuse", llvm::cl::desc("groups ops into kernels"), llvm::cl::init(true)};
  Option<bool> inplace{*this, "inplace",
                       llvm::cl::desc("results take the buffers of operands that die"),
                       llvm::cl::init(true)};
  Option<Emit> emit{*this, "emit", llvm::cl::desc("where to stop"), llvm::cl::init(Emit::Planned),
                    llvm::cl::values(clEnumValN(Emit::Planned, "mlir-planned",
                                                "launches and memory, and kernels"),
                                     clEnumValN(Emit::Scheduled, "mlir-scheduled",
                                                "the loops or device functions of the kernels"))};
  Option<bool> strict{*this, "strict", llvm::cl::desc("round at each op as written"),
                      llvm::cl::init(false)};
};

struct CpuCommandLine : TargetCommandLine<CpuCommandLine> {
  Option<std::string> cpu{*this, "cpu", llvm::cl::desc("native, or a CPU of LLVM's"),
                          llvm::cl::init("native")};
};

struct CudaCommandLine : TargetCommandLine<CudaCommandLine> {
  ListOption<std::string> chips{*this, "chips",
                                llvm::cl::desc("what gpu-module-to-binary compiles for (sm_90)")};
};

} // namespace

void registerPipelines() {
  PassPipelineRegistration<CpuCommandLine>(
      "quern-cpu", "from quern ops to a host function with its memory planned, and kernels",
      [](OpPassManager &pm, const CpuCommandLine &options) {
        buildHostPipeline(pm, {options.fuse, options.inplace});
        ScheduleOptions schedule;
        schedule.strict = options.strict;
        if (options.emit == Emit::Scheduled)
          pm.addPass(createScheduleCPUPass(options.cpu, schedule));
      });
  PassPipelineRegistration<CudaCommandLine>(
      "quern-cuda", "the same for CUDA (the host function is the CPU's)",
      [](OpPassManager &pm, const CudaCommandLine &options) {
        buildHostPipeline(pm, {options.fuse, options.inplace});
        CudaScheduleOptions schedule;
        schedule.strict = options.strict;
        if (options.emit == Emit::Scheduled)
          pm.addPass(createScheduleCUDAPass(
              schedule, std::vector<std::string>(options.chips.begin(), options.chips.end())));
      });
  PassPipelineRegistration<BackwardCommandLine>(
      "quern-backward", "from a function of quern ops to its gradients",
      [](OpPassManager &pm, const BackwardCommandLine &options) {
        buildBackwardPipeline(
            pm, {options.function,
                 std::vector<int64_t>(options.arguments.begin(), options.arguments.end()),
                 options.mode});
      });
}

} // namespace quern
