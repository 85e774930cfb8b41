//===- OpStatus.cpp - What is there of each op ----------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Dialect/Quern/IR/OpStatus.h"
#include "quern/Dialect/Quern/IR/Quern.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace quern {

/// Which operands have a gradient: yes for all, or why not.
static std::string derivativeStatus(const OpRecord &record) {
  if (record.operands.empty())
    return "no operand";
  std::string exceptions;
  unsigned none = 0;
  StringRef reason;
  for (const OperandRecord &operand : record.operands) {
    if (operand.derivative != DerivativeKind::NonDifferentiable)
      continue;
    ++none;
    reason = operand.nonDifferentiable;
    exceptions += (exceptions.empty() ? ", not of " : ", ") + operand.name.str();
  }
  return none == record.operands.size() ? reason.str() : "yes" + exceptions;
}

static std::string inPlaceStatus(const OpRecord &record) {
  if (!record.notInPlace.empty())
    return record.notInPlace.str();
  SmallVector<StringRef> names;
  for (const OperandRecord &operand : record.operands)
    if (operand.mayOverwrite)
      names.push_back(operand.name);
  return llvm::join(names, ", ");
}

void printOpStatus(raw_ostream &os) {
  MLIRContext ctx(MLIRContext::Threading::DISABLED);
  ctx.loadDialect<QuernDialect>(); // fills the registry
  os << "# Coverage\n\n"
        "Each op has types, checks, symbolic sizes and a destination from its meta function, and "
        "CPU "
        "and CUDA code from its body.\n\n"
        "| op | family | kind | checks | in place | gradient | body | tests |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- |\n";
  static constexpr StringLiteral kinds[] = {"pointwise",   "reduction", "row-wise", "contraction",
                                            "convolution", "index map", "reshape",  "gather",
                                            "scatter",     "creation"};
  for (const OpRecord *record : getOpRecords())
    os << llvm::formatv("| {0} | {1} | {2} | {3} | {4} | {5} | {6} | {7} |\n", record->mnemonic,
                        record->family, kinds[unsigned(record->fusion)], record->constraints.size(),
                        inPlaceStatus(*record), derivativeStatus(*record),
                        record->scalar ? "scalar" : "lowering", record->samples.size());
}

} // namespace quern
