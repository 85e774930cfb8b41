//===- Nest.cpp - One loop nest over a space: plan and points -------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Nest.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace quern;
using namespace quern::cpu;

// Elements of a unit of pointwise work; a multiple of every block of vectors.
static constexpr int64_t pointwiseBlock = 4096;
// Longest row (in elements) that is kept on the stack between passes.
static constexpr int64_t longestStackRow = 8192;

Nest::Nest(Emitter &e, const Space &space, std::function<const Buffer *(Value)> buffer)
    : e(e), b(e.b), loc(e.loc), space(space), buffer(std::move(buffer)) {
  plan();
  planPasses();
  if (rows)
    planKept();
}

const Buffer *Memory::operator()(Value tensor) {
  if (auto arg = dyn_cast<BlockArgument>(tensor))
    return &e.args[arg.getArgNumber()];
  Buffer &buffer = known[tensor.getAsOpaquePointer()];
  if (buffer.ptr)
    return &buffer;
  DenseElementsAttr value;
  if (Value root = throughViews(tensor); root != tensor) {
    buffer = *(*this)(root);
    buffer.shape = shapeOf(tensor);
    buffer.strides = rowMajorStrides(e.ctx, buffer.shape);
  } else if (matchPattern(tensor, m_Constant(&value))) {
    buffer = e.constantBuffer(value);
  }
  return &buffer;
}

//===----------------------------------------------------------------------===//
// Plan
//===----------------------------------------------------------------------===//

/// How many machine vectors make up one vector of the emitted code. The code generator
/// cuts it into that many independent instructions side by side, which hides their
/// latency; more would not fit the registers.
unsigned Nest::groupSize() {
  bool wide = false, perLane = false, math = false;
  auto see = [&](Type type) {
    Type element = getElementTypeOrSelf(type);
    wide |= element.isIndex() || (element.isIntOrFloat() && element.getIntOrFloatBitWidth() > 32);
  };
  for (linalg::GenericOp op : space.ops) {
    for (Operation &o : op.getBody()->without_terminator()) {
      perLane |= isa<tensor::ExtractOp>(o);
      math |= isa_and_nonnull<math::MathDialect>(o.getDialect());
      for (Type type : o.getResultTypes())
        see(type);
    }
    for (Value v : op.getBody()->getArguments())
      see(v.getType());
    for (const std::optional<Access> &access : info(op).operands)
      perLane |= access && access->dependsOn(vectorDim) && !access->coeffs[vectorDim].isConstant(1);
  }
  for (const Space::Output &out : space.outputs)
    perLane |= out.access.dependsOn(vectorDim) && !out.access.coeffs[vectorDim].isConstant(1);
  return perLane ? 1 : wide || (math && rows) ? 2 : 4;
}

void Nest::plan() {
  bool vectors = !e.options.reference && llvm::all_of(space.ops, Emitter::isVectorizable);
  unsigned numDims = space.dims.size(), numPass = 0;
  for (unsigned d = 0; d < numDims; ++d)
    numPass += space.dims[d].pass;

  rows = vectors && numPass == 1 && space.dims.back().pass;
  for (linalg::GenericOp op : space.ops)
    if (info(op).reduction)
      rows = rows && sumOrder(op) != SumOrder::Sequence;
  for (unsigned d = 0; d < numDims; ++d)
    if (rows ? space.dims[d].pass : !space.dims[d].pass)
      vectorDim = d;
  if (vectors && vectorDim >= 0) {
    width = e.machine.lanes() * groupSize();
    unroll = rows ? numParts / width : numPass ? 2 : 1;
  }
  for (unsigned d = 0; d < numDims; ++d) {
    if (space.dims[d].pass)
      passDims.push_back(d);
    else if (int(d) != vectorDim)
      outer.push_back(d);
  }
  llvm::sort(passDims,
             [&](unsigned a, unsigned b) { return space.dims[a].loop < space.dims[b].loop; });
  if (!rows)
    block = numPass ? std::max(width * unroll, 16u) : pointwiseBlock;
}

