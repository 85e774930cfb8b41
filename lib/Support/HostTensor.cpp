//===- HostTensor.cpp - Tensors in host memory ----------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Support/HostTensor.h"
#include "quern-c/Runtime.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/Compiler.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>
#include <cstring>

using namespace llvm;

namespace quern {

// In the order of the enumeration.
static constexpr DTypeInfo infos[numDTypes] = {
    {"f64", "float64", "F64", "<f8", {kDLFloat, 64, 1}, 8},
    {"f32", "float32", "F32", "<f4", {kDLFloat, 32, 1}, 4},
    {"f16", "float16", "F16", "<f2", {kDLFloat, 16, 1}, 2},
    {"bf16", "bfloat16", "BF16", "", {kDLBfloat, 16, 1}, 2},
    {"bool", "bool", "BOOL", "|b1", {QUERN_DL_BOOL, 8, 1}, 1},
    {"i8", "int8", "I8", "|i1", {kDLInt, 8, 1}, 1},
    {"i16", "int16", "I16", "<i2", {kDLInt, 16, 1}, 2},
    {"i32", "int32", "I32", "<i4", {kDLInt, 32, 1}, 4},
    {"i64", "int64", "I64", "<i8", {kDLInt, 64, 1}, 8},
    {"u8", "uint8", "U8", "|u1", {kDLUInt, 8, 1}, 1},
    {"u16", "uint16", "U16", "<u2", {kDLUInt, 16, 1}, 2},
    {"u32", "uint32", "U32", "<u4", {kDLUInt, 32, 1}, 4},
    {"u64", "uint64", "U64", "<u8", {kDLUInt, 64, 1}, 8},
};

const DTypeInfo &getInfo(DType dtype) { return infos[unsigned(dtype)]; }

bool isFloat(DType dtype) { return dtype <= DType::BF16; }
bool isInteger(DType dtype) { return dtype >= DType::I8; }
bool isSigned(DType dtype) { return isFloat(dtype) || (isInteger(dtype) && dtype <= DType::I64); }

static std::optional<DType> find(function_ref<bool(const DTypeInfo &)> matches) {
  for (unsigned i = 0; i < numDTypes; ++i)
    if (matches(infos[i]))
      return DType(i);
  return std::nullopt;
}

std::optional<DType> parseDType(StringRef text) {
  return find([&](const DTypeInfo &info) { return info.name == text; });
}
std::optional<DType> parseTorchDType(StringRef text) {
  return find([&](const DTypeInfo &info) { return info.torch == text; });
}
std::optional<DType> parseSafetensorsDType(StringRef text) {
  return find([&](const DTypeInfo &info) { return info.safetensors == text; });
}
std::optional<DType> parseNumpyDType(StringRef descr) {
  return find([&](const DTypeInfo &info) { return !info.numpy.empty() && info.numpy == descr; });
}
std::optional<DType> getDType(DLDataType type) {
  return find([&](const DTypeInfo &info) {
    return info.dlpack.code == type.code && info.dlpack.bits == type.bits &&
           info.dlpack.lanes == type.lanes;
  });
}

static float narrowToFloat(const fltSemantics &semantics, uint16_t bits) {
  APFloat value(semantics, APInt(16, bits));
  bool lost = false;
  value.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven, &lost);
  return value.convertToFloat();
}

static uint16_t floatToNarrow(const fltSemantics &semantics, float number) {
  APFloat value(number);
  bool lost = false;
  value.convert(semantics, APFloat::rmNearestTiesToEven, &lost);
  return uint16_t(value.bitcastToAPInt().getZExtValue());
}

float halfToFloat(uint16_t bits) { return narrowToFloat(APFloat::IEEEhalf(), bits); }
uint16_t floatToHalf(float value) { return floatToNarrow(APFloat::IEEEhalf(), value); }
float bfloat16ToFloat(uint16_t bits) { return bit_cast<float>(uint32_t(bits) << 16); }
uint16_t floatToBFloat16(float value) { return floatToNarrow(APFloat::BFloat(), value); }

std::optional<int64_t> HostTensor::countElements(DType dtype, ArrayRef<int64_t> dims) {
  // A zero anywhere makes the tensor empty, but the other sizes must still be sizes.
  int64_t count = 1;
  if (any_of(dims, [](int64_t d) { return d < 0; }))
    return std::nullopt;
  if (is_contained(dims, 0))
    return 0;
  for (int64_t d : dims)
    if (MulOverflow(count, d, count))
      return std::nullopt;
  int64_t size;
  if (MulOverflow(count, int64_t(sizeOf(dtype)), size))
    return std::nullopt;
  return count;
}

HostTensor::HostTensor(DType dtype, ArrayRef<int64_t> dims)
    : type(dtype), hasValue(true), sizes(dims.begin(), dims.end()) {
  std::optional<int64_t> elements = countElements(dtype, dims);
  if (!elements)
    report_fatal_error("HostTensor: bad dims");
  count = *elements;
  uint64_t size = alignTo(std::max<uint64_t>(numBytes(), 1), 64);
  bytes = std::aligned_alloc(64, size);
  if (!bytes)
    return; // the caller asks for `data`
  std::memset(bytes, 0, size);
  storage = std::shared_ptr<void>(bytes, std::free);
}

