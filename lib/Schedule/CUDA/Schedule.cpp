//===- Schedule.cpp - From a kernel to its device function ----------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "KernelBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/Pass.h"
#include "quern/Dialect/Quern/IR/NvrtcAttr.h"
#include "quern/Dialect/Quern/IR/Quern.h"

using namespace mlir;

namespace quern {

FailureOr<OwningOpRef<ModuleOp>> scheduleCudaKernel(kernel::FuncOp kernel,
                                                    const CudaScheduleOptions &options) {
  using namespace cuda;
  kernel.getContext()
      ->loadDialect<arith::ArithDialect, func::FuncDialect, gpu::GPUDialect, LLVM::LLVMDialect,
                    math::MathDialect, memref::MemRefDialect, scf::SCFDialect,
                    vector::VectorDialect>();
  BodyInfo info(kernel);
  if (failed(info.verify()))
    return failure();
  if (!kernel.getPacked().empty())
    return kernel.emitError("unsupported: packed operands in CUDA kernels");

  // The kind is what fusion aimed at; a body that its scheduler does not take goes to the
  // generic one.
  StringRef kind = kernel.getKind();
  ScheduledModule module;
  if (kind == "pointwise" || kind == "gather")
    module = schedulePointwise(info, options);
  else if (kind == "row_reduction" || kind == "generic")
    module = scheduleRowReduction(info, options);
  else if (kind == "contraction")
    module = scheduleContraction(info, options);
  if (!module && (kind == "row_reduction" || kind == "column_reduction" || kind == "generic"))
    module = scheduleColumnReduction(info, options);
  if (!module)
    module = scheduleGeneric(info, options);
  if (!module)
    return failure();
  return std::move(module);
}

gpu::GPUFuncOp getDeviceFunction(ModuleOp module) {
  for (auto device : module.getOps<gpu::GPUModuleOp>())
    for (auto function : device.getOps<gpu::GPUFuncOp>())
      return function;
  return {};
}

namespace {
struct ScheduleCUDAPass : PassWrapper<ScheduleCUDAPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ScheduleCUDAPass)

  ScheduleCUDAPass() = default;
  ScheduleCUDAPass(const CudaScheduleOptions &options, ArrayRef<std::string> chips) {
    strict = options.strict;
    this->chips = chips;
  }
  ScheduleCUDAPass(const ScheduleCUDAPass &other) : PassWrapper(other) {}

  StringRef getArgument() const override { return "quern-schedule-cuda"; }
  StringRef getDescription() const override {
    return "the device function of each kernel (what launches them is left out)";
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<QuernDialect, arith::ArithDialect, func::FuncDialect, gpu::GPUDialect,
                    LLVM::LLVMDialect, math::MathDialect, memref::MemRefDialect, scf::SCFDialect,
                    vector::VectorDialect>();
  }
  void runOnOperation() override {
    CudaScheduleOptions options;
    options.strict = strict;
    SmallVector<Attribute> targets;
    for (const std::string &chip : chips)
      targets.push_back(NvrtcAttr::get(&getContext(), chip));
    SmallVector<OwningOpRef<ModuleOp>> scheduled;
    for (auto kernel : getOperation().getOps<kernel::FuncOp>()) {
      FailureOr<OwningOpRef<ModuleOp>> module = scheduleCudaKernel(kernel, options);
      if (failed(module))
        return signalPassFailure();
      for (auto device : (*module)->getOps<gpu::GPUModuleOp>())
        if (!targets.empty())
          device.setTargetsAttr(ArrayAttr::get(&getContext(), targets));
      scheduled.push_back(std::move(*module));
    }
    Block *body = getOperation().getBody();
    body->clear();
    for (OwningOpRef<ModuleOp> &module : scheduled)
      body->getOperations().splice(body->end(), module->getBody()->getOperations());
  }

  ListOption<std::string> chips{*this, "chips",
                                llvm::cl::desc("what gpu-module-to-binary compiles for (sm_90)")};
  Option<bool> strict{*this, "strict", llvm::cl::init(false),
                      llvm::cl::desc("round at each op as written")};
};
} // namespace

std::unique_ptr<Pass> createScheduleCUDAPass(const CudaScheduleOptions &options,
                                             ArrayRef<std::string> chips) {
  return std::make_unique<ScheduleCUDAPass>(options, chips);
}

void registerScheduleCUDAPass() { PassRegistration<ScheduleCUDAPass>(); }

} // namespace quern
