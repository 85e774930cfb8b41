//===- Emitter.cpp - Building kernel functions ----------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace quern;
using namespace quern::cpu;

SmallVector<Dim> cpu::rowMajorStrides(MLIRContext *ctx, ArrayRef<Dim> shape) {
  SmallVector<Dim> strides(shape.size());
  Dim stride = Dim::constant(ctx, 1);
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride = stride * shape[i];
  }
  return strides;
}

Emitter::Emitter(kernel::FuncOp kernel, ModuleOp module, const MachineModel &machine,
                 const ScheduleOptions &options)
    : kernel(kernel), module(module), b(kernel.getContext()), loc(kernel.getLoc()),
      machine(machine), options(options), ctx(kernel.getContext()) {
  i64Type = b.getI64Type();
  ptrType = LLVM::LLVMPointerType::get(ctx);
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

void Emitter::beginFunction(StringRef name, bool sizesOnly) {
  b.setInsertionPointToEnd(module.getBody());
  SmallVector<Type> inputs;
  if (sizesOnly)
    inputs = {ptrType};
  else
    inputs = {ptrType, ptrType, i64Type, i64Type};
  auto fn = func::FuncOp::create(
      b, loc, name, b.getFunctionType(inputs, sizesOnly ? TypeRange(i64Type) : TypeRange()));
  Block *block = fn.addEntryBlock();
  b.setInsertionPointToStart(block);
  bufs = sizesOnly ? Value() : block->getArgument(0);
  dims = block->getArgument(sizesOnly ? 0 : 1);
  for (unsigned i = 0; i < (sizesOnly ? 1u : 2u); ++i) {
    fn.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(), b.getUnitAttr());
    fn.setArgAttr(i, LLVM::LLVMDialect::getReadonlyAttrName(), b.getUnitAttr());
  }
  if (!sizesOnly) {
    lo = block->getArgument(2);
    hi = block->getArgument(3);
  }
  sizes.clear();
  scalars.clear();
  args.clear();

  // Symbols, then strides: the layout of `dims`. Sizes that nobody uses go away again.
  int64_t next = 0;
  auto loadDim = [&](Dim d) {
    Value at = LLVM::GEPOp::create(b, loc, ptrType, i64Type, dims,
                                   ArrayRef<LLVM::GEPArg>{int32_t(next++)});
    sizes[d] = LLVM::LoadOp::create(b, loc, i64Type, at);
  };
  for (Dim symbol : kernel.getSymbols())
    loadDim(symbol);
  for (auto [n, arg] : llvm::enumerate(kernel.getBody().front().getArguments())) {
    Buffer buffer;
    auto type = cast<RankedTensorType>(arg.getType());
    buffer.element = type.getElementType();
    buffer.shape = getDims(type);
    if (kernel.isStrided(n)) {
      for (int64_t i = 0; i < type.getRank(); ++i) {
        Dim stride = Dim::symbol(ctx, ("stride " + Twine(n) + "." + Twine(i)).str());
        buffer.strides.push_back(stride);
        loadDim(stride);
      }
    } else {
      buffer.strides = rowMajorStrides(ctx, buffer.shape);
    }
    if (!sizesOnly) {
      Value at =
          LLVM::GEPOp::create(b, loc, ptrType, ptrType, bufs, ArrayRef<LLVM::GEPArg>{int32_t(n)});
      buffer.ptr = LLVM::LoadOp::create(b, loc, ptrType, at);
    }
    args.push_back(std::move(buffer));
  }
  entryEnd = block->empty() ? nullptr : &block->back();
  Value result;
  if (sizesOnly)
    result = i64(0);
  auto end = func::ReturnOp::create(b, loc, sizesOnly ? ValueRange(result) : ValueRange());
  b.setInsertionPoint(end);
}

void Emitter::endFunction(Value result) {
  b.getInsertionBlock()->getTerminator()->setOperand(0, result);
}

void Emitter::atEntry(llvm::function_ref<void()> fn) {
  OpBuilder::InsertionGuard guard(b);
  Block *entry = dims.getParentBlock();
  if (entryEnd)
    b.setInsertionPointAfter(entryEnd);
  else
    b.setInsertionPointToStart(entry);
  // Nested requests go to the same place, in order.
  Operation *next = &*b.getInsertionPoint();
  fn();
  entryEnd = next->getPrevNode();
}

