//===- HostTensorTest.cpp -------------------------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Support/HostTensor.h"
#include "quern/Support/Error.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace quern;

TEST(DType, NamesRoundTrip) {
  for (unsigned i = 0; i < numDTypes; ++i) {
    DType dtype = DType(i);
    const DTypeInfo &info = getInfo(dtype);
    EXPECT_EQ(parseDType(info.name), dtype);
    EXPECT_EQ(parseTorchDType(info.torch), dtype);
    EXPECT_EQ(parseSafetensorsDType(info.safetensors), dtype);
    EXPECT_EQ(getDType(info.dlpack), dtype);
    EXPECT_EQ(info.dlpack.bits, info.size * 8);
  }
  EXPECT_EQ(parseNumpyDType("<f4"), DType::F32);
  EXPECT_EQ(parseNumpyDType(""), std::nullopt);
  EXPECT_EQ(parseNumpyDType(">f4"), std::nullopt);
  EXPECT_TRUE(isFloat(DType::BF16));
  EXPECT_FALSE(isInteger(DType::Bool));
  EXPECT_FALSE(isSigned(DType::U8));
  EXPECT_TRUE(isSigned(DType::I64));
}

TEST(DType, NarrowFloats) {
  // Every finite half and bfloat16 survives the way to f32 and back.
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    if (float value = halfToFloat(bits); !std::isnan(value))
      EXPECT_EQ(floatToHalf(value), bits);
    if (float value = bfloat16ToFloat(bits); !std::isnan(value))
      EXPECT_EQ(floatToBFloat16(value), bits);
  }
  EXPECT_EQ(floatToHalf(1.0f + 0x1p-11f), 0x3c00); // a tie goes to even
  EXPECT_EQ(floatToHalf(65520.0f), 0x7c00);        // past the largest: infinity
  EXPECT_EQ(floatToBFloat16(1.0f + 0x1p-8f), 0x3f80);
  EXPECT_EQ(halfToFloat(1), 0x1p-24f);
  EXPECT_TRUE(std::isnan(halfToFloat(floatToHalf(NAN))));
}

TEST(HostTensor, OwnsAlignedZeros) {
  HostTensor tensor(DType::F32, {2, 3});
  EXPECT_EQ(tensor.numElements(), 6);
  EXPECT_EQ(tensor.numBytes(), 24u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data()) % 64, 0u);
  for (int64_t i = 0; i < 6; ++i)
    EXPECT_EQ(tensor.as<float>()[i], 0.0f);
  EXPECT_EQ(tensor.typeString(), "f32[2, 3]");
}

TEST(HostTensor, ElementAccess) {
  for (unsigned i = 0; i < numDTypes; ++i) {
    HostTensor tensor(DType(i), {2});
    tensor.set(0, 1);
    tensor.setInt(1, 1);
    EXPECT_EQ(tensor.getDouble(0), 1.0);
    EXPECT_EQ(tensor.getInt(1), 1);
  }
  HostTensor ints(DType::I64, {1});
  ints.setInt(0, (int64_t(1) << 53) + 1);
  EXPECT_EQ(ints.getInt(0), (int64_t(1) << 53) + 1);
  EXPECT_EQ(ints.convert(DType::I64).getInt(0), (int64_t(1) << 53) + 1);
  EXPECT_EQ(HostTensor::fromValues(DType::F32, {1}, {-2.75}).convert(DType::I32).getInt(0), -2);
  EXPECT_EQ(HostTensor::fromValues(DType::F32, {1}, {0.5}).convert(DType::Bool).getInt(0), 1);
}

TEST(HostTensor, CopiesShareClonesDoNot) {
  HostTensor a = HostTensor::fromValues(DType::F32, {2}, {1, 2});
  HostTensor shared = a, copy = a.clone();
  a.set(0, 9);
  EXPECT_EQ(shared.getDouble(0), 9);
  EXPECT_EQ(copy.getDouble(0), 1);
  EXPECT_FALSE(a.sameBytes(copy));
  EXPECT_TRUE(a.sameBytes(shared.reshape({2})));
}

TEST(HostTensor, DLPack) {
  HostTensor tensor(DType::BF16, {4, 1});
  DLTensor view = tensor.toDLPack();
  EXPECT_EQ(view.data, tensor.data());
  EXPECT_EQ(view.ndim, 2);
  EXPECT_EQ(view.shape[0], 4);
  EXPECT_EQ(view.strides, nullptr);
  EXPECT_EQ(view.dtype.code, kDLBfloat);
}

TEST(HostTensor, CountsWithoutOverflow) {
  EXPECT_EQ(HostTensor::countElements(DType::F32, {}), 1);
  EXPECT_EQ(HostTensor::countElements(DType::F32, {0, int64_t(1) << 62}), 0);
  EXPECT_EQ(HostTensor::countElements(DType::F32, {-1}), std::nullopt);
  EXPECT_EQ(HostTensor::countElements(DType::F32, {0, -1}), std::nullopt);
  EXPECT_EQ(HostTensor::countElements(DType::U8, {int64_t(1) << 32, int64_t(1) << 32}),
            std::nullopt);
  EXPECT_EQ(HostTensor::countElements(DType::F64, {int64_t(1) << 61}), std::nullopt);
}

TEST(Error, KnowsItsExitCode) {
  std::string text;
  EXPECT_EQ(takeError(invalidInput("m.onnx: no graph"), text), QUERN_INVALID);
  EXPECT_EQ(text, "invalid: m.onnx: no graph");
  EXPECT_EQ(takeError(unsupported("op Foo"), text), QUERN_UNSUPPORTED);
  EXPECT_EQ(text, "unsupported: op Foo");
  EXPECT_EQ(takeError(runtimeError("no memory"), text), QUERN_ERROR);
  EXPECT_EQ(text, "no memory");
  EXPECT_EQ(takeError(llvm::Error::success(), text), QUERN_OK);
  EXPECT_EQ(text, "");
  EXPECT_EQ(takeError(llvm::createStringError("other"), text), QUERN_ERROR);
}
