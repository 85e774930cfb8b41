//===- Body.cpp - Elements of a kernel's tensors, on demand ---------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Body.h"
#include "Reductions.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "quern/Schedule/CUDA.h"

using namespace mlir;

namespace quern::cuda {

bool Lanes::isInvariant(Value value) const {
  return const_cast<scf::ForOp &>(loop).isDefinedOutsideOfLoop(value);
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

void Body::pin(Value tensor, ArrayRef<Value> indices, Value value) {
  pins[tensor].push_back({SmallVector<Value>(indices), value});
}

Value Body::element(Value tensor, ArrayRef<Value> given) {
  // Where the size is 1 there is one index.
  SmallVector<Value> indices(given);
  SmallVector<Dim> sizes = info.sizes(tensor);
  for (auto [index, size] : llvm::zip(indices, sizes))
    if (size.isConstant(1))
      index = indexing.constant(0);

  if (auto known = pins.find(tensor); known != pins.end())
    for (const Pin &pin : known->second)
      if (pin.indices == indices && indexing.isAvailable(pin.value))
        return pin.value;

  Value value;
  if (auto argument = dyn_cast<BlockArgument>(tensor)) {
    value = load(argument, indices);
  } else {
    Operation *op = tensor.getDefiningOp();
    if (auto fill = dyn_cast<linalg::FillOp>(op))
      return scalar(fill.value());
    if (auto refine = dyn_cast<kernel::RefineOp>(op))
      return element(refine.getSource(), indices);
    if (auto view = dyn_cast<kernel::ViewOp>(op)) {
      Value source = view.getSource();
      return element(source, indexing.reshape(indices, sizes, info.sizes(source)));
    }
    if (auto constant = dyn_cast<arith::ConstantOp>(op))
      return arith::ConstantOp::create(
          b, b.getUnknownLoc(),
          cast<TypedAttr>(cast<DenseElementsAttr>(constant.getValue()).getSplatValue<Attribute>()));
    if (isa<tensor::EmptyOp>(op)) // whatever: nothing was written
      return arith::ConstantOp::create(
          b, b.getUnknownLoc(),
          b.getZeroAttr(cast<RankedTensorType>(tensor.getType()).getElementType()));
    auto linalg = cast<linalg::LinalgOp>(op);
    auto result = cast<OpResult>(tensor);
    if (isReduction(linalg))
      return onReduction ? onReduction(result, indices) : reduce(result, indices);
    value = elementOf(linalg, result, indices);
  }
  pin(tensor, indices, value);
  return value;
}

/// The loops' indices for an element of a result; reduction loops are null.
static SmallVector<Value> loopsOf(linalg::LinalgOp op, OpResult result, ArrayRef<Value> indices) {
  SmallVector<Value> loops(op.getNumLoops());
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(result.getResultNumber()));
  for (auto [expr, index] : llvm::zip(map.getResults(), indices))
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      loops[dim.getPosition()] = index;
  return loops;
}

static bool usesInit(linalg::LinalgOp op, unsigned init) {
  return !op.getRegionOutputArgs()[init].use_empty();
}

Value Body::elementOf(linalg::LinalgOp op, OpResult result, ArrayRef<Value> indices) {
  SmallVector<Value> loops = loopsOf(op, result, indices), inits;
  for (auto [i, init] : llvm::enumerate(op.getDpsInits()))
    inits.push_back(usesInit(op, i) ? element(init, indices) : Value());
  SmallVector<Value> values = region(op, loops, inits);
  for (auto [i, value] : llvm::enumerate(values))
    if (i != result.getResultNumber() &&
        op.getMatchingIndexingMap(op.getDpsInitOperand(i)) ==
            op.getMatchingIndexingMap(op.getDpsInitOperand(result.getResultNumber())))
      pin(op->getResult(i), indices, value);
  return values[result.getResultNumber()];
}

Value Body::reduce(OpResult result, ArrayRef<Value> indices) {
  auto op = cast<linalg::LinalgOp>(result.getOwner());
  Location loc = b.getUnknownLoc();
  SmallVector<Value> loops = loopsOf(op, result, indices);
  SmallVector<Dim> sizes = info.loopSizes(op);
  SmallVector<Value> carried;
  for (Value init : op.getDpsInits())
    carried.push_back(element(init, indices));

  if (sumOrder(op, sizes) == SumOrder::Parts)
    return reduceInParts(op, result, indices, loops, carried);
  OpBuilder::InsertionGuard guard(b);
  scf::ForOp outermost, innermost;
  SmallVector<Value> current(carried);
  for (auto [index, size] : llvm::zip(loops, sizes)) {
    if (index)
      continue;
    if (size.isConstant(1)) {
      index = indexing.constant(0);
      continue;
    }
    auto loop = scf::ForOp::create(b, loc, indexing.constant(0), indexing.size(size),
                                   indexing.constant(1), current);
    if (innermost)
      scf::YieldOp::create(b, loc, loop.getResults());
    b.setInsertionPointToStart(loop.getBody());
    index = loop.getInductionVar();
    current.assign(loop.getRegionIterArgs().begin(), loop.getRegionIterArgs().end());
    outermost = outermost ? outermost : loop;
    innermost = loop;
  }
  SmallVector<Value> next = region(op, loops, current);
  if (innermost) {
    scf::YieldOp::create(b, loc, next);
    next = llvm::to_vector_of<Value>(outermost.getResults());
  }
  for (auto [i, value] : llvm::enumerate(next))
    pin(op->getResult(i), indices, value);
  return next[result.getResultNumber()];
}

/// The partial results are an array of the thread.
Value Body::reduceInParts(linalg::LinalgOp op, OpResult result, ArrayRef<Value> indices,
                          SmallVector<Value> loops, ArrayRef<Value> inits) {
  Location loc = b.getUnknownLoc();
  SmallVector<Dim> sizes = info.loopSizes(op), columns;
  for (auto [index, size] : llvm::zip(loops, sizes))
    if (!index)
      columns.push_back(size);
  Dim total = Dim::product(op.getContext(), columns);
  int64_t count = numParts; // what no element reaches stays neutral, and joining it does nothing
  if (total.isConstant())
    count = std::min<int64_t>(count, llvm::PowerOf2Ceil(std::max<int64_t>(total.getConstant(), 1)));
  Value zero = indexing.constant(0), one = indexing.constant(1);
  SmallVector<Combiner> combiners;
  SmallVector<Value> arrays;
  OpBuilder::InsertionGuard guard(b);
  auto loop = [&](StringRef name, Value end) {
    auto op = scf::ForOp::create(b, NameLoc::get(b.getStringAttr(name)), zero, end, one);
    b.setInsertionPointToStart(op.getBody());
    return op;
  };
  for (unsigned i = 0; i < op.getNumDpsInits(); ++i) {
    combiners.push_back(*matchCombiner(op, i));
    Type type = combiners.back().neutral.getType();
    arrays.push_back(memref::AllocaOp::create(b, NameLoc::get(b.getStringAttr("partial")),
                                              MemRefType::get({count, 1}, type)));
  }
  scf::ForOp fill = loop("part", indexing.constant(count));
  for (auto [combiner, array] : llvm::zip(combiners, arrays))
    memref::StoreOp::create(b, loc, arith::ConstantOp::create(b, loc, combiner.neutral), array,
                            ValueRange{fill.getInductionVar(), zero});
  b.setInsertionPointAfter(fill);

  scf::ForOp each = loop("column", indexing.size(total));
  Value column = each.getInductionVar();
  SmallVector<Value> parts = indexing.delinearize(column, columns), current;
  unsigned next = 0;
  for (Value &index : loops)
    if (!index)
      index = parts[next++];
  Value part = indexing.rem(column, indexing.constant(count));
  for (Value array : arrays)
    current.push_back(memref::LoadOp::create(b, loc, array, ValueRange{part, zero}));
  for (auto [value, array] : llvm::zip(region(op, loops, current), arrays))
    memref::StoreOp::create(b, loc, value, array, ValueRange{part, zero});
  b.setInsertionPointAfter(each);

  for (int64_t half = count / 2; half; half /= 2) {
    scf::ForOp join = loop("part", indexing.constant(half));
    Value low = join.getInductionVar(), high = indexing.add(low, indexing.constant(half));
    for (auto [combiner, array] : llvm::zip(combiners, arrays)) {
      Value x = memref::LoadOp::create(b, loc, array, ValueRange{low, zero});
      Value y = memref::LoadOp::create(b, loc, array, ValueRange{high, zero});
      memref::StoreOp::create(b, loc, combiner.join(b, x, y), array, ValueRange{low, zero});
    }
    b.setInsertionPointAfter(join);
  }
  Value answer;
  for (unsigned i = 0; i < arrays.size(); ++i) {
    Value sum = memref::LoadOp::create(b, loc, arrays[i], ValueRange{zero, zero});
    sum = combiners[i].join(b, inits[i], sum);
    pin(op->getResult(i), indices, sum);
    answer = i == result.getResultNumber() ? sum : answer;
  }
  return answer;
}

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

Operation *Body::cloneScalar(Operation &op, IRMapping &map) {
  OpBuilder::InsertionGuard guard(b);
  if (lanes && isPure(&op) && llvm::all_of(op.getOperands(), [&](Value operand) {
        return lanes->isInvariant(map.lookup(operand));
      }))
    b.setInsertionPoint(lanes->loop);
  Operation *clone = b.clone(op, map);
  clone->setLoc(b.getUnknownLoc()); // a name there would be a name in the text
  return clone;
}

Value Body::scalar(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return element(argument, {});
  for (Value known : scalars.lookup(value))
    if (indexing.isAvailable(known))
      return known;
  Operation *op = value.getDefiningOp();
  if (auto dim = dyn_cast<kernel::DimOp>(op))
    return indexing.size(Dim(cast<DimAttr>(dim.getDim())));
  if (auto dim = dyn_cast<tensor::DimOp>(op))
    return indexing.size(info.sizes(dim.getSource())[*dim.getConstantIndex()]);
  IRMapping map;
  for (Value operand : op->getOperands())
    map.map(operand, scalar(operand));
  Operation *clone = cloneScalar(*op, map);
  for (auto [from, to] : llvm::zip(op->getResults(), clone->getResults()))
    scalars[from].push_back(to);
  return map.lookup(value);
}

SmallVector<Value> Body::region(linalg::LinalgOp op, ArrayRef<Value> loops,
                                ArrayRef<Value> accumulators) {
  IRMapping map;
  Block &block = op->getRegion(0).front();
  for (OpOperand *operand : op.getDpsInputOperands()) {
    BlockArgument argument = block.getArgument(operand->getOperandNumber());
    if (argument.use_empty())
      continue;
    if (!isa<RankedTensorType>(operand->get().getType())) {
      map.map(argument, scalar(operand->get()));
      continue;
    }
    SmallVector<Value> indices;
    for (AffineExpr expr : op.getMatchingIndexingMap(operand).getResults())
      indices.push_back(indexing.apply(expr, loops));
    map.map(argument, element(operand->get(), indices));
  }
  for (auto [argument, value] : llvm::zip(op.getRegionOutputArgs(), accumulators))
    if (value)
      map.map(argument, value);
  cloneBlock(block, map, loops);
  SmallVector<Value> yielded;
  for (Value value : block.getTerminator()->getOperands())
    yielded.push_back(operandOf(value, map));
  return yielded;
}

Value Body::operandOf(Value value, IRMapping &map) {
  return map.contains(value) ? map.lookup(value) : scalar(value);
}

/// Everything of a block but its terminator.
void Body::cloneBlock(Block &block, IRMapping &map, ArrayRef<Value> loops) {
  for (Operation &inner : block.without_terminator()) {
    if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
      map.map(index.getResult(), loops[index.getDim()]);
    } else if (auto dim = dyn_cast<kernel::DimOp>(inner)) {
      map.map(dim.getResult(), scalar(dim.getResult()));
    } else if (auto extract = dyn_cast<tensor::ExtractOp>(inner)) {
      SmallVector<Value> indices;
      for (Value index : extract.getIndices())
        indices.push_back(operandOf(index, map));
      map.map(extract.getResult(), element(extract.getTensor(), indices));
    } else if (auto choice = dyn_cast<scf::IfOp>(inner)) {
      cloneIf(choice, map, loops);
    } else {
      for (Value operand : inner.getOperands())
        if (!map.contains(operand))
          map.map(operand, scalar(operand));
      cloneScalar(inner, map);
    }
  }
}

