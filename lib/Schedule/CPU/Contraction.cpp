//===- Contraction.cpp - Blocked matrix products with epilogues -----------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A unit is a block of rows times one panel of columns. The panel of the right side is
// packed once for the block (or was, by the compiler, if it is constant); a register
// block of the result goes down the rows over it. Sums stand in a small buffer between
// blocks of the depth, and the rest of the kernel's body (bias, activation, residual) is
// evaluated on each row of them as it would be in a nest of its own.
//
//===----------------------------------------------------------------------===//

#include "Schedulers.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace quern;
using namespace quern::cpu;

namespace {

/// What is multiplied, in dims of the space; -1 for a missing one.
struct Product {
  linalg::GenericOp op;
  const Access *left = nullptr, *right = nullptr;
  unsigned leftOperand = 0, rightOperand = 1;
  int row = -1, column = -1;
  SmallVector<unsigned> depth; ///< summed over, outermost first; counted as one
  SmallVector<unsigned> batch;
};

/// The register block, and the blocks around it.
struct Tile {
  unsigned rows = 1, vectors = 1; ///< accumulators: rows x vectors
  unsigned lanes = 1;
  int64_t blockRows = 0, blockDepth = 0;
  unsigned columns() const { return vectors * lanes; }
};

/// The operand of the region that `v` is, through a widening conversion.
int argOf(linalg::GenericOp op, Value v) {
  if (auto ext = v.getDefiningOp<arith::ExtFOp>())
    v = ext.getIn();
  auto arg = dyn_cast<BlockArgument>(v);
  return arg && arg.getOwner() == op.getBody() ? int(arg.getArgNumber()) : -1;
}

/// The product behind a space, or why there is none.
std::string match(const Space &space, Product &p) {
  for (linalg::GenericOp op : space.ops) {
    if (!space.info.find(op)->second.reduction)
      continue;
    if (p.op)
      return "more than one reduction";
    p.op = op;
  }
  if (!p.op || space.levels != 1)
    return "no reduction";
  const Space::OpInfo &info = space.info.find(p.op)->second;
  auto sum = dyn_cast_or_null<arith::AddFOp>(combinerOf(p.op, 0));
  if (!sum || p.op.getNumDpsInputs() != 2 || p.op.getNumDpsInits() != 1 || !info.operands[0] ||
      !info.operands[1])
    return "a reduction that is not a sum of products";
  Value running = p.op.getRegionOutputArgs()[0];
  Value term = sum.getLhs() == running ? sum.getRhs() : sum.getLhs();
  auto product = term.getDefiningOp<arith::MulFOp>();
  Type type = running.getType();
  if (!product || !(type.isF32() || type.isF64()) || argOf(p.op, product.getLhs()) < 0 ||
      argOf(p.op, product.getLhs()) + argOf(p.op, product.getRhs()) != 1)
    return "a reduction that is not a sum of products";
  if (!llvm::all_of(space.ops, Emitter::isVectorizable))
    return "an epilogue with branches";

  for (unsigned d = 0; d < space.dims.size(); ++d)
    if (space.dims[d].pass)
      p.depth.push_back(d);
  if (p.depth.empty())
    return "a sum of one product";
  // The side whose own dim is contiguous in the results is the right one.
  const Space::Output &out = space.outputs.front();
  for (bool swapped : {false, true}) {
    p.leftOperand = swapped;
    p.rightOperand = !swapped;
    p.left = &*info.operands[p.leftOperand];
    p.right = &*info.operands[p.rightOperand];
    p.row = p.column = -1;
    p.batch.clear();
    for (unsigned d = 0; d < space.dims.size(); ++d) {
      bool inLeft = p.left->dependsOn(d), inRight = p.right->dependsOn(d);
      int *role = inLeft && !inRight ? &p.row : inRight && !inLeft ? &p.column : nullptr;
      if (space.dims[d].pass)
        continue;
      if (!role) {
        p.batch.push_back(d);
        continue;
      }
      if (*role >= 0) // the innermost is the best
        p.batch.push_back(*role);
      *role = d;
    }
    // Several dims of depth are one to the left side; the right one is packed as such.
    bool inOrder = p.left->dependsOn(p.depth.back());
    for (unsigned i = 1; i < p.depth.size(); ++i)
      inOrder &= p.left->coeffs[p.depth[i - 1]] ==
                 p.left->coeffs[p.depth[i]] * space.dims[p.depth[i]].size;
    if (p.column >= 0 && out.access.coeffs[p.column].isConstant(1) && inOrder &&
        llvm::any_of(p.depth, [&](unsigned d) { return p.right->dependsOn(d); }))
      break;
    if (swapped)
      return "a result whose columns are not contiguous, or a left side whose depth is not in "
             "order";
  }
  // Few rows against rows of the right side: a dot product each, lanes along the depth.
  Dim rows = p.row < 0 ? Dim::constant(out.access.offset.getContext(), 1) : space.dims[p.row].size;
  if (rows.isConstant() && rows.getConstant() <= 2 && !p.right->coeffs[p.column].isConstant(1))
    return "too few rows";
  llvm::sort(p.batch);
  return {};
}

/// Accumulators for as many chains as hide the latency of a multiply-add, few loads for
/// each, and little of the block outside of the result.
Tile chooseTile(const Space &space, Product p, const MachineModel &machine) {
  Type type = p.op.getRegionOutputArgs()[0].getType();
  Tile best;
  unsigned bytes = type.isF64() ? 8 : 4;
  auto sizeOf = [&](int dim, int64_t otherwise) {
    if (dim < 0)
      return int64_t(1);
    return space.dims[dim].size.isConstant() ? space.dims[dim].size.getConstant() : otherwise;
  };
  int64_t rows = sizeOf(p.row, 1 << 20), columns = sizeOf(p.column, 1 << 20);
  double bestCost = 0;
  for (unsigned r = 1; r <= 8; ++r)
    for (unsigned v = 1; v <= 8; ++v) {
      if (r * v + v + 1 > machine.vectorRegisters)
        continue;
      unsigned width = v * machine.vectorBytes / bytes;
      // Half cycles for one step of the depth: arithmetic, loads, latency.
      double step = std::max({double(r * v), (r + v) * 1.2, 8.0});
      double cost = double((rows + r - 1) / r) * ((columns + width - 1) / width) * step;
      cost *= 1 + 0.1 / r + 0.02 / v; // what comes with each block
      if (!bestCost || cost < bestCost) {
        bestCost = cost;
        best.rows = r;
        best.vectors = v;
      }
    }
  best.lanes = machine.vectorBytes / bytes;
  int64_t depth = 1;
  for (unsigned d : p.depth)
    depth *= sizeOf(d, 1024);
  int64_t fitting = machine.l2Bytes / 2 / std::max<int64_t>(depth * bytes, 1);
  best.blockRows = std::clamp<int64_t>(fitting, 48, 256) / best.rows * best.rows;
  int64_t packBytes = machine.avx512f ? 192 << 10 : 64 << 10;
  best.blockDepth = packBytes / bytes / best.columns() / 8 * 8;
  return best;
}

class ContractionNest : public Nest {
public:
  ContractionNest(Emitter &e, const Space &space, const Product &product, const Tile &tile,
                  Memory &memory)
      : Nest(e, space, [&memory](Value v) { return memory(v); }), p(product), tile(tile) {
    rows = false;
    vectorDim = p.column;
    outer = p.batch;
    passDims = p.depth;
    inner.clear();
    if (p.row >= 0)
      inner.push_back(p.row);
    // Of the epilogue: a power of two that divides the panel.
    width = std::min(tile.columns() & -tile.columns(), tile.lanes * 2);
    sum = p.op.getRegionOutputArgs()[0].getType();
    auto arg = dyn_cast<BlockArgument>(throughViews(p.right->tensor));
    packed = arg && e.kernel.isPacked(arg.getArgNumber());
  }
  Value units() {
    Value count = e.mul(blocks(), panels());
    for (unsigned d : outer)
      count = e.mul(count, e.size(space.dims[d].size));
    return count;
  }
  Value unitCost() {
    Value work = e.mul(blockRows(), depthCount());
    // Two multiply-adds of a vector in a cycle, three cycles in a nanosecond.
    return e.add(e.div(e.mul(work, e.i64(tile.vectors)), e.i64(6)), e.i64(20));
  }
  void emit(Value lo, Value hi);

private:
  Value rowCount() { return p.row < 0 ? e.i64(1) : e.size(space.dims[p.row].size); }
  Value depthCount() {
    Value count = e.i64(1);
    for (unsigned d : p.depth)
      count = e.mul(count, e.size(space.dims[d].size));
    return count;
  }
  /// Where element `k` of the depth is in the right side.
  Value rightAt(Value k) {
    Value at = e.i64(0);
    for (unsigned d : llvm::reverse(p.depth)) {
      Value size = e.size(space.dims[d].size), index = k;
      if (d != p.depth.front()) {
        index = e.rem(k, size);
        k = e.div(k, size);
      }
      at = e.add(e.mul(index, coeff(p.right, d)), at);
    }
    return at;
  }
  Value columnCount() { return e.size(space.dims[p.column].size); }
  Value blocks() { return e.ceilDiv(rowCount(), e.i64(tile.blockRows)); }
  /// Rows of a block: as even as whole register blocks allow.
  Value blockRows() {
    Value even = e.ceilDiv(rowCount(), e.max(blocks(), e.i64(1)));
    return e.mul(e.ceilDiv(even, e.i64(tile.rows)), e.i64(tile.rows));
  }
  Value panels() { return e.ceilDiv(columnCount(), e.i64(tile.columns())); }
  Value coeff(const Access *access, int dim) {
    return dim < 0 ? e.i64(0) : e.size(access->coeffs[dim]);
  }
  /// A value of an operand as the region sees it: widened to the sum's type.
  Value widen(Value v) {
    if (getElementTypeOrSelf(v) == sum)
      return v;
    auto vector = dyn_cast<VectorType>(v.getType());
    return arith::ExtFOp::create(b, loc, vector ? Type(vector.clone(sum)) : sum, v);
  }
  void pack(const Buffer &right, Value column, Value depth, Value depthEnd);
  void packTransposed(const Buffer &right, Value column, Value depth, Value depthEnd);
  void multiply(Value row, Value rowBegin, Value depth, Value depthEnd, const Buffer &right,
                Value rightStep);
  void epilogue(Value row, Value rowBegin, Value panelBegin);

