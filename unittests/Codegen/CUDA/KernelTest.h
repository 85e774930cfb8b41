//===- KernelTest.h - Kernels on the emulated device and as cubins --------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A kernel written as linalg becomes text; the text runs on the emulated device, with
/// every access judged, and is compiled to cubins where NVRTC is at hand.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_UNITTESTS_CODEGEN_CUDA_KERNELTEST_H
#define QUERN_UNITTESTS_CODEGEN_CUDA_KERNELTEST_H

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "quern-c/Cuda.h"
#include "quern/Codegen/CUDA/Cubin.h"

#include "gtest/gtest.h"
#include <string>
#include <vector>

namespace quern::test {

/// A buffer of any element type as bytes.
struct Buffer {
  std::vector<char> bytes;
  template <class T> static Buffer of(const std::vector<T> &values) {
    Buffer buffer;
    buffer.bytes.resize(values.size() * sizeof(T));
    if (!values.empty())
      memcpy(buffer.bytes.data(), values.data(), buffer.bytes.size());
    return buffer;
  }
  template <class T> std::vector<T> as() const {
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!values.empty())
      memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
};

class KernelTest : public testing::Test {
protected:
  void SetUp() override;
  void TearDown() override;

  /// Schedules and prints the one kernel of `source`; its text, or "" and the diagnostics in
  /// `message`.
  std::string compile(const std::string &source);

  /// Runs the kernel last compiled: `ins`, and outs of these sizes in bytes. `share`: out i is
  /// the buffer of this in (-1: its own).
  std::vector<Buffer> run(const std::vector<Buffer> &ins, const std::vector<size_t> &outBytes,
                          const std::vector<int64_t> &dims, const std::vector<int> &share = {});

  /// The kernel last compiled as a cubin for sm_80 and sm_90, without warnings; empty when there is
  /// no NVRTC.
  std::vector<CubinKernel> cubins();

  mlir::MLIRContext context;
  std::string name, text, message;
  int threads = 0, numParameters = 0;
  /// Thread blocks by the kernel's own range function, for these dims.
  int64_t range(const std::vector<int64_t> &dims);

private:
  std::string rangeText;
  quern_device device = {};
};

} // namespace quern::test

#endif // QUERN_UNITTESTS_CODEGEN_CUDA_KERNELTEST_H
