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

/// ATen also takes indices of u8.
static Value indexOf(Call &call) {
  Value index = call.tensor("index");
  if (index && Call::dtypeOf(index).isUnsignedInteger(8))
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
