//===- MetaTest.cpp - What meta functions report --------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Shape/Meta.h"
#include "TestDialect.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace quern;

namespace {

class MetaTest : public quern::test::ShapeTest {
protected:
  TensorMeta tensor(StringRef name, ArrayRef<Dim> dims) {
    return {name, SmallVector<Dim>(dims), Float32Type::get(&ctx)};
  }

  /// The check of mm: `k` of self and of mat2.
  MetaResult mm(Dim a, Dim b, const Facts *facts = nullptr) {
    MetaContext meta(&ctx, "mm", facts);
    meta.check(2, Condition::eq(a, b),
               "expected self dim {0} (K) to equal mat2 dim 0, got {1} and {2}",
               {int64_t(1), a, b});
    return meta.take();
  }

  /// The result of a broadcast of these.
  SmallVector<Dim> broadcast(MetaContext &meta, ArrayRef<Dim> a, ArrayRef<Dim> b) {
    SmallVector<Dim> dims(a);
    meta.broadcast(1, dims, "self", tensor("other", b));
    return dims;
  }
};

TEST_F(MetaTest, KnownFalseIsTheWholeMessage) {
  EXPECT_EQ(mm(num(768), num(512)).error,
            "'quern.mm' op mm_c2: expected self dim 1 (K) to equal mat2 dim 0, got 768 and 512");
  EXPECT_EQ(mm(sym("K"), dim("K + 1")).error,
            "'quern.mm' op mm_c2: expected self dim 1 (K) to equal mat2 dim 0, got K and K + 1");
  EXPECT_TRUE(mm(num(4), num(4)).ok);
  EXPECT_TRUE(mm(num(4), num(4)).undecided.empty());
}

TEST_F(MetaTest, UndecidedIsCollected) {
  MetaResult result = mm(sym("K"), num(512));
  EXPECT_TRUE(result.ok);
  ASSERT_EQ(result.undecided.size(), 1u);
  const UndecidedCheck &check = result.undecided.front();
  EXPECT_EQ(check.id, "mm_c2");
  EXPECT_EQ(check.condition, Condition::eq(sym("K"), num(512)));
  EXPECT_EQ(check.text,
            "'quern.mm' op mm_c2: expected self dim 1 (K) to equal mat2 dim 0, got {0} and 512");
  EXPECT_EQ(check.values, SmallVector<Dim>{sym("K")});
}

TEST_F(MetaTest, UnknownSaysNothing) {
  MetaResult result = mm(unknown(), num(512));
  EXPECT_TRUE(result.ok);
  EXPECT_TRUE(result.undecided.empty());
}

TEST_F(MetaTest, FactsDecide) {
  Facts facts;
  facts.assume(Condition::eq(sym("K"), num(512)));
  EXPECT_TRUE(mm(sym("K"), num(512), &facts).undecided.empty());
  EXPECT_FALSE(mm(sym("K"), num(768), &facts).ok);
}

TEST_F(MetaTest, CollectedConditionsHoldFromThereOn) {
  MetaContext meta(&ctx, "cat");
  EXPECT_TRUE(meta.check(1, Condition::eq(sym("A"), sym("B")), "{0} {1}", {sym("A"), sym("B")}));
  EXPECT_TRUE(meta.check(1, Condition::eq(sym("B"), sym("A")), "{0} {1}", {sym("B"), sym("A")}));
  EXPECT_EQ(meta.decide(Condition::eq(sym("A"), sym("B"))), Truth::True);
  EXPECT_FALSE(meta.check(2, Condition::lt(sym("A"), sym("B")), "{0} < {1}", {sym("A"), sym("B")}));
  MetaResult result = meta.take();
  EXPECT_EQ(result.undecided.size(), 1u);
  EXPECT_EQ(result.error, "'quern.cat' op cat_c2: A < B");
}

TEST_F(MetaTest, TextOfArguments) {
  MetaContext meta(&ctx, "add");
  EXPECT_FALSE(meta.check(3, false, "{3} {0}, {1} {2} {9} {x} {",
                          {Type(Float16Type::get(&ctx)), int64_t(-2), unknown(), "word"}));
  EXPECT_EQ(meta.take().error, "'quern.add' op add_c3: word f16, -2 ? {9} {x} {");
  EXPECT_EQ(dtypeName(IntegerType::get(&ctx, 1)), "bool");
  EXPECT_EQ(dtypeName(IntegerType::get(&ctx, 64)), "i64");
  EXPECT_EQ(dtypeName(IntegerType::get(&ctx, 8, IntegerType::Unsigned)), "u8");
  EXPECT_EQ(dtypeName(BFloat16Type::get(&ctx)), "bf16");
}

TEST_F(MetaTest, FirstErrorStays) {
  MetaContext meta(&ctx, "add");
  EXPECT_FALSE(meta.check(1, false, "one"));
  EXPECT_FALSE(meta.check(2, false, "two"));
  MetaResult result = meta.take();
  EXPECT_FALSE(result.ok);
  EXPECT_EQ(result.error, "'quern.add' op add_c1: one");
}

TEST_F(MetaTest, BroadcastKnown) {
  MetaContext meta(&ctx, "add");
  EXPECT_EQ(broadcast(meta, {num(3), num(1)}, {num(4)}), (SmallVector<Dim>{num(3), num(4)}));
  EXPECT_EQ(broadcast(meta, {num(4)}, {num(3), num(1)}), (SmallVector<Dim>{num(3), num(4)}));
  EXPECT_EQ(broadcast(meta, {sym("S")}, {sym("B"), sym("S")}),
            (SmallVector<Dim>{sym("B"), sym("S")}));
  EXPECT_EQ(broadcast(meta, {sym("S")}, {num(1)}), SmallVector<Dim>{sym("S")});
  EXPECT_EQ(broadcast(meta, {num(1)}, {num(0)}), SmallVector<Dim>{num(0)});
  EXPECT_EQ(broadcast(meta, {}, {}), SmallVector<Dim>{});
  EXPECT_TRUE(meta.take().undecided.empty());
  MetaContext bad(&ctx, "add");
  broadcast(bad, {num(2), num(3)}, {num(4), num(1)});
  EXPECT_EQ(
      bad.take().error,
      "'quern.add' op add_c1: expected other dim 0 to equal self dim 0 or to be 1, got 4 and 2");
}

TEST_F(MetaTest, BroadcastUndecided) {
  MetaContext meta(&ctx, "add");
  EXPECT_EQ(broadcast(meta, {sym("S")}, {num(4)}), SmallVector<Dim>{num(4)});
  EXPECT_EQ(broadcast(meta, {num(4)}, {unknown()}), SmallVector<Dim>{num(4)});
  EXPECT_EQ(broadcast(meta, {sym("A")}, {sym("B")}), SmallVector<Dim>{dim("bcast(A, B)")});
  EXPECT_EQ(broadcast(meta, {dim("bcast(A, B)")}, {sym("B")}),
            SmallVector<Dim>{dim("bcast(A, B)")});
  EXPECT_TRUE(broadcast(meta, {unknown()}, {sym("B")}).front().isUnknown());
  MetaResult result = meta.take();
  ASSERT_EQ(result.undecided.size(), 2u);
  EXPECT_EQ(result.undecided[0].condition.str(), "4 == S or 4 == 1 or S == 1");
  EXPECT_EQ(result.undecided[0].text, "'quern.add' op add_c1: expected other dim 0 to equal self "
                                      "dim 0 or to be 1, got 4 and {0}");
  EXPECT_EQ(result.undecided[1].condition.str(), "A == B or A == 1 or B == 1");

  Facts facts;
  facts.setRange("A", {2, {}, 1});
  facts.setRange("C", {2, {}, 1});
  MetaContext large(&ctx, "add", &facts);
  EXPECT_EQ(broadcast(large, {sym("A")}, {sym("B")}), SmallVector<Dim>{sym("A")});
  EXPECT_EQ(broadcast(large, {sym("B")}, {sym("A")}), SmallVector<Dim>{sym("A")});
  // Both are at least 2: they are equal, and either name will do.
  EXPECT_EQ(broadcast(large, {sym("A")}, {sym("C")}), SmallVector<Dim>{sym("A")});
}

TEST_F(MetaTest, CheckSizes) {
  MetaContext meta(&ctx, "full");
  EXPECT_TRUE(meta.checkSizes(1, {num(0), sym("N")}, "size"));
  EXPECT_FALSE(meta.checkSizes(1, {num(2), num(-1)}, "size"));
  EXPECT_EQ(meta.take().error, "'quern.full' op full_c1: expected size 1 to be at least 0, got -1");
}

TEST_F(MetaTest, SizesOverflow) {
  int64_t large = int64_t(1) << 32;
  auto run = [&](ArrayRef<Dim> dims) {
    MetaContext meta(&ctx, "expand");
    meta.setOutput(0, dims, Float32Type::get(&ctx));
    return meta.take();
  };
  EXPECT_EQ(run({num(large), sym("N"), num(large)}).error,
            "'quern.expand' op expand_result: expected the result to take at most 281474976710656 "
            "bytes");
  EXPECT_TRUE(run({num(large), num(1 << 14)}).ok);
  EXPECT_FALSE(run({num(large), num(1 << 15)}).ok);
  EXPECT_TRUE(run({num(large), num(0), num(large)}).ok);
}

TEST_F(MetaTest, WrapDim) {
  MetaContext meta(&ctx, "softmax");
  int64_t dim = -1;
  EXPECT_TRUE(meta.wrapDim(2, dim, 3, "dim"));
  EXPECT_EQ(dim, 2);
  dim = -1;
  EXPECT_TRUE(meta.wrapDim(2, dim, 0, "dim"));
  EXPECT_EQ(dim, 0);
  dim = 3;
  EXPECT_FALSE(meta.wrapDim(2, dim, 3, "dim"));
  EXPECT_EQ(meta.take().error,
            "'quern.softmax' op softmax_c2: expected dim to be in [-3, 2], got 3");
}

} // namespace
