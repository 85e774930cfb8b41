//===- Pipelines.h - The order of the passes --------------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The one place where the order of passes is written; quern-opt, quern-compile and
/// the C++ API share it.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_PIPELINES_PIPELINES_H
#define QUERN_PIPELINES_PIPELINES_H

#include "mlir/Pass/PassManager.h"

namespace quern {

struct PipelineOptions {
  /// Groups ops into kernels; off: every op is a kernel by itself.
  bool fuse = true;
  /// Results take the buffers of operands that die.
  bool inplace = true;
};

/// From quern ops on tensors to what HostToLLVM takes: a bufferised host function
/// with its memory planned, and kernels.
void buildHostPipeline(mlir::OpPassManager &pm, const PipelineOptions &options);

/// The pipelines by name: `quern-cpu`.
void registerPipelines();

} // namespace quern

#endif // QUERN_PIPELINES_PIPELINES_H
