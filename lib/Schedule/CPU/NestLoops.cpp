//===- NestLoops.cpp - One loop nest over a space: loops ------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Nest.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace quern;
using namespace quern::cpu;

// Elements between what is computed and what is fetched.
static constexpr int64_t prefetchDistance = 2048;

void Nest::emit(Value lo, Value hi) {
  for (auto &[op, keep] : kept)
    if (!keep.access)
      keep.scratch.ptr = e.stack(keep.scratch.element, keep.scratch.shape[0].getConstant());
  if (rows) {
    e.loop(lo, hi, 1, [&](Value unit) {
      beginUnit(unit);
      emitRow();
    });
    return;
  }
  if (vectorDim < 0) { // one element
    e.loop(lo, hi, 1, [&](Value unit) {
      beginUnit(unit);
      emitColumnBlock({}, 1, {});
    });
    return;
  }
  Value length = e.size(space.dims[vectorDim].size);
  if (outer.empty()) {
    beginUnit(e.i64(0));
    emitColumns(e.mul(lo, e.i64(block)), e.min(e.mul(hi, e.i64(block)), length));
    return;
  }
  Value blocks = e.ceilDiv(length, e.i64(block));
  e.loop(lo, hi, 1, [&](Value unit) {
    beginUnit(e.div(unit, blocks));
    Value from = e.mul(e.rem(unit, blocks), e.i64(block));
    emitColumns(from, e.min(e.add(from, e.i64(block)), length));
  });
}