/// In which passes each op is evaluated, from the results backwards. A result that may
/// share a buffer with an in is not written before the last pass that reads this in.
void Nest::planPasses() {
  for (const Space::Output &out : space.outputs)
    storePass.push_back(out.level);
  kernel::FuncOp kernel = space.kernel;
  for (bool changed = true; changed;) {
    changed = false;
    passes.clear();
    llvm::DenseMap<Value, int> lastRead;
    for (auto [out, at] : llvm::zip(space.outputs, storePass))
      passes[out.value.getDefiningOp()].insert(at);
    for (linalg::GenericOp op : llvm::reverse(space.ops)) {
      const OpInfo &i = info(op);
      std::set<int> where = passes[op];
      if (i.reduction) {
        where.clear();
        where.insert(i.level - 1);
      }
      for (auto [n, operand] : llvm::enumerate(op->getOpOperands())) {
        if (!isa<RankedTensorType>(operand.get().getType()))
          continue;
        if (i.operands[n])
          for (int at : where)
            lastRead[i.operands[n]->tensor] = std::max(lastRead[i.operands[n]->tensor], at);
        AffineMap map = op.getMatchingIndexingMap(&operand);
        if (linalg::GenericOp p = space.producer(lookThrough(operand.get(), map)))
          for (int at : where)
            passes[p].insert(at);
      }
    }
    for (auto [out, at] : llvm::zip(space.outputs, storePass)) {
      auto to = dyn_cast<BlockArgument>(out.access.tensor);
      for (auto [tensor, last] : lastRead)
        if (auto in = dyn_cast<BlockArgument>(tensor);
            to && in && last > at && in.getArgNumber() < kernel.getNumIns() &&
            kernel.mayShare(to.getArgNumber() - kernel.getNumIns(), in.getArgNumber())) {
          at = last;
          changed = true;
        }
    }
  }
}

/// Whether evaluating the op again costs more than a load: there is a transcendental
/// function or a division in it or below it.
bool Nest::isExpensive(linalg::GenericOp op) {
  bool expensive = false;
  op.getBody()->walk([&](Operation *o) {
    expensive |= isa_and_nonnull<math::MathDialect>(o->getDialect()) || isa<arith::DivFOp>(o);
  });
  for (OpOperand *operand : op.getDpsInputOperands()) {
    if (expensive || !isa<RankedTensorType>(operand->get().getType()))
      continue;
    AffineMap map = op.getMatchingIndexingMap(operand);
    linalg::GenericOp p = space.producer(lookThrough(operand->get(), map));
    if (p && !info(p).reduction && !isFixed(info(p).deps) && !kept.count(p))
      expensive = isExpensive(p);
  }
  return expensive;
}

/// Values of a whole row that later passes need again: in the row of a result where no
/// pass reads an in that may be the same buffer, else on the stack, else computed again.
void Nest::planKept() {
  kernel::FuncOp kernel = space.kernel;
  llvm::SmallPtrSet<const Access *, 2> used;
  for (linalg::GenericOp op : space.ops) {
    if (info(op).reduction || op.getNumResults() != 1 || isFixed(info(op).deps) ||
        passes[op].size() < 2 || !isExpensive(op))
      continue;
    Kept keep;
    keep.since = *passes[op].begin();
    for (auto [out, at] : llvm::zip(space.outputs, storePass)) {
      auto to = dyn_cast<BlockArgument>(out.access.tensor);
      // The result's own elements come when nobody reads the kept ones any more.
      if (!to || at <= keep.since || at < *passes[op].rbegin() || used.count(&out.access) ||
          !out.access.coeffs[vectorDim].isConstant(1) ||
          getElementTypeOrSelf(to) != getElementTypeOrSelf(op->getResult(0).getType()))
        continue;
      bool readLater = false;
      for (linalg::GenericOp reader : space.ops)
        for (auto &access : info(reader).operands)
          if (auto in = access ? dyn_cast<BlockArgument>(access->tensor) : BlockArgument())
            if (in.getArgNumber() < kernel.getNumIns() && access->dependsOn(vectorDim) &&
                kernel.mayShare(to.getArgNumber() - kernel.getNumIns(), in.getArgNumber())) {
              if (info(reader).reduction)
                readLater |= info(reader).level - 1 > keep.since;
              else
                for (int p : passes[reader])
                  readLater |= p > keep.since && reader != op;
            }
      if (!readLater) {
        keep.access = &out.access;
        used.insert(keep.access);
        break;
      }
    }
    Dim length = space.dims[vectorDim].size;
    if (!keep.access && !(length.isConstant() && length.getConstant() <= longestStackRow))
      continue;
    if (!keep.access) {
      keep.scratch.element = getElementTypeOrSelf(op->getResult(0).getType());
      keep.scratch.shape = {length};
    }
    kept[op] = keep;
  }
}

