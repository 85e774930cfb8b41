//===- Diagnostics.cpp - Diagnostics of passes as errors ------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Compiler/Diagnostics.h"

#include "mlir/IR/Location.h"
#include "quern/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace quern {

// `file:3:7`, or the name of the node that the op came from; empty when unknown.
static std::string source(Location loc) {
  std::string text;
  loc->walk([&](Location part) {
    llvm::raw_string_ostream os(text);
    if (auto file = dyn_cast<FileLineColLoc>(part))
      os << file.getFilename().getValue() << ":" << file.getLine() << ":" << file.getColumn();
    else if (auto name = dyn_cast<NameLoc>(part))
      os << "'" << name.getName().getValue() << "'";
    return text.empty() ? WalkResult::advance() : WalkResult::interrupt();
  });
  return text;
}

static void print(llvm::raw_ostream &os, Diagnostic &diagnostic) {
  std::string from = source(diagnostic.getLocation());
  os << diagnostic.str() << (from.empty() ? "" : "\n  at " + from);
  for (Diagnostic &note : diagnostic.getNotes()) {
    os << "\n  note: " << note.str();
    if (std::string at = source(note.getLocation()); !at.empty() && at != from)
      os << " (" << at << ")";
  }
}

DiagnosticCollector::DiagnosticCollector(MLIRContext *ctx,
                                         std::function<void(llvm::StringRef)> onRemark)
    : handler(ctx, [this, onRemark = std::move(onRemark)](Diagnostic &diagnostic) {
        std::string line;
        llvm::raw_string_ostream os(line);
        print(os, diagnostic);
        if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
          text += (text.empty() ? "" : "\n") + line;
        else if (onRemark)
          onRemark(line);
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
