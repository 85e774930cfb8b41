//===- FilesTest.cpp - .npy and .safetensors ------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Support/Error.h"
#include "quern/Support/Npy.h"
#include "quern/Support/Safetensors.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"

using namespace quern;
using llvm::StringRef;

namespace {
class Files : public ::testing::Test {
protected:
  void SetUp() override { llvm::sys::fs::createUniqueDirectory("quern-files", dir); }
  void TearDown() override { llvm::sys::fs::remove_directories(dir); }
  std::string path(StringRef name) const {
    llvm::SmallString<128> p(dir);
    llvm::sys::path::append(p, name);
    return p.str().str();
  }
  std::string write(StringRef name, StringRef bytes) const {
    std::error_code error;
    llvm::raw_fd_ostream os(path(name), error);
    os << bytes;
    return path(name);
  }
  /// A safetensors file with this header and this many data bytes.
  std::string writeHeader(StringRef json, size_t dataSize) const {
    std::string bytes(8, 0);
    llvm::support::endian::write64le(bytes.data(), json.size());
    return write("bad.safetensors", bytes + json.str() + std::string(dataSize, 0));
  }
  llvm::SmallString<128> dir;
};

template <typename T> std::string errorOf(llvm::Expected<T> result) {
  std::string text;
  if (!result)
    takeError(result.takeError(), text);
  return text;
}
} // namespace

TEST_F(Files, NpyRoundTrip) {
  for (unsigned i = 0; i < numDTypes; ++i) {
    HostTensor tensor = HostTensor::fromValues(DType(i), {3, 2}, {0, 1, 1, 0, 1, 1});
    std::string file = path("a.npy");
    llvm::Error error = writeNpy(file, tensor);
    if (DType(i) == DType::BF16) {
      std::string text;
      EXPECT_EQ(takeError(std::move(error), text), QUERN_UNSUPPORTED);
      continue;
    }
    ASSERT_FALSE(bool(error));
    llvm::Expected<HostTensor> read = readNpy(file);
    ASSERT_TRUE(bool(read));
    EXPECT_TRUE(read->sameBytes(tensor));
  }
  for (std::vector<int64_t> dims : {std::vector<int64_t>{}, {1}, {0, 4}}) {
    HostTensor tensor(DType::F32, dims);
    ASSERT_FALSE(bool(writeNpy(path("b.npy"), tensor)));
    llvm::Expected<HostTensor> read = readNpy(path("b.npy"));
    ASSERT_TRUE(bool(read));
    EXPECT_EQ(read->dims(), tensor.dims());
  }
}

static std::string npy(StringRef header, StringRef data) {
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += char(header.size());
  bytes += char(0);
  return bytes + header.str() + data.str();
}

TEST(Npy, ColumnMajor) {
  llvm::Expected<HostTensor> tensor =
      parseNpy(npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }\n",
                   StringRef("\1\4\2\5\3\6", 6)),
               "x.npy");
  ASSERT_TRUE(bool(tensor));
  for (int64_t i = 0; i < 6; ++i)
    EXPECT_EQ(tensor->getInt(i), i + 1);
}

