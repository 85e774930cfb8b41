//===- NVRTCTest.cpp - Compiling device code, reading cubins --------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Codegen/CUDA/NVRTC.h"
#include "quern/Codegen/CUDA/Cubin.h"
#include "quern/Support/Error.h"

#include "gtest/gtest.h"

using namespace quern;

namespace {

const char copyText[] =
    "#include \"quern.cuh\"\n"
    "\n"
    "extern \"C\" __global__ void __launch_bounds__(256)\n"
    "    copy(const float *__restrict__ in, float *__restrict__ out, long long n) {\n"
    "  const long long first = (blockIdx.x * 256ll + threadIdx.x) * 4;\n"
    "  if (first < n)\n"
    "    quern::store(out + first, quern::load<4>(in + first, n - first), n - first);\n"
    "}\n";

std::string text(llvm::Error error) {
  std::string message;
  takeError(std::move(error), message);
  return message;
}

class NvrtcTest : public testing::Test {
protected:
  void SetUp() override {
    llvm::Expected<const Nvrtc &> opened = Nvrtc::get();
    if (!opened) {
      llvm::consumeError(opened.takeError());
      GTEST_SKIP() << "no NVRTC on this machine";
    }
    nvrtc = &*opened;
  }
  const Nvrtc *nvrtc = nullptr;
};

TEST_F(NvrtcTest, CompilesForEachChipWithoutSpillsByVectors) {
  for (const char *chip : {"sm_80", "sm_90"}) {
    llvm::Expected<CudaBinary> binary = nvrtc->compile(copyText, "copy", chip);
    ASSERT_TRUE(bool(binary)) << text(binary.takeError());
    EXPECT_EQ(binary->log, "");
    EXPECT_EQ(binary->target, chip);
    auto kernels = readCubin(binary->data);
    ASSERT_TRUE(bool(kernels)) << text(kernels.takeError());
    ASSERT_EQ(kernels->count("copy"), 1u);
    const CubinKernel &copy = kernels->at("copy");
    EXPECT_FALSE(copy.spills());
    EXPECT_GT(copy.registers, 4u);
    EXPECT_LT(copy.registers, 40u);
    EXPECT_EQ(copy.count("LDG.128"), 1);
    EXPECT_EQ(copy.count("STG.128"), 1);
  }
}

TEST_F(NvrtcTest, CutCubinsAreRefused) {
  llvm::Expected<CudaBinary> binary = nvrtc->compile(copyText, "copy", "sm_80");
  ASSERT_TRUE(bool(binary));
  for (size_t size : {size_t(0), size_t(20), size_t(64), binary->data.size() / 2}) {
    auto kernels = readCubin(llvm::StringRef(binary->data).take_front(size));
    EXPECT_FALSE(bool(kernels)) << size;
    EXPECT_NE(text(kernels.takeError()).find("invalid: not a cubin"), std::string::npos);
  }
}

TEST_F(NvrtcTest, Ptx) {
  llvm::Expected<CudaBinary> binary = nvrtc->compile(copyText, "copy", "compute_80");
  ASSERT_TRUE(bool(binary)) << text(binary.takeError());
  EXPECT_NE(binary->data.find(".visible .entry copy("), std::string::npos);
}

TEST_F(NvrtcTest, ARefusedTextShowsItsLines) {
  std::string broken = copyText;
  broken.replace(broken.find("first < n"), 9, "first < m");
  llvm::Expected<CudaBinary> binary = nvrtc->compile(broken, "copy", "sm_90");
  ASSERT_FALSE(bool(binary));
  std::string message = text(binary.takeError());
  EXPECT_NE(message.find("refuses kernel 'copy' for sm_90 (text dumped to "), std::string::npos)
      << message;
  EXPECT_NE(message.find("     5 |   const long long first"), std::string::npos) << message;
  EXPECT_NE(message.find(">    6 |   if (first < m)"), std::string::npos) << message;
  EXPECT_NE(message.find("identifier \"m\" is undefined"), std::string::npos) << message;
}

TEST_F(NvrtcTest, UnknownChips) {
  llvm::Expected<CudaBinary> binary = nvrtc->compile(copyText, "copy", "sm_70");
  ASSERT_FALSE(bool(binary));
  EXPECT_EQ(text(binary.takeError()).find("unsupported: NVRTC "), 0u);
  EXPECT_EQ(text(nvrtc->targetFor("gfx900").takeError()),
            "invalid: expected a chip such as sm_90, got 'gfx900'");
  EXPECT_EQ(text(nvrtc->targetFor("sm_20").takeError()).find("unsupported: "), 0u);
  EXPECT_EQ(*nvrtc->targetFor("sm_90"), "sm_90");
  EXPECT_EQ(*nvrtc->targetFor("sm_999"),
            "compute_" + std::to_string(nvrtc->architectures().back()));
}

} // namespace
