//===- EmitTest.cpp - Sizes as index arithmetic ---------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "TestDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace quern;

namespace {

class EmitTest : public quern::test::ShapeTest {
protected:
  EmitTest() : module(ModuleOp::create(UnknownLoc::get(&ctx))), builder(&ctx) {
    builder.setInsertionPointToStart(module->getBody());
  }

  /// With constants for symbols everything folds: the value that comes out.
  int64_t folded(Dim d, function_ref<int64_t(StringRef)> valueOf) {
    Value value = emitDim(builder, builder.getUnknownLoc(), d, [&](StringRef name) -> Value {
      return arith::ConstantIndexOp::create(builder, builder.getUnknownLoc(), valueOf(name));
    });
    APInt result;
    EXPECT_TRUE(matchPattern(value, m_ConstantInt(&result))) << d.str();
    return result.getSExtValue();
  }
  bool folded(const Condition &c, function_ref<int64_t(StringRef)> valueOf) {
    Value value = c.emit(builder, builder.getUnknownLoc(), [&](StringRef name) -> Value {
      return arith::ConstantIndexOp::create(builder, builder.getUnknownLoc(), valueOf(name));
    });
    APInt result;
    EXPECT_TRUE(matchPattern(value, m_ConstantInt(&result))) << c.str();
    return result.getBoolValue();
  }

  OwningOpRef<ModuleOp> module;
  OpBuilder builder;
};

TEST_F(EmitTest, GivesTheValue) {
  for (StringRef text : {"7", "S", "2*S + 1", "S - 3*T", "floordiv(S, 2)", "floordiv(S - T, 3)",
                         "floordiv(T - S, T)", "ceildiv(S, T)", "ceildiv(S - 9*T, T)", "mod(S, 3)",
                         "mod(T - S, S)", "min(S, T)", "max(0, S - T)", "bcast(S, T)",
                         "bcast(U, T)", "floordiv(S*T + U, 4)*max(S, T, U)"}) {
    Dim d = dim(text);
    for (int64_t s : {1, 2, 5, 8})
      for (int64_t t : {1, 3, 4}) {
        auto valueOf = [&](StringRef name) { return name == "S" ? s : name == "T" ? t : 1; };
        EXPECT_EQ(folded(d, valueOf), d.evaluate(valueOf)) << text.str() << " " << s << " " << t;
      }
  }
}

TEST_F(EmitTest, Conditions) {
  auto valueOf = [](StringRef name) { return int64_t(name[0] - 'A'); };
  EXPECT_TRUE(folded(Condition::eq(dim("B + B"), dim("C")), valueOf));
  EXPECT_FALSE(folded(Condition::eq(dim("B"), dim("C")), valueOf));
  EXPECT_TRUE(folded(Condition::le(dim("B - C"), dim("A")), valueOf));
  EXPECT_FALSE(folded(Condition::lt(dim("A"), dim("A*B")), valueOf));
  EXPECT_TRUE(folded(Condition::divides(dim("C"), dim("E")), valueOf));
  EXPECT_FALSE(folded(Condition::divides(dim("C"), dim("D")), valueOf));
  // A is 0: only 0 is a multiple of it, and nothing divides by zero.
  EXPECT_FALSE(folded(Condition::divides(dim("A"), dim("D")), valueOf));
  EXPECT_TRUE(folded(Condition::broadcastable(dim("B"), dim("D")), valueOf));
  EXPECT_FALSE(folded(Condition::broadcastable(dim("C"), dim("D")), valueOf));
}

TEST_F(EmitTest, ConditionsOnSizesThatAreNotExactDoNotHold) {
  int64_t large = int64_t(1) << 40;
  auto valueOf = [&](StringRef name) {
    return name == "L" ? large : name == "Z" ? 0 : name == "N" ? 3 : 1;
  };
  for (StringRef text :
       {"L*L", "-L*L", "8388608*L*N", "L*L - L*L*Z", "floordiv(N, Z)", "ceildiv(N, N - 4)",
        "mod(N, Z)", "min(L*L, 4)", "4194304*L + 4194304*L*N - L*L*Z"}) {
    Dim d = dim(text);
    EXPECT_FALSE(folded(Condition::exact(d), valueOf)) << text.str();
    EXPECT_FALSE(folded(Condition::eq(d, d + 0), valueOf)) << text.str();
    EXPECT_FALSE(folded(Condition::le(d, dim("L")), valueOf)) << text.str();
  }
  for (StringRef text : {"L", "4194304*L", "-8388608*L", "L*L*Z", "floordiv(L, N)", "N*N"})
    EXPECT_EQ(folded(Condition::exact(dim(text)), valueOf), text != "L*L*Z") << text.str();
  // One part of a choice may hold where another has no value.
  EXPECT_TRUE(folded(Condition::anyOf({Condition::eq(dim("floordiv(N, Z)"), dim("N")),
                                       Condition::eq(dim("N"), dim("3"))}),
                     valueOf));
}

TEST_F(EmitTest, RepeatedPartsAreEmittedOnce) {
  Block &block = *module->getBody();
  Value s = block.addArgument(builder.getIndexType(), builder.getUnknownLoc());
  Value t = block.addArgument(builder.getIndexType(), builder.getUnknownLoc());
  Dim part = dim("floordiv(S + T, 4)");
  Dim d = part * part + Dim::max(part, sym("T")) + part * sym("S");
  emitDim(builder, builder.getUnknownLoc(), d, [&](StringRef name) { return name == "S" ? s : t; });
  unsigned divisions = 0;
  for (Operation &op : block)
    divisions += isa<arith::DivUIOp>(op);
  EXPECT_EQ(divisions, 1u);
}

} // namespace