Value Emitter::size(Dim d) {
  if (d.isConstant())
    return i64(d.getConstant());
  if (Value v = sizes.lookup(d))
    return v;
  Value result;
  atEntry([&] {
    SmallVector<Value> operands;
    for (Dim operand : d.operands())
      operands.push_back(size(operand));
    auto fold = [&](auto op) {
      result = operands[0];
      for (Value v : llvm::drop_begin(operands))
        result = op(result, v);
    };
    // The divisor is positive.
    auto floor = [&](Value x, Value y) -> Value {
      Value r = arith::RemSIOp::create(b, loc, x, y);
      Value below = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, r, i64(0));
      return sub(arith::DivSIOp::create(b, loc, x, y),
                 arith::ExtUIOp::create(b, loc, i64Type, below));
    };
    switch (d.kind()) {
    case DimKind::Sum:
      return fold([&](Value x, Value y) { return add(x, y); });
    case DimKind::Product:
      return fold([&](Value x, Value y) { return mul(x, y); });
    case DimKind::FloorDiv:
      return fold(floor);
    case DimKind::CeilDiv:
      return fold([&](Value x, Value y) { return sub(i64(0), floor(sub(i64(0), x), y)); });
    case DimKind::Mod:
      return fold([&](Value x, Value y) { return sub(x, mul(floor(x, y), y)); });
    case DimKind::Min:
      return fold([&](Value x, Value y) { return min(x, y); });
    case DimKind::Max:
      return fold([&](Value x, Value y) { return max(x, y); });
    case DimKind::Bcast:
      return fold([&](Value x, Value y) -> Value {
        Value one = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, x, i64(1));
        return arith::SelectOp::create(b, loc, one, y, x);
      });
    case DimKind::Unknown:
    case DimKind::Constant:
    case DimKind::Symbol:
      llvm_unreachable("a size that no argument has");
    }
  });
  return sizes[d] = result;
}

Value Emitter::scalar(Value v) {
  if (Value known = scalars.lookupOrNull(v))
    return known;
  Operation *op = v.getDefiningOp();
  if (!op) // an i64 or a block argument of a cloned region
    return v;
  if (op->getParentOp() != kernel.getOperation())
    return v;
  Value result;
  if (auto dim = dyn_cast<tensor::DimOp>(op)) {
    auto type = cast<RankedTensorType>(dim.getSource().getType());
    Value n = size(getDims(type)[*dim.getConstantIndex()]);
    atEntry([&] { result = arith::IndexCastOp::create(b, loc, b.getIndexType(), n); });
  } else if (auto dim = dyn_cast<kernel::DimOp>(op)) {
    Value n = size(Dim(cast<DimAttr>(dim.getDim())));
    atEntry([&] { result = arith::IndexCastOp::create(b, loc, b.getIndexType(), n); });
  } else if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
    const Buffer &buffer = args[cast<BlockArgument>(extract.getTensor()).getArgNumber()];
    SmallVector<Value> indices;
    for (Value i : extract.getIndices())
      indices.push_back(scalar(i));
    SmallVector<Value> strides;
    for (Dim stride : buffer.strides)
      strides.push_back(size(stride));
    atEntry([&] {
      Value at = i64(0);
      for (auto [i, stride] : llvm::zip(indices, strides))
        at = add(at, mul(arith::IndexCastOp::create(b, loc, i64Type, i), stride));
      result = load(buffer, at, {});
    });
  } else {
    for (Value operand : op->getOperands())
      scalars.map(operand, scalar(operand));
    atEntry([&] { result = b.clone(*op, scalars)->getResult(0); });
  }
  scalars.map(v, result);
  return result;
}

