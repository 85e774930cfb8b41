//===- Fold.h - Integers that are known at import ---------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Ops on small integer tensors whose elements are numbers or sizes: what
/// exporters write to compute shapes. Each takes a node whose inputs' contents are all
/// known, sets its outputs' contents, and is false where it cannot.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_LIB_IMPORT_ONNX_FOLD_H
#define QUERN_LIB_IMPORT_ONNX_FOLD_H

namespace quern::onnx {
class NodeImport;

bool foldAdd(NodeImport &n);
bool foldSub(NodeImport &n);
bool foldMul(NodeImport &n);
/// Truncates toward zero.
bool foldDiv(NodeImport &n);
bool foldMax(NodeImport &n);
bool foldMin(NodeImport &n);
bool foldNeg(NodeImport &n);
bool foldEqual(NodeImport &n);
bool foldLess(NodeImport &n);
bool foldGreater(NodeImport &n);
bool foldWhere(NodeImport &n);
bool foldCast(NodeImport &n);
bool foldReduceProd(NodeImport &n);
bool foldGather(NodeImport &n);
bool foldConcat(NodeImport &n);
bool foldSlice(NodeImport &n);
bool foldReshape(NodeImport &n);
bool foldSqueeze(NodeImport &n);
bool foldUnsqueeze(NodeImport &n);
bool foldExpand(NodeImport &n);
bool foldRange(NodeImport &n);
} // namespace quern::onnx
#endif // QUERN_LIB_IMPORT_ONNX_FOLD_H
