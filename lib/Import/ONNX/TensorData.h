//===- TensorData.h - TensorProto to Tensor ---------------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_LIB_IMPORT_ONNX_TENSORDATA_H
#define QUERN_LIB_IMPORT_ONNX_TENSORDATA_H

#include "quern/Import/ONNX/Model.h"
#include "quern/Support/Error.h"
#include "llvm/Support/FileSystem.h"

namespace quern::onnx {
namespace proto {
class TensorProto;
} // namespace proto

/// The files beside a model, each mapped once.
class ExternalData {
public:
  explicit ExternalData(llvm::StringRef modelPath);

  /// Bytes [offset, offset + length) of the file `location`, which must lie in the
  /// model's folder. Length -1: `needed`, the rest of the file must be as long.
  llvm::Expected<const char *> get(llvm::StringRef location, uint64_t offset, int64_t length,
                                   uint64_t needed);

  /// What keeps the mapped bytes alive.
  using Files = llvm::StringMap<std::unique_ptr<llvm::sys::fs::mapped_file_region>>;
  std::shared_ptr<Files> files() const { return mapped; }

private:
  llvm::Expected<llvm::StringRef> map(llvm::StringRef location);

  std::string folder;
  std::shared_ptr<Files> mapped = std::make_shared<Files>();
};

/// Checks a stored tensor and makes a view of its values; numbers that are not
/// stored as they lie in memory are copied. `what` names it for messages; the proto
/// is kept alive by `owner`. `external` is null where external data is not allowed.
llvm::Expected<Tensor> readTensorProto(const proto::TensorProto &proto, const llvm::Twine &what,
                                       std::shared_ptr<void> owner, ExternalData *external);

/// An error unless the text is UTF-8.
llvm::Error checkUTF8(llvm::StringRef text, const llvm::Twine &what);

} // namespace quern::onnx
#endif // QUERN_LIB_IMPORT_ONNX_TENSORDATA_H
