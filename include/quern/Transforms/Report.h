//===- Report.h - Remarks that passes make on request -----------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
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

} // namespace quern
#endif // QUERN_TRANSFORMS_REPORT_H
