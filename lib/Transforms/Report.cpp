//===- Report.cpp - Remarks that passes make on request -------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Transforms/Report.h"

#include "mlir/IR/SymbolTable.h"

using namespace mlir;

namespace quern {

InFlightDiagnostic emitReport(Operation *op, std::optional<Location> loc) {
  // Not op->emitRemark(): it would append the op's whole text.
  InFlightDiagnostic diagnostic = emitRemark(loc.value_or(op->getLoc()));
  diagnostic << "'" << op->getName() << "'";
  if (auto symbol = dyn_cast<SymbolOpInterface>(op))
    diagnostic << " @" << symbol.getName();
  else if (auto launch = dyn_cast<kernel::LaunchOp>(op))
    diagnostic << " @" << launch.getKernel();
  for (auto [i, type] : llvm::enumerate(op->getResultTypes()))
    diagnostic << (i ? ", " : " ") << type;
  diagnostic << ": ";
  return diagnostic;
}

std::string sourceText(Location loc) {
  std::string text;
  loc->walk([&](Location part) {
    llvm::raw_string_ostream os(text);
    auto file = dyn_cast<FileLineColLoc>(part);
    if (file)
      os << file.getFilename().getValue();
    if (file && file.getLine()) // the module itself stands at no line
      os << ":" << file.getLine() << ":" << file.getColumn();
    else if (auto name = dyn_cast<NameLoc>(part))
      os << "'" << name.getName().getValue() << "'";
    return text.empty() ? WalkResult::advance() : WalkResult::interrupt();
  });
  return text;
}

std::string remarkLine(Diagnostic &diagnostic) {
  std::string from = sourceText(diagnostic.getLocation());
  bool isRemark = diagnostic.getSeverity() == DiagnosticSeverity::Remark;
  return (from.empty() ? from : from + ": ") + (isRemark ? "remark: " : "warning: ") +
         diagnostic.str();
}

} // namespace quern
