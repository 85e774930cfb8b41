//===- Reduction.cpp - ONNX ops over axes ---------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Fold.h"
#include "NodeImport.h"
#include "llvm/ADT/Sequence.h"

using namespace mlir;

namespace quern::onnx {

/// The axes of a reduction: an attribute, or input 1. Nothing means all of them, or
/// none where `noop_with_empty_axes` says so.
static SmallVector<int64_t> getAxes(NodeImport &n, Value x) {
  SmallVector<int64_t> axes(n.intsAttr("axes"));
  if (n.hasInput(1))
    axes = n.integers(1, "axes");
  if (n.failed())
    return {};
  int64_t rank = NodeImport::rankOf(x);
  if (axes.empty() && n.intAttr("noop_with_empty_axes", 0) == 0)
    llvm::append_range(axes, llvm::seq<int64_t>(0, rank));
  return n.wrapAxes(axes, rank);
}

/// One reduction op of Quern's over these axes (itself over none).
static Value reduce(NodeImport &n, StringRef mnemonic, Value x, ArrayRef<int64_t> axes,
                    bool keepdims) {
  if (n.failed() || axes.empty())
    return x;
  return n.op(mnemonic, {x}, {n.attr("dim", axes), n.attr("keepdim", keepdims)});
}

static bool keepDims(NodeImport &n) { return n.intAttr("keepdims", 1) != 0; }

static void importReduceSum(NodeImport &n) {
  Value x = n.input(0);
  n.setOutput(0, reduce(n, "sum", x, getAxes(n, x), keepDims(n)));
}
static void importReduceMean(NodeImport &n) {
  Value x = n.input(0);
  n.setOutput(0, reduce(n, "mean", x, getAxes(n, x), keepDims(n)));
}
static void importReduceMax(NodeImport &n) {
  Value x = n.input(0);
  n.setOutput(0, reduce(n, "amax", x, getAxes(n, x), keepDims(n)));
}
static void importReduceMin(NodeImport &n) {
  Value x = n.input(0);
  n.setOutput(0, reduce(n, "amin", x, getAxes(n, x), keepDims(n)));
}
static void importReduceL1(NodeImport &n) {
  Value x = n.input(0);
  n.setOutput(0, reduce(n, "sum", n.op("abs", {x}), getAxes(n, x), keepDims(n)));
}
static void importReduceSumSquare(NodeImport &n) {
  Value x = n.input(0);
  n.setOutput(0, reduce(n, "sum", n.op("mul", {x, x}), getAxes(n, x), keepDims(n)));
}
static void importReduceL2(NodeImport &n) {
  Value x = n.input(0);
  Value squares = reduce(n, "sum", n.op("mul", {x, x}), getAxes(n, x), keepDims(n));
  n.setOutput(0, n.op("sqrt", {squares}));
}
static void importReduceLogSum(NodeImport &n) {
  Value x = n.input(0);
  n.setOutput(0, n.op("log", {reduce(n, "sum", x, getAxes(n, x), keepDims(n))}));
}
/// m + log(sum(exp(x - m))) with m the maximum, or 0 where that is infinite.
static void importReduceLogSumExp(NodeImport &n) {
  Value x = n.input(0);
  SmallVector<int64_t> axes = getAxes(n, x);
  Value top = reduce(n, "amax", x, axes, true);
  Value zero = n.scalarLike(0, x);
  // inf - inf is NaN, which is not 0.
  Value isFinite = n.op("eq", {n.op("sub", {top, top}), zero});
  top = n.op("where", {isFinite, top, zero});
  Value sum = reduce(n, "sum", n.op("exp", {n.op("sub", {x, top})}), axes, true);
  Value result = n.op("add", {n.op("log", {sum}), top});
  if (n.failed())
    return;
  if (!keepDims(n)) {
    SmallVector<Dim> dims;
    for (auto [i, d] : llvm::enumerate(NodeImport::dimsOf(result)))
      if (!llvm::is_contained(axes, int64_t(i)))
        dims.push_back(d);
    result = n.reshape(result, dims);
  }
  n.setOutput(0, result);
}
static void importReduceProd(NodeImport &n) { n.refuse("a product at run time"); }

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

/// Before opset 13 everything from the axis on is one row.
static void flattenedRows(NodeImport &n, StringRef mnemonic) {
  Value x = n.input(0);
  if (n.failed())
    return;
  Value flat = n.reshape(x, n.matrixAtAxis(x));
  Value result = n.op(mnemonic, {flat}, {n.attr("dim", int64_t(1))});
  n.setOutput(0, n.reshape(result, NodeImport::dimsOf(x)));
}
static void alongAxis(NodeImport &n, StringRef mnemonic) {
  Value x = n.input(0);
  if (n.failed())
    return;
  int64_t axis = n.wrapAxis(n.intAttr("axis", -1), NodeImport::rankOf(x));
  n.setOutput(0, n.op(mnemonic, {x}, {n.attr("dim", axis)}));
}
static void importFlatSoftmax(NodeImport &n) { flattenedRows(n, "softmax"); }
static void importFlatLogSoftmax(NodeImport &n) { flattenedRows(n, "log_softmax"); }
static void importSoftmax(NodeImport &n) { alongAxis(n, "softmax"); }
static void importLogSoftmax(NodeImport &n) { alongAxis(n, "log_softmax"); }

//===----------------------------------------------------------------------===//
// Pooling over everything, normalisation
//===----------------------------------------------------------------------===//

static void globalPool(NodeImport &n, StringRef mnemonic) {
  Value x = n.input(0);
  if (n.failed())
    return;
  int64_t rank = NodeImport::rankOf(x);
  if (rank < 2) {
    n.fail("input 0 has rank " + Twine(rank) + ", expected at least 2");
    return;
  }
  auto axes = llvm::to_vector(llvm::seq<int64_t>(2, rank));
  n.setOutput(0, reduce(n, mnemonic, x, axes, true));
}
static void importGlobalMaxPool(NodeImport &n) { globalPool(n, "amax"); }
static void importGlobalAveragePool(NodeImport &n) { globalPool(n, "mean"); }

static void importLayerNormalization(NodeImport &n) {
  Value x = n.input(0);
  if (n.failed())
    return;
  if (n.wantsOutput(1) || n.wantsOutput(2)) {
    n.refuse("outputs Mean and InvStdDev");
    return;
  }
  if (n.intAttr("stash_type", 1) != 1) {
    n.refuse("stash_type " + Twine(n.intAttr("stash_type", 1)));
    return;
  }
  SmallVector<Dim> dims = NodeImport::dimsOf(x);
  int64_t axis = n.wrapAxis(n.intAttr("axis", -1), dims.size());
  if (n.failed())
    return;
  ArrayRef<Dim> normalized = ArrayRef(dims).drop_front(axis);
  // Scale and bias broadcast; the op wants them whole.
  Value scale = n.expand(n.input(1), normalized);
  Value bias = n.hasInput(2) ? n.expand(n.input(2), normalized) : Value();
  n.setOutput(0, n.op("layer_norm", {x, scale, NodeImport::optional(bias)},
                      {n.attr("normalized_shape", normalized),
                       n.attr("eps", n.floatAttr("epsilon", 1e-5f))}));
}

/// In inference: (x - mean) / sqrt(var + epsilon) * scale + bias, per channel.
static void importBatchNormalization(NodeImport &n) {
  if (n.node.version >= 14 ? n.intAttr("training_mode", 0) != 0
                           : n.node.version < 7 && n.intAttr("is_test", 0) == 0) {
    n.refuse("training");
    return;
  }
  if (n.intAttr("spatial", 1) == 0) {
    n.refuse("spatial = 0");
    return;
  }
  Value x = n.input(0);
  if (n.failed())
    return;
  int64_t rank = NodeImport::rankOf(x);
  if (rank < 2) {
    n.fail("input 0 has rank " + Twine(rank) + ", expected at least 2");
    return;
  }
  auto perChannel = [&](unsigned i) -> Value {
    Value v = n.input(i);
    if (n.failed())
      return {};
    if (NodeImport::rankOf(v) != 1)
      return n.fail("input " + Twine(i) + " has rank " + Twine(NodeImport::rankOf(v)) +
                    ", expected 1");
    SmallVector<Dim> dims(rank - 1, n.dim(1));
    dims[0] = NodeImport::dimsOf(v)[0];
    return n.convert(n.reshape(v, dims), NodeImport::dtypeOf(x));
  };
  Value scale = perChannel(1), bias = perChannel(2), mean = perChannel(3), var = perChannel(4);
  Value deviation =
      n.op("sqrt", {n.op("add", {var, n.scalarLike(n.floatAttr("epsilon", 1e-5f), x)})});
  Value result = n.op("div", {n.op("sub", {x, mean}), deviation});
  n.setOutput(0, n.op("add", {n.op("mul", {result, scale}), bias}));
}

llvm::ArrayRef<OpEntry> getReductionEntries() {
  constexpr llvm::StringLiteral byAttribute = "axes:ints keepdims:int";
  constexpr llvm::StringLiteral byInput = "keepdims:int noop_with_empty_axes:int";
  static const OpEntry table[] = {
      {"ReduceSum", 1, 12, 1, 1, 1, byAttribute, importReduceSum},
      {"ReduceSum", 13, latest, 1, 2, 1, byInput, importReduceSum},
      {"ReduceMean", 1, 17, 1, 1, 1, byAttribute, importReduceMean},
      {"ReduceMean", 18, latest, 1, 2, 1, byInput, importReduceMean},
      {"ReduceMax", 1, 17, 1, 1, 1, byAttribute, importReduceMax},
      {"ReduceMax", 18, latest, 1, 2, 1, byInput, importReduceMax},
      {"ReduceMin", 1, 17, 1, 1, 1, byAttribute, importReduceMin},
      {"ReduceMin", 18, latest, 1, 2, 1, byInput, importReduceMin},
      {"ReduceProd", 1, 17, 1, 1, 1, byAttribute, importReduceProd, foldReduceProd},
      {"ReduceProd", 18, latest, 1, 2, 1, byInput, importReduceProd, foldReduceProd},
      {"ReduceL1", 1, 17, 1, 1, 1, byAttribute, importReduceL1},
      {"ReduceL1", 18, latest, 1, 2, 1, byInput, importReduceL1},
      {"ReduceL2", 1, 17, 1, 1, 1, byAttribute, importReduceL2},
      {"ReduceL2", 18, latest, 1, 2, 1, byInput, importReduceL2},
      {"ReduceSumSquare", 1, 17, 1, 1, 1, byAttribute, importReduceSumSquare},
      {"ReduceSumSquare", 18, latest, 1, 2, 1, byInput, importReduceSumSquare},
      {"ReduceLogSum", 1, 17, 1, 1, 1, byAttribute, importReduceLogSum},
      {"ReduceLogSum", 18, latest, 1, 2, 1, byInput, importReduceLogSum},
      {"ReduceLogSumExp", 1, 17, 1, 1, 1, byAttribute, importReduceLogSumExp},
      {"ReduceLogSumExp", 18, latest, 1, 2, 1, byInput, importReduceLogSumExp},
      {"Softmax", 1, 12, 1, 1, 1, "axis:int", importFlatSoftmax},
      {"Softmax", 13, latest, 1, 1, 1, "axis:int", importSoftmax},
      {"LogSoftmax", 1, 12, 1, 1, 1, "axis:int", importFlatLogSoftmax},
      {"LogSoftmax", 13, latest, 1, 1, 1, "axis:int", importLogSoftmax},
      {"GlobalMaxPool", 1, latest, 1, 1, 1, "", importGlobalMaxPool},
      {"GlobalAveragePool", 1, latest, 1, 1, 1, "", importGlobalAveragePool},
      {"LayerNormalization", 17, latest, 2, 3, 3, "axis:int epsilon:float stash_type:int",
       importLayerNormalization},
      {"BatchNormalization", 1, 8, 5, 5, 5, "epsilon:float momentum:float is_test:int spatial:int",
       importBatchNormalization},
      {"BatchNormalization", 9, 13, 5, 5, 5, "epsilon:float momentum:float",
       importBatchNormalization},
      {"BatchNormalization", 14, latest, 5, 5, 3, "epsilon:float momentum:float training_mode:int",
       importBatchNormalization},
  };
  return table;
}

} // namespace quern::onnx
