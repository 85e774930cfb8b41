//===- KernelTest.cpp - Kernels on the emulated device and as cubins ------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "KernelTest.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "quern/Codegen/CUDA/Emitter.h"
#include "quern/Codegen/CUDA/NVRTC.h"
#include "quern/Pipelines/Registry.h"
#include "quern/Schedule/CUDA.h"
#include "quern/Support/Error.h"
#include <cstring>
#include <dlfcn.h>

using namespace mlir;

namespace quern::test {

void KernelTest::SetUp() {
  DialectRegistry registry;
  registerDialects(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
  void *library = dlopen(QUERN_CUDA_EMULATED, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  auto open = reinterpret_cast<decltype(&quern_cuda_emulated_open)>(
      dlsym(library, "quern_cuda_emulated_open"));
  ASSERT_EQ(open(nullptr, &device), QUERN_OK);
}

void KernelTest::TearDown() {
  void *library = dlopen(QUERN_CUDA_EMULATED, RTLD_NOW | RTLD_LOCAL);
  reinterpret_cast<decltype(&quern_cuda_emulated_close)>(
      dlsym(library, "quern_cuda_emulated_close"))(&device);
}

std::string KernelTest::compile(const std::string &source) {
  message.clear(), text.clear();
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    message += diagnostic.str() + "\n";
    return success();
  });
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(source, &context);
  if (!module)
    return "";
  auto kernel = *module->getOps<kernel::FuncOp>().begin();
  FailureOr<OwningOpRef<ModuleOp>> scheduled = scheduleCudaKernel(kernel);
  if (failed(scheduled))
    return "";
  gpu::GPUFuncOp function = getDeviceFunction(**scheduled);
  FailureOr<std::string> printed = emitCuda(function);
  if (failed(printed))
    return "";
  EXPECT_TRUE(succeeded(verify(**scheduled)));
  name = function.getName().str();
  threads = (*function.getKnownBlockSizeAttr().asArrayRef().begin());
  numParameters = function.getNumArguments();
  llvm::raw_string_ostream(rangeText = "") << **scheduled;
  return text = *printed;
}

/// Runs the straight-line range function by folding its ops.
int64_t KernelTest::range(const std::vector<int64_t> &dims) {
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(rangeText, &context);
  auto function = *module->getOps<func::FuncOp>().begin();
  Builder builder(&context);
  llvm::DenseMap<Value, Attribute> values;
  llvm::DenseMap<Value, int64_t> places;
  for (Operation &op : function.front()) {
    if (auto at = dyn_cast<LLVM::GEPOp>(op)) {
      places[at] = at.getRawConstantIndices()[0];
    } else if (auto load = dyn_cast<LLVM::LoadOp>(op)) {
      values[load] = builder.getI64IntegerAttr(dims[places.lookup(load.getAddr())]);
    } else if (isa<func::ReturnOp>(op)) {
      return cast<IntegerAttr>(values[op.getOperand(0)]).getInt();
    } else {
      SmallVector<Attribute> operands;
      for (Value operand : op.getOperands())
        operands.push_back(values.lookup(operand));
      SmallVector<OpFoldResult> results;
      EXPECT_TRUE(succeeded(op.fold(operands, results)));
      if (results.size() == 1)
        values[op.getResult(0)] = isa<Attribute>(results[0])
                                      ? cast<Attribute>(results[0])
                                      : values.lookup(cast<Value>(results[0]));
    }
  }
  return -1;
}

std::vector<Buffer> KernelTest::run(const std::vector<Buffer> &ins,
                                    const std::vector<size_t> &outBytes,
                                    const std::vector<int64_t> &dims,
                                    const std::vector<int> &share) {
  EXPECT_NE(text, "") << message;
  if (text.empty())
    return {};
  void *module = nullptr;
  quern_image image = {"cuda-emulated", text.data(), text.size()};
  EXPECT_EQ(device.load(device.self, &image, &module), QUERN_OK);
  quern_kernel kernel = {};
  kernel.name = name.c_str();
  kernel.block_threads = threads;
  kernel.num_bufs = ins.size() + outBytes.size(), kernel.num_dims = dims.size();
  EXPECT_EQ(kernel.num_bufs + kernel.num_dims, numParameters);
  std::vector<void *> bufs;
  auto allocate = [&](size_t bytes) {
    void *p = nullptr;
    EXPECT_EQ(device.alloc(device.self, bytes, &p), QUERN_OK);
    bufs.push_back(p);
    return p;
  };
  for (const Buffer &in : ins)
    device.upload(device.self, allocate(in.bytes.size()), in.bytes.data(), in.bytes.size());
  for (size_t i = 0; i < outBytes.size(); ++i) {
    if (i < share.size() && share[i] >= 0)
      bufs.push_back(bufs[share[i]]);
    else
      allocate(outBytes[i]);
  }
  int64_t blocks = range(dims);
  if (blocks > 0)
    EXPECT_EQ(device.launch(device.self, module, &kernel, blocks, bufs.data(), dims.data()),
              QUERN_OK)
        << device.error(device.self) << "\n"
        << text;
  std::vector<Buffer> outs;
  for (size_t i = 0; i < outBytes.size(); ++i) {
    outs.emplace_back();
    outs.back().bytes.resize(outBytes[i]);
    EXPECT_EQ(
        device.download(device.self, outs.back().bytes.data(), bufs[ins.size() + i], outBytes[i]),
        QUERN_OK)
        << device.error(device.self) << "\n"
        << text;
  }
  for (size_t i = 0; i < bufs.size(); ++i)
    if (i < ins.size() || i - ins.size() >= share.size() || share[i - ins.size()] < 0)
      device.free(device.self, bufs[i]);
  return outs;
}

std::vector<CubinKernel> KernelTest::cubins() {
  llvm::Expected<const Nvrtc &> nvrtc = Nvrtc::get();
  std::vector<CubinKernel> result;
  if (!nvrtc) {
    llvm::consumeError(nvrtc.takeError());
    return result;
  }
  for (const char *chip : {"sm_80", "sm_90"}) {
    llvm::Expected<CudaBinary> binary = nvrtc->compile(text, name, chip);
    std::string error;
    if (!binary) {
      takeError(binary.takeError(), error);
      ADD_FAILURE() << error;
      return {};
    }
    EXPECT_EQ(binary->log, "") << text;
    auto kernels = readCubin(binary->data);
    if (!kernels || !kernels->count(name)) {
      ADD_FAILURE() << "no kernel in the cubin";
      return {};
    }
    result.push_back(kernels->at(name));
  }
  return result;
}

} // namespace quern::test
