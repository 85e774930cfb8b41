//===- WireCheck.h - Is this a well-formed protobuf message? ----*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A walk over the wire format before libprotobuf sees it, which only ever says
/// that parsing failed. It finds where and why: truncation, groups, overlong
/// varints, nesting, fields of another wire type than the schema's.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_LIB_IMPORT_ONNX_WIRECHECK_H
#define QUERN_LIB_IMPORT_ONNX_WIRECHECK_H

#include "quern/Support/Error.h"

namespace google::protobuf {
class Descriptor;
class MessageLite;
} // namespace google::protobuf

namespace quern::onnx {

/// Messages inside messages that are read (an If takes three).
inline constexpr unsigned maxNesting = 100;

/// Checks that `bytes` is a well-formed message of this type.
llvm::Error checkWire(llvm::StringRef bytes, const google::protobuf::Descriptor &type);

/// checkWire, then parses.
llvm::Error parseMessage(llvm::StringRef bytes, const google::protobuf::Descriptor &type,
                         google::protobuf::MessageLite &message);

} // namespace quern::onnx
#endif // QUERN_LIB_IMPORT_ONNX_WIRECHECK_H