  Product p;
  Tile tile;
  Type sum;
  bool packed = false;
  Buffer panel, sums;
};

} // namespace

/// Columns [column, column + width) of some rows of the right side, as [depth][width].
void ContractionNest::pack(const Buffer &right, Value column, Value depth, Value depthEnd) {
  unsigned width = tile.columns();
  Value left = e.sub(columnCount(), column);
  Value isFull = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, left, e.i64(width));
  bool contiguous = p.right->coeffs[p.column].isConstant(1);
  auto branch = scf::IfOp::create(b, loc, isFull, /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&branch.getThenRegion().front());
  if (!contiguous && p.depth.size() == 1 && p.right->coeffs[p.depth[0]].isConstant(1)) {
    packTransposed(right, column, depth, depthEnd);
  } else {
    e.loop(depth, depthEnd, 1, [&](Value k) {
      Value from = e.add(rightAt(k), e.mul(column, coeff(p.right, p.column)));
      for (unsigned v = 0; v < tile.vectors; ++v) {
        Lanes lanes{tile.lanes, {}, {}};
        Value at = e.i64(v * tile.lanes), stride = coeff(p.right, p.column);
        Value x = contiguous ? e.load(right, e.add(from, at), lanes)
                             : e.loadStrided(right, e.add(from, e.mul(at, stride)), stride, lanes);
        e.store(panel, e.add(e.mul(e.sub(k, depth), e.i64(width)), at), widen(x), lanes);
      }
    });
  }
  // The last panel, element by element, filled up with zeros.
  b.setInsertionPointToStart(&branch.getElseRegion().front());
  e.loop(depth, depthEnd, 1, [&](Value k) {
    Value to = e.mul(e.sub(k, depth), e.i64(width));
    Value from = e.add(rightAt(k), e.mul(column, coeff(p.right, p.column)));
    e.loop(e.i64(0), left, 1, [&](Value j) {
      Value x = e.load(right, e.add(from, e.mul(j, coeff(p.right, p.column))), {});
      e.store(panel, e.add(to, j), widen(x), {});
    });
    e.loop(left, e.i64(width), 1, [&](Value j) { e.store(panel, e.add(to, j), e.zero(sum), {}); });
  });
}