Value Nest::units() {
  Value count = e.i64(1);
  for (unsigned d : outer)
    count = e.mul(count, e.size(space.dims[d].size));
  if (!rows && vectorDim >= 0)
    count = e.mul(count, e.ceilDiv(e.size(space.dims[vectorDim].size), e.i64(block)));
  return count;
}

Value Nest::unitCost() {
  // Hundredths of a nanosecond for each element: loads and arithmetic on vectors.
  int64_t cost = 10 * (space.outputs.size() + 1);
  for (linalg::GenericOp op : space.ops)
    for (Operation &o : op.getBody()->without_terminator()) {
      if (o.hasTrait<OpTrait::ConstantLike>())
        continue;
      bool isCall = isa_and_nonnull<math::MathDialect>(o.getDialect()) || o.getNumRegions();
      cost += isCall ? 50 : isa<tensor::ExtractOp>(o) ? 60 : 3;
    }
  if (width == 1)
    cost *= 8;
  Value elements = e.i64(1);
  for (unsigned d : passDims)
    elements = e.mul(elements, e.size(space.dims[d].size));
  if (!rows && vectorDim >= 0)
    elements = e.mul(elements, e.min(e.i64(block), e.size(space.dims[vectorDim].size)));
  return e.add(e.div(e.mul(elements, e.i64(cost)), e.i64(100)), e.i64(4));
}

//===----------------------------------------------------------------------===//
// Values at a point
//===----------------------------------------------------------------------===//

bool Nest::isFixed(const llvm::SmallBitVector &deps) const {
  for (unsigned d : passDims)
    if (deps.test(d))
      return false;
  return !rows || !deps.test(vectorDim);
}

bool Nest::isFixed(const Access &access) const {
  return llvm::none_of(passDims, [&](unsigned d) { return access.dependsOn(d); });
}

/// The indices of a unit, and where it begins in each tensor.
void Nest::beginUnit(Value unit) {
  unitIndex.assign(space.dims.size(), Value());
  for (unsigned d : llvm::reverse(outer)) {
    if (d == outer.front()) {
      unitIndex[d] = unit;
      break;
    }
    Value size = e.size(space.dims[d].size);
    unitIndex[d] = e.rem(unit, size);
    unit = e.div(unit, size);
  }
  bases.clear();
  auto place = [&](const Access &access) {
    Value at = e.size(access.offset);
    for (unsigned d : outer)
      if (access.dependsOn(d))
        at = e.add(at, e.mul(unitIndex[d], e.size(access.coeffs[d])));
    const Buffer *memory = buffer(access.tensor);
    bases[&access] = e.address(memory->ptr, memory->element, at);
  };
  for (linalg::GenericOp op : space.ops)
    for (const std::optional<Access> &access : info(op).operands)
      if (access)
        place(*access);
  for (const Space::Output &out : space.outputs)
    place(out.access);
}

Buffer Nest::at(const Access &access) {
  Buffer memory;
  memory.element = buffer(access.tensor)->element;
  memory.ptr = bases.lookup(&access);
  return memory;
}

Value Nest::offset(const Access &access, const Point &point) {
  Value at = e.i64(0);
  for (const SmallVector<unsigned> &dims : {passDims, inner})
    for (unsigned d : dims)
      if (int(d) != vectorDim && access.dependsOn(d))
        at = e.add(at, e.mul(point.index[d], e.size(access.coeffs[d])));
  if (vectorDim >= 0 && access.dependsOn(vectorDim))
    at = e.add(e.mul(point.index[vectorDim], e.size(access.coeffs[vectorDim])), at);
  return at;
}