TEST(Npy, Refused) {
  EXPECT_EQ(errorOf(parseNpy("hello, this is text", "x.npy")), "invalid: x.npy: not a .npy file");
  std::string good = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n",
                         StringRef("\0\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(errorOf(parseNpy(good, "x.npy")), "");
  EXPECT_EQ(errorOf(parseNpy(StringRef(good).drop_back(), "x.npy")),
            "invalid: x.npy: expected 8 bytes of data, got 7");
  EXPECT_EQ(errorOf(parseNpy(StringRef(good).take_front(20), "x.npy")),
            "invalid: x.npy: truncated header");
  EXPECT_EQ(errorOf(parseNpy(npy("{'descr': '>f4', 'fortran_order': False, 'shape': (), }", ""),
                             "x.npy")),
            "unsupported: x.npy: element type '>f4'");
  EXPECT_EQ(errorOf(parseNpy(npy("{'descr': '<f4', 'shape': (), }", ""), "x.npy")),
            "invalid: x.npy: malformed header");
  EXPECT_EQ(errorOf(parseNpy(npy("{'descr': '<f4', 'fortran_order': False, 'shape': "
                                 "(4611686018427387904, 4), }",
                                 ""),
                             "x.npy")),
            "invalid: x.npy: bad shape in the header");
  EXPECT_EQ(errorOf(readNpy("/nowhere/x.npy")),
            "invalid: /nowhere/x.npy: No such file or directory");
}

TEST_F(Files, SafetensorsRoundTrip) {
  HostTensor a = HostTensor::fromValues(DType::U8, {3}, {1, 2, 3});
  HostTensor b = HostTensor::fromValues(DType::F64, {}, {-0.5});
  HostTensor c(DType::BF16, {2, 0});
  std::string file = path("a.safetensors");
  ASSERT_FALSE(bool(writeSafetensors(file, {{"a", a}, {"b.c", b}, {"empty", c}})));
  llvm::Expected<Safetensors> read = Safetensors::open(file);
  ASSERT_TRUE(bool(read)) << errorOf(std::move(read));
  EXPECT_EQ(read->names().size(), 3u);
  EXPECT_TRUE(llvm::cantFail(read->get("a")).sameBytes(a));
  EXPECT_TRUE(llvm::cantFail(read->get("b.c")).sameBytes(b));
  EXPECT_TRUE(llvm::cantFail(read->get("empty")).sameBytes(c));
  EXPECT_EQ(errorOf(read->get("d")), "invalid: " + file + ": no tensor 'd'");
  // Writing to a view leaves the file alone.
  llvm::cantFail(read->get("a")).set(0, 77);
  EXPECT_EQ(llvm::cantFail(llvm::cantFail(Safetensors::open(file)).get("a")).getInt(0), 1);
  std::string text;
  EXPECT_EQ(takeError(writeSafetensors(file, {{"a", a}, {"a", b}}), text), QUERN_INVALID);
}

TEST_F(Files, SafetensorsRefused) {
  auto refused = [&](StringRef json, size_t dataSize) {
    std::string text = errorOf(Safetensors::open(writeHeader(json, dataSize)));
    std::string prefix = "invalid: " + path("bad.safetensors") + ": ";
    EXPECT_TRUE(StringRef(text).starts_with(prefix)) << text;
    return text.substr(std::min(prefix.size(), text.size()));
  };
  EXPECT_EQ(refused("[]", 0), "the header is no object");
  EXPECT_EQ(refused(R"({"t": 3})", 0), "tensor 't' is no object");
  EXPECT_EQ(refused(R"({"t": {"dtype": "F32"}})", 0),
            "tensor 't' lacks dtype, shape or data_offsets");
  EXPECT_EQ(refused(R"({"t": {"dtype": "F9", "shape": [], "data_offsets": [0, 4]}})", 4),
            "tensor 't' has the unknown dtype 'F9'");
  EXPECT_EQ(refused(R"({"t": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}})", 4),
            "tensor 't' has a bad shape");
  EXPECT_EQ(refused(R"({"t": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})", 4),
            "tensor 't' has data_offsets outside of the file");
  EXPECT_EQ(refused(R"({"t": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}})", 4),
            "tensor 't' has 4 bytes, expected 8");
  EXPECT_EQ(refused(R"({"t": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]},
                        "u": {"dtype": "U8", "shape": [2], "data_offsets": [1, 3]}})",
                    4),
            "tensor 'u' overlaps another one");
  // The length of the header is a lie.
  std::string file = write("long.safetensors", std::string(8, '\xff'));
  EXPECT_EQ(errorOf(Safetensors::open(file)),
            "invalid: " + file + ": a header of 18446744073709551615 bytes in a file of 8");
  EXPECT_EQ(errorOf(Safetensors::open(write("short.safetensors", "abc"))),
            "invalid: " + path("short.safetensors") + ": not a safetensors file");
  EXPECT_NE(errorOf(Safetensors::open(path("missing"))), "");
  EXPECT_NE(errorOf(Safetensors::open(dir)), "");
}

TEST_F(Files, SafetensorsUnaligned) {
  std::string file =
      writeHeader(R"({"t": {"dtype": "F32", "shape": [1], "data_offsets": [1, 5]}})", 5);
  llvm::Expected<Safetensors> read = Safetensors::open(file);
  ASSERT_TRUE(bool(read)) << errorOf(std::move(read));
  HostTensor tensor = llvm::cantFail(read->get("t"));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data()) % 4, 0u);
}
