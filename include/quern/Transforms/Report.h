//===- Report.h - Remarks that passes make on request -----------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A remark is one line: `model.mlir:17:8: remark: 'quern.add' 'tensor<4xf32>': why`.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_TRANSFORMS_REPORT_H
#define QUERN_TRANSFORMS_REPORT_H

#include "mlir/IR/Diagnostics.h"
#include "quern/Dialect/Kernel/IR/Kernel.h"

namespace quern {

/// Whether passes say what they chose and what they refused, as remarks (`--quern-report`).
inline bool isReporting(mlir::Operation *op) {
  auto *dialect = op->getContext()->getLoadedDialect<kernel::KernelDialect>();
  return dialect && dialect->reporting;
}

/// A remark about `op` that says which op it is (its name, the symbol that it is or launches, its
/// result types); what was chosen or refused follows. `loc`: where, if not at the op.
mlir::InFlightDiagnostic emitReport(mlir::Operation *op,
                                    std::optional<mlir::Location> loc = std::nullopt);

/// Where something came from: `file:3:7`, or the quoted name of a model's node; empty when unknown.
std::string sourceText(mlir::Location loc);

/// A remark or warning as one line: source, severity, text.
std::string remarkLine(mlir::Diagnostic &diagnostic);

} // namespace quern
#endif // QUERN_TRANSFORMS_REPORT_H
