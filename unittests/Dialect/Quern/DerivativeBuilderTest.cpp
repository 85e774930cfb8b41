//===- DerivativeBuilderTest.cpp ------------------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Dialect/Quern/IR/DerivativeBuilder.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "quern/Dialect/Quern/IR/Quern.h"
#include "llvm/ADT/BitVector.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace quern;

// A rule that makes an op which its meta function refuses fails; it does not end the process.
TEST(DerivativeBuilder, IllTypedOpsFail) {
  MLIRContext context;
  context.loadDialect<QuernDialect>();
  std::vector<std::string> errors;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    errors.push_back(diagnostic.str());
    return success();
  });
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  OpBuilder b(module->getBodyRegion());
  auto full = [&](int64_t size) {
    Dim dim = Dim::constant(&context, size);
    NamedAttribute attrs[] = {b.getNamedAttr("size", DimsAttr::get(&context, dim)),
                              b.getNamedAttr("fill_value", b.getF64FloatAttr(1)),
                              b.getNamedAttr("dtype", TypeAttr::get(b.getF32Type()))};
    return (*tryCreate(b, b.getUnknownLoc(), "full", {}, attrs))->getResult(0);
  };
  Value three = full(3), four = full(4);
  Operation *op = *tryCreate(b, b.getUnknownLoc(), "exp", {three});
  DerivativeBuilder rule(b, op, {three}, llvm::BitVector(1, true));
  EXPECT_FALSE(rule.failed());
  Value wrong = rule.create("mul", {rule.grad(0), four});
  EXPECT_TRUE(rule.failed());
  // The rule goes on with what it got.
  rule.set(0, Term(rule.create("neg", {wrong})));
  EXPECT_EQ(rule.getGradients()[0], Value());
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_EQ(errors[0],
            "'quern.mul' op mul_c2: expected other dim 0 to equal self dim 0 or to be 1, "
            "got 4 and 3");
  EXPECT_NE(errors[1].find("internal: the derivative makes an op that is refused"),
            std::string::npos);
}