Value Emitter::stack(Type element, int64_t count) {
  Value result;
  atEntry(
      [&] { result = LLVM::AllocaOp::create(b, loc, ptrType, storage(element), i64(count), 64); });
  return result;
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

static std::optional<int64_t> constantOf(Value v) {
  APInt value;
  if (matchPattern(v, m_ConstantInt(&value)))
    return value.getSExtValue();
  return std::nullopt;
}

Value Emitter::i64(int64_t v) { return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(v)); }
Value Emitter::add(Value x, Value y) {
  auto cx = constantOf(x), cy = constantOf(y);
  if (cx && cy)
    return i64(*cx + *cy);
  if (cx == 0)
    return y;
  if (cy == 0)
    return x;
  return arith::AddIOp::create(b, loc, x, y);
}
Value Emitter::sub(Value x, Value y) {
  auto cx = constantOf(x), cy = constantOf(y);
  if (cx && cy)
    return i64(*cx - *cy);
  return cy == 0 ? x : arith::SubIOp::create(b, loc, x, y).getResult();
}
Value Emitter::mul(Value x, Value y) {
  auto cx = constantOf(x), cy = constantOf(y);
  if (cx && cy)
    return i64(*cx * *cy);
  if (cx == 0 || cy == 1)
    return x;
  if (cy == 0 || cx == 1)
    return y;
  return arith::MulIOp::create(b, loc, x, y);
}
Value Emitter::div(Value x, Value y) {
  auto cx = constantOf(x), cy = constantOf(y);
  if (cx && cy && *cy > 0)
    return i64(*cx / *cy);
  return cy == 1 ? x : arith::DivUIOp::create(b, loc, x, y).getResult();
}
Value Emitter::rem(Value x, Value y) {
  auto cx = constantOf(x), cy = constantOf(y);
  if (cx && cy && *cy > 0)
    return i64(*cx % *cy);
  return cy == 1 ? i64(0) : arith::RemUIOp::create(b, loc, x, y).getResult();
}
Value Emitter::min(Value x, Value y) {
  auto cx = constantOf(x), cy = constantOf(y);
  return cx && cy ? i64(std::min(*cx, *cy)) : arith::MinSIOp::create(b, loc, x, y).getResult();
}
Value Emitter::max(Value x, Value y) {
  auto cx = constantOf(x), cy = constantOf(y);
  return cx && cy ? i64(std::max(*cx, *cy)) : arith::MaxSIOp::create(b, loc, x, y).getResult();
}
Value Emitter::ceilDiv(Value x, Value y) { return div(add(x, sub(y, i64(1))), y); }

SmallVector<Value> Emitter::loop(Value from, Value to, int64_t step, ValueRange carried,
                                 llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  auto op = scf::ForOp::create(b, loc, from, to, i64(step), carried);
  OpBuilder::InsertionGuard guard(b);
  if (carried.empty()) {
    b.setInsertionPoint(op.getBody()->getTerminator());
    body(op.getInductionVar(), {});
  } else {
    b.setInsertionPointToStart(op.getBody());
    SmallVector<Value> next = body(op.getInductionVar(), op.getRegionIterArgs());
    scf::YieldOp::create(b, loc, next);
  }
  return SmallVector<Value>(op.getResults());
}

void Emitter::loop(Value from, Value to, int64_t step, llvm::function_ref<void(Value)> body) {
  loop(from, to, step, {}, [&](Value i, ValueRange) {
    body(i);
    return SmallVector<Value>();
  });
}

//===----------------------------------------------------------------------===//
// Vectors
//===----------------------------------------------------------------------===//

Type Emitter::vec(Type element, unsigned lanes) {
  return lanes == 1 ? element : VectorType::get({int64_t(lanes)}, element);
}

Value Emitter::constant(TypedAttr value) { return arith::ConstantOp::create(b, loc, value); }
Value Emitter::zero(Type type) { return constant(b.getZeroAttr(type)); }

Value Emitter::splat(Value v, unsigned lanes) {
  if (lanes == 1 || isa<VectorType>(v.getType()))
    return v;
  auto type = cast<VectorType>(vec(v.getType(), lanes));
  Attribute value;
  if (matchPattern(v, m_Constant(&value)))
    return constant(DenseElementsAttr::get(type, value));
  return vector::BroadcastOp::create(b, loc, type, v);
}