/// The same where the depth is contiguous: squares are transposed in registers.
void ContractionNest::packTransposed(const Buffer &right, Value column, Value depth,
                                     Value depthEnd) {
  unsigned width = tile.columns(), n = tile.lanes;
  Value whole = e.sub(depthEnd, e.rem(e.sub(depthEnd, depth), e.i64(n)));
  Value stride = coeff(p.right, p.column);
  Lanes lanes{n, {}, {}};
  e.loop(e.i64(0), e.i64(width), n, [&](Value j) {
    Value base = e.mul(e.add(column, j), stride);
    e.loop(depth, whole, n, [&](Value k) {
      SmallVector<Value> square;
      for (unsigned i = 0; i < n; ++i)
        square.push_back(
            widen(e.load(right, e.add(e.add(base, k), e.mul(e.i64(i), stride)), lanes)));
      for (unsigned half = n / 2; half; half /= 2) // swap off-diagonal blocks of this size
        for (unsigned i = 0; i < n; ++i) {
          if (i & half)
            continue;
          SmallVector<int64_t> upper, lower;
          for (unsigned l = 0; l < n; ++l) {
            upper.push_back(l & half ? n + l - half : l);
            lower.push_back(l & half ? n + l : l + half);
          }
          Value x = square[i], y = square[i + half];
          square[i] = vector::ShuffleOp::create(b, loc, x, y, upper);
          square[i + half] = vector::ShuffleOp::create(b, loc, x, y, lower);
        }
      Value to = e.add(e.mul(e.sub(k, depth), e.i64(width)), j);
      for (unsigned i = 0; i < n; ++i)
        e.store(panel, e.add(to, e.i64(i * width)), square[i], lanes);
    });
    e.loop(whole, depthEnd, 1, [&](Value k) {
      Value x = widen(e.loadStrided(right, e.add(base, k), stride, lanes));
      e.store(panel, e.add(e.mul(e.sub(k, depth), e.i64(width)), j), x, lanes);
    });
  });
}

