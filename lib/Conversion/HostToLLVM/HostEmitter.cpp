//===- HostEmitter.cpp - Bodies of prepare and run ------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "HostEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "quern/Shape/Condition.h"

using namespace mlir;

namespace quern {

//===----------------------------------------------------------------------===//
// Small pieces
//===----------------------------------------------------------------------===//

Value HostEmitter::index(int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }
Value HostEmitter::toI64(Value index) {
  return arith::IndexCastOp::create(b, loc, b.getI64Type(), index);
}
Value HostEmitter::fromI64(Value i64) {
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), i64);
}
std::optional<int64_t> HostEmitter::known(Value index) {
  APInt constant;
  if (matchPattern(index, m_ConstantInt(&constant)))
    return constant.getSExtValue();
  return std::nullopt;
}
Value HostEmitter::mul(Value x, Value y) {
  std::optional<int64_t> cx = known(x), cy = known(y);
  if (cx && cy)
    return index(*cx * *cy);
  return cx == 1 ? y : cy == 1 ? x : arith::MulIOp::create(b, loc, x, y).getResult();
}
Value HostEmitter::add(Value x, Value y) {
  std::optional<int64_t> cx = known(x), cy = known(y);
  if (cx && cy)
    return index(*cx + *cy);
  return cx == 0 ? y : cy == 0 ? x : arith::AddIOp::create(b, loc, x, y).getResult();
}
Value HostEmitter::value(OpFoldResult v) {
  if (std::optional<int64_t> constant = getConstantIntValue(v))
    return index(*constant);
  return scalars.lookup(cast<Value>(v));
}
Value HostEmitter::at(Value pointer, Type type, LLVM::GEPArg i) {
  return LLVM::GEPOp::create(b, loc, tables.pointer, type, pointer, ArrayRef<LLVM::GEPArg>(i));
}

void HostEmitter::rowMajorStrides(Buffer &buffer) {
  buffer.strides.resize(buffer.sizes.size());
  Value stride = index(1);
  for (size_t i = buffer.sizes.size(); i-- > 0;) {
    buffer.strides[i] = stride;
    if (i)
      stride = mul(stride, buffer.sizes[i]);
  }
}

SmallVector<Value> HostEmitter::sizesOf(MemRefType type, ValueRange freeSizes) {
  SmallVector<Value> sizes;
  for (int64_t size : type.getShape()) {
    sizes.push_back(ShapedType::isDynamic(size) ? freeSizes.front() : index(size));
    if (ShapedType::isDynamic(size))
      freeSizes = freeSizes.drop_front();
  }
  return sizes;
}

void HostEmitter::openBlock() {
  Block *block = new Block;
  out.getBody().getBlocks().insert(failed->getIterator(), block);
  b.setInsertionPointToEnd(block);
}

void HostEmitter::returnIfFailed(Value status) {
  Value zero = LLVM::ConstantOp::create(b, loc, b.getI32Type(), b.getI32IntegerAttr(0));
  Value ok = LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::eq, status, zero);
  OpBuilder before = b;
  openBlock();
  LLVM::CondBrOp::create(before, loc, ok, b.getInsertionBlock(), ValueRange(), failed,
                         ValueRange(status));
}