Value Nest::load(const Access &access, Point &point) {
  for (Values *values : {point.fixed, &point.local})
    for (auto &[known, value] : values->loads)
      if (*known == access)
        return value;
  Buffer memory = at(access);
  Value index = offset(access, point), v;
  if (width == 1 || !access.dependsOn(vectorDim))
    v = e.load(memory, index, {});
  else if (access.coeffs[vectorDim].isConstant(1))
    v = e.load(memory, index, point.lanes);
  else
    v = e.loadStrided(memory, index, e.size(access.coeffs[vectorDim]), point.lanes);
  point.local.loads.push_back({&access, v});
  return v;
}

void Nest::store(const Access &access, Value value, const Point &point) {
  Buffer memory = at(access);
  Value index = offset(access, point);
  if (width == 1 || !access.dependsOn(vectorDim))
    e.store(memory, index, value, {});
  else if (access.coeffs[vectorDim].isConstant(1))
    e.store(memory, index, value, point.lanes, streaming);
  else
    e.storeStrided(memory, index, e.size(access.coeffs[vectorDim]), value, point.lanes);
}

Value Nest::operandValue(linalg::GenericOp op, unsigned n, Point &point) {
  OpOperand &operand = op->getOpOperand(n);
  if (!isa<RankedTensorType>(operand.get().getType()))
    return e.scalar(operand.get());
  if (const std::optional<Access> &access = info(op).operands[n])
    return load(*access, point);
  AffineMap map = op.getMatchingIndexingMap(&operand);
  Value v = lookThrough(operand.get(), map);
  if (auto fill = v.getDefiningOp<linalg::FillOp>())
    return e.scalar(fill.getInputs()[0]);
  DenseElementsAttr constant;
  if (matchPattern(v, m_Constant(&constant)))
    return e.constant(cast<TypedAttr>(constant.getSplatValue<Attribute>()));
  if (space.producer(v))
    return valueOf(v, point);
  return {}; // tensor.empty: what it holds is never used
}

Value Nest::valueOf(Value v, Point &point) {
  for (Values *values : {point.fixed, &point.local})
    if (Value known = values->results.lookup(v))
      return known;
  linalg::GenericOp op = space.producer(v);
  auto keep = kept.find(op);
  bool load = keep != kept.end() && pass > keep->second.since;
  auto keptLanes = [&](bool write, Value value) -> Value {
    const Kept &k = keep->second;
    Buffer memory = k.access ? at(*k.access) : k.scratch;
    Value index = point.index[vectorDim];
    if (!write)
      return e.load(memory, index, point.lanes);
    e.store(memory, index, value, point.lanes);
    return value;
  };
  if (load)
    return point.local.results[v] = keptLanes(false, {});
  SmallVector<Value> results = clone(op, {}, point);
  for (auto [result, value] : llvm::zip(op->getResults(), results))
    point.local.results[result] = value;
  if (keep != kept.end() && pass == keep->second.since)
    keptLanes(true, results[0]);
  return point.local.results.lookup(v);
}