/// Adds a register block of products to the sums.
void ContractionNest::multiply(Value row, Value rowBegin, Value depth, Value depthEnd,
                               const Buffer &right, Value rightStep) {
  unsigned width = tile.columns();
  Lanes lanes{tile.lanes, {}, {}};
  // Rows behind the last one repeat it; nobody reads their sums.
  Value last = e.sub(rowCount(), e.i64(1));
  SmallVector<Buffer> left;
  for (unsigned r = 0; r < tile.rows; ++r) {
    Buffer line = at(*p.left);
    Value i = tile.rows == 1 ? row : e.min(e.add(row, e.i64(r)), last);
    Value from = e.add(e.mul(i, coeff(p.left, p.row)), e.mul(depth, coeff(p.left, p.depth.back())));
    line.ptr = e.address(line.ptr, line.element, from);
    left.push_back(line);
  }
  Value to = e.mul(e.sub(row, rowBegin), e.i64(width));
  SmallVector<Value> start;
  for (unsigned r = 0; r < tile.rows; ++r)
    for (unsigned v = 0; v < tile.vectors; ++v)
      start.push_back(e.load(sums, e.add(to, e.i64(r * width + v * tile.lanes)), lanes));
  Value leftStep = coeff(p.left, p.depth.back());
  auto step = [&](Value k, SmallVector<Value> &running) {
    SmallVector<Value> columns;
    Value from = e.mul(k, rightStep);
    for (unsigned v = 0; v < tile.vectors; ++v)
      columns.push_back(e.load(right, e.add(from, e.i64(v * tile.lanes)), lanes));
    for (unsigned r = 0; r < tile.rows; ++r) {
      Value x = e.splat(widen(e.load(left[r], e.mul(k, leftStep), {})), tile.lanes);
      for (unsigned v = 0; v < tile.vectors; ++v) {
        Value &to = running[r * tile.vectors + v];
        if (e.options.strict)
          to = arith::AddFOp::create(b, loc, to, arith::MulFOp::create(b, loc, x, columns[v]));
        else
          to = fusedMultiplyAdd(e, x, columns[v], to);
      }
    }
  };
  constexpr int64_t unroll = 4;
  Value count = e.sub(depthEnd, depth), whole = e.sub(count, e.rem(count, e.i64(unroll)));
  auto loop = [&](Value from, Value end, int64_t by, SmallVector<Value> carried) {
    return e.loop(from, end, by, carried, [&](Value k, ValueRange values) {
      SmallVector<Value> running(values);
      for (int64_t u = 0; u < by; ++u)
        step(e.add(k, e.i64(u)), running);
      return running;
    });
  };
  SmallVector<Value> running = loop(whole, count, 1, loop(e.i64(0), whole, unroll, start));
  for (unsigned r = 0; r < tile.rows; ++r)
    for (unsigned v = 0; v < tile.vectors; ++v)
      e.store(sums, e.add(to, e.i64(r * width + v * tile.lanes)), running[r * tile.vectors + v],
              lanes);
}

