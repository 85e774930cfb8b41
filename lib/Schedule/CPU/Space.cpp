//===- Space.cpp - The iteration space of fused linalg ops ----------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Space.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace quern;
using namespace quern::cpu;

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

Dim cpu::loopSize(linalg::GenericOp op, unsigned loop) {
  AffineExpr expr = getAffineDimExpr(loop, op.getContext());
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<RankedTensorType>(operand.get().getType()))
      continue;
    AffineMap map = op.getMatchingIndexingMap(&operand);
    for (auto [i, result] : llvm::enumerate(map.getResults()))
      if (result == expr)
        if (Dim d = dimOf(operand.get(), i); !d.isUnknown())
          return d;
  }
  return Dim::unknown(op.getContext());
}

/// The size that an index value holds, when it is a constant or the dim of a tensor.
static Dim dimOfIndex(Value v) {
  APInt constant;
  if (matchPattern(v, m_ConstantInt(&constant)))
    return Dim::constant(v.getContext(), constant.getSExtValue());
  if (auto dim = v.getDefiningOp<tensor::DimOp>())
    if (std::optional<int64_t> i = dim.getConstantIndex())
      return dimOf(dim.getSource(), *i);
  if (auto dim = v.getDefiningOp<kernel::DimOp>())
    if (auto attr = dyn_cast<DimAttr>(dim.getDim()))
      return Dim(attr);
  return Dim::unknown(v.getContext());
}

Dim cpu::dimOf(Value v, unsigned i) {
  auto type = cast<RankedTensorType>(v.getType());
  Dim named = getDims(type)[i];
  if (!named.isUnknown())
    return named;
  if (auto op = v.getDefiningOp<linalg::GenericOp>()) {
    unsigned n = cast<OpResult>(v).getResultNumber();
    AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(n));
    if (auto dim = dyn_cast<AffineDimExpr>(map.getResult(i)))
      return loopSize(op, dim.getPosition());
    return dimOf(op.getDpsInitOperand(n)->get(), i);
  }
  if (auto op = v.getDefiningOp<linalg::FillOp>())
    return dimOf(op.getOutputs()[0], i);
  if (auto op = v.getDefiningOp<tensor::EmptyOp>())
    return dimOfIndex(op.getDynamicSize(i));
  if (auto op = v.getDefiningOp<tensor::CastOp>())
    return dimOf(op.getSource(), i);
  if (auto op = v.getDefiningOp<kernel::RefineOp>())
    return dimOf(op.getSource(), i);
  return named;
}

SmallVector<Dim> cpu::shapeOf(Value v) {
  SmallVector<Dim> shape;
  for (int64_t i = 0; i < cast<RankedTensorType>(v.getType()).getRank(); ++i)
    shape.push_back(dimOf(v, i));
  return shape;
}

SmallVector<Dim> cpu::stridesOf(kernel::FuncOp kernel, Value v) {
  MLIRContext *ctx = v.getContext();
  auto arg = dyn_cast<BlockArgument>(v);
  if (!arg || !kernel.isStrided(arg.getArgNumber()))
    return rowMajorStrides(ctx, shapeOf(v));
  SmallVector<Dim> strides;
  for (int64_t i = 0; i < cast<RankedTensorType>(v.getType()).getRank(); ++i)
    strides.push_back(
        Dim::symbol(ctx, ("stride " + Twine(arg.getArgNumber()) + "." + Twine(i)).str()));
  return strides;
}

Value cpu::throughViews(Value v) {
  while (Operation *op = v.getDefiningOp()) {
    if (!isa<tensor::CastOp, kernel::RefineOp, kernel::ViewOp, tensor::ExpandShapeOp,
             tensor::CollapseShapeOp>(op))
      break;
    v = op->getOperand(0);
  }
  return v;
}

Value cpu::lookThrough(Value v, AffineMap &access) {
  MLIRContext *ctx = v.getContext();
  for (Value root = throughViews(v); v != root;) {
    // The dims of more than one element must be the same on both sides.
    Value source = v.getDefiningOp()->getOperand(0);
    SmallVector<Dim> from = shapeOf(source), to = shapeOf(v);
    SmallVector<AffineExpr> exprs;
    size_t next = 0;
    for (Dim d : from) {
      if (d.isConstant(1)) {
        exprs.push_back(getAffineConstantExpr(0, ctx));
        continue;
      }
      while (next < to.size() && to[next].isConstant(1))
        ++next;
      if (next == to.size() || d.isUnknown() || to[next] != d)
        return v; // not an index map
      exprs.push_back(access.getResult(next++));
    }
    while (next < to.size() && to[next].isConstant(1))
      ++next;
    if (next != to.size())
      return v;
    access = AffineMap::get(access.getNumDims(), 0, exprs, ctx);
    v = source;
  }
  return v;
}

