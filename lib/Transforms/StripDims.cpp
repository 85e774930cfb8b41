//===- StripDims.cpp - Removes the names of sizes -------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "quern/Dialect/Kernel/IR/Kernel.h"
#include "quern/Dialect/Quern/IR/FunctionAttrs.h"
#include "quern/Dialect/Quern/IR/Quern.h"
#include "quern/Transforms/Dims.h"
#include "quern/Transforms/Passes.h"

namespace quern {
#define GEN_PASS_DEF_QUERNSTRIPDIMS
#include "quern/Transforms/Passes.h.inc"
} // namespace quern

using namespace mlir;
using namespace quern;

static Type stripped(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (tensor && isa_and_nonnull<DimsAttr>(tensor.getEncoding()))
    return stripEncoding(tensor);
  return type;
}

static SmallVector<Type> stripped(TypeRange types) {
  return llvm::map_to_vector(types, [](Type type) { return stripped(type); });
}

/// An attribute may only use names that stay: those of the function's arguments.
static LogicalResult checkAttributes(func::FuncOp func, const DimBindings &bindings,
                                     bool isCalled) {
  WalkResult walk = func.walk([&](Operation *op) {
    for (NamedAttribute named : op->getAttrs()) {
      SmallVector<Dim> dims;
      if (auto attr = dyn_cast<DimsAttr>(named.getValue()))
        llvm::append_range(dims, attr.getDims());
      else if (auto attr = dyn_cast<DimAttr>(named.getValue()))
        dims.push_back(Dim(attr));
      for (Dim d : dims) {
        bool stays = true;
        d.walkSymbols([&](StringRef symbol) {
          const DimBindings::Binding *binding = bindings.lookup(symbol);
          // An argument's own type names it, not a bind_dims.
          stays &= !isCalled && binding && binding->inPrologue &&
                   binding->value.getType() != stripped(binding->value.getType());
        });
        if (!stays) {
          op->emitError() << "unsupported: " << named.getName().getValue() << " uses size " << d
                          << ", which is named inside of the function";
          return WalkResult::interrupt();
        }
      }
    }
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

static LogicalResult strip(func::FuncOp func, bool isCalled) {
  if (isCalled && func->hasAttr(dimRangesAttrName))
    return func.emitError("unsupported: ")
           << dimRangesAttrName << " of a function that is called, whose sizes lose their names";
  if (failed(lowerDims(func)))
    return failure();
  Block &entry = func.getBody().front();
  FailureOr<DimBindings> bindings = DimBindings::get(func);
  if (failed(bindings) || failed(checkAttributes(func, *bindings, isCalled)))
    return failure();
  if (isCalled)
    for (BlockArgument arg : entry.getArguments())
      arg.setType(stripped(arg.getType()));

  func.walk([&](Operation *op) {
    if (op != func)
      for (Value value : op->getResults())
        value.setType(stripped(value.getType()));
    for (Region &region : op->getRegions())
      for (Block &block : region)
        if (&block != &entry)
          for (BlockArgument arg : block.getArguments())
            arg.setType(stripped(arg.getType()));
  });
  func.walk([](Operation *op) {
    if (!isa<kernel::BindDimsOp, kernel::RefineOp>(op))
      return;
    Value source = op->getOperand(0);
    Type type = op->getResult(0).getType();
    // A static size that was proved stays.
    if (stripped(source.getType()) != type) {
      OpBuilder builder(op);
      source = tensor::CastOp::create(builder, op->getLoc(), type, source);
    }
    op->getResult(0).replaceAllUsesWith(source);
    op->erase();
  });
  // The names of arguments end at the entry.
  OpBuilder builder = OpBuilder::atBlockBegin(&entry);
  for (BlockArgument arg : entry.getArguments()) {
    Type plain = stripped(arg.getType());
    if (plain == arg.getType() || arg.use_empty())
      continue;
    auto refine = kernel::RefineOp::create(builder, arg.getLoc(), plain, arg);
    arg.replaceAllUsesExcept(refine, refine);
  }
  func.setFunctionType(FunctionType::get(func.getContext(), entry.getArgumentTypes(),
                                         stripped(func.getResultTypes())));
  return success();
}

namespace {
struct StripDims : quern::impl::QuernStripDimsBase<StripDims> {
  void runOnOperation() override {
    llvm::DenseSet<StringAttr> called = getCalledFunctions(getOperation());
    for (func::FuncOp func : getOperation().getOps<func::FuncOp>()) {
      if (func.isExternal())
        func.setFunctionType(FunctionType::get(func.getContext(), stripped(func.getArgumentTypes()),
                                               stripped(func.getResultTypes())));
      else if (failed(strip(func, called.contains(func.getSymNameAttr()))))
        return signalPassFailure();
    }
  }
};
} // namespace
