//===- TestDialect.h - A context with the size attributes -------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_UNITTESTS_SHAPE_TESTDIALECT_H
#define QUERN_UNITTESTS_SHAPE_TESTDIALECT_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/MLIRContext.h"
#include "quern/Shape/Condition.h"
#include "quern/Shape/DimStorage.h"
#include "gtest/gtest.h"

namespace quern::test {

/// Stands in for the quern dialect, so that the engine is tested alone.
class SizesDialect : public mlir::Dialect {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(SizesDialect)
  static constexpr llvm::StringLiteral getDialectNamespace() { return "quern"; }

  explicit SizesDialect(mlir::MLIRContext *ctx)
      : Dialect(getDialectNamespace(), ctx, mlir::TypeID::get<SizesDialect>()) {
    addAttributes<DimAttr, DimsAttr, RangeAttr>();
  }

  mlir::Attribute parseAttribute(mlir::DialectAsmParser &parser, mlir::Type) const override {
    llvm::StringRef mnemonic;
    if (parser.parseKeyword(&mnemonic))
      return {};
    if (mnemonic == RangeAttr::getMnemonic())
      return parseRangeAttr(parser);
    return mnemonic == DimAttr::getMnemonic() ? parseDimAttr(parser) : parseDimsAttr(parser);
  }

  void printAttribute(mlir::Attribute attr, mlir::DialectAsmPrinter &printer) const override {
    if (auto dim = llvm::dyn_cast<DimAttr>(attr)) {
      printer << "dim<" << Dim(dim).str() << ">";
      return;
    }
    if (auto range = llvm::dyn_cast<RangeAttr>(attr)) {
      printer << "range";
      printRangeAttr(range, printer);
      return;
    }
    printer << "dims";
    printDimsAttr(llvm::cast<DimsAttr>(attr), printer);
  }
};

/// A context of its own for each test, and short ways to write sizes.
class ShapeTest : public ::testing::Test {
protected:
  ShapeTest() { ctx.loadDialect<SizesDialect, mlir::arith::ArithDialect>(); }

  Dim sym(llvm::StringRef name) { return Dim::symbol(&ctx, name); }
  Dim num(int64_t value) { return Dim::constant(&ctx, value); }
  Dim unknown() { return Dim::unknown(&ctx); }
  /// The size that `text` says; the test fails where it says none.
  Dim dim(llvm::StringRef text) {
    mlir::FailureOr<Dim> result = parseDim(&ctx, text);
    EXPECT_TRUE(mlir::succeeded(result)) << text.str();
    return mlir::succeeded(result) ? *result : unknown();
  }

  mlir::MLIRContext ctx;
};

} // namespace quern::test

#endif // QUERN_UNITTESTS_SHAPE_TESTDIALECT_H
