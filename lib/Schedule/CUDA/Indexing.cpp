//===- Indexing.cpp - Index arithmetic of device kernels ------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Indexing.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace quern::cuda {

Indexing::Indexing(OpBuilder &builder, Operation *anchor, llvm::DenseMap<Dim, Value> known)
    : builder(builder), entry(anchor), loc(UnknownLoc::get(builder.getContext())),
      sizeValues(std::move(known)) {}

Value Indexing::constant(int64_t value) {
  Value &known = constants[value];
  if (!known)
    known = arith::ConstantIndexOp::create(entry, loc, value);
  return known;
}

Value Indexing::size(Dim dim) {
  if (dim.isConstant())
    return constant(dim.getConstant());
  if (Value known = sizeValues.lookup(dim))
    return known;
  return sizeValues[dim] = emitDim(entry, loc, dim, [&](StringRef name) {
           return sizeValues.lookup(Dim::symbol(builder.getContext(), name));
         });
}

static std::optional<int64_t> constantOf(Value value) {
  APInt number;
  if (matchPattern(value, m_ConstantInt(&number)))
    return number.getSExtValue();
  return std::nullopt;
}

Value Indexing::add(Value a, Value b) {
  std::optional<int64_t> x = constantOf(a), y = constantOf(b);
  if (x && y)
    return constant(*x + *y);
  if (x && *x == 0)
    return b;
  if (y && *y == 0)
    return a;
  return arith::AddIOp::create(builder, loc, a, b);
}

Value Indexing::sub(Value a, Value b) {
  std::optional<int64_t> x = constantOf(a), y = constantOf(b);
  if (x && y)
    return constant(*x - *y);
  if (y && *y == 0)
    return a;
  return arith::SubIOp::create(builder, loc, a, b);
}

Value Indexing::mul(Value a, Value b) {
  std::optional<int64_t> x = constantOf(a), y = constantOf(b);
  if (x && y)
    return constant(*x * *y);
  if ((x && *x == 0) || (y && *y == 1))
    return a;
  if ((y && *y == 0) || (x && *x == 1))
    return b;
  return arith::MulIOp::create(builder, loc, a, b);
}

Value Indexing::div(Value a, Value b) {
  std::optional<int64_t> x = constantOf(a), y = constantOf(b);
  if (y && *y == 1)
    return a;
  if (x && y && *y > 0)
    return constant(*x / *y);
  return arith::DivUIOp::create(builder, loc, a, b);
}

Value Indexing::rem(Value a, Value b) {
  std::optional<int64_t> x = constantOf(a), y = constantOf(b);
  if (y && *y == 1)
    return constant(0);
  if (x && y && *y > 0)
    return constant(*x % *y);
  return arith::RemUIOp::create(builder, loc, a, b);
}

bool Indexing::isAvailable(Value value) const {
  Block *block = value.getParentBlock();
  for (Block *here = builder.getInsertionBlock(); here;
       here = here->getParentOp() ? here->getParentOp()->getBlock() : nullptr)
    if (here == block)
      return true;
  return false;
}

SmallVector<Value> Indexing::delinearize(Value linear, ArrayRef<Dim> sizes) {
  SmallVector<Dim> real;
  for (Dim d : sizes)
    if (!d.isConstant(1))
      real.push_back(d);
  auto place = [&](ArrayRef<Value> parts) {
    SmallVector<Value> result;
    unsigned next = 0;
    for (Dim d : sizes)
      result.push_back(d.isConstant(1) ? constant(0) : parts[next++]);
    return result;
  };
  if (real.size() <= 1)
    return place(linear);
  for (const Split &split : splits)
    if (split.linear == linear && split.sizes == real &&
        llvm::all_of(split.parts, [&](Value part) { return isAvailable(part); }))
      return place(split.parts);

  SmallVector<Value> parts(real.size());
  Value rest = linear;
  for (size_t i = real.size(); i-- > 1;) {
    parts[i] = rem(rest, size(real[i]));
    rest = div(rest, size(real[i]));
  }
  parts[0] = rest;
  for (auto [i, part] : llvm::enumerate(parts))
    partOf[part].push_back({unsigned(splits.size()), unsigned(i)});
  splits.push_back({linear, real, parts});
  return place(parts);
}