//===----------------------------------------------------------------------===//
// Accesses and combiners
//===----------------------------------------------------------------------===//

/// Adds `scale * expr` to the access; false when the expression is not linear.
static bool addLinear(Access &access, AffineExpr expr, Dim scale) {
  MLIRContext *ctx = expr.getContext();
  if (auto c = dyn_cast<AffineConstantExpr>(expr)) {
    access.offset = access.offset + scale * c.getValue();
    return true;
  }
  if (auto d = dyn_cast<AffineDimExpr>(expr)) {
    access.coeffs[d.getPosition()] = access.coeffs[d.getPosition()] + scale;
    return true;
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (binary && expr.getKind() == AffineExprKind::Add)
    return addLinear(access, binary.getLHS(), scale) && addLinear(access, binary.getRHS(), scale);
  if (binary && expr.getKind() == AffineExprKind::Mul)
    if (auto c = dyn_cast<AffineConstantExpr>(binary.getRHS()))
      return addLinear(access, binary.getLHS(), scale * Dim::constant(ctx, c.getValue()));
  return false;
}

std::optional<Access> cpu::linearAccess(kernel::FuncOp kernel, Value tensor, AffineMap map) {
  MLIRContext *ctx = kernel.getContext();
  Access access;
  access.tensor = tensor;
  access.offset = Dim::constant(ctx, 0);
  access.coeffs.assign(map.getNumDims(), access.offset);
  for (auto [expr, stride] : llvm::zip(map.getResults(), stridesOf(kernel, tensor)))
    if (stride.isUnknown() || !addLinear(access, expr, stride))
      return std::nullopt;
  return access;
}

SumOrder cpu::sumOrder(linalg::GenericOp op) {
  SmallVector<Dim> sizes;
  for (unsigned l = 0; l < op.getNumLoops(); ++l)
    sizes.push_back(loopSize(op, l));
  return quern::sumOrder(op, sizes);
}

//===----------------------------------------------------------------------===//
// Space
//===----------------------------------------------------------------------===//

bool Space::fail(const Twine &why) {
  reason = why.str();
  return false;
}

linalg::GenericOp Space::producer(Value v) const {
  if (memory.contains(v))
    return {};
  auto op = v.getDefiningOp<linalg::GenericOp>();
  return op && info.count(op) ? op : linalg::GenericOp();
}

Space::Space(kernel::FuncOp kernel, ArrayRef<linalg::GenericOp> ops,
             ArrayRef<std::pair<Value, Value>> outs, llvm::function_ref<bool(Value)> inMemory)
    : kernel(kernel), ops(ops) {
  unsigned most = 0; // loops of more than one step
  for (linalg::GenericOp op : ops) {
    info[op]; // known as an op of the nest
    unsigned loops = llvm::count_if(llvm::seq<unsigned>(0, op.getNumLoops()),
                                    [&](unsigned l) { return !loopSize(op, l).isConstant(1); });
    if (!root || loops >= most) {
      root = op;
      most = loops;
    }
    for (Value v : op->getOperands())
      if (inMemory(v))
        memory.insert(v);
    op.getBody()->walk([&](tensor::ExtractOp extract) {
      if (inMemory(extract.getTensor()))
        memory.insert(extract.getTensor());
      else
        reason = "a gather from a value that is not in memory";
    });
    // Views of what is in memory are in memory.
    for (OpOperand &operand : op->getOpOperands()) {
      if (!isa<RankedTensorType>(operand.get().getType()))
        continue;
      AffineMap map = op.getMatchingIndexingMap(&operand);
      Value v = lookThrough(operand.get(), map);
      if (inMemory(v))
        memory.insert(v);
    }
  }
  if (!root)
    reason = "no linalg op";
  if (!isValid() || !mapLoops() || !findPassDims())
    return;
  findLevels();
  chooseOrder(outs);
  makeAccesses(outs);
}

bool Space::setLoops(linalg::GenericOp op, MutableArrayRef<AffineExpr> loops) {
  MLIRContext *ctx = op.getContext();
  SmallVector<utils::IteratorType> kinds = op.getIteratorTypesArray();
  llvm::SmallBitVector used(root.getNumLoops());
  for (AffineExpr expr : loops)
    if (expr)
      for (unsigned d = 0; d < used.size(); ++d)
        if (expr.isFunctionOfDim(d))
          used.set(d);
  for (auto [l, expr] : llvm::enumerate(loops)) {
    if (expr)
      continue;
    Dim size = loopSize(op, l);
    if (size.isConstant(1)) {
      expr = getAffineConstantExpr(0, ctx);
      continue;
    }
    if (kinds[l] == utils::IteratorType::parallel)
      return fail("a loop that its consumer does not fix");
    for (unsigned d = 0; d < used.size() && !expr; ++d)
      if (!used.test(d) && !size.isUnknown() && rootSizes[d] == size) {
        expr = getAffineDimExpr(d, ctx);
        used.set(d);
      }
    if (!expr)
      return fail("a reduction over dims of its own");
  }
  info[op].loops = AffineMap::get(root.getNumLoops(), 0, loops, ctx);
  return true;
}

/// From the loops of a consumer to those of the producers of its operands.
bool Space::mapBackwards(linalg::GenericOp op) {
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<RankedTensorType>(operand.get().getType()))
      continue;
    AffineMap access = op.getMatchingIndexingMap(&operand).compose(info[op].loops);
    Value v = lookThrough(operand.get(), access);
    linalg::GenericOp p = producer(v);
    if (!p)
      continue;
    AffineMap out =
        p.getMatchingIndexingMap(p.getDpsInitOperand(cast<OpResult>(v).getResultNumber()));
    SmallVector<AffineExpr> loops(p.getNumLoops());
    for (auto [expr, at] : llvm::zip(out.getResults(), access.getResults()))
      if (auto d = dyn_cast<AffineDimExpr>(expr))
        loops[d.getPosition()] = at;
      else if (!isa<AffineConstantExpr>(expr))
        return fail("a result that is written through an index map");
    if (AffineMap known = info[p].loops) {
      for (auto [l, expr] : llvm::enumerate(loops))
        if (expr && known.getResult(l) != expr && !loopSize(p, l).isConstant(1))
          return fail("a value that is read through two index maps");
      continue;
    }
    if (!setLoops(p, loops) || !mapBackwards(p))
      return false;
  }
  return true;
}

