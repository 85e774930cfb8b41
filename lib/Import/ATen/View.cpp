//===- View.cpp - ATen's views --------------------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Call.h"
#include "llvm/ADT/Sequence.h"

using namespace mlir;

namespace quern::aten {

static Results viewAs(Call &call, StringRef argument) {
  SmallVector<int64_t> sizes = call.integers(argument);
  return {call.op("view", {call.tensor("self")}, {call.sizesAttr("size", sizes)})};
}
static Results view(Call &call) { return viewAs(call, "size"); }
static Results reshape(Call &call) { return viewAs(call, "shape"); }

static Results permute(Call &call) {
  SmallVector<int64_t> dims = call.integers("dims");
  return {call.op("permute", {call.tensor("self")}, {call.attr("dims", ArrayRef<int64_t>(dims))})};
}

/// A permutation that exchanges two dims. A scalar counts as rank 1.
static Results exchange(Call &call, Value self, int64_t dim0, int64_t dim1) {
  if (call.failed())
    return {};
  int64_t rank = Call::rankOf(self);
  int64_t range = std::max<int64_t>(rank, 1);
  for (int64_t *dim : {&dim0, &dim1}) {
    if (*dim < -range || *dim >= range)
      return {call.fail("expected a dim from " + Twine(-range) + " to " + Twine(range - 1) +
                        ", got " + Twine(*dim))};
    if (*dim < 0)
      *dim += range;
  }
  auto dims = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  if (rank > 1)
    std::swap(dims[dim0], dims[dim1]);
  return {call.op("permute", {self}, {call.attr("dims", ArrayRef<int64_t>(dims))})};
}

static Results transpose(Call &call) {
  return exchange(call, call.tensor("self"), call.integer("dim0", 0), call.integer("dim1", 0));
}

static Results t(Call &call) {
  Value self = call.tensor("self");
  if (call.failed())
    return {};
  int64_t rank = Call::rankOf(self);
  if (rank > 2)
    return {call.fail("expected self to have at most 2 dims, got " + Twine(rank))};
  return exchange(call, self, 0, rank == 2 ? 1 : 0);
}

static Results squeezeDims(Call &call, ArrayRef<int64_t> dims) {
  return {call.op("squeeze", {call.tensor("self")}, {call.attr("dim", dims)})};
}
static Results squeezeAll(Call &call) { return squeezeDims(call, {}); }
static Results squeezeDim(Call &call) { return squeezeDims(call, {call.integer("dim", 0)}); }

/// An empty list is no dim here; to the op it means all.
static Results squeezeList(Call &call) {
  SmallVector<int64_t> dims = call.integers("dim");
  if (dims.empty())
    return {call.tensor("self")};
  return squeezeDims(call, dims);
}

static Results unsqueeze(Call &call) {
  return {call.op("unsqueeze", {call.tensor("self")}, {call.attr("dim", call.integer("dim", 0))})};
}

static Results expand(Call &call) {
  SmallVector<int64_t> sizes = call.integers("size");
  return {call.op("expand", {call.tensor("self")}, {call.sizesAttr("size", sizes)})};
}

static Results slice(Call &call) {
  SmallVector<NamedAttribute> attrs = {call.attr("dim", call.integer("dim", 0)),
                                       call.attr("step", call.integer("step", 1))};
  for (StringRef bound : {"start", "end"})
    if (call.has(bound))
      attrs.push_back(call.sizeAttr(bound, call.integer(bound, 0)));
  return {call.op("slice", {call.tensor("self")}, attrs)};
}

static Results select(Call &call) {
  return {call.op("select", {call.tensor("self")},
                  {call.attr("dim", call.integer("dim", 0)),
                   call.sizeAttr("index", call.integer("index", 0))})};
}

/// The common dtype of all. Tensors of shape [0] fit any others (an old rule of ATen's).
static Results cat(Call &call) {
  SmallVector<Value> tensors = call.tensors("tensors");
  if (call.failed())
    return {};
  if (tensors.empty())
    return {call.fail("expected at least one tensor")};
  SmallVector<PromotionOperand> operands;
  for (Value tensor : tensors)
    operands.push_back({Call::dtypeOf(tensor)});
  Type dtype = promote(operands);
  if (!dtype)
    return {call.fail("no dtype holds all tensors")};
  auto isLegacyEmpty = [](Value tensor) {
    return Call::typeOf(tensor).getShape() == ArrayRef<int64_t>{0};
  };
  OperandGroup group;
  bool allEmpty = llvm::all_of(tensors, isLegacyEmpty);
  for (Value tensor : tensors)
    if (allEmpty || !isLegacyEmpty(tensor))
      group.push_back(call.convert(tensor, dtype));
  return {call.op("cat", {group}, {call.attr("dim", call.integer("dim", 0))})};
}

llvm::ArrayRef<Overload> getViewOverloads() {
  static const Overload table[] = {
      {"view.default", view},
      {"reshape.default", reshape},
      {"permute.default", permute},
      {"transpose.int", transpose},
      {"t.default", t},
      {"squeeze.dim", squeezeDim},
      {"squeeze.dims", squeezeList},
      {"squeeze.default", squeezeAll},
      {"unsqueeze.default", unsqueeze},
      {"expand.default", expand},
      {"slice.Tensor", slice},
      {"select.int", select},
      {"cat.default", cat},
  };
  return table;
}

} // namespace quern::aten
