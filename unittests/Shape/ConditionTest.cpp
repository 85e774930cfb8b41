//===- ConditionTest.cpp - Conditions and what facts decide ---------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "TestDialect.h"
#include "mlir/AsmParser/AsmParser.h"
#include <random>

using namespace mlir;
using namespace quern;

namespace quern {
static void PrintTo(Truth truth, std::ostream *os) {
  *os << (truth == Truth::True ? "True" : truth == Truth::False ? "False" : "Undecided");
}
} // namespace quern

namespace {

class ConditionTest : public quern::test::ShapeTest {
protected:
  Condition eq(StringRef a, StringRef b) { return Condition::eq(dim(a), dim(b)); }
  Condition le(StringRef a, StringRef b) { return Condition::le(dim(a), dim(b)); }
  /// a is a multiple of b.
  Condition multiple(StringRef a, StringRef b) { return Condition::divides(dim(b), dim(a)); }
  Condition broadcastable(StringRef a, StringRef b) {
    return Condition::broadcastable(dim(a), dim(b));
  }
  Facts facts;
};

constexpr Truth True = Truth::True, False = Truth::False, Undecided = Truth::Undecided;

TEST_F(ConditionTest, WithoutFacts) {
  EXPECT_EQ(facts.decide(eq("S + T", "T + S")), True);
  EXPECT_EQ(facts.decide(eq("S + 1", "S")), False);
  EXPECT_EQ(facts.decide(eq("S", "T")), Undecided);
  EXPECT_EQ(facts.decide(eq("S", "-1")), False);
  EXPECT_EQ(facts.decide(eq("2*S", "2*T + 1")), False);
  EXPECT_EQ(facts.decide(le("S", "S + T")), True);
  EXPECT_EQ(facts.decide(le("S + 1", "S")), False);
  EXPECT_EQ(facts.decide(le("1", "S")), Undecided);
  EXPECT_EQ(facts.decide(le("mod(S, 8)", "7")), True);
  EXPECT_EQ(facts.decide(le("floordiv(S, 2)", "S")), Undecided);
  EXPECT_EQ(facts.decide(multiple("12*S", "4")), True);
  EXPECT_EQ(facts.decide(multiple("12*S + 2", "4")), False);
  EXPECT_EQ(facts.decide(multiple("B*S", "S")), True);
  EXPECT_EQ(facts.decide(multiple("S", "4")), Undecided);
  EXPECT_EQ(facts.decide(multiple("0", "S")), True);
  EXPECT_EQ(facts.decide(multiple("5", "0")), False);
}

TEST_F(ConditionTest, UnknownDecidesNothing) {
  EXPECT_EQ(facts.decide(Condition::eq(unknown(), unknown())), Undecided);
  EXPECT_EQ(facts.decide(Condition::le(num(0), unknown())), Undecided);
  EXPECT_EQ(facts.decide(Condition::divides(num(4), unknown())), Undecided);
  EXPECT_EQ(facts.decide(Condition::divides(num(1), unknown())), True);
  EXPECT_EQ(facts.decide(Condition::broadcastable(unknown(), num(1))), True);
  EXPECT_EQ(facts.decide(Condition::broadcastable(unknown(), num(3))), Undecided);
  facts.assume(Condition::eq(unknown(), sym("S")));
  facts.assume(Condition::broadcastable(unknown(), sym("S")));
  EXPECT_EQ(facts.decide(Condition::eq(unknown(), sym("S"))), Undecided);
  EXPECT_EQ(facts.decide(Condition::broadcastable(unknown(), sym("S"))), Undecided);
}

TEST_F(ConditionTest, Ranges) {
  facts.setRange("B", {1, 64, 8});
  EXPECT_EQ(facts.decide(le("1", "B")), True);
  EXPECT_EQ(facts.decide(le("B", "64")), True);
  EXPECT_EQ(facts.decide(le("65", "B")), False);
  EXPECT_EQ(facts.decide(eq("B", "0")), False);
  EXPECT_EQ(facts.decide(eq("B", "12")), False);
  EXPECT_EQ(facts.decide(eq("B", "16")), Undecided);
  EXPECT_EQ(facts.decide(multiple("B", "4")), True);
  EXPECT_EQ(facts.decide(multiple("3*B", "24")), True);
  EXPECT_EQ(facts.decide(multiple("B + 4", "8")), False);
  EXPECT_EQ(facts.decide(multiple("B*S + 8", "8")), True);
  EXPECT_EQ(facts.upperBound(dim("floordiv(B + 1, 2)")), 32);
  EXPECT_EQ(facts.lowerBound(dim("100 - B")), 36);
  EXPECT_EQ(facts.upperBound(dim("B*S")), std::nullopt);
  facts.setRange("C", {4, 4, 1});
  EXPECT_EQ(facts.decide(eq("C*S", "4*S")), True);
}

TEST_F(ConditionTest, AssumedEqualities) {
  facts.assume(eq("S", "T"));
  facts.assume(eq("T", "U"));
  EXPECT_EQ(facts.decide(eq("S*B + 1", "U*B + 1")), True);
  EXPECT_EQ(facts.decide(eq("floordiv(S, 2)", "floordiv(U, 2)")), True);
  EXPECT_EQ(facts.decide(eq("S", "B")), Undecided);
  facts.assume(eq("M", "2*S + 1"));
  EXPECT_EQ(facts.decide(multiple("M", "2")), False);
  facts.assume(eq("S", "7"));
  EXPECT_EQ(facts.decide(eq("M", "15")), True);
  EXPECT_EQ(facts.decide(eq("U", "7")), True);
}

TEST_F(ConditionTest, EqualitiesOfProductsAndAtoms) {
  facts.assume(eq("B*S", "3*C*C"));
  EXPECT_EQ(facts.decide(eq("3*C*C", "B*S")), True);
  EXPECT_EQ(facts.decide(eq("2*B*S", "6*C*C")), True);
  EXPECT_EQ(facts.decide(eq("B*S", "3*C*C + 1")), False);
  // No symbol stands alone: the opaque op is replaced.
  facts.assume(eq("mod(K, 8)", "0"));
  EXPECT_EQ(facts.decide(eq("mod(K, 8) + 1", "1")), True);
  // S = floordiv(S, 2) says S = 0, which is not seen, and must not loop.
  facts.assume(eq("S", "floordiv(S, 2)"));
  EXPECT_EQ(facts.decide(eq("S", "floordiv(S, 2)")), True);
  facts.assume(eq("X", "max(X, Y)"));
  EXPECT_EQ(facts.decide(eq("X", "max(X, Y)")), True);
}

TEST_F(ConditionTest, EqualityKeepsWhatWasKnown) {
  facts.setRange("T", {2, 16, 4});
  facts.assume(eq("T", "A"));
  EXPECT_EQ(facts.decide(le("2", "A")), True);
  EXPECT_EQ(facts.decide(le("A", "16")), True);
  EXPECT_EQ(facts.decide(multiple("A", "4")), True);
  facts.setRange("V", {6, 10, 2});
  facts.assume(eq("V", "P + Q"));
  EXPECT_EQ(facts.decide(le("6", "P + Q")), True);
  EXPECT_EQ(facts.decide(le("Q + P", "10")), True);
  EXPECT_EQ(facts.decide(multiple("P + Q", "2")), True);
}

TEST_F(ConditionTest, AssumedInequalitiesAndMultiples) {
  facts.assume(le("3", "S"));
  EXPECT_EQ(facts.decide(le("1", "S - 2")), True);
  facts.assume(le("2*S", "9"));
  EXPECT_EQ(facts.decide(le("S", "4")), True);
  facts.assume(le("A + B", "C"));
  EXPECT_EQ(facts.decide(le("B + A", "C + 1")), True);
  EXPECT_EQ(facts.decide(le("C + 1", "A + B")), False);
  EXPECT_EQ(facts.decide(le("2*A + 2*B", "2*C")), True);
  facts.assume(multiple("H", "12"));
  EXPECT_EQ(facts.decide(multiple("H*B", "4")), True);
  facts.assume(multiple("A*B", "6"));
  EXPECT_EQ(facts.decide(multiple("A*B", "3")), True);
  facts.assume(multiple("X", "Y"));
  EXPECT_EQ(facts.decide(multiple("X", "Y")), True);
  EXPECT_EQ(facts.decide(multiple("Y", "X")), Undecided);
}

TEST_F(ConditionTest, Broadcasts) {
  EXPECT_EQ(facts.decide(broadcastable("S", "1")), True);
  EXPECT_EQ(facts.decide(broadcastable("S + 2", "S + 3")), False);
  EXPECT_EQ(facts.decide(broadcastable("A", "B")), Undecided);
  facts.assume(broadcastable("A", "B"));
  EXPECT_EQ(facts.decide(broadcastable("B", "A")), True);
  EXPECT_EQ(facts.decide(broadcastable("A", "C")), Undecided);
  // What a broadcast gave goes with what it was made from.
  EXPECT_EQ(facts.decide(broadcastable("bcast(A, B)", "B")), True);
  EXPECT_EQ(facts.decide(broadcastable("bcast(A, B)", "C")), Undecided);
  facts.assume(broadcastable("A", "C"));
  facts.assume(broadcastable("C", "B"));
  EXPECT_EQ(facts.decide(broadcastable("bcast(A, B)", "C")), True);
  EXPECT_EQ(facts.decide(eq("bcast(A, B)", "A")), Undecided);
  // Neither can be 1, so they are equal.
  facts.setRange("M", {2, {}, 1});
  facts.setRange("N", {2, {}, 1});
  EXPECT_EQ(facts.decide(eq("bcast(A, M)", "M")), True);
  facts.assume(broadcastable("M", "N"));
  EXPECT_EQ(facts.decide(eq("M", "N")), True);
}

TEST_F(ConditionTest, AssumedChoiceIsFoundInOtherNames) {
  facts.assume(broadcastable("A", "D"));
  facts.assume(eq("D", "C"));
  EXPECT_EQ(facts.decide(broadcastable("C", "A")), True);
}

TEST_F(ConditionTest, InnerFactsEndWithTheirScope) {
  facts.setRange("S", {1, 64, 1});
  facts.assume(eq("S", "T"));
  {
    Facts inner(&facts);
    EXPECT_EQ(inner.decide(eq("S", "T")), True);
    inner.assume(le("8", "S"));
    inner.assume(eq("U", "S"));
    EXPECT_EQ(inner.decide(le("8", "T")), True);
    EXPECT_EQ(inner.decide(le("S", "64")), True);
    EXPECT_EQ(inner.decide(eq("U", "T")), True);
  }
  EXPECT_EQ(facts.decide(le("8", "T")), Undecided);
  EXPECT_EQ(facts.decide(eq("U", "T")), Undecided);
}

TEST_F(ConditionTest, TextAndAttribute) {
  EXPECT_EQ(eq("S", "T").str(), "S == T");
  EXPECT_EQ(le("S", "T").str(), "S <= T");
  EXPECT_EQ(multiple("S", "8").str(), "S mod 8 == 0");
  EXPECT_EQ(broadcastable("T", "S").str(), "S == T or S == 1 or T == 1");
  for (const Condition &c :
       {eq("S", "T"), le("S", "2*T"), multiple("S", "8"), broadcastable("S", "T")}) {
    FailureOr<Condition> back = Condition::fromAttribute(c.toAttribute(&ctx));
    ASSERT_TRUE(succeeded(back));
    EXPECT_EQ(*back, c);
  }
  EXPECT_TRUE(failed(Condition::fromAttribute(ArrayAttr::get(&ctx, {}))));
  EXPECT_TRUE(failed(Condition::fromAttribute(StringAttr::get(&ctx, "eq"))));
  EXPECT_TRUE(failed(Condition::fromAttribute(
      ArrayAttr::get(&ctx, {StringAttr::get(&ctx, "eq"), StringAttr::get(&ctx, "S")}))));
  EXPECT_FALSE(Condition::broadcastable(unknown(), sym("S")).isCheckable());
  EXPECT_TRUE(broadcastable("T", "S").isCheckable());
}

TEST_F(ConditionTest, RangeAttribute) {
  for (std::string text : {"#quern.range<1, 64, mod 8>", "#quern.range<0>",
                           "#quern.range<2, mod 4>", "#quern.range<0, 7>"}) {
    auto attr = dyn_cast_or_null<RangeAttr>(parseAttribute(text, &ctx));
    ASSERT_TRUE(attr) << text;
    std::string printed;
    llvm::raw_string_ostream(printed) << attr;
    EXPECT_EQ(printed, text);
    EXPECT_EQ(RangeAttr::get(&ctx, attr.getRange()), attr);
  }
  EXPECT_EQ(parseAttribute("#quern.range<1, _, mod 8>", &ctx),
            parseAttribute("#quern.range<1, mod 8>", &ctx));
  ScopedDiagnosticHandler quiet(&ctx, [](Diagnostic &) { return success(); });
  for (std::string text : {"#quern.range<>", "#quern.range<-1>", "#quern.range<4, 3>",
                           "#quern.range<1, mod 0>", "#quern.range<1, 2, 3>"})
    EXPECT_FALSE(parseAttribute(text, &ctx)) << text;
}

/// Whatever is assumed and decided must agree with the numbers: random facts that
/// hold for an assignment, and random questions about it.
TEST_F(ConditionTest, DecisionsAreSound) {
  std::mt19937 random(7);
  auto pick = [&](int n) { return int64_t(random() % n); };
  unsigned decided = 0;
  for (unsigned round = 0; round < 3000; ++round) {
    int64_t values[] = {pick(5), 1 + pick(4), pick(4), 2 * pick(4)};
    auto valueOf = [&](StringRef name) { return std::optional<int64_t>(values[name[0] - 'A']); };
    auto randomDim = [&] {
      Dim d = num(pick(4));
      for (unsigned i = 0; i < 3; ++i) {
        Dim s = pick(4) ? sym(std::string(1, 'A' + pick(4))) : num(pick(3));
        switch (pick(6)) {
        case 0:
          d = d * s;
          break;
        case 1:
          d = Dim::floorDiv(d, num(1 + pick(3)));
          break;
        case 2:
          d = Dim::max(d, s);
          break;
        case 3:
          d = d - s;
          break;
        default:
          d = d + s;
        }
      }
      return d;
    };
    std::function<bool(const Condition &)> holds = [&](const Condition &c) {
      if (c.kind() == Condition::Kind::Or)
        return llvm::any_of(c.alternatives(), holds);
      int64_t a = *c.lhs().evaluate(valueOf), b = *c.rhs().evaluate(valueOf);
      return c.kind() == Condition::Kind::Eq   ? a == b
             : c.kind() == Condition::Kind::Le ? a <= b
             : b == 0                          ? a == 0
                                               : a % b == 0;
    };
    auto randomCondition = [&] {
      switch (pick(4)) {
      case 0:
        return Condition::eq(randomDim(), randomDim());
      case 1:
        return Condition::divides(num(1 + pick(4)), randomDim());
      case 2:
        return Condition::broadcastable(randomDim(), randomDim());
      default:
        return Condition::le(randomDim(), randomDim());
      }
    };
    Facts known;
    known.setRange("D", {0, {}, 2});
    std::string text;
    for (unsigned i = 0; i < 6; ++i) {
      Condition c = randomCondition();
      if (!holds(c))
        continue;
      known.assume(c);
      text += c.str() + "; ";
      // Most are noticed when asked again; none may be denied.
      ASSERT_NE(known.decide(c), False) << text;
    }
    for (unsigned i = 0; i < 20; ++i) {
      Condition c = randomCondition();
      Truth truth = known.decide(c);
      decided += truth != Undecided;
      if (truth != Undecided)
        ASSERT_EQ(truth, holds(c) ? True : False)
            << c.str() << " given " << text << "with A, B, C, D = " << values[0] << ", "
            << values[1] << ", " << values[2] << ", " << values[3];
    }
  }
  EXPECT_GT(decided, 10000u);
}

} // namespace
