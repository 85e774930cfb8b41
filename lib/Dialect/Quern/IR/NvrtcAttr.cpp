//===- NvrtcAttr.cpp - Device code by NVRTC -------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Dialect/Quern/IR/NvrtcAttr.h"

using namespace mlir;

namespace quern {

NvrtcAttr NvrtcAttr::get(MLIRContext *ctx, StringRef chip) { return Base::get(ctx, chip); }

StringRef NvrtcAttr::getChip() const { return getImpl()->chip; }

Attribute parseNvrtcAttr(AsmParser &parser) {
  std::string chip;
  if (parser.parseLess() || parser.parseKeyword("chip") || parser.parseEqual())
    return {};
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseString(&chip) || parser.parseGreater())
    return {};
  StringRef number = chip;
  if (!(number.consume_front("sm_") || number.consume_front("compute_")) || number.empty() ||
      !llvm::isDigit(number.front())) {
    parser.emitError(loc) << "expected a chip such as sm_90, got '" << chip << "'";
    return {};
  }
  return NvrtcAttr::get(parser.getContext(), chip);
}

void printNvrtcAttr(NvrtcAttr attr, AsmPrinter &printer) {
  printer << "<chip = \"" << attr.getChip() << "\">";
}

} // namespace quern
