//===- Error.cpp - Errors with the exit code that they mean ---------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace quern {

char StatusError::ID = 0;

static StringRef prefixOf(quern_status status) {
  switch (status) {
  case QUERN_UNSUPPORTED:
    return "unsupported: ";
  case QUERN_INVALID:
    return "invalid: ";
  case QUERN_INTERNAL:
    return "internal: ";
  case QUERN_OK:
  case QUERN_ERROR:
    break;
  }
  return "";
}

void StatusError::log(raw_ostream &os) const { os << prefixOf(code) << text; }

Error invalidInput(const Twine &text) { return make_error<StatusError>(QUERN_INVALID, text); }
Error unsupported(const Twine &text) { return make_error<StatusError>(QUERN_UNSUPPORTED, text); }
Error runtimeError(const Twine &text) { return make_error<StatusError>(QUERN_ERROR, text); }

Error withContext(Error error, const Twine &context) {
  return handleErrors(std::move(error), [&](const ErrorInfoBase &info) -> Error {
    if (!info.isA<StatusError>())
      return runtimeError(context + info.message());
    const auto &status = static_cast<const StatusError &>(info);
    return make_error<StatusError>(status.status(), context + status.detail());
  });
}

quern_status takeError(Error error, std::string &message) {
  quern_status status = QUERN_OK;
  message.clear();
  raw_string_ostream os(message);
  handleAllErrors(std::move(error), [&](const ErrorInfoBase &info) {
    if (status != QUERN_OK)
      os << "; ";
    status =
        info.isA<StatusError>() ? static_cast<const StatusError &>(info).status() : QUERN_ERROR;
    info.log(os);
  });
  return status;
}

std::pair<quern_status, std::string> splitStatus(StringRef text) {
  for (quern_status status : {QUERN_UNSUPPORTED, QUERN_INVALID, QUERN_INTERNAL})
    if (text.consume_front(prefixOf(status)))
      return {status, text.str()};
  return {QUERN_INVALID, text.str()};
}

int reportError(Error error) {
  std::string message;
  quern_status status = takeError(std::move(error), message);
  if (status != QUERN_OK)
    errs() << "error: " << message << '\n';
  return status;
}

} // namespace quern
