//===- DerivativeBuilder.cpp - What derivative rules write to -------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Dialect/Quern/IR/DerivativeBuilder.h"
#include "quern/Dialect/Quern/IR/Quern.h"
#include "llvm/ADT/BitVector.h"

using namespace mlir;

namespace quern {

Term::Term(TypedAttr attr) {
  if (auto f = dyn_cast<FloatAttr>(attr))
    number = f.getValueAsDouble();
  else
    number = double(cast<IntegerAttr>(attr).getValue().getSExtValue());
}

DerivativeBuilder::DerivativeBuilder(OpBuilder &builder, Operation *op, ArrayRef<Value> grads,
                                     llvm::BitVector wanted)
    : b(builder), op(op), grads(grads), wanted(std::move(wanted)), gradients(op->getNumOperands()) {
}

OperandRange DerivativeBuilder::group(unsigned i) const {
  return cast<StructuredOp>(op).getOperandGroup(i);
}

bool DerivativeBuilder::wants(unsigned i) const {
  for (unsigned element = 0; element < group(i).size(); ++element)
    if (wants(i, element))
      return true;
  return false;
}
bool DerivativeBuilder::wants(unsigned i, unsigned element) const {
  OperandRange values = group(i);
  return element < values.size() && wanted[values.getBeginOperandIndex() + element];
}

Value DerivativeBuilder::grad(unsigned i) {
  if (!grads[i]) {
    auto type = cast<RankedTensorType>(op->getResult(i).getType());
    grads[i] = full(getDims(type), 0, type.getElementType());
  }
  return grads[i];
}

void DerivativeBuilder::set(unsigned i, Term term, unsigned element) {
  if (hasFailed)
    return;
  OperandRange values = group(i);
  Value operand = values[element];
  auto type = cast<RankedTensorType>(operand.getType());
  Value value = materialize(term, type.getElementType());
  SmallVector<Dim> have = shape(value), want = getDims(type);
  // A gradient of fewer elements (a number, a row) is a broadcast; of more, a sum.
  Facts facts;
  bool fewer = have.size() < want.size(), same = have.size() == want.size();
  for (size_t k = 0; k < std::min(have.size(), want.size()); ++k) {
    Dim h = have[have.size() - 1 - k], w = want[want.size() - 1 - k];
    bool equal = facts.decide(Condition::eq(h, w)) == Truth::True;
    same &= equal;
    fewer |= !equal && h.isConstant(1);
  }
  // Sizes of 1 may stand behind dims that the operand does not have: those go first.
  if (fewer && have.size() > want.size())
    value = create("sum_to_size", {value},
                   {b.getNamedAttr("size", attr(ArrayRef<Dim>(have).take_back(want.size())))});
  if (!same)
    value = create(fewer ? "expand" : "sum_to_size", {value}, {b.getNamedAttr("size", attr(want))});
  unsigned flat = values.getBeginOperandIndex() + element;
  gradients[flat] = value;
}

Value DerivativeBuilder::create(StringRef mnemonic, ArrayRef<OperandGroup> operands,
                                ArrayRef<NamedAttribute> attrs, unsigned result) {
  if (hasFailed)
    return op->getResult(0);
  FailureOr<Operation *> created = tryCreate(b, op->getLoc(), mnemonic, operands, attrs);
  if (mlir::failed(created)) {
    op->emitError("internal: the derivative makes an op that is refused");
    hasFailed = true;
    return op->getResult(0);
  }
  // A view to the same size, a product with 1: rules need not look for these.
  SmallVector<OpFoldResult, 1> folded;
  if ((*created)->getNumResults() == 1 && succeeded((*created)->fold(folded)) && folded.size() == 1)
    if (auto value = dyn_cast<Value>(folded[0])) {
      (*created)->erase();
      return value;
    }
  return (*created)->getResult(result);
}

Term DerivativeBuilder::call(StringRef mnemonic, ArrayRef<Term> operands,
                             ArrayRef<std::pair<StringRef, Attribute>> attrs) {
  // Numbers take the dtype of the first tensor that holds numbers.
  Type dtype;
  for (const Term &t : operands)
    if (!t.isNumber()) {
      Type element = cast<RankedTensorType>(t.value.getType()).getElementType();
      if (!dtype || dtype.isInteger(1))
        dtype = element;
    }
  if (!dtype)
    dtype = cast<RankedTensorType>(op->getResult(0).getType()).getElementType();
  SmallVector<OperandGroup> groups;
  for (const Term &t : operands)
    groups.push_back(materialize(t, dtype));
  SmallVector<NamedAttribute> named;
  for (auto [name, value] : attrs)
    if (value)
      named.push_back(b.getNamedAttr(name, value));
  return Term(create(mnemonic, groups, named));
}

Attribute DerivativeBuilder::attr(int64_t v) { return b.getI64IntegerAttr(v); }
Attribute DerivativeBuilder::attr(bool v) { return b.getBoolAttr(v); }
Attribute DerivativeBuilder::attr(double v) { return b.getF64FloatAttr(v); }
Attribute DerivativeBuilder::attr(StringRef v) { return b.getStringAttr(v); }
Attribute DerivativeBuilder::attr(Type v) { return TypeAttr::get(v); }
Attribute DerivativeBuilder::attr(ArrayRef<int64_t> v) { return b.getDenseI64ArrayAttr(v); }
Attribute DerivativeBuilder::attr(Dim v) { return v.getAttr(); }
Attribute DerivativeBuilder::attr(ArrayRef<Dim> v) { return DimsAttr::get(b.getContext(), v); }

SmallVector<Dim> DerivativeBuilder::shape(Value v) {
  return getDims(cast<RankedTensorType>(v.getType()));
}
Type DerivativeBuilder::dtype(Value v) {
  return cast<RankedTensorType>(v.getType()).getElementType();
}

Term DerivativeBuilder::count(Value v, ArrayRef<int64_t> dims) {
  SmallVector<Dim> sizes = shape(v), chosen;
  int64_t rank = sizes.size();
  if (dims.empty())
    chosen = sizes;
  else if (rank)
    for (int64_t d : dims)
      chosen.push_back(sizes[d < 0 ? d + rank : d]);
  Dim n = Dim::product(b.getContext(), chosen);
  if (n.isConstant())
    return Term(double(n.getConstant()));
  return Term(create("dim_value", {},
                     {b.getNamedAttr("value", attr(n)), b.getNamedAttr("dtype", attr(dtype(v)))}));
}

Value DerivativeBuilder::full(ArrayRef<Dim> size, double value, Type dtype) {
  Attribute number = isa<FloatType>(dtype) ? Attribute(b.getF64FloatAttr(value))
                                           : Attribute(b.getI64IntegerAttr(int64_t(value)));
  return create("full", {},
                {b.getNamedAttr("size", attr(size)), b.getNamedAttr("fill_value", number),
                 b.getNamedAttr("dtype", attr(dtype))});
}

Value DerivativeBuilder::materialize(Term t, Type dtype) {
  return t.isNumber() ? full({}, t.number, dtype) : t.value;
}

} // namespace quern
