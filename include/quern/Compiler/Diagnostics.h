//===- Diagnostics.h - Diagnostics of passes as errors ----------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_COMPILER_DIAGNOSTICS_H
#define QUERN_COMPILER_DIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/Error.h"

#include <functional>

namespace quern {

/// Collects what a context diagnoses while it lives.
class DiagnosticCollector {
public:
  /// `onRemark` gets remarks and warnings, as lines; may be empty.
  DiagnosticCollector(mlir::MLIRContext *ctx, std::function<void(llvm::StringRef)> onRemark);

  /// The errors so far as one error, whose status the first one's prefix tells: an
  /// error of an op without prefix is the user's (`invalid:`), none at all is internal.
  llvm::Error take(const llvm::Twine &what);

private:
  std::string text;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace quern

#endif // QUERN_COMPILER_DIAGNOSTICS_H