/// From the loops of producers to those of their consumer.
bool Space::mapForwards(linalg::GenericOp op) {
  SmallVector<AffineExpr> loops(op.getNumLoops());
  bool any = false;
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<RankedTensorType>(operand.get().getType()))
      continue;
    AffineMap map = op.getMatchingIndexingMap(&operand);
    Value v = lookThrough(operand.get(), map);
    linalg::GenericOp p = producer(v);
    if (!p || !info[p].loops)
      continue;
    any = true;
    AffineMap at =
        p.getMatchingIndexingMap(p.getDpsInitOperand(cast<OpResult>(v).getResultNumber()))
            .compose(info[p].loops);
    for (auto [expr, value] : llvm::zip(map.getResults(), at.getResults()))
      if (auto d = dyn_cast<AffineDimExpr>(expr))
        if (!loops[d.getPosition()])
          loops[d.getPosition()] = value;
  }
  return !any || (setLoops(op, loops) && mapBackwards(op));
}

bool Space::mapLoops() {
  for (unsigned l = 0; l < root.getNumLoops(); ++l) {
    rootSizes.push_back(loopSize(root, l));
    if (rootSizes.back().isUnknown())
      return fail("a loop whose size no operand tells");
  }
  info[root].loops = AffineMap::getMultiDimIdentityMap(root.getNumLoops(), kernel.getContext());
  if (!mapBackwards(root))
    return false;
  for (linalg::GenericOp op : ops)
    if (!info[op].loops && !mapForwards(op))
      return false;
  for (linalg::GenericOp op : ops)
    if (!info[op].loops)
      return fail("ops that share no value");
  return true;
}