/// Whether this pass does anything.
bool Nest::hasWork() {
  if (!reductionsOfPass().empty())
    return true;
  for (auto [out, at] : llvm::zip(space.outputs, storePass))
    if (at == pass && !isFixed(out.access))
      return true;
  return false;
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

void Nest::emitRow() {
  Values fixed;
  Point row;
  row.index = unitIndex;
  row.fixed = &fixed;
  for (pass = 0; pass <= space.levels; ++pass)
    if (hasWork())
      emitRowPass(row);
  storeFixed(row);
}

/// What is read at `column` of a stream comes from memory a while before it is needed.
void Nest::prefetch(Value column) {
  if (!e.machine.prefetchStreams)
    return;
  SmallVector<const Access *> seen;
  for (linalg::GenericOp op : space.ops)
    for (const std::optional<Access> &access : info(op).operands) {
      if (!access || !access->coeffs[vectorDim].isConstant(1) ||
          llvm::any_of(seen, [&](const Access *a) { return *a == *access; }) ||
          llvm::any_of(outer, [&](unsigned d) { return !access->dependsOn(d); }))
        continue;
      seen.push_back(&*access);
      Buffer memory = at(*access);
      unsigned line = 64 * 8 / std::max(8u, e.storage(memory.element).getIntOrFloatBitWidth());
      for (unsigned i = 0; i < width; i += line)
        e.prefetch(memory, e.add(column, e.i64(i)));
    }
}

void Nest::emitRowPass(Point &row) {
  computeFixed(row);
  SmallVector<linalg::GenericOp> reductions = reductionsOfPass();
  SmallVector<Value> start;
  for (linalg::GenericOp op : reductions)
    for (unsigned i = 0; i < op.getNumResults(); ++i)
      start.push_back(e.splat(e.constant(neutralElement(combinerOf(op, i))), width));
  unsigned each = start.size();
  SmallVector<Value> running;
  for (unsigned u = 0; u < unroll; ++u)
    running.append(start);

  auto stepAt = [&](Value column, const Lanes &lanes, MutableArrayRef<Value> values) {
    Point point = row;
    point.index[vectorDim] = column;
    point.lanes = lanes;
    step(point, values);
  };
  Dim size = space.dims[vectorDim].size;
  Value length = e.size(size);
  int64_t whole = int64_t(width) * unroll;
  bool isStatic = size.isConstant();
  Value mainEnd = e.sub(length, e.rem(length, e.i64(whole)));
  if (!isStatic || size.getConstant() >= whole)
    running = e.loop(e.i64(0), mainEnd, whole, running, [&](Value column, ValueRange carried) {
      SmallVector<Value> values(carried);
      for (unsigned u = 0; u < unroll; ++u) {
        Value at = e.add(column, e.i64(u * width));
        if (pass == 1) // the row itself is in the cache by now: begin with the next
          prefetch(e.add(at, length));
        stepAt(at, {width, {}, {}}, MutableArrayRef<Value>(values).slice(u * each, each));
      }
      return values;
    });
  if (!isStatic || size.getConstant() % whole) {
    bool masked = !isStatic || size.getConstant() % width;
    // The running values move round by one vector a step: the pairs that are joined in
    // the end are the same, wherever the row stops.
    running = e.loop(mainEnd, length, width, running, [&](Value column, ValueRange carried) {
      SmallVector<Value> values(carried);
      Lanes lanes{width, {}, {}};
      if (masked)
        lanes = e.lanesLeft(width, e.sub(length, column));
      stepAt(column, lanes, MutableArrayRef<Value>(values).take_front(each));
      std::rotate(values.begin(), values.begin() + each, values.end());
      return values;
    });
  }
  unsigned n = 0;
  for (linalg::GenericOp op : reductions)
    for (unsigned i = 0; i < op.getNumResults(); ++i, ++n) {
      SmallVector<Value> mine;
      for (unsigned u = 0; u < unroll; ++u)
        mine.push_back(running[u * each + n]);
      Value sum = joinPartials(op, i, mine);
      Operation *combiner = combinerOf(op, i);
      Value init = operandValue(op, op.getNumDpsInputs() + i, row);
      Attribute value;
      if (!(matchPattern(init, m_Constant(&value)) && value == neutralElement(combiner)))
        sum = e.cloneOp(combiner, {init, sum}, 0);
      row.fixed->results[op.getResult(i)] = sum;
    }
  row.local = Values();
}

/// Accumulators pairwise, then lanes pairwise.
Value Nest::joinPartials(linalg::GenericOp op, unsigned result, SmallVector<Value> values) {
  Operation *combiner = combinerOf(op, result);
  auto join = [&](Value x, Value y) { return e.cloneOp(combiner, {x, y}, 0); };
  for (unsigned half = values.size() / 2; half; half /= 2)
    for (unsigned u = 0; u < half; ++u)
      values[u] = join(values[u], values[u + half]);
  Value v = values[0];
  for (unsigned half = width / 2; half > 1; half /= 2) {
    SmallVector<int64_t> low, high;
    for (unsigned l = 0; l < half; ++l) {
      low.push_back(l);
      high.push_back(l + half);
    }
    v = join(vector::ShuffleOp::create(b, loc, v, v, low),
             vector::ShuffleOp::create(b, loc, v, v, high));
  }
  return join(vector::ExtractOp::create(b, loc, v, int64_t(0)),
              vector::ExtractOp::create(b, loc, v, int64_t(1)));
}

//===----------------------------------------------------------------------===//
// Columns
//===----------------------------------------------------------------------===//

/// Whether this is pointwise work on plain ranges whose results are known to be large, and
/// which memory bounds: past the caches is slower where arithmetic does (measured).
bool Nest::isStream() {
  unsigned work = 0;
  for (linalg::GenericOp op : space.ops)
    for (Operation &o : op.getBody()->without_terminator()) {
      bool isLong = isa_and_nonnull<math::MathDialect>(o.getDialect()) || o.getNumRegions() ||
                    isa<arith::DivFOp, arith::RemFOp>(o);
      work += isLong ? 100 : !o.hasTrait<OpTrait::ConstantLike>();
    }
  if (work > 8)
    return false;
  if (!e.machine.x86 || !e.machine.avx || !passDims.empty() || !outer.empty() || width == 1 ||
      !space.dims[vectorDim].size.isConstant())
    return false;
  int64_t bytes = 0;
  for (const Space::Output &out : space.outputs) {
    auto arg = dyn_cast<BlockArgument>(out.access.tensor);
    if (!arg || !out.access.coeffs[vectorDim].isConstant(1) || !out.access.offset.isConstant(0))
      return false;
    unsigned bits = e.storage(getElementTypeOrSelf(arg)).getIntOrFloatBitWidth();
    if (width * bits / 8 % e.machine.vectorBytes)
      return false;
    bytes += space.dims[vectorDim].size.getConstant() * bits / 8;
  }
  return bytes >= e.machine.streamBytes();
}

/// `emit(true)` where all results begin at a multiple of a vector and stand in no buffer
/// that is read, else `emit(false)`.
void Nest::ifStreams(llvm::function_ref<void(bool)> emit) {
  kernel::FuncOp kernel = space.kernel;
  auto address = [&](Value ptr) -> Value {
    return LLVM::PtrToIntOp::create(b, loc, e.i64Type, ptr);
  };
  Value low = e.i64(0), apart;
  for (const Space::Output &out : space.outputs) {
    Value to = address(at(out.access).ptr);
    low = arith::OrIOp::create(b, loc, low, to);
    unsigned n = cast<BlockArgument>(out.access.tensor).getArgNumber() - kernel.getNumIns();
    for (unsigned in = 0; in < kernel.getNumIns(); ++in)
      if (kernel.mayShare(n, in)) {
        Value differ =
            arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, to, address(e.args[in].ptr));
        apart = apart ? arith::AndIOp::create(b, loc, apart, differ).getResult() : differ;
      }
  }
  Value streams = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                        e.rem(low, e.i64(e.machine.vectorBytes)), e.i64(0));
  if (apart)
    streams = arith::AndIOp::create(b, loc, streams, apart);
  auto branch = scf::IfOp::create(b, loc, streams, /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  for (bool stream : {true, false}) {
    b.setInsertionPointToStart(&(stream ? branch.getThenRegion() : branch.getElseRegion()).front());
    emit(stream);
  }
}

