//===- DTypes.cpp - Element types as MLIR types ---------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Dialect/Quern/IR/DTypes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "quern/Support/HostTensor.h"

using namespace mlir;

namespace quern {

Type getElementType(MLIRContext *ctx, DType dtype) {
  switch (dtype) {
  case DType::F64:
    return Float64Type::get(ctx);
  case DType::F32:
    return Float32Type::get(ctx);
  case DType::F16:
    return Float16Type::get(ctx);
  case DType::BF16:
    return BFloat16Type::get(ctx);
  case DType::Bool:
    return IntegerType::get(ctx, 1);
  default:
    return IntegerType::get(ctx, 8 * sizeOf(dtype),
                            isSigned(dtype) ? IntegerType::Signless : IntegerType::Unsigned);
  }
}

std::optional<DType> getDType(Type type) {
  for (unsigned i = 0; i < numDTypes; ++i)
    if (getElementType(type.getContext(), DType(i)) == type)
      return DType(i);
  return std::nullopt;
}

} // namespace quern