/// The op's region at this point; `running` stands for its inits if it reduces.
SmallVector<Value> Nest::clone(linalg::GenericOp op, ValueRange running, Point &point) {
  const OpInfo &i = info(op);
  SmallVector<Value> args;
  bool invariant = false; // divides by what a reduction gave?
  for (auto [n, operand] : llvm::enumerate(op->getOpOperands())) {
    if (!op.isDpsInit(&operand)) {
      Value v;
      if (op.payloadUsesValueFromOperand(&operand))
        v = operandValue(op, n, point);
      args.push_back(v);
      invariant |= v && point.fixed->results.count(operand.get());
    } else if (!running.empty()) {
      args.push_back(running[args.size() - op.getNumDpsInputs()]);
    } else {
      args.push_back(op.payloadUsesValueFromOperand(&operand) ? operandValue(op, n, point)
                                                              : Value());
    }
  }
  Emitter::Place place;
  place.lanes = point.lanes;
  place.reciprocal = invariant && space.levels > 0;
  auto index = [&](unsigned loop) -> Value {
    const Access &access = i.indices[loop];
    Value v = e.size(access.offset);
    for (unsigned d = 0; d < space.dims.size(); ++d)
      if (access.dependsOn(d))
        v = e.add(v, e.mul(point.index[d], e.size(access.coeffs[d])));
    if (width > 1 && access.dependsOn(vectorDim)) {
      Value steps = arith::MulIOp::create(b, loc, e.iota(width),
                                          e.splat(e.size(access.coeffs[vectorDim]), width));
      v = arith::AddIOp::create(b, loc, e.splat(v, width), steps);
    }
    return v;
  };
  auto firstIndex = [&](unsigned loop) -> Value {
    const Access &access = i.indices[loop];
    if (!access.coeffs[vectorDim].isConstant(1))
      return {};
    Value v = e.size(access.offset);
    for (unsigned d = 0; d < space.dims.size(); ++d)
      if (access.dependsOn(d))
        v = e.add(v, e.mul(point.index[d], e.size(access.coeffs[d])));
    return v;
  };
  auto memory = [&](Value tensor) { return buffer(tensor); };
  place.index = index;
  place.firstIndex = firstIndex;
  place.buffer = memory;
  if (i.reduction)
    for (Value arg : op.getRegionOutputArgs())
      place.accumulators.push_back(arg);
  return e.cloneRegion(op, args, place);
}

/// What does not depend on the position in a pass, once, before its loop.
void Nest::computeFixed(Point &point) {
  for (linalg::GenericOp op : space.ops) {
    const OpInfo &i = info(op);
    bool needed = i.reduction ? i.level == pass + 1 : passes[op].count(pass);
    if (!needed)
      continue;
    for (auto [n, access] : llvm::enumerate(i.operands)) {
      OpOperand &operand = op->getOpOperand(n);
      if (access && isFixed(*access) && op.payloadUsesValueFromOperand(&operand) &&
          !(op.isDpsInit(&operand) && i.reduction)) {
        load(*access, point);
      }
    }
    if (!i.reduction && isFixed(i.deps) && i.level <= pass)
      for (Value result : op->getResults())
        valueOf(result, point);
  }
  for (auto &[v, value] : point.local.results)
    point.fixed->results[v] = value;
  point.fixed->loads.append(point.local.loads);
  point.local = Values();
}

SmallVector<linalg::GenericOp> Nest::reductionsOfPass() {
  SmallVector<linalg::GenericOp> ops;
  for (linalg::GenericOp op : space.ops)
    if (info(op).reduction && info(op).level == pass + 1)
      ops.push_back(op);
  return ops;
}

/// Everything of this pass at one point: reductions, then results. All values are
/// computed before the first is stored, since a result may share a buffer with an in.
void Nest::step(Point &point, MutableArrayRef<Value> running) {
  unsigned n = 0;
  for (linalg::GenericOp op : reductionsOfPass()) {
    MutableArrayRef<Value> mine = running.slice(n, op.getNumResults());
    SmallVector<Value> next = clone(op, mine, point);
    for (auto [value, to] : llvm::zip(next, mine)) {
      value = e.splat(value, width);
      to = rows && point.lanes.mask
               ? arith::SelectOp::create(b, loc, point.lanes.mask, value, to).getResult()
               : value;
    }
    n += op.getNumResults();
  }
  SmallVector<std::pair<const Access *, Value>> stores;
  for (auto [out, at] : llvm::zip(space.outputs, storePass))
    if (at == pass && !isFixed(out.access))
      stores.push_back({&out.access, valueOf(out.value, point)});
  for (auto [access, value] : stores)
    store(*access, value, point);
}

/// Results that have no pass dim: after the last pass.
void Nest::storeFixed(Point &point) {
  pass = space.levels;
  SmallVector<std::pair<const Access *, Value>> stores;
  for (const Space::Output &out : space.outputs)
    if (isFixed(out.access))
      stores.push_back({&out.access, valueOf(out.value, point)});
  for (auto [access, value] : stores)
    store(*access, value, point);
}
