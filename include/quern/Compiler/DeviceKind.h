//===- DeviceKind.h - Where kernels run -------------------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_COMPILER_DEVICEKIND_H
#define QUERN_COMPILER_DEVICEKIND_H

#include <cstdint>

namespace quern {

enum class DeviceKind : uint8_t { CPU, CUDA, CUDAEmulated };

} // namespace quern

#endif // QUERN_COMPILER_DEVICEKIND_H