Value Emitter::iota(unsigned lanes) {
  SmallVector<int64_t> values;
  for (unsigned i = 0; i < lanes; ++i)
    values.push_back(i);
  auto type = VectorType::get({int64_t(lanes)}, i64Type);
  return constant(DenseElementsAttr::get(type, ArrayRef<int64_t>(values)));
}

Lanes Emitter::lanesLeft(unsigned count, Value left) {
  SmallVector<int32_t> values;
  for (unsigned i = 0; i < count; ++i)
    values.push_back(i);
  Value steps = constant(DenseElementsAttr::get(VectorType::get({int64_t(count)}, b.getI32Type()),
                                                ArrayRef<int32_t>(values)));
  left = min(left, i64(count));
  Value narrow = arith::TruncIOp::create(b, loc, b.getI32Type(), left);
  Value mask =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, steps, splat(narrow, count));
  return {count, left, mask};
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Type Emitter::storage(Type element) { return element.isInteger(1) ? b.getI8Type() : element; }

static unsigned byteWidth(Type storage) { return (storage.getIntOrFloatBitWidth() + 7) / 8; }

Value Emitter::address(Value ptr, Type element, Value index) {
  if (auto c = constantOf(index); c && *c >= INT32_MIN && *c <= INT32_MAX)
    return LLVM::GEPOp::create(b, loc, ptrType, storage(element), ptr,
                               ArrayRef<LLVM::GEPArg>{int32_t(*c)});
  return LLVM::GEPOp::create(b, loc, ptrType, storage(element), ptr, ArrayRef<LLVM::GEPArg>{index});
}

/// i1 values of what memory holds.
static Value fromStorage(Emitter &e, Value v, Type element) {
  if (!element.isInteger(1))
    return v;
  return arith::CmpIOp::create(e.b, e.loc, arith::CmpIPredicate::ne, v, e.zero(v.getType()));
}

Value Emitter::elementAt(const Buffer &buffer, Value index) {
  Type type = storage(buffer.element);
  return LLVM::LoadOp::create(b, loc, type, address(buffer.ptr, buffer.element, index),
                              byteWidth(type));
}

Value Emitter::load(const Buffer &buffer, Value index, const Lanes &lanes) {
  Type element = storage(buffer.element);
  Type type = vec(element, lanes.count);
  Value v, at = address(buffer.ptr, buffer.element, index);
  if (!lanes.mask) {
    v = LLVM::LoadOp::create(b, loc, type, at, byteWidth(element));
  } else if (machine.hasMaskedAccess(element.getIntOrFloatBitWidth())) {
    v = LLVM::MaskedLoadOp::create(b, loc, type, at, lanes.mask, zero(type),
                                   b.getI32IntegerAttr(byteWidth(element)), UnitAttr());
  } else { // through a small buffer: masked code would be a branch for each lane
    Buffer copy = buffer;
    copy.ptr = stack(buffer.element, lanes.count);
    LLVM::StoreOp::create(b, loc, zero(type), copy.ptr, byteWidth(element));
    loop(i64(0), lanes.left, 1, [&](Value i) {
      LLVM::StoreOp::create(b, loc, elementAt(buffer, add(index, i)),
                            address(copy.ptr, buffer.element, i), byteWidth(element));
    });
    v = LLVM::LoadOp::create(b, loc, type, copy.ptr, byteWidth(element));
  }
  return fromStorage(*this, v, buffer.element);
}

Value Emitter::loadStrided(const Buffer &buffer, Value index, Value stride, const Lanes &lanes) {
  SmallVector<Value> values;
  for (unsigned l = 0; l < lanes.count; ++l) {
    Value lane = i64(l); // a lane that does not exist repeats the last one that does
    if (lanes.left && l)
      lane = min(lane, sub(lanes.left, i64(1)));
    values.push_back(elementAt(buffer, add(index, mul(lane, stride))));
  }
  Value v = values[0];
  if (lanes.count > 1)
    v = vector::FromElementsOp::create(b, loc, vec(storage(buffer.element), lanes.count), values);
  return fromStorage(*this, v, buffer.element);
}

