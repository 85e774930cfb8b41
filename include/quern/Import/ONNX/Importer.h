//===- Importer.h - ONNX model to MLIR module -------------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Turns a checked model into a module with one function `@main` of quern ops.
///
/// - Arguments and results are the graph's inputs (those that are no initializers)
///   and outputs, in order; their names stand in the attribute `quern.name`.
/// - Free dims have the model's names (`dim_param`), or names made from the input's
///   where it has none.
/// - Integers that are made of sizes (Shape, Gather, Concat, …) are computed at
///   import, as expressions over those names.
/// - Weights are `dense_resource` blobs over the model's own memory, which they keep
///   alive.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_IMPORT_ONNX_IMPORTER_H
#define QUERN_IMPORT_ONNX_IMPORTER_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "quern/Import/ONNX/Model.h"
#include "quern/Support/Error.h"

namespace quern::onnx {

/// Imports a model. What cannot be handled yet is one `unsupported:` error that
/// lists every node with its op, opset, name and the reason.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> importModel(mlir::MLIRContext &ctx,
                                                              const Model &model);

/// Reads and imports a file.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> importFile(mlir::MLIRContext &ctx,
                                                             llvm::StringRef path);

} // namespace quern::onnx
#endif // QUERN_IMPORT_ONNX_IMPORTER_H
