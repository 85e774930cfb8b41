//===- Pass.cpp - quern-schedule-cpu --------------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "mlir/Pass/Pass.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "quern/Dialect/Quern/IR/Quern.h"
#include "quern/Schedule/CPU.h"

using namespace mlir;
using namespace quern;

namespace {

struct ScheduleCPUPass : PassWrapper<ScheduleCPUPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ScheduleCPUPass)

  ScheduleCPUPass() = default;
  ScheduleCPUPass(StringRef cpu, const ScheduleOptions &options) {
    this->cpu = cpu.str();
    strict = options.strict;
    reference = options.reference;
  }
  ScheduleCPUPass(const ScheduleCPUPass &other) : PassWrapper(other) {}

  StringRef getArgument() const final { return "quern-schedule-cpu"; }
  StringRef getDescription() const final {
    return "the loops of each kernel (what launches them is left out)";
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry
        .insert<QuernDialect, affine::AffineDialect, arith::ArithDialect, func::FuncDialect,
                linalg::LinalgDialect, LLVM::LLVMDialect, math::MathDialect, memref::MemRefDialect,
                scf::SCFDialect, tensor::TensorDialect, vector::VectorDialect>();
  }
  void runOnOperation() override {
    std::string error;
    FailureOr<CpuTarget> target =
        CpuTarget::parse(cpu, [&](const Twine &text) { error = text.str(); });
    if (failed(target)) {
      getOperation().emitError(error);
      return signalPassFailure();
    }
    MachineModel machine = MachineModel::get(*target);
    ScheduleOptions options;
    options.strict = strict;
    options.reference = reference;
    SmallVector<Operation *> made;
    for (auto kernel : getOperation().getOps<kernel::FuncOp>()) {
      FailureOr<OwningOpRef<ModuleOp>> module = scheduleKernel(kernel, machine, options);
      if (failed(module))
        return signalPassFailure();
      for (Operation &op : llvm::make_early_inc_range(*(*module)->getBody())) {
        op.remove();
        made.push_back(&op);
      }
    }
    Block *body = getOperation().getBody();
    body->clear();
    llvm::StringSet<> declared; // libm's functions, once
    for (Operation *op : made) {
      auto symbol = dyn_cast<SymbolOpInterface>(op);
      if (symbol && symbol.isDeclaration() && !declared.insert(symbol.getName()).second)
        op->destroy();
      else
        body->push_back(op);
    }
  }

  Option<std::string> cpu{*this, "cpu", llvm::cl::init("native"),
                          llvm::cl::desc("the CPU, as LLVM names it (x86-64-v3,+fma), or native")};
  Option<bool> strict{*this, "strict", llvm::cl::init(false),
                      llvm::cl::desc("round at each op as written, libm for functions")};
  Option<bool> reference{*this, "reference", llvm::cl::init(false),
                         llvm::cl::desc("plain scalar loops, op by op")};
};

} // namespace

std::unique_ptr<Pass> quern::createScheduleCPUPass(StringRef cpu, const ScheduleOptions &options) {
  return std::make_unique<ScheduleCPUPass>(cpu, options);
}

void quern::registerScheduleCPUPass() { PassRegistration<ScheduleCPUPass>(); }