void Body::cloneIf(scf::IfOp op, IRMapping &map, ArrayRef<Value> loops) {
  Value condition = operandOf(op.getCondition(), map);
  auto clone = scf::IfOp::create(b, b.getUnknownLoc(), op.getResultTypes(), condition,
                                 /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  bool outer = std::exchange(isConditional, true);
  for (auto [from, to] : {std::pair(op.thenBlock(), clone.thenBlock()),
                          std::pair(op.elseBlock(), clone.elseBlock())}) {
    b.setInsertionPointToStart(to);
    cloneBlock(*from, map, loops);
    SmallVector<Value> yielded;
    for (Value value : from->getTerminator()->getOperands())
      yielded.push_back(operandOf(value, map));
    scf::YieldOp::create(b, b.getUnknownLoc(), yielded);
  }
  isConditional = outer;
  map.map(op.getResults(), clone.getResults());
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value Body::address(unsigned argument, ArrayRef<Value> indices,
                    SmallVectorImpl<Indexing::Term> &terms) {
  if (!strides[argument].empty()) {
    Value sum = indexing.constant(0);
    for (auto [index, stride] : llvm::zip(indices, strides[argument]))
      sum = indexing.add(sum, indexing.mul(index, stride));
    return sum;
  }
  terms = indexing.terms(indices, info.sizes(info.block().getArgument(argument)));
  return {};
}

bool Body::isLaneAddress(ArrayRef<Indexing::Term> terms) const {
  return !terms.empty() && terms.back().index == lanes->index &&
         llvm::all_of(terms.drop_back(),
                      [&](const Indexing::Term &term) { return lanes->isInvariant(term.index); });
}

Value Body::laneAddress(SmallVector<Indexing::Term> terms) {
  terms.back().index = lanes->first;
  return indexing.join(terms);
}

Value Body::load(BlockArgument argument, ArrayRef<Value> indices) {
  Location loc = b.getUnknownLoc();
  Value buffer = buffers[argument.getArgNumber()];
  loads.push_back({argument.getArgNumber(), SmallVector<Value>(indices)});
  SmallVector<Indexing::Term> terms;
  Value place = address(argument.getArgNumber(), indices, terms);
  OpBuilder::InsertionGuard guard(b);
  if (lanes && !isConditional && !place && isLaneAddress(terms)) {
    Value vector;
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPoint(lanes->loop);
      Value at = laneAddress(terms);
      for (const VectorLoad &known : vectorLoads)
        if (known.buffer == buffer && known.address == at && indexing.isAvailable(known.vector))
          vector = known.vector;
      if (!vector) {
        Type elementType = cast<MemRefType>(buffer.getType()).getElementType();
        auto type = VectorType::get(lanes->width, elementType);
        Value mask = vector::CreateMaskOp::create(
            b, loc, VectorType::get(lanes->width, b.getI1Type()), lanes->left);
        Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
        vector = vector::MaskedLoadOp::create(b, loc, type, buffer, at, mask, zero);
        vectorLoads.push_back({buffer, at, vector});
      }
    }
    lanes->vectorised = vectorised = true;
    return vector::ExtractOp::create(b, loc, vector, OpFoldResult(laneNumber()));
  }
  if (lanes) {
    bool invariant =
        place ? lanes->isInvariant(place) : llvm::all_of(terms, [&](const Indexing::Term &term) {
          return lanes->isInvariant(term.index);
        });
    if (invariant && !lanes->mayBeEmpty && !isConditional)
      b.setInsertionPoint(lanes->loop);
    else
      lanes->needsGuard = true;
  }
  return memref::LoadOp::create(b, loc, buffer, place ? place : indexing.join(terms));
}

bool Body::isReadInPlace(ArrayRef<Store> stores, size_t first) const {
  unsigned numIns = info.kernel.getNumIns();
  for (const Load &load : ArrayRef(loads).drop_front(first))
    for (unsigned out = 0; load.argument < numIns && out < info.kernel.getNumOuts(); ++out)
      if (info.kernel.mayShare(out, load.argument) &&
          llvm::none_of(stores, [&](const Store &store) {
            return store.argument == numIns + out && store.indices == load.indices;
          }))
        return false;
  return true;
}

void Body::store(unsigned argument, ArrayRef<Value> indices, Value value) {
  Location loc = b.getUnknownLoc();
  Value buffer = buffers[argument];
  SmallVector<Indexing::Term> terms;
  Value place = address(argument, indices, terms);
  if (lanes && !place && isLaneAddress(terms)) {
    Value elements;
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPoint(lanes->loop);
      elements = memref::AllocaOp::create(b, NameLoc::get(b.getStringAttr("result")),
                                          MemRefType::get({lanes->width}, value.getType()));
      vectorStores.push_back({buffer, laneAddress(terms), elements});
    }
    memref::StoreOp::create(b, loc, value, elements, laneNumber());
    lanes->vectorised = vectorised = true;
    return;
  }
  if (lanes)
    lanes->needsGuard = true;
  memref::StoreOp::create(b, loc, value, buffer, place ? place : indexing.join(terms));
}

