//===- DTypes.h - Element types as MLIR types -------------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_DIALECT_QUERN_IR_DTYPES_H
#define QUERN_DIALECT_QUERN_IR_DTYPES_H

#include "mlir/IR/Types.h"
#include "quern/Support/DType.h"
#include <optional>

namespace quern {

/// The element type of a dtype: bool is i1, signed integers are signless.
mlir::Type getElementType(mlir::MLIRContext *ctx, DType dtype);
/// The other way round; nothing for types that no tensor has.
std::optional<DType> getDType(mlir::Type type);

} // namespace quern

#endif // QUERN_DIALECT_QUERN_IR_DTYPES_H