void Nest::emitColumns(Value from, Value to) {
  int64_t whole = int64_t(width) * unroll;
  from = e.min(from, to); // an empty range may begin behind the end
  Value mainEnd = e.sub(to, e.rem(e.sub(to, from), e.i64(whole)));
  auto main = [&](bool stream) {
    streaming = stream;
    e.loop(from, mainEnd, whole, [&](Value column) {
      if (passDims.empty() && whole > 1)
        prefetch(e.add(column, e.i64(prefetchDistance)));
      emitColumnBlock(column, unroll, {width, {}, {}});
    });
    streaming = false;
    if (stream) // others may see the results once the caller says that they are there
      LLVM::CallIntrinsicOp::create(b, loc, b.getStringAttr("llvm.x86.sse.sfence"), ValueRange());
  };
  if (isStream())
    ifStreams(main);
  else
    main(false);
  if (whole == 1)
    return;
  // The rest, in single machine vectors: less code.
  unsigned full = std::exchange(width, std::min(width, e.machine.lanes()));
  e.loop(mainEnd, to, width,
         [&](Value column) { emitColumnBlock(column, 1, e.lanesLeft(width, e.sub(to, column))); });
  width = full;
}

/// Running values of the reductions whose order is partial sums, in memory: a lane has all
/// of them, which is more than registers hold. One buffer for each running value of the
/// pass; without a pointer where the value stays in a register.
SmallVector<Buffer> Nest::beginPartials(ArrayRef<linalg::GenericOp> reductions, unsigned vectors) {
  // Numbers that there are not leave their partials neutral, and joins of those do nothing.
  SmallVector<Dim> sizes;
  for (unsigned d : passDims)
    sizes.push_back(space.dims[d].size);
  Dim all = Dim::product(e.ctx, sizes);
  int64_t count = numParts;
  if (all.isConstant())
    count = std::min<int64_t>(count, llvm::PowerOf2Ceil(std::max<int64_t>(all.getConstant(), 1)));
  SmallVector<Buffer> partials;
  for (unsigned u = 0; u < vectors; ++u)
    for (linalg::GenericOp op : reductions)
      for (unsigned i = 0; i < op.getNumResults(); ++i) {
        Buffer &memory = partials.emplace_back();
        if (sumOrder(op) != SumOrder::Parts)
          continue;
        memory.element = getElementTypeOrSelf(op.getResult(i).getType());
        memory.shape = {Dim::constant(e.ctx, count)};
        memory.ptr = e.stack(memory.element, count * width);
        Value neutral = e.splat(e.constant(neutralElement(combinerOf(op, i))), width);
        e.loop(e.i64(0), e.i64(count * width), width,
               [&](Value at) { e.store(memory, at, neutral, {width, {}, {}}); });
      }
  return partials;
}

