//===- DimTest.cpp - Canonical form, text and evaluation of sizes ---------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "TestDialect.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Diagnostics.h"
#include <random>

using namespace mlir;
using namespace quern;

namespace {

class DimTest : public quern::test::ShapeTest {};

TEST_F(DimTest, SumsOfProductsHaveOneForm) {
  Dim b = sym("B"), s = sym("S");
  EXPECT_EQ(b + s, s + b);
  EXPECT_EQ((b + s) * (b - s), b * b - s * s);
  EXPECT_EQ((s * 2 + 1) - s - s, num(1));
  EXPECT_EQ(s - s, num(0));
  EXPECT_EQ(s * 0, num(0));
  EXPECT_EQ(((s + 1) * 2).str(), "2*S + 2");
  EXPECT_EQ((s - 1).str(), "S - 1");
  EXPECT_EQ((num(1) - s).str(), "-S + 1");
  EXPECT_EQ((b * s * 384 - s * 2).str(), "384*B*S - 2*S");
}

TEST_F(DimTest, OrderFollowsNamesNotAddresses) {
  EXPECT_EQ((sym("zz") + sym("a") * sym("zz") + sym("a") + 7).str(), "a + a*zz + zz + 7");
  EXPECT_EQ(dim("max(zz, a)").str(), "max(a, zz)");
}

TEST_F(DimTest, DivisionByConstants) {
  EXPECT_EQ(dim("floordiv(2*S, 2)"), sym("S"));
  EXPECT_EQ(dim("floordiv(384*S, 384)"), sym("S"));
  EXPECT_EQ(dim("floordiv(S, 1)"), sym("S"));
  EXPECT_EQ(dim("floordiv(7, 2)"), num(3));
  EXPECT_EQ(dim("floordiv(-7, 2)"), num(-4));
  EXPECT_EQ(dim("ceildiv(7, 2)"), num(4));
  EXPECT_EQ(dim("mod(-7, 2)"), num(1));
  EXPECT_EQ(dim("mod(6*S + 13, 6)"), num(1));
  EXPECT_EQ(dim("floordiv(S - 1, 2)").str(), "floordiv(S + 1, 2) - 1");
  EXPECT_EQ(dim("floordiv(5*S + T, 4)").str(), "S + floordiv(S + T, 4)");
  EXPECT_EQ(dim("floordiv(4*S + 2, 8)"), dim("floordiv(2*S + 1, 4)"));
  EXPECT_EQ(dim("ceildiv(S, 4)"), dim("floordiv(S + 3, 4)"));
  EXPECT_EQ(dim("floordiv(floordiv(S + 1, 2) + 1, 2)"), dim("floordiv(S + 3, 4)"));
  EXPECT_EQ(dim("mod(mod(S, 12), 4)"), dim("mod(S, 4)"));
  EXPECT_EQ(dim("mod(4*S, 6)"), dim("2*mod(2*S, 3)"));
  // A divisor is positive: another one gives no size.
  EXPECT_TRUE(Dim::floorDiv(sym("S"), num(0)).isUnknown());
  EXPECT_TRUE(Dim::mod(sym("S"), num(-3)).isUnknown());
}

TEST_F(DimTest, DivisionBySymbols) {
  EXPECT_EQ(dim("floordiv(B*S, S)"), sym("B"));
  EXPECT_EQ(dim("floordiv(B*S*384, S*12)"), dim("32*B"));
  EXPECT_EQ(dim("floordiv(B*S + B, S + 1)"), sym("B"));
  EXPECT_EQ(dim("floordiv((S + 1)*(T + 2)*3, T + 2)"), dim("3*S + 3"));
  EXPECT_EQ(dim("floordiv(B*S + T, S)"), dim("B + floordiv(T, S)"));
  EXPECT_EQ(dim("floordiv(B*S, B*T)"), dim("floordiv(S, T)"));
  EXPECT_EQ(dim("floordiv(6*S, 4*B)"), dim("floordiv(3*S, 2*B)"));
  EXPECT_EQ(dim("ceildiv(B*S + T, S)"), dim("B + ceildiv(T, S)"));
  EXPECT_EQ(dim("mod(B*S, S)"), num(0));
  EXPECT_EQ(dim("mod(B*S + T, S)"), dim("mod(T, S)"));
}

TEST_F(DimTest, MinMaxBroadcast) {
  EXPECT_EQ(dim("min(S, S)"), sym("S"));
  EXPECT_EQ(dim("max(S, S + 1)"), dim("S + 1"));
  EXPECT_EQ(dim("max(S, 0)"), sym("S"));
  EXPECT_EQ(dim("max(S - 1, 0)").str(), "max(0, S - 1)");
  EXPECT_EQ(dim("min(max(3, 5), 4)"), num(4));
  EXPECT_EQ(dim("max(A, max(B, C))"), dim("max(C, A, B)"));
  EXPECT_EQ(dim("bcast(S, S)"), sym("S"));
  EXPECT_EQ(dim("bcast(S, 1)"), sym("S"));
  EXPECT_EQ(dim("bcast(1, 1)"), num(1));
  EXPECT_EQ(dim("bcast(S, 384)"), num(384));
  EXPECT_EQ(dim("bcast(S, 0)"), num(0));
  EXPECT_EQ(dim("bcast(S + 2, T)"), dim("S + 2"));
  EXPECT_EQ(dim("bcast(B, A)"), dim("bcast(A, B)"));
  EXPECT_EQ(dim("bcast(bcast(A, B), bcast(B, C))").str(), "bcast(A, B, C)");
}

TEST_F(DimTest, UnknownSpreads) {
  EXPECT_TRUE((unknown() + 1).isUnknown());
  EXPECT_TRUE((unknown() - unknown()).isUnknown());
  EXPECT_EQ(unknown() * 0, num(0));
  EXPECT_TRUE(Dim::min(unknown(), num(0)).isUnknown());
  EXPECT_TRUE(Dim::bcast(unknown(), sym("S")).isUnknown());
  EXPECT_EQ(Dim::bcast(unknown(), num(4)), num(4));
}

TEST_F(DimTest, OverflowAndGrowthGiveUnknown) {
  Dim big = num(std::numeric_limits<int64_t>::max());
  EXPECT_TRUE((big + 1).isUnknown());
  EXPECT_TRUE((big * sym("S") * 2).isUnknown());
  EXPECT_TRUE((num(std::numeric_limits<int64_t>::min()) * -1).isUnknown());
  EXPECT_TRUE(Dim::ceilDiv(big, num(2)).isUnknown());
  Dim least = num(std::numeric_limits<int64_t>::min());
  EXPECT_EQ(Dim::mod(least, num(3)), num(1));
  EXPECT_EQ(Dim::floorDiv(least, num(3)), num(-3074457345618258603));
  EXPECT_EQ(Dim::mod(least * sym("S"), num(3)), dim("mod(S, 3)"));
  EXPECT_TRUE(Dim::floorDiv(least * sym("S"), sym("S") * -1).evaluate([](StringRef) {
    return std::optional<int64_t>(1);
  }) == std::nullopt);
  Dim sum = num(0);
  for (unsigned i = 0; i < 40; ++i)
    sum = sum + sym("s" + std::to_string(i));
  EXPECT_FALSE(sum.isUnknown());
  EXPECT_TRUE((sum * sum * sum).isUnknown());
}

TEST_F(DimTest, TextRoundTrips) {
  for (StringRef text : {"_",
                         "0",
                         "-3",
                         "S",
                         "unk__214",
                         "\"s69 + s70\"",
                         "\"\"",
                         "\"_\"",
                         "\"a\\22b\\\\\"",
                         "min",
                         "2*S + 1",
                         "S - 1",
                         "-S + 1",
                         "-2*S*T + T",
                         "floordiv(S + 1, 2)",
                         "mod(S, T)",
                         "ceildiv(S, T)",
                         "bcast(A, B, C)",
                         "max(0, S - 1)",
                         "x.y$1",
                         "\"1st\"",
                         "f32",
                         "true"})
    EXPECT_EQ(dim(text).str(), text.str());
  EXPECT_EQ(dim("2*S+1"), dim("1 + S*2"));
  EXPECT_EQ(dim("S-1"), sym("S") - 1);
  EXPECT_EQ(dim("-(S-T)*2"), dim("2*T - 2*S"));
  EXPECT_EQ(sym("a\"b\\").str(), "\"a\\22b\\\\\"");
  EXPECT_EQ(dim(sym("a\"b\\\n").str()), sym("a\"b\\\n"));
}

/// What the parser says of a bad text.
std::string errorOf(MLIRContext &ctx, const std::string &text) {
  std::string error;
  ScopedDiagnosticHandler handler(&ctx, [&](Diagnostic &diagnostic) {
    if (error.empty())
      error = diagnostic.str();
    return success();
  });
  EXPECT_FALSE(parseAttribute("#quern.dim<" + text + ">", &ctx)) << text;
  return error;
}

TEST_F(DimTest, BadTextIsRefused) {
  EXPECT_EQ(errorOf(ctx, "S +"), "expected a size: a number, a name, `_` or an expression");
  EXPECT_EQ(errorOf(ctx, "1.5"), "expected a size: a number, a name, `_` or an expression");
  EXPECT_EQ(errorOf(ctx, "sin(S)"), "expected floordiv, ceildiv, mod, min, max or bcast, got sin");
  EXPECT_EQ(errorOf(ctx, "mod(S)"), "expected two operands of mod, got 1");
  EXPECT_EQ(errorOf(ctx, "mod(S, 2, 3)"), "expected two operands of mod, got 3");
  EXPECT_EQ(errorOf(ctx, "max(S)"), "expected two or more operands of max, got 1");
  EXPECT_EQ(errorOf(ctx, "99999999999999999999"), "integer value too large");
  std::string deep = std::string(5000, '(') + "S" + std::string(5000, ')');
  EXPECT_EQ(errorOf(ctx, deep), "expected a size with at most 64 levels of nesting");
  EXPECT_EQ(errorOf(ctx, std::string(5000, '-') + "S"),
            "expected a size with at most 64 levels of nesting");
  for (const char *text :
       {"floordiv(S, 0)", "mod(S, 0 - 3)", "4611686018427387904*S*2", "9223372036854775807 + 1"})
    EXPECT_EQ(errorOf(ctx, text),
              "expected a size whose numbers fit 64 bits and whose divisors are at least 1, in at "
              "most 1024 parts");
  EXPECT_TRUE(failed(parseDim(&ctx, "S T")));
  EXPECT_TRUE(failed(parseDim(&ctx, "")));
}

TEST_F(DimTest, Substitute) {
  auto toT = [&](StringRef name) { return name == "S" ? sym("T") * 2 : Dim(); };
  EXPECT_EQ(dim("B*S + floordiv(S, 2)").substitute(toT), dim("2*B*T + T"));
  auto toUnknown = [&](StringRef name) { return unknown(); };
  EXPECT_TRUE(dim("B*S + floordiv(S, 2)").substitute(toUnknown).isUnknown());
  EXPECT_EQ(num(4).substitute(toUnknown), num(4));
}

/// The canonical form and its parts mean the same number: random expressions are
/// built once as sizes and once as plain arithmetic.
TEST_F(DimTest, RandomExpressionsKeepTheirValue) {
  std::mt19937 random(1);
  auto pick = [&](int n) { return int64_t(random() % n); };
  unsigned compared = 0;
  for (unsigned round = 0; round < 4000; ++round) {
    int64_t values[] = {1 + pick(6), 1 + pick(6), 1 + pick(6)};
    SmallVector<std::pair<Dim, int64_t>> pool;
    for (unsigned i = 0; i < 3; ++i)
      pool.push_back({sym(std::string(1, 'A' + i)), values[i]});
    for (unsigned i = 0; i < 8; ++i) {
      auto [a, x] = pool[pick(pool.size())];
      auto [b, y] = pick(2) ? pool[pick(pool.size())] : std::pair(num(pick(9) - 2), int64_t(0));
      if (b.isConstant())
        y = b.getConstant();
      auto floor = [](int64_t x, int64_t y) { return (x - ((x % y) + y) % y) / y; };
      switch (pick(y > 0 ? 8 : 5)) {
      case 0:
        pool.push_back({a + b, x + y});
        break;
      case 1:
        pool.push_back({a - b, x - y});
        break;
      case 2:
        if (std::abs(x * y) < 1000000)
          pool.push_back({a * b, x * y});
        break;
      case 3:
        pool.push_back({Dim::min(a, b), std::min(x, y)});
        break;
      case 4:
        pool.push_back({Dim::max(a, b), std::max(x, y)});
        break;
      case 5:
        pool.push_back({Dim::floorDiv(a, b), floor(x, y)});
        break;
      case 6:
        pool.push_back({Dim::ceilDiv(a, b), -floor(-x, y)});
        break;
      case 7:
        pool.push_back({Dim::mod(a, b), x - floor(x, y) * y});
        break;
      }
    }
    for (auto [d, value] : pool) {
      std::optional<int64_t> got =
          d.evaluate([&](StringRef name) { return values[name[0] - 'A']; });
      // A divisor that was dropped or put together may be one that has no value.
      if (!got)
        continue;
      ++compared;
      ASSERT_EQ(*got, value) << d.str() << " with A, B, C = " << values[0] << ", " << values[1]
                             << ", " << values[2];
      ASSERT_LE(d.getMinimum(), value) << d.str();
      ASSERT_EQ(dim(d.str()), d) << d.str();
    }
  }
  EXPECT_GT(compared, 30000u);
}

TEST_F(DimTest, ExactForAllSizesOfArguments) {
  for (StringRef text :
       {"B", "8191*B - 3*C", "floordiv(S + 3, 4)", "mod(B, C + 1)", "bcast(A, B) + max(C, 4)"})
    EXPECT_TRUE(dim(text).isExact()) << text.str();
  for (StringRef text :
       {"B*C", "65536*B", "floordiv(B, C)", "mod(B, C - 1)", "min(B*C, 4)", "32767*B + 32767*C"})
    EXPECT_FALSE(dim(text).isExact()) << text.str();
}

TEST_F(DimTest, EvaluateSaysWhereThereIsNoValue) {
  auto two = [](StringRef) { return std::optional<int64_t>(2); };
  EXPECT_EQ(dim("S*T - 1").evaluate(two), 3);
  EXPECT_EQ(dim("bcast(S, T)").evaluate(two), 2);
  EXPECT_EQ(dim("floordiv(A, B - C)").evaluate(two), std::nullopt);
  EXPECT_EQ(unknown().evaluate(two), std::nullopt);
  EXPECT_EQ(sym("S").evaluate([](StringRef) { return std::nullopt; }), std::nullopt);
  auto large = [](StringRef) { return std::optional<int64_t>(int64_t(1) << 40); };
  EXPECT_EQ(dim("S*T").evaluate(large), std::nullopt);
}

TEST_F(DimTest, TensorTypes) {
  auto type = [&](StringRef text) { return cast<RankedTensorType>(parseType(text, &ctx)); };
  RankedTensorType named = type("tensor<?x384x?xf32, #quern.dims<B, 2*S + 1>>");
  EXPECT_EQ(quern::getDims(named), (SmallVector<Dim>{sym("B"), num(384), sym("S") * 2 + 1}));
  EXPECT_EQ(getTensorType(quern::getDims(named), named.getElementType()), named);
  EXPECT_EQ(stripEncoding(named), type("tensor<?x384x?xf32>"));
  EXPECT_EQ(quern::getDims(type("tensor<?x4xf32>")), (SmallVector<Dim>{unknown(), num(4)}));
  EXPECT_EQ(getTensorType({unknown(), num(4)}, named.getElementType()), type("tensor<?x4xf32>"));
  // A dim became static and the encoding stayed: it counts for the rank or not at all.
  EXPECT_EQ(quern::getDims(type("tensor<8x?xf32, #quern.dims<B, S>>")),
            (SmallVector<Dim>{num(8), sym("S")}));
  EXPECT_EQ(quern::getDims(type("tensor<8x?x4xf32, #quern.dims<B, S>>")),
            (SmallVector<Dim>{num(8), unknown(), num(4)}));
  std::string text;
  llvm::raw_string_ostream(text) << named;
  EXPECT_EQ(text, "tensor<?x384x?xf32, #quern.dims<B, 2*S + 1>>");
}

} // namespace
