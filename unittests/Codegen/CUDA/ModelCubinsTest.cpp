//===- ModelCubinsTest.cpp - Every kernel of a real model as cubins -------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/MLIRContext.h"
#include "quern/Codegen/CUDA/Cubin.h"
#include "quern/Codegen/CUDA/NVRTC.h"
#include "quern/Compiler/Compiler.h"
#include "quern/Import/ONNX/Importer.h"
#include "quern/Support/Error.h"

#include "gtest/gtest.h"
#include <set>

using namespace quern;

namespace {

std::string text(llvm::Error error) {
  std::string message;
  takeError(std::move(error), message);
  return message;
}

/// What the cubins of a text must be like: NVRTC says nothing, nothing spills, and what is written
/// as vectors is read and written by 16 bytes.
void checkCubins(const Nvrtc &nvrtc, const std::string &name, const std::string &source) {
  SCOPED_TRACE(source);
  for (const char *chip : {"sm_80", "sm_90"}) {
    llvm::Expected<CudaBinary> binary = nvrtc.compile(source, name, chip);
    ASSERT_TRUE(bool(binary)) << text(binary.takeError());
    EXPECT_EQ(binary->target, chip);
    EXPECT_EQ(binary->log, "");
    auto kernels = readCubin(binary->data);
    ASSERT_TRUE(bool(kernels)) << text(kernels.takeError());
    ASSERT_EQ(kernels->count(name), 1u);
    const CubinKernel &kernel = kernels->at(name);
    std::string facts;
    llvm::raw_string_ostream os(facts);
    kernel.print(os);
    EXPECT_FALSE(kernel.spills()) << chip << ": " << facts;
    if (source.find("quern::load<4>(") != std::string::npos)
      EXPECT_GE(kernel.count("LDG.128"), 1) << chip << ": " << facts;
    if (source.find("quern::store(") != std::string::npos)
      EXPECT_GE(kernel.count("STG.128"), 1) << chip << ": " << facts;
  }
}

TEST(ModelCubins, Magika) {
  llvm::Expected<const Nvrtc &> nvrtc = Nvrtc::get();
  if (!nvrtc) {
    llvm::consumeError(nvrtc.takeError());
    GTEST_SKIP() << "no NVRTC on this machine";
  }
  std::unique_ptr<mlir::MLIRContext> context = createContext();
  auto module = onnx::importFile(*context, QUERN_MAGIKA);
  ASSERT_TRUE(bool(module)) << text(module.takeError());
  CompileOptions options;
  options.device = DeviceKind::CUDAEmulated; // the images are the texts
  options.cache = DiskCache();
  auto model = compileModel(**module, options);
  ASSERT_TRUE(bool(model)) << text(model.takeError());
  std::set<std::string> seen;
  unsigned pointwise = 0, rows = 0, vectors = 0;
  for (const quern_function *function : (*model)->functions())
    for (int32_t i = 0; i < function->num_kernels; ++i) {
      const quern_kernel &kernel = function->kernels[i];
      if (kernel.cpu || !seen.insert(kernel.name).second)
        continue;
      const quern_image &image = function->images[kernel.image];
      std::string source(static_cast<const char *>(image.data), image.size);
      pointwise += source.find("// pointwise") != std::string::npos;
      rows += source.find("// row reduction") != std::string::npos;
      vectors += source.find("quern::load<4>(") != std::string::npos;
      checkCubins(*nvrtc, kernel.name, source);
    }
  // The gates above would be empty without these.
  EXPECT_GE(pointwise, 3u);
  EXPECT_GE(rows, 3u);
  EXPECT_GE(vectors, 4u);
}

} // namespace
