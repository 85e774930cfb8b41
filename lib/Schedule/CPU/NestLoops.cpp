//===- NestLoops.cpp - One loop nest over a space: loops ------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Nest.h"
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

void Nest::emitColumns(Value from, Value to) {
  int64_t whole = int64_t(width) * unroll;
  from = e.min(from, to); // an empty range may begin behind the end
  Value mainEnd = e.sub(to, e.rem(e.sub(to, from), e.i64(whole)));
  e.loop(from, mainEnd, whole, [&](Value column) {
    if (passDims.empty() && whole > 1)
      prefetch(e.add(column, e.i64(prefetchDistance)));
    emitColumnBlock(column, unroll, {width, {}, {}});
  });
  if (whole == 1)
    return;
  // The rest, in single machine vectors: less code.
  unsigned full = std::exchange(width, std::min(width, e.machine.lanes()));
  e.loop(mainEnd, to, width,
         [&](Value column) { emitColumnBlock(column, 1, e.lanesLeft(width, e.sub(to, column))); });
  width = full;
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
    SmallVector<Value> index(space.dims.size());
    std::function<SmallVector<Value>(unsigned, SmallVector<Value>)> nest =
        [&](unsigned depth, SmallVector<Value> values) -> SmallVector<Value> {
      if (depth == passDims.size()) {
        for (auto [u, fixedPoint] : llvm::enumerate(points)) {
          Point point = fixedPoint;
          for (unsigned d : passDims)
            point.index[d] = index[d];
          step(point, MutableArrayRef<Value>(values).slice(u * each, each));
        }
        return values;
      }
      unsigned d = passDims[depth];
      return e.loop(e.i64(0), e.size(space.dims[d].size), 1, values,
                    [&](Value i, ValueRange carried) {
                      index[d] = i;
                      return nest(depth + 1, SmallVector<Value>(carried));
                    });
    };
    running = nest(0, running);
    unsigned n = 0;
    for (unsigned u = 0; u < vectors; ++u)
      for (linalg::GenericOp op : reductions)
        for (Value result : op->getResults())
          fixed[u].results[result] = running[n++];
  }
  for (Point &point : points)
    storeFixed(point);
}
