//===- Promotion.h - ATen's promotion of dtypes -----------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The one place of type promotion. Quern's ops are strict: operands have one
/// dtype. Builders for people promote as PyTorch does
/// (pytorch.org/docs/stable/tensor_attributes.html, "type promotion").
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_IMPORT_ATEN_PROMOTION_H
#define QUERN_IMPORT_ATEN_PROMOTION_H

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/ArrayRef.h"

namespace quern::aten {

/// What promotion sees of an operand. Tensors with dims outrank scalar tensors, and
/// these outrank numbers: a lower one only counts when it is of a higher kind
/// (bool < integer < float).
enum class Category : uint8_t { Tensor, ScalarTensor, Number };

struct PromotionOperand {
  mlir::Type dtype;
  Category category = Category::Tensor;
};

/// The smallest dtype that both fit, as torch.promote_types; null where there is
/// none (u64 with a signed integer).
mlir::Type promoteTypes(mlir::Type a, mlir::Type b);

/// The dtype of an operation on these, as torch.result_type. Null where there is none.
mlir::Type promote(llvm::ArrayRef<PromotionOperand> operands);

/// f32 for integers and bool (what exp or true division gives), else the type itself.
mlir::Type toFloatType(mlir::Type dtype);

inline bool isBool(mlir::Type dtype) { return dtype.isInteger(1); }
inline bool isIntegral(mlir::Type dtype) {
  return mlir::isa<mlir::IntegerType>(dtype) && !isBool(dtype);
}

} // namespace quern::aten
#endif // QUERN_IMPORT_ATEN_PROMOTION_H