Value Emitter::gather(const Buffer &buffer, Value indices, const Lanes &lanes) {
  if (lanes.mask) // the first lane exists
    indices = arith::SelectOp::create(
        b, loc, lanes.mask, indices,
        splat(vector::ExtractOp::create(b, loc, indices, int64_t(0)), lanes.count));
  SmallVector<Value> values;
  for (unsigned l = 0; l < lanes.count; ++l)
    values.push_back(elementAt(buffer, vector::ExtractOp::create(b, loc, indices, int64_t(l))));
  Value v =
      vector::FromElementsOp::create(b, loc, vec(storage(buffer.element), lanes.count), values);
  return fromStorage(*this, v, buffer.element);
}

void Emitter::store(const Buffer &buffer, Value index, Value value, const Lanes &lanes,
                    bool stream) {
  Type element = storage(buffer.element);
  value = splat(value, lanes.count);
  if (buffer.element.isInteger(1))
    value = arith::ExtUIOp::create(b, loc, vec(element, lanes.count), value);
  Value at = address(buffer.ptr, buffer.element, index);
  unsigned bytes = byteWidth(element);
  if (!lanes.mask) {
    LLVM::StoreOp::create(b, loc, value, at, stream ? machine.vectorBytes : bytes, false, stream);
  } else if (machine.hasMaskedAccess(element.getIntOrFloatBitWidth())) {
    LLVM::MaskedStoreOp::create(b, loc, value, at, lanes.mask, bytes);
  } else {
    Buffer copy = buffer;
    copy.ptr = stack(buffer.element, lanes.count);
    LLVM::StoreOp::create(b, loc, value, copy.ptr, bytes);
    loop(i64(0), lanes.left, 1, [&](Value i) {
      LLVM::StoreOp::create(b, loc, elementAt(copy, i),
                            address(buffer.ptr, buffer.element, add(index, i)), bytes);
    });
  }
}

void Emitter::storeStrided(const Buffer &buffer, Value index, Value stride, Value value,
                           const Lanes &lanes) {
  Type element = storage(buffer.element);
  value = splat(value, lanes.count);
  if (lanes.count == 1)
    return store(buffer, index, value, lanes);
  // Through memory: the number of lanes is known at run time only.
  Buffer copy = buffer;
  copy.ptr = stack(buffer.element, lanes.count);
  store(copy, i64(0), value, {lanes.count, {}, {}});
  loop(i64(0), lanes.left ? lanes.left : i64(lanes.count), 1, [&](Value i) {
    LLVM::StoreOp::create(b, loc, elementAt(copy, i),
                          address(buffer.ptr, buffer.element, add(index, mul(i, stride))),
                          byteWidth(element));
  });
}

void Emitter::prefetch(const Buffer &buffer, Value index) {
  LLVM::Prefetch::create(b, loc, address(buffer.ptr, buffer.element, index), 0, 3, 1);
}

Buffer Emitter::constantBuffer(DenseElementsAttr value) {
  auto type = cast<RankedTensorType>(value.getType());
  Buffer buffer;
  buffer.element = type.getElementType();
  for (int64_t n : type.getShape())
    buffer.shape.push_back(Dim::constant(ctx, n));
  buffer.strides = rowMajorStrides(ctx, buffer.shape);
  int64_t count = type.getNumElements();
  if (buffer.element.isInteger(1))
    value = cast<DenseElementsAttr>(value.mapValues(
        b.getI8Type(), [](const APInt &bit) { return APInt(8, bit.isZero() ? 0 : 1); }));
  value = value.reshape(RankedTensorType::get({count}, storage(buffer.element)));
  LLVM::GlobalOp global;
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(module.getBody());
    std::string name = ("constant" + Twine(module.getBody()->getOperations().size())).str();
    global = LLVM::GlobalOp::create(
        b, loc, LLVM::LLVMArrayType::get(storage(buffer.element), std::max<int64_t>(count, 1)),
        /*isConstant=*/true, LLVM::Linkage::Private, name, count ? Attribute(value) : Attribute(),
        /*alignment=*/64);
  }
  atEntry([&] { buffer.ptr = LLVM::AddressOfOp::create(b, loc, global); });
  return buffer;
}
