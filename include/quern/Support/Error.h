//===- Error.h - Errors with the exit code that they mean -------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The kinds of failure that users meet, each with its prefix and its exit code
/// (docs: one table for all tools). Texts are lower case, without a final dot,
/// and carry no prefix of their own: `invalidInput("m.onnx: no graph")` prints
/// `error: invalid: m.onnx: no graph`.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_SUPPORT_ERROR_H
#define QUERN_SUPPORT_ERROR_H

#include "quern-c/Runtime.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"

namespace quern {

/// An error that knows its `quern_status`.
class StatusError : public llvm::ErrorInfo<StatusError> {
public:
  static char ID;
  StatusError(quern_status status, const llvm::Twine &text) : code(status), text(text.str()) {}
  quern_status status() const { return code; }
  llvm::StringRef detail() const { return text; } ///< without the prefix
  /// `invalid: `, `unsupported: `, `internal: ` or nothing, then the text.
  void log(llvm::raw_ostream &os) const override;
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }

private:
  quern_status code;
  std::string text;
};

/// The user's mistake: exit code 3.
llvm::Error invalidInput(const llvm::Twine &text);
/// Legal, but not handled yet: exit code 2.
llvm::Error unsupported(const llvm::Twine &text);
/// A wrong result or a run-time error: exit code 1.
llvm::Error runtimeError(const llvm::Twine &text);

/// The same error with `context` in front of its text.
llvm::Error withContext(llvm::Error error, const llvm::Twine &context);

/// Status of an error: its own, or QUERN_ERROR for errors of other classes. The
/// text, with its prefix, goes to `message`. Consumes the error.
quern_status takeError(llvm::Error error, std::string &message);
/// The status that a diagnostic's text tells by its prefix, and the text without it. Without one it
/// is about the input: QUERN_INVALID.
std::pair<quern_status, std::string> splitStatus(llvm::StringRef text);
/// Prints `error: <text>` on stderr and answers the exit code.
int reportError(llvm::Error error);

} // namespace quern
#endif // QUERN_SUPPORT_ERROR_H
