//===- KernelTest.h - Kernels scheduled, compiled and run -------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_UNITTESTS_SCHEDULE_CPU_KERNELTEST_H
#define QUERN_UNITTESTS_SCHEDULE_CPU_KERNELTEST_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"
#include "quern/Codegen/CPU/Compile.h"
#include "quern/Codegen/CPU/Jit.h"
#include "quern/Schedule/CPU.h"

#include "../../Shape/TestDialect.h"

#include "gtest/gtest.h"
#include <cmath>
#include <random>

namespace quern::test {

/// A kernel in machine code.
class CompiledKernel {
public:
  using Entry = void (*)(void *const *, const int64_t *, int64_t, int64_t);
  using Sizes = int64_t (*)(const int64_t *);

  std::unique_ptr<JitLibrary> library;
  Entry entry = nullptr;
  Sizes range = nullptr, cost = nullptr;
  std::string ir; ///< as scheduled

  explicit operator bool() const { return entry; }
  /// Runs all units, in pieces of `grain` (0: at once), the last piece first.
  void operator()(std::vector<void *> bufs, std::vector<int64_t> dims, int64_t grain = 0) const {
    int64_t n = range(dims.data());
    EXPECT_GE(n, 0);
    EXPECT_GE(cost(dims.data()), 0);
    if (!grain)
      return entry(bufs.data(), dims.data(), 0, n);
    for (int64_t lo = (n - 1) / grain * grain; lo >= 0; lo -= grain)
      entry(bufs.data(), dims.data(), lo, std::min(lo + grain, n));
  }
};

class KernelTest : public ::testing::Test {
protected:
  mlir::MLIRContext ctx;
  std::string errors;
  mlir::ScopedDiagnosticHandler handler{&ctx, [&](mlir::Diagnostic &d) {
                                          errors += d.str() + "\n";
                                          return mlir::success();
                                        }};
  CpuTarget target = CpuTarget::native();

  KernelTest() {
    mlir::DialectRegistry registry;
    registerCodegenDialects(registry);
    registry.insert<SizesDialect, kernel::KernelDialect, mlir::linalg::LinalgDialect,
                    mlir::tensor::TensorDialect>();
    ctx.appendDialectRegistry(registry);
    ctx.loadAllAvailableDialects();
    ctx.disableMultithreading();
  }

  kernel::FuncOp parse(llvm::StringRef text, mlir::OwningOpRef<mlir::ModuleOp> &module) {
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &ctx);
    EXPECT_TRUE(bool(module)) << errors;
    if (!module)
      return {};
    return *module->getOps<kernel::FuncOp>().begin();
  }

  /// Compiles the first kernel of `text`; errors fail the test.
  CompiledKernel compile(llvm::StringRef text, ScheduleOptions options = {},
                         std::optional<MachineModel> machine = std::nullopt) {
    CompiledKernel result;
    mlir::OwningOpRef<mlir::ModuleOp> module;
    kernel::FuncOp kernel = parse(text, module);
    if (!kernel)
      return result;
    std::string name = kernel.getSymName().str();
    auto scheduled =
        scheduleKernel(kernel, machine ? *machine : MachineModel::get(target), options);
    EXPECT_TRUE(mlir::succeeded(scheduled)) << errors;
    if (mlir::failed(scheduled))
      return result;
    llvm::raw_string_ostream(result.ir) << **scheduled;
    EXPECT_TRUE(mlir::succeeded(mlir::verify(**scheduled))) << errors << result.ir;
    auto object = compileToObject(**scheduled, target);
    EXPECT_TRUE(mlir::succeeded(object)) << errors << result.ir;
    if (mlir::failed(object))
      return result;
    result.library = llvm::cantFail(JitLibrary::create());
    llvm::cantFail(result.library->add(llvm::MemoryBuffer::getMemBufferCopy(object->ref())));
    auto lookup = [&](const std::string &symbol) {
      return llvm::cantFail(result.library->lookup(symbol));
    };
    result.range = reinterpret_cast<CompiledKernel::Sizes>(lookup(name + "_range"));
    result.cost = reinterpret_cast<CompiledKernel::Sizes>(lookup(name + "_unit_cost"));
    result.entry = reinterpret_cast<CompiledKernel::Entry>(lookup(name));
    return result;
  }
};

/// Machines with other vectors than this one; what they schedule runs here as well,
/// since only generic vector code is emitted for them.
inline std::vector<MachineModel> otherMachines() {
  MachineModel narrow, wide;
  wide.vectorBytes = 64;
  return {narrow, wide};
}

inline std::vector<float> randomFloats(size_t n, float lo = -4, float hi = 4, unsigned seed = 1) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> uniform(lo, hi);
  std::vector<float> values(n);
  for (float &v : values)
    v = uniform(engine);
  return values;
}

/// Sizes at which vector code goes wrong: none, one, around vectors and blocks.
inline std::vector<int64_t> oddSizes() {
  return {0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 97, 127, 128, 129, 1000, 1031};
}

} // namespace quern::test

#endif // QUERN_UNITTESTS_SCHEDULE_CPU_KERNELTEST_H