bool Space::findPassDims() {
  pass.resize(root.getNumLoops());
  auto reduced = [&](linalg::GenericOp op) {
    llvm::SmallBitVector dims(root.getNumLoops());
    for (auto [kind, expr] : llvm::zip(op.getIteratorTypesArray(), info[op].loops.getResults()))
      if (auto d = dyn_cast<AffineDimExpr>(expr); d && kind == utils::IteratorType::reduction)
        if (!rootSizes[d.getPosition()].isConstant(1))
          dims.set(d.getPosition());
    return dims;
  };
  for (linalg::GenericOp op : ops)
    pass |= reduced(op);
  for (linalg::GenericOp op : ops) {
    info[op].reduction = op.getNumReductionLoops() > 0;
    if (!info[op].reduction)
      continue;
    if (reduced(op) != pass)
      return fail("reductions over different dims");
    for (auto [kind, expr] : llvm::zip(op.getIteratorTypesArray(), info[op].loops.getResults()))
      if (kind == utils::IteratorType::parallel)
        for (int d : pass.set_bits())
          if (expr.isFunctionOfDim(d))
            return fail("a reduction along a dim that another one reduces");
  }
  return true;
}

void Space::findLevels() {
  for (linalg::GenericOp op : ops) {
    OpInfo &i = info[op];
    for (OpOperand &operand : op->getOpOperands()) {
      if (!isa<RankedTensorType>(operand.get().getType()))
        continue;
      AffineMap map = op.getMatchingIndexingMap(&operand);
      if (linalg::GenericOp p = producer(lookThrough(operand.get(), map)))
        i.level = std::max(i.level, info[p].level);
    }
    i.level += i.reduction;
    levels = std::max(levels, i.level);
  }
}

/// Root loops in the order of memory: as a tensor that spans them all has them.
void Space::chooseOrder(ArrayRef<std::pair<Value, Value>> outs) {
  auto orderOf = [&](AffineMap access) {
    order.clear();
    llvm::SmallBitVector seen(rootSizes.size());
    for (AffineExpr expr : access.getResults())
      if (auto d = dyn_cast<AffineDimExpr>(expr); d && !seen.test(d.getPosition())) {
        order.push_back(d.getPosition());
        seen.set(d.getPosition());
      }
    for (unsigned d = 0; d < rootSizes.size(); ++d)
      if (!seen.test(d)) {
        if (!rootSizes[d].isConstant(1))
          return false;
        order.insert(order.begin(), d);
      }
    return true;
  };
  for (auto [value, tensor] : outs)
    if (linalg::GenericOp op = producer(value)) {
      unsigned n = cast<OpResult>(value).getResultNumber();
      if (orderOf(op.getMatchingIndexingMap(op.getDpsInitOperand(n)).compose(info[op].loops)))
        return;
    }
  for (linalg::GenericOp op : ops)
    for (OpOperand &operand : op->getOpOperands())
      if (isa<RankedTensorType>(operand.get().getType()) &&
          orderOf(op.getMatchingIndexingMap(&operand).compose(info[op].loops)))
        return;
  order = llvm::to_vector(llvm::seq<unsigned>(0, rootSizes.size()));
}

