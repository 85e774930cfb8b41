//===- KernelBuilder.cpp - A device function being built ------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "KernelBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/CSE.h"

using namespace mlir;

namespace quern::cuda {

SmallVector<Out> getOuts(BodyInfo &info) {
  SmallVector<Out> outs;
  auto yield = cast<kernel::YieldOp>(info.block().getTerminator());
  for (auto [i, value] : llvm::enumerate(yield.getValues())) {
    unsigned argument = info.kernel.getNumIns() + i;
    outs.push_back({value, argument, info.sizes(info.block().getArgument(argument))});
  }
  return outs;
}

KernelBuilder::KernelBuilder(BodyInfo &info, int threads)
    : info(info), b(info.kernel.getContext()), loc(UnknownLoc::get(info.kernel.getContext())),
      symbols(info.kernel.getSymbols()) {
  kernel::FuncOp kernel = info.kernel;
  StringRef name = kernel.getSymName();
  module = ModuleOp::create(loc);
  b.setInsertionPointToStart(module->getBody());
  auto device = gpu::GPUModuleOp::create(b, loc, (name + "_device").str());
  b.setInsertionPointToStart(device.getBody());

  SmallVector<Type> types;
  SmallVector<std::string> names;
  unsigned numIns = kernel.getNumIns();
  for (BlockArgument argument : info.block().getArguments()) {
    unsigned i = argument.getArgNumber();
    types.push_back(MemRefType::get({ShapedType::kDynamic},
                                    cast<RankedTensorType>(argument.getType()).getElementType()));
    names.push_back(i < numIns ? "in" + std::to_string(i) : "out" + std::to_string(i - numIns));
  }
  for (Dim symbol : symbols) {
    types.push_back(b.getIndexType());
    names.push_back(symbol.isSymbol() ? symbol.str() : "size");
  }
  for (int64_t argument : kernel.getStrided())
    for (size_t i = 0; i < info.sizes(info.block().getArgument(argument)).size(); ++i) {
      types.push_back(b.getIndexType());
      names.push_back(names[argument] + "Stride" + std::to_string(i));
    }
  function = gpu::GPUFuncOp::create(b, loc, name, b.getFunctionType(types, {}));
  function->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), b.getUnitAttr());
  function.setKnownBlockSizeAttr(b.getDenseI32ArrayAttr({threads, 1, 1}));
  ArrayRef<int64_t> share = kernel.getShare();
  for (BlockArgument argument : info.block().getArguments()) {
    bool shares = false;
    for (size_t i = 0; i < share.size(); i += 2)
      shares |=
          argument.getArgNumber() == numIns + share[i] || argument.getArgNumber() == share[i + 1];
    if (!shares)
      function.setArgAttr(argument.getArgNumber(), LLVM::LLVMDialect::getNoAliasAttrName(),
                          b.getUnitAttr());
  }
  Block &entry = function.getBody().front();
  for (auto [argument, text] : llvm::zip(entry.getArguments(), names))
    argument.setLoc(named(text));

  b.setInsertionPointToStart(&entry);
  block = gpu::BlockIdOp::create(b, named("block"), gpu::Dimension::x);
  thread = gpu::ThreadIdOp::create(b, named("thread"), gpu::Dimension::x);

  unsigned next = info.block().getNumArguments();
  llvm::DenseMap<Dim, Value> known;
  for (Dim symbol : symbols)
    known[symbol] = entry.getArgument(next++);
  SmallVector<Value> buffers(entry.getArguments().take_front(info.block().getNumArguments()));
  SmallVector<SmallVector<Value>> strides(buffers.size());
  for (int64_t argument : kernel.getStrided())
    for (size_t i = 0; i < info.sizes(info.block().getArgument(argument)).size(); ++i)
      strides[argument].push_back(entry.getArgument(next++));
  indexing = std::make_unique<Indexing>(b, block.getDefiningOp(), std::move(known));
  body = std::make_unique<Body>(b, *indexing, info, buffers, strides);
}

Location KernelBuilder::named(StringRef name) { return NameLoc::get(b.getStringAttr(name)); }

