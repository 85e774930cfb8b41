//===- PromotionTest.cpp --------------------------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Import/ATen/Promotion.h"
#include "mlir/IR/MLIRContext.h"
#include "quern/Import/ATen/ATen.h"
#include "gtest/gtest.h"

using namespace quern;
using namespace quern::aten;

namespace {
class Promotion : public ::testing::Test {
protected:
  mlir::Type type(DType dtype) { return getElementType(&context, dtype); }
  std::optional<DType> both(DType a, DType b) {
    mlir::Type result = promoteTypes(type(a), type(b));
    return result ? getDType(result) : std::nullopt;
  }
  std::optional<DType> of(std::vector<std::pair<DType, Category>> operands) {
    std::vector<PromotionOperand> list;
    for (auto [dtype, category] : operands)
      list.push_back({type(dtype), category});
    mlir::Type result = promote(list);
    return result ? getDType(result) : std::nullopt;
  }
  mlir::MLIRContext context;
};
constexpr Category tensor = Category::Tensor, scalar = Category::ScalarTensor,
                   number = Category::Number;
} // namespace

TEST_F(Promotion, TypesRoundTrip) {
  for (unsigned i = 0; i < numDTypes; ++i)
    EXPECT_EQ(getDType(type(DType(i))), DType(i));
}

// torch.promote_types, PyTorch 2.15.
TEST_F(Promotion, Pairs) {
  EXPECT_EQ(both(DType::F16, DType::BF16), DType::F32);
  EXPECT_EQ(both(DType::F16, DType::F32), DType::F32);
  EXPECT_EQ(both(DType::F32, DType::F64), DType::F64);
  EXPECT_EQ(both(DType::I64, DType::F16), DType::F16);
  EXPECT_EQ(both(DType::Bool, DType::U8), DType::U8);
  EXPECT_EQ(both(DType::U8, DType::I8), DType::I16);
  EXPECT_EQ(both(DType::U8, DType::I32), DType::I32);
  EXPECT_EQ(both(DType::I32, DType::I64), DType::I64);
  EXPECT_EQ(both(DType::U32, DType::I32), DType::I64);
  EXPECT_EQ(both(DType::U64, DType::I64), std::nullopt);
  for (unsigned a = 0; a < numDTypes; ++a)
    for (unsigned b = 0; b < numDTypes; ++b)
      EXPECT_EQ(both(DType(a), DType(b)), both(DType(b), DType(a)));
}

// torch.result_type: a lower category only counts with a higher kind.
TEST_F(Promotion, Categories) {
  EXPECT_EQ(of({{DType::F32, tensor}, {DType::F64, scalar}}), DType::F32);
  EXPECT_EQ(of({{DType::F16, tensor}, {DType::F32, number}}), DType::F16);
  EXPECT_EQ(of({{DType::I32, tensor}, {DType::F32, number}}), DType::F32);
  EXPECT_EQ(of({{DType::I32, tensor}, {DType::F64, scalar}}), DType::F64);
  EXPECT_EQ(of({{DType::U8, tensor}, {DType::I64, number}}), DType::U8);
  EXPECT_EQ(of({{DType::Bool, tensor}, {DType::I64, number}}), DType::I64);
  EXPECT_EQ(of({{DType::F32, scalar}, {DType::F64, tensor}}), DType::F64);
  EXPECT_EQ(of({{DType::I64, scalar}, {DType::I64, number}}), DType::I64);
  EXPECT_EQ(of({{DType::Bool, number}, {DType::Bool, tensor}}), DType::Bool);
  EXPECT_EQ(of({{DType::BF16, tensor}, {DType::F16, scalar}, {DType::F32, number}}), DType::BF16);
  EXPECT_EQ(of({{DType::F16, tensor}, {DType::BF16, tensor}}), DType::F32);
}