/// The rest of the body, on one row of sums.
void ContractionNest::epilogue(Value row, Value rowBegin, Value panelBegin) {
  Value from = e.mul(e.sub(row, rowBegin), e.i64(tile.columns()));
  e.loop(e.i64(0), e.i64(tile.columns()), width, [&](Value j) {
    Value column = e.add(panelBegin, j), left = e.sub(columnCount(), column);
    auto at = [&](const Lanes &lanes) {
      Values fixed;
      Point point;
      point.index = unitIndex;
      if (p.row >= 0)
        point.index[p.row] = row;
      point.index[vectorDim] = column;
      point.lanes = lanes;
      point.fixed = &fixed;
      Value total = e.load(sums, e.add(from, j), {width, {}, {}});
      Operation *combiner = combinerOf(p.op, 0);
      Value init = operandValue(p.op, 2, point);
      Attribute value;
      if (!(matchPattern(init, m_Constant(&value)) && matchPattern(init, m_AnyZeroFloat())))
        total = e.cloneOp(combiner, {e.splat(init, width), total}, 0);
      fixed.results[p.op.getResult(0)] = total;
      storeFixed(point);
    };
    auto compare = [&](arith::CmpIPredicate how, Value y) -> Value {
      return arith::CmpIOp::create(b, loc, how, left, y);
    };
    OpBuilder::InsertionGuard guard(b);
    auto full = scf::IfOp::create(b, loc, compare(arith::CmpIPredicate::sge, e.i64(width)), true);
    b.setInsertionPointToStart(&full.getThenRegion().front());
    at({width, {}, {}});
    b.setInsertionPointToStart(&full.getElseRegion().front());
    auto some = scf::IfOp::create(b, loc, compare(arith::CmpIPredicate::sgt, e.i64(0)), false);
    b.setInsertionPointToStart(&some.getThenRegion().front());
    at(e.lanesLeft(width, left));
  });
}

