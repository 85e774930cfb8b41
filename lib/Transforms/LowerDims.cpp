//===- LowerDims.cpp - kernel.dim becomes arithmetic ----------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "quern/Dialect/Kernel/IR/Kernel.h"
#include "quern/Dialect/Quern/IR/Quern.h"
#include "quern/Transforms/Dims.h"
#include "quern/Transforms/Passes.h"

namespace quern {
#define GEN_PASS_DEF_QUERNLOWERDIMS
#include "quern/Transforms/Passes.h.inc"
} // namespace quern

using namespace mlir;
using namespace quern;

LogicalResult quern::lowerDims(func::FuncOp func) {
  if (func.isExternal())
    return success();
  FailureOr<DimBindings> bindings = DimBindings::get(func);
  if (failed(bindings))
    return failure();

  // A symbol's size is read once, where it is bound: that dominates all its uses.
  llvm::StringMap<Value> sizes;
  auto sizeOf = [&](StringRef symbol) -> Value {
    Value &size = sizes[symbol];
    if (size)
      return size;
    const DimBindings::Binding &binding = *bindings->lookup(symbol);
    OpBuilder builder(func.getContext());
    builder.setInsertionPointAfterValue(binding.value);
    Location loc = binding.value.getLoc();
    Value index = arith::ConstantIndexOp::create(builder, loc, binding.dim);
    return size = tensor::DimOp::create(builder, loc, binding.value, index);
  };
  WalkResult walk = func.walk([&](kernel::DimOp op) {
    auto attr = cast<DimAttr>(op.getDim());
    if (Dim(attr).isUnknown()) {
      op.emitOpError("expected a known size, got ") << op.getDim();
      return WalkResult::interrupt();
    }
    OpBuilder builder(op);
    op.replaceAllUsesWith(emitDim(builder, op.getLoc(), Dim(attr), sizeOf));
    op.erase();
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

namespace {
struct LowerDims : quern::impl::QuernLowerDimsBase<LowerDims> {
  void runOnOperation() override {
    if (failed(lowerDims(getOperation())))
      signalPassFailure();
  }
};
} // namespace