Value KernelBuilder::name(Value value, StringRef name) {
  if (Operation *op = value.getDefiningOp();
      op && !isa<arith::ConstantOp>(op) && !isa<NameLoc>(op->getLoc()))
    op->setLoc(named(name));
  return value;
}

Value KernelBuilder::lessThan(Value a, Value other) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, a, other);
}

scf::IfOp KernelBuilder::enterIf(Value condition) {
  auto op = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false);
  b.setInsertionPointToStart(op.thenBlock());
  return op;
}

scf::ForOp KernelBuilder::enterFor(Value from, Value to, Value step, StringRef name,
                                   ValueRange carried) {
  auto op = scf::ForOp::create(b, named(name), from, to, step, carried);
  b.setInsertionPointToStart(op.getBody());
  return op;
}

Value KernelBuilder::shared(ArrayRef<int64_t> shape, Type elementType, StringRef name) {
  auto space = gpu::AddressSpaceAttr::get(b.getContext(), gpu::AddressSpace::Workgroup);
  auto type = MemRefType::get(shape, elementType, MemRefLayoutAttrInterface(), space);
  return function.addWorkgroupAttribution(type, named(name));
}

void KernelBuilder::barrier() { gpu::BarrierOp::create(b, loc); }

/// Whether every element number, with what the last block computes past the end, is below 2^31.
static bool fitsInt(BodyInfo &info) {
  for (BlockArgument argument : info.block().getArguments()) {
    int64_t count = 1;
    for (Dim d : info.sizes(argument)) {
      if (!d.isConstant() || info.kernel.isStrided(argument.getArgNumber()))
        return false;
      count *= std::max<int64_t>(d.getConstant(), 1);
      if (count > (int64_t(1) << 31) - (1 << 16))
        return false;
    }
  }
  // Loops over what is no argument.
  for (auto op : info.block().getOps<linalg::LinalgOp>())
    for (Dim d : info.loopSizes(op))
      if (!d.isConstant() || d.getConstant() > (int64_t(1) << 31) - (1 << 16))
        return false;
  return true;
}

OwningOpRef<ModuleOp> KernelBuilder::finish(Dim blocks, const Twine &schedule) {
  Block &entry = function.getBody().front();
  b.setInsertionPointToEnd(&entry);
  gpu::ReturnOp::create(b, loc);
  function->setAttr(indexBitsAttrName, b.getI32IntegerAttr(fitsInt(info) ? 32 : 64));
  function->setAttr(scheduleAttrName, b.getStringAttr(schedule));

  b.setInsertionPointToEnd(module->getBody());
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  auto range = func::FuncOp::create(b, loc, (function.getName() + "_range").str(),
                                    b.getFunctionType(pointer, b.getI64Type()));
  Block *body = range.addEntryBlock();
  b.setInsertionPointToStart(body);
  llvm::StringMap<Value> loaded;
  Value count = emitDim(b, loc, blocks, [&](StringRef symbol) -> Value {
    Value &value = loaded[symbol];
    for (auto [i, d] : llvm::enumerate(symbols))
      if (!value && d.isSymbol() && d.getSymbol() == symbol) {
        Value at = LLVM::GEPOp::create(b, loc, pointer, b.getI64Type(), body->getArgument(0),
                                       ArrayRef<LLVM::GEPArg>{int32_t(i)});
        Value number = LLVM::LoadOp::create(b, loc, b.getI64Type(), at);
        value = arith::IndexCastOp::create(b, loc, b.getIndexType(), number);
      }
    return value;
  });
  Value result = arith::IndexCastOp::create(b, loc, b.getI64Type(), count);
  func::ReturnOp::create(b, loc, result);

  // Index arithmetic is emitted in advance and clones repeat constants.
  IRRewriter rewriter(b.getContext());
  DominanceInfo dominance(*module);
  eliminateCommonSubExpressions(rewriter, dominance, module.get());
  bool changed = true;
  while (changed) {
    changed = false;
    function->walk([&](Operation *op) {
      if (isOpTriviallyDead(op)) {
        op->erase();
        changed = true;
      }
    });
  }
  return std::move(module);
}

} // namespace quern::cuda
