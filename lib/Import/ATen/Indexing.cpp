//===- Indexing.cpp - ATen's gathers --------------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Call.h"

using namespace mlir;

namespace quern::aten {

static Results embedding(Call &call) {
  return {call.op("embedding", {call.tensor("weight"), call.tensor("indices")},
                  {call.attr("padding_idx", call.integer("padding_idx", -1)),
                   call.attr("scale_grad_by_freq", call.boolean("scale_grad_by_freq", false))})};
}

/// ATen does not look at the dtype of an index without elements; with open sizes it may be one.
static Value indexOf(Call &call) {
  Value index = call.tensor("index");
  if (!index)
    return {};
  RankedTensorType type = Call::typeOf(index);
  bool isEmpty = llvm::is_contained(type.getShape(), 0);
  bool mayBeEmpty = !type.hasStaticShape() && isIntegral(type.getElementType());
  if ((isEmpty || mayBeEmpty) && !type.getElementType().isSignlessInteger(32))
    return call.convert(index, IntegerType::get(call.getContext(), 64));
  return index;
}

static Results gather(Call &call) {
  return {call.op("gather", {call.tensor("self"), indexOf(call)},
                  {call.attr("dim", call.integer("dim", 0))})};
}

static Results indexSelect(Call &call) {
  return {call.op("index_select", {call.tensor("self"), call.tensor("index")},
                  {call.attr("dim", call.integer("dim", 0))})};
}

llvm::ArrayRef<Overload> getIndexingOverloads() {
  static const Overload table[] = {
      {"embedding.default", embedding},
      {"gather.default", gather},
      {"index_select.default", indexSelect},
  };
  return table;
}

} // namespace quern::aten