void ContractionNest::emit(Value lo, Value hi) {
  unsigned columns = tile.columns();
  sums.element = panel.element = sum;
  sums.ptr = e.stack(sum, tile.blockRows * columns);
  if (!packed)
    panel.ptr = e.stack(sum, tile.blockDepth * columns);
  bool direct = !packed && p.depth.size() == 1 && p.right->coeffs[p.column].isConstant(1) &&
                getElementTypeOrSelf(p.right->tensor) == sum;
  Value allDepth = depthCount();
  Value numPanels = panels(), numBlocks = blocks(), rowsOfBlock = blockRows();
  e.loop(lo, hi, 1, [&](Value unit) {
    Value number = e.rem(unit, numPanels);
    unit = e.div(unit, numPanels);
    Value rowBegin = e.mul(e.rem(unit, numBlocks), rowsOfBlock);
    beginUnit(e.div(unit, numBlocks));
    Value rowEnd = e.min(e.add(rowBegin, rowsOfBlock), rowCount());
    Value panelBegin = e.mul(number, e.i64(columns));
    Lanes lanes{tile.lanes, {}, {}};
    e.loop(e.i64(0), e.mul(rowsOfBlock, e.i64(columns)), tile.lanes,
           [&](Value i) { e.store(sums, i, e.zero(sum), lanes); });
    auto rowBlock = [&](Value depth, Value depthEnd, const Buffer &right, Value rightStep) {
      e.loop(rowBegin, rowEnd, tile.rows,
             [&](Value row) { multiply(row, rowBegin, depth, depthEnd, right, rightStep); });
    };
    Buffer right = at(*p.right);
    if (packed) {
      Value before = number;
      for (unsigned d : p.batch)
        if (p.right->dependsOn(d)) // there is one at most
          before = e.add(before, e.mul(unitIndex[d], numPanels));
      right.ptr = e.address(buffer(p.right->tensor)->ptr, right.element,
                            e.mul(before, e.mul(allDepth, e.i64(columns))));
      rowBlock(e.i64(0), allDepth, right, e.i64(columns));
    } else {
      e.loop(e.i64(0), allDepth, tile.blockDepth, [&](Value depth) {
        Value depthEnd = e.min(e.add(depth, e.i64(tile.blockDepth)), allDepth);
        // Packing pays for many rows; a panel behind the last column must be packed.
        Value packs;
        if (direct) {
          Value many = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge,
                                             e.sub(rowEnd, rowBegin), e.i64(4 * tile.rows));
          Value narrow = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt,
                                               e.add(panelBegin, e.i64(columns)), columnCount());
          packs = arith::OrIOp::create(b, loc, many, narrow);
          OpBuilder::InsertionGuard guard(b);
          auto branch = scf::IfOp::create(b, loc, packs, /*withElse=*/false);
          b.setInsertionPointToStart(&branch.getThenRegion().front());
          pack(right, panelBegin, depth, depthEnd);
        } else {
          pack(right, panelBegin, depth, depthEnd);
        }
        Buffer source = panel;
        Value step = e.i64(columns);
        if (direct) {
          Value stride = coeff(p.right, p.depth[0]);
          Value plain =
              e.address(right.ptr, right.element, e.add(e.mul(depth, stride), panelBegin));
          source.ptr = arith::SelectOp::create(b, loc, packs, panel.ptr, plain);
          step = arith::SelectOp::create(b, loc, packs, step, stride);
        }
        rowBlock(depth, depthEnd, source, step);
      });
    }
    e.loop(rowBegin, rowEnd, 1, [&](Value row) { epilogue(row, rowBegin, panelBegin); });
  });
}

/// The space of a normalised kernel, if it is a product.
static std::unique_ptr<Space> productSpace(kernel::FuncOp kernel, Product &p, std::string &reason) {
  Block &body = kernel.getBody().front();
  SmallVector<linalg::GenericOp> ops(body.getOps<linalg::GenericOp>());
  SmallVector<std::pair<Value, Value>> outs;
  for (auto [n, v] : llvm::enumerate(body.getTerminator()->getOperands()))
    outs.push_back({v, body.getArgument(kernel.getNumIns() + n)});
  auto space =
      std::make_unique<Space>(kernel, ops, outs, [&](Value v) { return isInMemory(kernel, v); });
  reason = space->isValid() ? match(*space, p) : space->reason;
  return reason.empty() ? std::move(space) : nullptr;
}

