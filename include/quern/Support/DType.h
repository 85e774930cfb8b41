//===- DType.h - Element types ----------------------------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_SUPPORT_DTYPE_H
#define QUERN_SUPPORT_DTYPE_H

#include <cstdint>

namespace quern {

enum class DType : uint8_t { F64, F32, F16, BF16, Bool, I8, I16, I32, I64, U8, U16, U32, U64 };
inline constexpr unsigned numDTypes = 13;

} // namespace quern

#endif // QUERN_SUPPORT_DTYPE_H
