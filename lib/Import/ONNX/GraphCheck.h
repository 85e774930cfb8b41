//===- GraphCheck.h - Names and order in a graph ----------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_LIB_IMPORT_ONNX_GRAPHCHECK_H
#define QUERN_LIB_IMPORT_ONNX_GRAPHCHECK_H

#include "quern/Import/ONNX/Model.h"
#include "quern/Support/Error.h"

namespace quern::onnx {

/// Checks a graph and the graphs inside: every value is defined once and before it
/// is used, names of enclosing graphs are not defined anew. Sorts the nodes, and
/// fills `captures`.
llvm::Error checkGraph(Graph &graph);

/// No function calls itself, directly or through others.
llvm::Error checkRecursion(llvm::ArrayRef<Function> functions);

} // namespace quern::onnx
#endif // QUERN_LIB_IMPORT_ONNX_GRAPHCHECK_H