bool cpu::scheduleContraction(Emitter &e, std::string &reason) {
  Product p;
  std::unique_ptr<Space> space = productSpace(e.kernel, p, reason);
  if (!space)
    return false;
  Tile tile = chooseTile(*space, p, e.machine);
  std::string name = e.kernel.getSymName().str();
  Memory memory(e);
  e.beginFunction(name, /*sizesOnly=*/false);
  ContractionNest(e, *space, p, tile, memory).emit(e.lo, e.hi);
  e.beginFunction(name + "_range", /*sizesOnly=*/true);
  e.endFunction(ContractionNest(e, *space, p, tile, memory).units());
  e.beginFunction(name + "_unit_cost", /*sizesOnly=*/true);
  e.endFunction(ContractionNest(e, *space, p, tile, memory).unitCost());
  return true;
}

std::optional<PackedLayout> quern::getPackedLayout(kernel::FuncOp original, unsigned arg,
                                                   const MachineModel &machine) {
  OwningOpRef<Operation *> copy = original->clone();
  auto kernel = cast<kernel::FuncOp>(*copy);
  ScopedDiagnosticHandler quiet(kernel.getContext(), [](Diagnostic &) { return success(); });
  Product p;
  std::string reason;
  if (failed(normalize(kernel)))
    return std::nullopt;
  std::unique_ptr<Space> space = productSpace(kernel, p, reason);
  if (!space || throughViews(p.right->tensor) != kernel.getBody().front().getArgument(arg) ||
      kernel.isStrided(arg) || !p.right->offset.isConstant(0) || p.depth.size() > 1)
    return std::nullopt;
  Type element = getElementTypeOrSelf(p.right->tensor);
  if (element != p.op.getRegionOutputArgs()[0].getType())
    return std::nullopt;
  PackedLayout layout;
  layout.elementBytes = element.getIntOrFloatBitWidth() / 8;
  layout.panel = chooseTile(*space, p, machine).columns();
  bool isStatic = true;
  auto constant = [&](Dim d) {
    isStatic &= d.isConstant();
    return d.isConstant() ? d.getConstant() : 0;
  };
  layout.depth = constant(space->dims[p.depth[0]].size);
  layout.columns = constant(space->dims[p.column].size);
  layout.depthStride = constant(p.right->coeffs[p.depth[0]]);
  layout.columnStride = constant(p.right->coeffs[p.column]);
  unsigned numBatch = 0;
  for (unsigned d : p.batch)
    if (p.right->dependsOn(d)) {
      ++numBatch;
      layout.batch = constant(space->dims[d].size);
      layout.batchStride = constant(p.right->coeffs[d]);
    }
  // The argument must be read as this product's right side and nowhere else.
  unsigned reads = 0;
  for (auto &[op, info] : space->info)
    for (auto &access : info.operands)
      reads += access && throughViews(access->tensor) == throughViews(p.right->tensor);
  if (!isStatic || numBatch > 1 || reads != 1)
    return std::nullopt;
  return layout;
}

std::vector<char> quern::packConstant(const PackedLayout &l, ArrayRef<char> data) {
  std::vector<char> result(l.numElements() * l.elementBytes);
  char *to = result.data();
  for (int64_t batch = 0; batch < l.batch; ++batch)
    for (int64_t panel = 0; panel < l.numPanels(); ++panel)
      for (int64_t k = 0; k < l.depth; ++k)
        for (int64_t j = 0; j < l.panel; ++j, to += l.elementBytes) {
          int64_t column = panel * l.panel + j;
          if (column >= l.columns)
            continue;
          int64_t from = batch * l.batchStride + k * l.depthStride + column * l.columnStride;
          memcpy(to, data.data() + from * l.elementBytes, l.elementBytes);
        }
  return result;
}
