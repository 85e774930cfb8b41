//===- Reader.h - Reads ONNX files ------------------------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_IMPORT_ONNX_READER_H
#define QUERN_IMPORT_ONNX_READER_H

#include "quern/Import/ONNX/Model.h"
#include "quern/Support/Error.h"

namespace quern::onnx {

/// Reads and checks a model. Any file is safe to give: what is malformed, unsound
/// or too new is an error that names file, node and value. External data is mapped,
/// not copied.
llvm::Expected<Model> readModel(llvm::StringRef path);

/// The same for bytes in memory. `path` is for messages, and its folder is where
/// external data lies. The bytes are not needed afterwards.
llvm::Expected<Model> readModel(llvm::StringRef bytes, llvm::StringRef path);

/// Reads a file that holds one TensorProto (`input_0.pb` of ONNX's test data).
llvm::Expected<HostTensor> readTensor(llvm::StringRef path);

/// Writes a TensorProto with raw_data.
llvm::Error writeTensor(llvm::StringRef path, const HostTensor &tensor, llvm::StringRef name);

} // namespace quern::onnx
#endif // QUERN_IMPORT_ONNX_READER_H