SmallVector<Value> Body::forLanes(Value first, Value left, int64_t width, ValueRange carried,
                                  function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  if (width == 1)
    return body(first, carried);
  Location loc = b.getUnknownLoc();
  Lanes here;
  here.first = first, here.width = width;
  here.left = left ? left : indexing.constant(width);
  here.loop = scf::ForOp::create(b, NameLoc::get(b.getStringAttr("lane")), indexing.constant(0),
                                 indexing.constant(width), indexing.constant(1), carried);
  here.loop->setAttr(unrollAttrName, b.getUnitAttr());
  Lanes *outer = lanes;
  lanes = &here;
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(here.loop.getBody());
    here.index = arith::AddIOp::create(b, loc, first, here.loop.getInductionVar());
    // Lanes past the end carry on what they got.
    auto ifExists = [&] {
      Value exists = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                           here.loop.getInductionVar(), here.left);
      return scf::IfOp::create(b, loc, carried.getTypes(), exists, !carried.empty());
    };
    if (!carried.empty()) {
      scf::IfOp exists;
      if (left) {
        exists = ifExists();
        scf::YieldOp::create(b, loc, exists.getResults());
        b.setInsertionPointToStart(exists.elseBlock());
        scf::YieldOp::create(b, loc, here.loop.getRegionIterArgs());
        b.setInsertionPointToStart(exists.thenBlock());
      }
      SmallVector<Value> next = body(here.index, here.loop.getRegionIterArgs());
      scf::YieldOp::create(b, loc, next);
    } else {
      body(here.index, {});
      if (left && here.needsGuard) {
        // All but the index moves under the condition.
        Block *block = here.loop.getBody();
        b.setInsertionPointAfter(here.index.getDefiningOp());
        scf::IfOp exists = ifExists();
        Block *then = exists.thenBlock();
        then->getOperations().splice(then->begin(), block->getOperations(),
                                     std::next(exists->getIterator()), std::prev(block->end()));
      }
    }
  }
  lanes = outer;
  b.setInsertionPointAfter(here.loop);
  for (const VectorStore &store : vectorStores) {
    auto type = VectorType::get(width, cast<MemRefType>(store.elements.getType()).getElementType());
    Value value = vector::LoadOp::create(b, loc, type, store.elements, indexing.constant(0));
    Value mask =
        vector::CreateMaskOp::create(b, loc, VectorType::get(width, b.getI1Type()), here.left);
    vector::MaskedStoreOp::create(b, loc, store.buffer, store.address, mask, value);
  }
  vectorStores.clear();
  return llvm::to_vector_of<Value>(here.loop.getResults());
}

} // namespace quern::cuda
