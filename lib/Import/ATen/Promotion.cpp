//===- Promotion.cpp - ATen's promotion of dtypes -------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Import/ATen/Promotion.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;

namespace quern::aten {

Type promoteTypes(Type a, Type b) {
  if (a == b || isBool(b))
    return a;
  if (isBool(a))
    return b;
  auto floatA = dyn_cast<FloatType>(a), floatB = dyn_cast<FloatType>(b);
  if (floatA && floatB) {
    if (floatA.getWidth() != floatB.getWidth())
      return floatA.getWidth() > floatB.getWidth() ? a : b;
    return Float32Type::get(a.getContext()); // f16 and bf16
  }
  if (floatA || floatB)
    return floatA ? a : b;
  auto intA = cast<IntegerType>(a), intB = cast<IntegerType>(b);
  if (intA.isUnsigned() == intB.isUnsigned())
    return intA.getWidth() > intB.getWidth() ? a : b;
  IntegerType isSigned = intA.isUnsigned() ? intB : intA;
  IntegerType isUnsigned = intA.isUnsigned() ? intA : intB;
  if (isSigned.getWidth() > isUnsigned.getWidth())
    return isSigned;
  if (isUnsigned.getWidth() == 64)
    return {};
  return IntegerType::get(a.getContext(), 2 * isUnsigned.getWidth());
}

/// The kinds in ascending order: a lower category only counts with a higher kind.
static int kindOf(Type dtype) { return isBool(dtype) ? 0 : isa<IntegerType>(dtype) ? 1 : 2; }

Type promote(ArrayRef<PromotionOperand> operands) {
  Type result;
  for (Category category : {Category::Tensor, Category::ScalarTensor, Category::Number}) {
    Type ofCategory;
    for (const PromotionOperand &operand : operands) {
      if (operand.category != category)
        continue;
      ofCategory = ofCategory ? promoteTypes(ofCategory, operand.dtype) : operand.dtype;
      if (!ofCategory)
        return {};
    }
    if (!ofCategory)
      continue;
    if (!result)
      result = ofCategory;
    else if (kindOf(ofCategory) > kindOf(result))
      result = promoteTypes(result, ofCategory);
  }
  return result;
}

Type toFloatType(Type dtype) {
  return isa<FloatType>(dtype) ? dtype : Float32Type::get(dtype.getContext());
}

} // namespace quern::aten
