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

#include <string>
#include <vector>

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

struct BackwardOptions {
  /// The function to differentiate; empty: the only one.
  std::string function;
  /// Numbers of its arguments; empty: all of a float dtype.
  std::vector<int64_t> arguments;
  /// `joint` or `split`, see quern-autodiff.
  std::string mode = "joint";
};

/// From a function of quern ops on tensors to its gradients, still quern ops on tensors:
/// calls inlined, sizes named, differentiated, simplified.
void buildBackwardPipeline(mlir::OpPassManager &pm, const BackwardOptions &options);

/// The pipelines by name: `quern-cpu`, `quern-cuda`, `quern-backward`.
void registerPipelines();

} // namespace quern

#endif // QUERN_PIPELINES_PIPELINES_H