bool Space::makeAccesses(ArrayRef<std::pair<Value, Value>> outs) {
  // Over the root's loops first.
  llvm::SmallBitVector pinned(rootSizes.size());
  for (linalg::GenericOp op : ops) {
    OpInfo &i = info[op];
    for (OpOperand &operand : op->getOpOperands()) {
      i.operands.emplace_back();
      if (!isa<RankedTensorType>(operand.get().getType()))
        continue;
      AffineMap map = op.getMatchingIndexingMap(&operand).compose(i.loops);
      Value v = lookThrough(operand.get(), map);
      if (memory.contains(v)) {
        i.operands.back() = linearAccess(kernel, v, map);
        if (!i.operands.back())
          return fail("an index map that is not linear");
      } else if (!producer(v) && !v.getDefiningOp<linalg::FillOp>() &&
                 !v.getDefiningOp<tensor::EmptyOp>() && !matchPattern(v, m_Constant())) {
        return fail("an operand that is neither computed here nor in memory");
      }
    }
    for (AffineExpr expr : i.loops.getResults()) {
      Access index;
      index.offset = Dim::constant(kernel.getContext(), 0);
      index.coeffs.assign(rootSizes.size(), index.offset);
      if (!addLinear(index, expr, Dim::constant(kernel.getContext(), 1)))
        return fail("an index that is not linear");
      i.indices.push_back(index);
    }
    op.getBody()->walk([&](linalg::IndexOp index) {
      for (unsigned d = 0; d < rootSizes.size(); ++d)
        if (i.indices[index.getDim()].dependsOn(d))
          pinned.set(d);
    });
  }
  for (auto [value, tensor] : outs) {
    linalg::GenericOp op = producer(value);
    if (!op)
      return fail("a result that is not computed here");
    unsigned n = cast<OpResult>(value).getResultNumber();
    AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(n)).compose(info[op].loops);
    auto arg = dyn_cast<BlockArgument>(tensor);
    bool isStrided = arg && kernel.isStrided(arg.getArgNumber());
    if (isStrided && shapeOf(tensor) != shapeOf(value))
      return fail("a strided result of another shape");
    // A contiguous out may be another view of the same elements.
    std::optional<Access> access = linearAccess(kernel, isStrided ? tensor : value, map);
    if (access)
      access->tensor = tensor;
    if (!access)
      return fail("an index map that is not linear");
    outputs.push_back({value, *access, info[op].level});
  }
  for (Output &out : outputs) {
    // Strides of 0 say nothing where there are no elements.
    if (llvm::any_of(shapeOf(out.value), [](Dim d) { return d.isConstant(0); }))
      continue;
    bool inPass = llvm::any_of(pass.set_bits(), [&](int d) { return out.access.dependsOn(d); });
    for (unsigned d = 0; d < rootSizes.size(); ++d)
      if (!rootSizes[d].isConstant(1) && (!pass.test(d) || inPass) && !out.access.dependsOn(d))
        return fail("a result that does not span the nest");
  }

  // Then over dims that all accesses treat as one.
  SmallVector<Access *> all;
  for (auto &[op, i] : info)
    for (std::optional<Access> &access : i.operands)
      if (access)
        all.push_back(&*access);
  for (Output &out : outputs)
    all.push_back(&out.access);
  SmallVector<unsigned> inner; // the innermost root loop of each dim of the space
  for (unsigned d : order) {
    if (rootSizes[d].isConstant(1))
      continue;
    // What is reduced is counted in the order of the loops, not of the memory.
    bool merge = !dims.empty() && dims.back().pass == pass.test(d) &&
                 !(pass.test(d) && d < inner.back()) && !pinned.test(d) &&
                 !pinned.test(inner.back()) && llvm::all_of(all, [&](Access *a) {
                   return a->coeffs[inner.back()] == a->coeffs[d] * rootSizes[d];
                 });
    if (merge) {
      dims.back().size = dims.back().size * rootSizes[d];
      dims.back().loop = inner.back() = d;
    } else {
      dims.push_back({rootSizes[d], bool(pass.test(d)), d});
      inner.push_back(d);
    }
  }
  auto project = [&](Access &access) {
    SmallVector<Dim, 4> coeffs;
    for (unsigned d : inner)
      coeffs.push_back(access.coeffs[d]);
    access.coeffs = coeffs;
  };
  for (Access *access : all)
    project(*access);
  for (linalg::GenericOp op : ops) {
    OpInfo &i = info[op];
    for (Access &index : i.indices)
      project(index);
    i.deps.resize(dims.size());
    for (auto [operand, access] : llvm::zip(op->getOpOperands(), i.operands)) {
      bool isInit = op.isDpsInit(&operand);
      if (access && (!isInit || i.reduction || op.payloadUsesValueFromOperand(&operand))) {
        for (unsigned d = 0; d < dims.size(); ++d)
          if (access->dependsOn(d))
            i.deps.set(d);
      } else if (isa<RankedTensorType>(operand.get().getType())) {
        AffineMap map = op.getMatchingIndexingMap(&operand);
        if (linalg::GenericOp p = producer(lookThrough(operand.get(), map)))
          i.deps |= info[p].deps;
      }
    }
    op.getBody()->walk([&](linalg::IndexOp index) {
      for (unsigned d = 0; d < dims.size(); ++d)
        if (i.indices[index.getDim()].dependsOn(d))
          i.deps.set(d);
    });
    if (i.reduction)
      for (unsigned d = 0; d < dims.size(); ++d)
        if (dims[d].pass)
          i.deps.reset(d);
  }
  return true;
}