SmallVector<Indexing::Term> Indexing::terms(ArrayRef<Value> indices, ArrayRef<Dim> sizes) {
  SmallVector<Term> real;
  for (auto [index, size] : llvm::zip(indices, sizes))
    if (!size.isConstant(1))
      real.push_back({index, size});

  // Parts of one split that stand together in order are one digit again.
  SmallVector<Term> result;
  for (size_t at = 0; at < real.size();) {
    const Split *whole = nullptr;
    for (Part part : partOf.lookup(real[at].index)) {
      const Split &split = splits[part.split];
      size_t count = split.parts.size();
      if (part.position != 0 || at + count > real.size())
        continue;
      bool same = true;
      for (size_t i = 0; i < count; ++i)
        same &= real[at + i].index == split.parts[i] && real[at + i].size == split.sizes[i];
      if (same)
        whole = &split;
    }
    if (!whole) {
      result.push_back(real[at++]);
      continue;
    }
    result.push_back({whole->linear, Dim::product(sizes.front().getContext(), whole->sizes)});
    at += whole->parts.size();
  }
  return result;
}

Value Indexing::join(ArrayRef<Term> terms) {
  if (terms.empty())
    return constant(0);
  if (terms.size() == 1)
    return terms.front().index;
  auto same = [](const Term &a, const Term &b) { return a.index == b.index && a.size == b.size; };
  for (const Joined &joined : joins)
    if (llvm::equal(joined.terms, terms, same) && isAvailable(joined.value))
      return joined.value;
  Value linear = terms.front().index;
  for (const Term &term : terms.drop_front())
    linear = add(mul(linear, size(term.size)), term.index);
  joins.push_back({SmallVector<Term>(terms), linear});
  return linear;
}

SmallVector<Value> Indexing::reshape(ArrayRef<Value> indices, ArrayRef<Dim> from,
                                     ArrayRef<Dim> to) {
  // The shortest groups of dims with equal products: most dims pass through.
  SmallVector<Value> result;
  if (to.empty())
    return result;
  MLIRContext *context = to.front().getContext();
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    size_t beginFrom = i, beginTo = j;
    size_t endFrom = from.size(), endTo = to.size();
    for (size_t a = beginFrom + 1; a <= from.size() && endFrom == from.size(); ++a)
      for (size_t b = beginTo + 1; b <= to.size(); ++b)
        if (Dim::product(context, from.slice(beginFrom, a - beginFrom)) ==
            Dim::product(context, to.slice(beginTo, b - beginTo))) {
          // The last group takes what is left: trailing dims of size 1.
          if (a == from.size() || b == to.size())
            break;
          endFrom = a, endTo = b;
          break;
        }
    Value linear = linearize(indices.slice(beginFrom, endFrom - beginFrom),
                             from.slice(beginFrom, endFrom - beginFrom));
    llvm::append_range(result, delinearize(linear, to.slice(beginTo, endTo - beginTo)));
    i = endFrom, j = endTo;
  }
  return result;
}

Value Indexing::apply(AffineExpr expr, ArrayRef<Value> dims) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return dims[dim.getPosition()];
  if (auto number = dyn_cast<AffineConstantExpr>(expr))
    return constant(number.getValue());
  auto binary = cast<AffineBinaryOpExpr>(expr);
  Value a = apply(binary.getLHS(), dims), b = apply(binary.getRHS(), dims);
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return add(a, b);
  case AffineExprKind::Mul:
    return mul(a, b);
  case AffineExprKind::FloorDiv:
    return arith::FloorDivSIOp::create(builder, loc, a, b);
  case AffineExprKind::CeilDiv:
    return arith::CeilDivSIOp::create(builder, loc, a, b);
  default: { // Mod: never negative
    Value quotient = arith::FloorDivSIOp::create(builder, loc, a, b);
    return arith::SubIOp::create(builder, loc, a, mul(quotient, b));
  }
  }
}

SmallVector<Value> Indexing::sources(Value index) const {
  for (const Joined &joined : joins)
    if (joined.value == index) {
      SmallVector<Value> result;
      for (const Term &term : joined.terms)
        llvm::append_range(result, sources(term.index));
      return result;
    }
  auto part = partOf.find(index);
  if (part != partOf.end() && !part->second.empty())
    return sources(splits[part->second.front().split].linear);
  return {index};
}

} // namespace quern::cuda
