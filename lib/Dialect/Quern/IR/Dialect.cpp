//===- Dialect.cpp - The quern dialect ------------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/GPU/IR/CompilationInterfaces.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Transforms/InliningUtils.h"
#include "quern/Dialect/Quern/IR/NvrtcAttr.h"
#include "quern/Dialect/Quern/IR/Quern.h"
#include "quern/Shape/DimStorage.h"
#include "llvm/ADT/StringMap.h"
#include <mutex>

#include "quern/Dialect/Quern/IR/QuernDialect.cpp.inc"
#include "quern/Dialect/Quern/IR/QuernInterfaces.cpp.inc"

using namespace mlir;

namespace quern {

namespace {
/// All ops may be inlined. Names of sizes must not be: see quern-strip-dims.
struct QuernInliner : DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;
  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const override { return true; }
};
} // namespace

void QuernDialect::initialize() {
  addInterfaces<QuernInliner>();
  addAttributes<DimAttr, DimsAttr, RangeAttr, NvrtcAttr>();
  declarePromisedInterface<gpu::TargetAttrInterface, NvrtcAttr>();
#define QUERN_FAMILY(Family) add##Family##Ops();
#include "quern/Dialect/Quern/IR/Families.inc"
}

Attribute QuernDialect::parseAttribute(DialectAsmParser &parser, Type) const {
  SMLoc loc = parser.getCurrentLocation();
  StringRef mnemonic;
  if (parser.parseKeyword(&mnemonic))
    return {};
  if (mnemonic == DimAttr::getMnemonic())
    return parseDimAttr(parser);
  if (mnemonic == DimsAttr::getMnemonic())
    return parseDimsAttr(parser);
  if (mnemonic == RangeAttr::getMnemonic())
    return parseRangeAttr(parser);
  if (mnemonic == NvrtcAttr::getMnemonic())
    return parseNvrtcAttr(parser);
  parser.emitError(loc) << "unknown attribute #quern." << mnemonic;
  return {};
}

void QuernDialect::printAttribute(Attribute attr, DialectAsmPrinter &printer) const {
  if (auto dims = dyn_cast<DimsAttr>(attr)) {
    printer << DimsAttr::getMnemonic();
    printDimsAttr(dims, printer);
    return;
  }
  if (auto range = dyn_cast<RangeAttr>(attr)) {
    printer << RangeAttr::getMnemonic();
    printRangeAttr(range, printer);
    return;
  }
  if (auto nvrtc = dyn_cast<NvrtcAttr>(attr)) {
    printer << NvrtcAttr::getMnemonic();
    printNvrtcAttr(nvrtc, printer);
    return;
  }
  printer << DimAttr::getMnemonic() << "<" << Dim(cast<DimAttr>(attr)) << ">";
}

//===----------------------------------------------------------------------===//
// The registry: filled once, by the first context that loads the dialect.
//===----------------------------------------------------------------------===//

namespace {
struct Registry {
  std::mutex mutex;
  std::vector<const OpRecord *> records;
  llvm::StringMap<const OpRecord *> byName;
};
Registry &registry() {
  static Registry instance;
  return instance;
}
} // namespace

void registerOpRecords(ArrayRef<const OpRecord *> records) {
  Registry &r = registry();
  std::lock_guard<std::mutex> lock(r.mutex);
  for (const OpRecord *record : records)
    if (r.byName.insert({record->mnemonic, record}).second)
      r.records.push_back(record);
}

ArrayRef<const OpRecord *> getOpRecords() { return registry().records; }

const OpRecord *lookupOpRecord(StringRef name) {
  name.consume_front("quern.");
  Registry &r = registry();
  std::lock_guard<std::mutex> lock(r.mutex);
  return r.byName.lookup(name);
}

const OpRecord *getOpRecord(Operation *op) {
  if (auto structured = dyn_cast<StructuredOp>(op))
    return &structured.getOpRecord();
  return nullptr;
}

} // namespace quern