HostTensor HostTensor::view(DType dtype, ArrayRef<int64_t> dims, void *data,
                            std::shared_ptr<void> owner) {
  HostTensor tensor;
  tensor.type = dtype;
  tensor.hasValue = true;
  tensor.sizes.assign(dims.begin(), dims.end());
  std::optional<int64_t> elements = countElements(dtype, dims);
  if (!elements)
    report_fatal_error("HostTensor: bad dims");
  tensor.count = *elements;
  tensor.bytes = data;
  tensor.storage = std::move(owner);
  return tensor;
}

HostTensor HostTensor::fromValues(DType dtype, ArrayRef<int64_t> dims, ArrayRef<double> values) {
  HostTensor tensor(dtype, dims);
  assert(int64_t(values.size()) == tensor.count && "one value for each element");
  for (auto [i, value] : enumerate(values))
    tensor.set(i, value);
  return tensor;
}

double HostTensor::getDouble(int64_t i) const {
  switch (type) {
  case DType::F64:
    return as<double>()[i];
  case DType::F32:
    return as<float>()[i];
  case DType::F16:
    return halfToFloat(as<uint16_t>()[i]);
  case DType::BF16:
    return bfloat16ToFloat(as<uint16_t>()[i]);
  case DType::U64:
    return double(as<uint64_t>()[i]);
  default:
    return double(getInt(i));
  }
}

int64_t HostTensor::getInt(int64_t i) const {
  switch (type) {
  case DType::F64:
  case DType::F32:
  case DType::F16:
  case DType::BF16:
    return int64_t(getDouble(i));
  case DType::Bool:
    return as<uint8_t>()[i] != 0;
  case DType::I8:
    return as<int8_t>()[i];
  case DType::I16:
    return as<int16_t>()[i];
  case DType::I32:
    return as<int32_t>()[i];
  case DType::I64:
    return as<int64_t>()[i];
  case DType::U8:
    return as<uint8_t>()[i];
  case DType::U16:
    return as<uint16_t>()[i];
  case DType::U32:
    return as<uint32_t>()[i];
  case DType::U64:
    return int64_t(as<uint64_t>()[i]);
  }
  llvm_unreachable("every dtype is handled");
}

void HostTensor::set(int64_t i, double value) {
  switch (type) {
  case DType::F64:
    as<double>()[i] = value;
    return;
  case DType::F32:
    as<float>()[i] = float(value);
    return;
  case DType::F16:
    as<uint16_t>()[i] = floatToHalf(float(value));
    return;
  case DType::BF16:
    as<uint16_t>()[i] = floatToBFloat16(float(value));
    return;
  case DType::Bool:
    as<uint8_t>()[i] = value != 0;
    return;
  case DType::U64:
    as<uint64_t>()[i] = value < 0 ? uint64_t(int64_t(value)) : uint64_t(value);
    return;
  default:
    setInt(i, int64_t(value));
  }
}

void HostTensor::setInt(int64_t i, int64_t value) {
  switch (type) {
  case DType::F64:
  case DType::F32:
  case DType::F16:
  case DType::BF16:
    set(i, double(value));
    return;
  case DType::Bool:
    as<uint8_t>()[i] = value != 0;
    return;
  case DType::I8:
  case DType::U8:
    as<uint8_t>()[i] = uint8_t(value);
    return;
  case DType::I16:
  case DType::U16:
    as<uint16_t>()[i] = uint16_t(value);
    return;
  case DType::I32:
  case DType::U32:
    as<uint32_t>()[i] = uint32_t(value);
    return;
  case DType::I64:
  case DType::U64:
    as<uint64_t>()[i] = uint64_t(value);
    return;
  }
}

HostTensor HostTensor::clone() const {
  if (!hasValue)
    return {};
  HostTensor copy(type, sizes);
  if (count)
    std::memcpy(copy.bytes, bytes, numBytes());
  return copy;
}

HostTensor HostTensor::reshape(ArrayRef<int64_t> dims) const {
  assert(countElements(type, dims) == count && "the number of elements stays");
  return view(type, dims, bytes, storage);
}

HostTensor HostTensor::convert(DType to) const {
  HostTensor result(to, sizes);
  bool exact = isInteger(to) && !isFloat(type);
  for (int64_t i = 0; i < count; ++i) {
    if (exact)
      result.setInt(i, getInt(i));
    else
      result.set(i, getDouble(i));
  }
  return result;
}

bool HostTensor::sameBytes(const HostTensor &other) const {
  return type == other.type && sizes == other.sizes &&
         (count == 0 || std::memcmp(bytes, other.bytes, numBytes()) == 0);
}

DLTensor HostTensor::toDLPack() const {
  DLTensor tensor = {};
  tensor.data = bytes;
  tensor.device = {kDLCPU, 0};
  tensor.ndim = int32_t(sizes.size());
  tensor.dtype = getInfo(type).dlpack;
  // DLPack's fields are not const; nobody writes to a shape.
  tensor.shape = const_cast<int64_t *>(sizes.data());
  return tensor;
}

std::string HostTensor::typeString() const {
  std::string text;
  raw_string_ostream os(text);
  os << name(type) << '[';
  interleaveComma(sizes, os);
  os << ']';
  return text;
}

} // namespace quern