void HostEmitter::guard(Value condition, StringRef text, ValueRange values) {
  std::string symbol = tables.string(text).symbol;
  auto function = tables.declare("quern_rt_guard_failed", b.getI32Type(),
                                 {tables.pointer, tables.pointer, tables.pointer, b.getI32Type()});
  OpBuilder before = b;
  openBlock();
  Block *refuse = b.getInsertionBlock();
  // Values of a guard are few, and this is the end of the call: an array of its own.
  Value count =
      LLVM::ConstantOp::create(b, loc, b.getI32Type(), b.getI32IntegerAttr(values.size()));
  Value array = LLVM::ZeroOp::create(b, loc, tables.pointer);
  if (!values.empty())
    array = LLVM::AllocaOp::create(b, loc, tables.pointer, b.getI64Type(), count);
  for (auto [i, v] : llvm::enumerate(values))
    LLVM::StoreOp::create(b, loc, toI64(v), at(array, b.getI64Type(), int32_t(i)));
  Value message = LLVM::AddressOfOp::create(b, loc, tables.pointer, symbol);
  auto call =
      LLVM::CallOp::create(b, loc, function, ValueRange{out.getArgument(0), message, array, count});
  LLVM::BrOp::create(b, loc, call.getResult(), failed);
  openBlock();
  LLVM::CondBrOp::create(before, loc, condition, b.getInsertionBlock(), ValueRange(), refuse,
                         ValueRange());
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

FailureOr<Value> HostEmitter::evaluate(Operation *where, Dim dim) {
  if (dim.isConstant())
    return index(dim.getConstant());
  std::string missing;
  dim.walkSymbols([&](StringRef name) {
    if (!symbols.count(name))
      missing = name.str();
  });
  if (dim.isUnknown())
    return where->emitError("unsupported: a size that no argument gives"), failure();
  if (!missing.empty())
    return where->emitError("unsupported: size ")
               << dim.str() << ": '" << missing << "' is not the size of an argument's dim",
           failure();
  return emitDim(b, loc, dim, [&](StringRef name) { return symbols.lookup(name); });
}

LogicalResult HostEmitter::bindArguments(func::FuncOp func) {
  Value bufs = kind == Run ? out.getArgument(1) : Value();
  Value dims = out.getArgument(kind == Run ? 2 : 1);
  auto pointerAt = [&](size_t i) -> Value {
    if (kind == Prepare)
      return {};
    return LLVM::LoadOp::create(b, loc, tables.pointer, at(bufs, tables.pointer, int32_t(i)));
  };
  int32_t nextFree = 0;
  for (auto [i, t] : llvm::enumerate(signature.inputs)) {
    SmallVector<Value> free;
    for (unsigned k = 0; k < t.type.getNumDynamicDims(); ++k)
      free.push_back(fromI64(
          LLVM::LoadOp::create(b, loc, b.getI64Type(), at(dims, b.getI64Type(), nextFree++))));
    Buffer &buffer = buffers[t.arg];
    buffer.pointer = pointerAt(i);
    buffer.sizes = sizesOf(t.type, free);
    rowMajorStrides(buffer);
    for (auto [dim, size] : llvm::zip_equal(t.dims, buffer.sizes))
      if (dim.isSymbol())
        symbols.try_emplace(dim.getSymbol(), size);
  }
  if (kind == Prepare) {
    // Every other mention of a symbol is a promise about the sizes.
    for (auto [i, t] : llvm::enumerate(signature.inputs))
      for (auto [d, dim] : llvm::enumerate(t.dims)) {
        Value size = buffers[t.arg].sizes[d];
        if (dim.isUnknown() || dim.isConstant() ||
            (dim.isSymbol() && symbols.lookup(dim.getSymbol()) == size))
          continue;
        FailureOr<Value> expected = evaluate(func, dim);
        if (llvm::failed(expected))
          return failure();
        Value same = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, size, *expected);
        if (!dim.isExact())
          same = arith::AndIOp::create(b, loc, same,
                                       Condition::exact(dim).emit(b, loc, [&](StringRef name) {
                                         return symbols.lookup(name);
                                       }));
        std::string text;
        llvm::raw_string_ostream(text)
            << "input " << i << " '" << t.name << "' of '" << signature.name << "': expected dim "
            << d << " to be " << dim.str() << " = {1}, got {0}";
        guard(same, text, {size, *expected});
      }
  }
  for (auto [i, t] : llvm::enumerate(signature.outputs)) {
    if (t.alias >= 0)
      continue;
    SmallVector<Value> free;
    for (auto [size, dim] : llvm::zip_equal(t.type.getShape(), t.dims))
      if (ShapedType::isDynamic(size)) {
        FailureOr<Value> v = evaluate(func, dim);
        if (llvm::failed(v))
          return failure();
        free.push_back(*v);
      }
    Buffer &buffer = buffers[t.arg];
    buffer.pointer = pointerAt(signature.inputs.size() + i);
    buffer.sizes = sizesOf(t.type, free);
    rowMajorStrides(buffer);
  }
  for (auto [i, constant] : llvm::enumerate(signature.constants)) {
    Buffer &buffer = buffers[constant.first];
    buffer.pointer = pointerAt(signature.inputs.size() + signature.outputs.size() + i);
    buffer.sizes = sizesOf(cast<MemRefType>(constant.first.getType()), {});
    rowMajorStrides(buffer);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

FailureOr<HostEmitter::Buffer *> HostEmitter::buffer(Operation *user, Value memref) {
  auto it = buffers.find(memref);
  if (it == buffers.end())
    return user->emitError("internal: no buffer is known for an operand of '")
               << user->getName() << "'",
           failure();
  return &it->second;
}

LogicalResult HostEmitter::emitAlloc(memref::AllocOp op) {
  MemRefType type = op.getType();
  Buffer result;
  SmallVector<Value> free;
  for (Value size : op.getDynamicSizes())
    free.push_back(scalars.lookup(size));
  result.sizes = sizesOf(type, free);
  rowMajorStrides(result);
  Value bytes = index(std::max(1u, type.getElementTypeBitWidth() / 8));
  for (Value size : result.sizes)
    bytes = mul(bytes, size);
  // One arena is the rule; further allocations stand behind it, aligned.
  if (kind == Run) {
    result.pointer = out.getArgument(3);
    if (arenaBytes)
      result.pointer = at(result.pointer, b.getI8Type(), toI64(arenaBytes));
  }
  Value end = arenaBytes ? add(arenaBytes, bytes) : bytes;
  arenaBytes = arith::AndIOp::create(b, loc, add(end, index(63)), index(-64));
  buffers[op] = result;
  return success();
}

LogicalResult HostEmitter::emitSubview(memref::SubViewOp op) {
  FailureOr<Buffer *> found = buffer(op, op.getSource());
  if (llvm::failed(found))
    return failure();
  Buffer source = **found, result;
  llvm::SmallBitVector dropped = op.getDroppedDims();
  Value offset = index(0);
  // Contiguous: a run of rows of the source. Dims of one element may stand before it.
  bool contiguous = source.contiguous, rows = false;
  for (unsigned d = 0; d < source.sizes.size(); ++d) {
    OpFoldResult size = op.getMixedSizes()[d], step = op.getMixedStrides()[d];
    offset = add(offset, mul(value(op.getMixedOffsets()[d]), source.strides[d]));
    Value sizeValue = value(size);
    bool one = getConstantIntValue(size) == 1;
    bool full = sizeValue == source.sizes[d] ||
                (known(sizeValue) && known(sizeValue) == known(source.sizes[d]));
    contiguous &= getConstantIntValue(step) == 1 || one;
    contiguous &= !rows || full;
    rows |= !one;
    if (dropped.test(d))
      continue;
    result.sizes.push_back(sizeValue);
    result.strides.push_back(mul(source.strides[d], value(step)));
  }
  result.contiguous = contiguous;
  if (kind == Run)
    result.pointer =
        at(source.pointer, IntegerType::get(b.getContext(), 8),
           toI64(mul(offset, index(std::max(1u, op.getType().getElementTypeBitWidth() / 8)))));
  buffers[op] = result;
  return success();
}

LogicalResult HostEmitter::emitLaunch(kernel::LaunchOp op) {
  auto k = SymbolTable::lookupNearestSymbolFrom<kernel::FuncOp>(op, op.getKernelAttr());
  if (!k)
    return op.emitError("internal: unknown kernel ") << op.getKernelAttr();
  if (kind == Prepare)
    return success();
  SmallVector<Value> operands(op.getIns());
  llvm::append_range(operands, op.getOuts());
  Block &body = k.getBody().front();

  SmallVector<Buffer *> args;
  for (auto [i, operand] : llvm::enumerate(operands)) {
    FailureOr<Buffer *> found = buffer(op, operand);
    if (llvm::failed(found))
      return failure();
    auto type = cast<ShapedType>(body.getArgument(i).getType());
    if (size_t(type.getRank()) != (*found)->sizes.size())
      return op.emitError("internal: operand ")
             << i << " has another rank than @" << k.getSymName() << " expects";
    if (!(*found)->contiguous && !k.isStrided(i))
      return op.emitError("internal: operand ")
             << i << " is not contiguous and @" << k.getSymName() << " takes no strides for it";
    args.push_back(*found);
    LLVM::StoreOp::create(b, loc, (*found)->pointer, at(launchBufs, tables.pointer, int32_t(i)));
  }

  // The symbols: a strided operand may be an operand of size 1 that is broadcast, so
  // that its own size is not the symbol's; others tell it, or the launch.
  SmallVector<Value> dims;
  auto given = dyn_cast_or_null<DimsAttr>(op.getSizesAttr());
  for (auto [number, symbol] : llvm::enumerate(k.getSymbols())) {
    Value size;
    for (auto [i, arg] : llvm::enumerate(args))
      if (auto type = dyn_cast<RankedTensorType>(body.getArgument(i).getType());
          type && !k.isStrided(i))
        for (auto [d, dim] : llvm::enumerate(getDims(type)))
          if (!size && dim == symbol)
            size = arg->sizes[d];
    if (!size) {
      if (!given || given.getDims().size() <= number)
        return op.emitOpError("expected sizes, since only strided operands have ")
               << symbol << " of @" << k.getSymName();
      FailureOr<Value> evaluated = evaluate(op, given.getDims()[number]);
      if (llvm::failed(evaluated))
        return failure();
      size = *evaluated;
    }
    dims.push_back(size);
  }
  for (int64_t i : k.getStrided()) {
    SmallVector<Dim> expected = getDims(cast<RankedTensorType>(body.getArgument(i).getType()));
    for (unsigned d = 0; d < expected.size(); ++d) {
      Value stride = args[i]->strides[d], size = args[i]->sizes[d], zero = index(0);
      if (!expected[d].isConstant(1)) {
        Value one = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, size, index(1));
        stride = arith::SelectOp::create(b, loc, one, zero, stride);
      }
      dims.push_back(stride);
    }
  }
  for (auto [i, dim] : llvm::enumerate(dims))
    LLVM::StoreOp::create(b, loc, toI64(dim), at(launchDims, b.getI64Type(), int32_t(i)));

  auto launch = tables.declare("quern_rt_launch", b.getI32Type(),
                               {tables.pointer, tables.pointer, tables.pointer, tables.pointer});
  Value table = LLVM::AddressOfOp::create(b, loc, tables.pointer, kernelArray);
  int32_t number = llvm::find(kernels, k) - kernels.begin();
  auto call = LLVM::CallOp::create(
      b, loc, launch,
      ValueRange{out.getArgument(0), at(table, kernelType, number), launchBufs, launchDims});
  returnIfFailed(call.getResult());
  return success();
}

LogicalResult HostEmitter::emitOp(Operation *op) {
  loc = op->getLoc();
  if (isa<func::ReturnOp, memref::DeallocOp>(op))
    return success();
  if (auto alloc = dyn_cast<memref::AllocOp>(op))
    return emitAlloc(alloc);
  if (auto subview = dyn_cast<memref::SubViewOp>(op))
    return emitSubview(subview);
  if (auto launch = dyn_cast<kernel::LaunchOp>(op))
    return emitLaunch(launch);
  if (auto guardOp = dyn_cast<kernel::GuardOp>(op)) {
    SmallVector<Value> values;
    for (Value v : guardOp.getValues())
      values.push_back(scalars.lookup(v));
    if (kind == Prepare)
      guard(scalars.lookup(guardOp.getCondition()), guardOp.getText(), values);
    return success();
  }
  if (auto dim = dyn_cast<kernel::DimOp>(op)) {
    FailureOr<Value> v = evaluate(op, Dim(cast<DimAttr>(dim.getDim())));
    if (llvm::failed(v))
      return failure();
    scalars.map(dim.getResult(), *v);
    return success();
  }
  if (auto dim = dyn_cast<memref::DimOp>(op)) {
    FailureOr<Buffer *> source = buffer(op, dim.getSource());
    std::optional<int64_t> d = dim.getConstantIndex();
    if (llvm::failed(source))
      return failure();
    if (!d || *d >= int64_t((*source)->sizes.size()))
      return op->emitError("unsupported: a dim that is chosen at run time");
    scalars.map(dim.getResult(), (*source)->sizes[*d]);
    return success();
  }
  if (isa<memref::ViewOp, memref::CastOp, kernel::ViewOp>(op)) {
    FailureOr<Buffer *> found = buffer(op, op->getOperand(0));
    if (llvm::failed(found))
      return failure();
    Buffer result = **found;
    if (!isa<memref::CastOp>(op)) {
      auto view = dyn_cast<memref::ViewOp>(op);
      SmallVector<Value> free;
      for (Value size : view ? view.getSizes() : cast<kernel::ViewOp>(op).getSizes())
        free.push_back(scalars.lookup(size));
      if (!result.contiguous)
        return op->emitError("internal: a view of a buffer that is not contiguous");
      if (view && kind == Run)
        result.pointer =
            at(result.pointer, b.getI8Type(), toI64(scalars.lookup(view.getByteShift())));
      result.sizes = sizesOf(cast<MemRefType>(op->getResult(0).getType()), free);
      rowMajorStrides(result);
    }
    buffers[op->getResult(0)] = result;
    return success();
  }
  // Arithmetic on sizes.
  auto isScalar = [](Type type) { return type.isIntOrIndex(); };
  if (isMemoryEffectFree(op) && op->getNumRegions() == 0 && op->getNumResults() > 0 &&
      llvm::all_of(op->getOperandTypes(), isScalar) &&
      llvm::all_of(op->getResultTypes(), isScalar)) {
    b.clone(*op, scalars);
    return success();
  }
  return op->emitError("unsupported: '") << op->getName() << "' in the host function";
}

//===----------------------------------------------------------------------===//
// The functions
//===----------------------------------------------------------------------===//

LogicalResult HostEmitter::finishPrepare(func::FuncOp func) {
  int32_t next = 0;
  for (const SignatureTensor &t : signature.outputs)
    for (auto [size, v] : llvm::zip_equal(t.type.getShape(), buffers[t.arg].sizes))
      if (ShapedType::isDynamic(size))
        LLVM::StoreOp::create(b, loc, toI64(v), at(out.getArgument(2), b.getI64Type(), next++));
  LLVM::StoreOp::create(b, loc, toI64(arenaBytes ? arenaBytes : index(0)), out.getArgument(3));
  return success();
}

LogicalResult HostEmitter::emit(func::FuncOp func, StringRef name, Kind which) {
  kind = which;
  scalars.clear();
  buffers.clear();
  symbols.clear();
  arenaBytes = {};
  loc = func.getLoc();
  Type ptr = tables.pointer, i32 = b.getI32Type();
  b.setInsertionPoint(func);
  out =
      LLVM::LLVMFuncOp::create(b, loc, name, LLVM::LLVMFunctionType::get(i32, {ptr, ptr, ptr, ptr}),
                               LLVM::Linkage::Internal);
  Block *entry = out.addEntryBlock(b);
  failed = b.createBlock(&out.getBody(), out.getBody().end(), i32, loc);
  LLVM::ReturnOp::create(b, loc, failed->getArgument(0));
  b.setInsertionPointToEnd(entry);

  if (kind == Run) {
    size_t mostBufs = 0, mostDims = 0;
    for (kernel::FuncOp k : kernels) {
      Block &body = k.getBody().front();
      size_t dims = k.getSymbols().size();
      for (int64_t arg : k.getStrided())
        dims += cast<ShapedType>(body.getArgument(arg).getType()).getRank();
      mostBufs = std::max<size_t>(mostBufs, body.getNumArguments());
      mostDims = std::max(mostDims, dims);
    }
    auto array = [&](Type type, size_t size) -> Value {
      Value count =
          LLVM::ConstantOp::create(b, loc, i32, b.getI32IntegerAttr(std::max<size_t>(size, 1)));
      return LLVM::AllocaOp::create(b, loc, ptr, type, count);
    };
    launchBufs = array(ptr, mostBufs);
    launchDims = array(b.getI64Type(), mostDims);
  }
  if (llvm::failed(bindArguments(func)))
    return failure();
  for (Operation &op : func.getBody().front())
    if (llvm::failed(emitOp(&op)))
      return failure();
  if (kind == Prepare && llvm::failed(finishPrepare(func)))
    return failure();
  Value ok = LLVM::ConstantOp::create(b, loc, i32, b.getI32IntegerAttr(0));
  LLVM::BrOp::create(b, loc, ok, failed);
  return success();
}

} // namespace quern
