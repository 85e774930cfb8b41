//===- Diagnostics.cpp - Diagnostics of passes as errors ------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Compiler/Diagnostics.h"

#include "mlir/IR/Location.h"
#include "quern/Support/Error.h"
#include "quern/Transforms/Report.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace quern {

static void print(llvm::raw_ostream &os, Diagnostic &diagnostic) {
  std::string from = sourceText(diagnostic.getLocation());
  os << diagnostic.str() << (from.empty() ? "" : "\n  at " + from);
  for (Diagnostic &note : diagnostic.getNotes()) {
    os << "\n  note: " << note.str();
    if (std::string at = sourceText(note.getLocation()); !at.empty() && at != from)
      os << " (" << at << ")";
  }
}

DiagnosticCollector::DiagnosticCollector(MLIRContext *ctx,
                                         std::function<void(llvm::StringRef)> onRemark)
    : handler(ctx, [this, onRemark = std::move(onRemark)](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() == DiagnosticSeverity::Error) {
          llvm::raw_string_ostream os(text);
          print(os << (text.empty() ? "" : "\n"), diagnostic);
        } else if (onRemark) {
          onRemark(remarkLine(diagnostic));
        }
        return success();
      }) {}

llvm::Error DiagnosticCollector::take(const llvm::Twine &what) {
  std::string all = std::move(text);
  text.clear();
  if (all.empty())
    return llvm::make_error<StatusError>(QUERN_INTERNAL, what + " failed without a reason");
  auto [status, rest] = splitStatus(all);
  return llvm::make_error<StatusError>(status, rest);
}

} // namespace quern
