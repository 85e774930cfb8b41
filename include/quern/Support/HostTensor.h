//===- HostTensor.h - Tensors in host memory --------------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A row-major contiguous tensor in host memory, as read from a file, given to a
/// compiled function and compared with another. And `DType`, the element types
/// with their names in every format that Quern reads, in one table.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_SUPPORT_HOSTTENSOR_H
#define QUERN_SUPPORT_HOSTTENSOR_H

#include <dlpack/dlpack.h>

#include "quern/Support/DType.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace quern {

/// What there is to know of an element type.
struct DTypeInfo {
  llvm::StringLiteral name;        ///< Quern's, in messages: f32, i64, bool, u8
  llvm::StringLiteral torch;       ///< float32, int64, bool, uint8
  llvm::StringLiteral safetensors; ///< F32, I64, BOOL, U8
  llvm::StringLiteral numpy;       ///< descr of .npy: <f4, <i8, |b1, |u1; empty: none (bf16)
  DLDataType dlpack;
  unsigned size; ///< bytes
};

const DTypeInfo &getInfo(DType dtype);
inline llvm::StringRef name(DType dtype) { return getInfo(dtype).name; }
inline unsigned sizeOf(DType dtype) { return getInfo(dtype).size; }
bool isFloat(DType dtype);
/// Integers; bool is none.
bool isInteger(DType dtype);
bool isSigned(DType dtype);
std::optional<DType> parseDType(llvm::StringRef quernName);
std::optional<DType> parseTorchDType(llvm::StringRef torchName);
std::optional<DType> parseSafetensorsDType(llvm::StringRef name);
/// By descr (`<f4`); big-endian ones are not known.
std::optional<DType> parseNumpyDType(llvm::StringRef descr);
std::optional<DType> getDType(DLDataType type);

/// Conversions between the narrow float formats' bits and f32; to the nearest,
/// ties to even, NaN stays NaN.
float halfToFloat(uint16_t bits);
uint16_t floatToHalf(float value);
float bfloat16ToFloat(uint16_t bits);
uint16_t floatToBFloat16(float value);

/// A tensor in host memory. Copies share the bytes (`clone` does not). Bytes that
/// it owns are 64-byte aligned and start as zeros.
class HostTensor {
public:
  HostTensor() = default;
  /// `data` is null where there is not enough memory.
  HostTensor(DType dtype, llvm::ArrayRef<int64_t> dims);
  /// Bytes that someone else holds; `owner` keeps them alive (may be null).
  static HostTensor view(DType dtype, llvm::ArrayRef<int64_t> dims, void *data,
                         std::shared_ptr<void> owner = nullptr);
  /// A tensor with these values, converted to `dtype` (see `set`).
  static HostTensor fromValues(DType dtype, llvm::ArrayRef<int64_t> dims,
                               llvm::ArrayRef<double> values);

  explicit operator bool() const { return hasValue; }
  DType dtype() const { return type; }
  llvm::ArrayRef<int64_t> dims() const { return sizes; }
  int64_t rank() const { return sizes.size(); }
  int64_t numElements() const { return count; }
  uint64_t numBytes() const { return uint64_t(count) * sizeOf(type); }
  void *data() { return bytes; }
  const void *data() const { return bytes; }
  template <typename T> T *as() { return static_cast<T *>(bytes); }
  template <typename T> const T *as() const { return static_cast<const T *>(bytes); }

  /// Element i in row-major order as a double (64-bit integers may be rounded).
  double getDouble(int64_t i) const;
  /// Element i as a 64-bit integer: floats are truncated, u64 keeps its bits.
  int64_t getInt(int64_t i) const;
  /// Sets element i: f16 and bf16 round from f32 (as PyTorch does), integers
  /// truncate, bool is `value != 0`.
  void set(int64_t i, double value);
  void setInt(int64_t i, int64_t value);

  HostTensor clone() const;
  /// The same bytes with other dims of the same number of elements.
  HostTensor reshape(llvm::ArrayRef<int64_t> dims) const;
  HostTensor convert(DType to) const;
  bool sameBytes(const HostTensor &other) const;

  /// The tensor for a call. Valid while this object lives and is not moved.
  DLTensor toDLPack() const;
  /// `f32[2, 3]`, for messages.
  std::string typeString() const;

  /// The number of elements, or nothing when a dim is negative or the size in
  /// bytes does not fit 63 bits.
  static std::optional<int64_t> countElements(DType dtype, llvm::ArrayRef<int64_t> dims);

private:
  DType type = DType::F32;
  bool hasValue = false;
  int64_t count = 0;
  std::vector<int64_t> sizes;
  void *bytes = nullptr;
  std::shared_ptr<void> storage;
};

} // namespace quern
#endif // QUERN_SUPPORT_HOSTTENSOR_H