/// Joins them pairwise, and with where the reduction begins.
void Nest::endPartials(ArrayRef<linalg::GenericOp> reductions, ArrayRef<Buffer> partials,
                       MutableArrayRef<Value> running) {
  for (unsigned n = 0; n < partials.size();)
    for (linalg::GenericOp op : reductions)
      for (unsigned i = 0; i < op.getNumResults(); ++i, ++n) {
        const Buffer &memory = partials[n];
        if (!memory.ptr)
          continue;
        Operation *combiner = combinerOf(op, i);
        Lanes lanes{width, {}, {}};
        for (int64_t half = memory.shape[0].getConstant() / 2; half; half /= 2)
          e.loop(e.i64(0), e.i64(half * width), width, [&](Value at) {
            Value x = e.load(memory, at, lanes);
            Value y = e.load(memory, e.add(at, e.i64(half * width)), lanes);
            e.store(memory, at, e.cloneOp(combiner, {x, y}, 0), lanes);
          });
        Value sum = e.load(memory, e.i64(0), lanes);
        Attribute start;
        bool isNeutral = matchPattern(running[n], m_Constant(&start)) &&
                         (start == neutralElement(combiner) ||
                          (isa<SplatElementsAttr>(start) &&
                           cast<SplatElementsAttr>(start).getSplatValue<Attribute>() ==
                               neutralElement(combiner)));
        running[n] = isNeutral ? sum : e.cloneOp(combiner, {running[n], sum}, 0);
      }
}

void Nest::emitColumnBlock(Value column, unsigned vectors, const Lanes &lanes) {
  SmallVector<Values, 0> fixed(vectors);
  SmallVector<Point, 0> points(vectors);
  for (unsigned u = 0; u < vectors; ++u) {
    points[u].index = unitIndex;
    points[u].lanes = lanes;
    points[u].fixed = &fixed[u];
    if (vectorDim >= 0)
      points[u].index[vectorDim] = e.add(column, e.i64(u * width));
  }
  for (pass = 0; pass <= space.levels; ++pass) {
    if (!hasWork())
      continue;
    for (Point &point : points)
      computeFixed(point);
    SmallVector<linalg::GenericOp> reductions = reductionsOfPass();
    SmallVector<Value> running;
    for (Point &point : points) {
      for (linalg::GenericOp op : reductions)
        for (unsigned i = 0; i < op.getNumResults(); ++i)
          running.push_back(e.splat(operandValue(op, op.getNumDpsInputs() + i, point), width));
      point.local = Values();
    }
    unsigned each = running.size() / vectors;
    SmallVector<Buffer> partials = beginPartials(reductions, vectors);
    SmallVector<Value> index(space.dims.size());
    std::function<SmallVector<Value>(unsigned, SmallVector<Value>)> nest =
        [&](unsigned depth, SmallVector<Value> values) -> SmallVector<Value> {
      if (depth == passDims.size()) {
        Value number = e.i64(0);
        for (unsigned d : passDims)
          number = e.add(e.mul(number, e.size(space.dims[d].size)), index[d]);
        SmallVector<Value> now = values;
        auto place = [&](const Buffer &memory) {
          return e.mul(e.rem(number, e.size(memory.shape[0])), e.i64(width));
        };
        for (auto [n, memory] : llvm::enumerate(partials))
          if (memory.ptr)
            now[n] = e.load(memory, place(memory), {width, {}, {}});
        for (auto [u, fixedPoint] : llvm::enumerate(points)) {
          Point point = fixedPoint;
          for (unsigned d : passDims)
            point.index[d] = index[d];
          step(point, MutableArrayRef<Value>(now).slice(u * each, each));
        }
        for (auto [n, memory] : llvm::enumerate(partials))
          if (memory.ptr)
            e.store(memory, place(memory), std::exchange(now[n], values[n]), {width, {}, {}});
        return now;
      }
      unsigned d = passDims[depth];
      return e.loop(e.i64(0), e.size(space.dims[d].size), 1, values,
                    [&](Value i, ValueRange carried) {
                      index[d] = i;
                      return nest(depth + 1, SmallVector<Value>(carried));
                    });
    };
    running = nest(0, running);
    endPartials(reductions, partials, running);
    unsigned n = 0;
    for (unsigned u = 0; u < vectors; ++u)
      for (linalg::GenericOp op : reductions)
        for (Value result : op->getResults())
          fixed[u].results[result] = running[n++];
  }
  for (Point &point : points)
    storeFixed(point);
}
