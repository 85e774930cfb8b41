//===- Contraction.cpp - ONNX matrix products and convolutions ------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "NodeImport.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace quern::onnx {

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

/// numpy.matmul: the last two dims are matrices, those before broadcast; a vector
/// is a row on the left and a column on the right.
static void importMatMul(NodeImport &n) {
  Value a = n.input(0), b = n.input(1);
  if (n.failed())
    return;
  SmallVector<Dim> dimsA = NodeImport::dimsOf(a), dimsB = NodeImport::dimsOf(b);
  if (dimsA.empty() || dimsB.empty()) {
    n.fail("input " + Twine(dimsA.empty() ? 0 : 1) + " is a scalar");
    return;
  }
  bool isRow = dimsA.size() == 1, isColumn = dimsB.size() == 1;
  if (isRow)
    dimsA.insert(dimsA.begin(), n.dim(1));
  if (isColumn)
    dimsB.push_back(n.dim(1));
  a = n.reshape(a, dimsA);
  b = n.reshape(b, dimsB);

  ArrayRef<Dim> batchA = ArrayRef(dimsA).drop_back(2), batchB = ArrayRef(dimsB).drop_back(2);
  Dim rows = dimsA[dimsA.size() - 2], inner = dimsA.back(), columns = dimsB.back();
  SmallVector<Dim> batch;
  Value product;
  if (batchB.empty()) {
    // One matrix for all: the rows of the whole batch.
    llvm::append_range(batch, batchA);
    Dim allRows = Dim::product(n.getContext(), ArrayRef(dimsA).drop_back());
    product = n.op("mm", {n.reshape(a, {allRows, inner}), b});
  } else {
    size_t rank = std::max(batchA.size(), batchB.size());
    for (size_t i = 0; i < rank; ++i) {
      bool hasA = i + batchA.size() >= rank, hasB = i + batchB.size() >= rank;
      Dim dimA = hasA ? batchA[i + batchA.size() - rank] : n.dim(1);
      Dim dimB = hasB ? batchB[i + batchB.size() - rank] : n.dim(1);
      batch.push_back(Dim::bcast(dimA, dimB));
    }
    Dim count = Dim::product(n.getContext(), batch);
    auto flat = [&](Value value, ArrayRef<Dim> matrix) {
      SmallVector<Dim> whole(batch);
      whole.append(matrix.begin(), matrix.end());
      return n.reshape(n.expand(value, whole), {count, matrix[0], matrix[1]});
    };
    product =
        n.op("bmm", {flat(a, ArrayRef(dimsA).take_back(2)), flat(b, ArrayRef(dimsB).take_back(2))});
  }
  SmallVector<Dim> result(batch);
  if (!isRow)
    result.push_back(rows);
  if (!isColumn)
    result.push_back(columns);
  n.setOutput(0, n.reshape(product, result));
}

/// alpha * op(A) * op(B) + beta * C.
static void importGemm(NodeImport &n) {
  Value a = n.input(0), b = n.input(1);
  if (n.failed())
    return;
  for (Value value : {a, b})
    if (NodeImport::rankOf(value) != 2) {
      n.fail("input " + Twine(value == a ? 0 : 1) + " has rank " +
             Twine(NodeImport::rankOf(value)) + ", expected 2");
      return;
    }
  if (n.intAttr("transA", 0))
    a = n.permute(a, {1, 0});
  double alpha = n.floatAttr("alpha", 1), beta = n.floatAttr("beta", 1);
  bool isTransposed = n.intAttr("transB", 0) != 0;
  Value c = beta != 0 ? n.optionalInput(2) : Value();
  if (n.failed())
    return;
  if (isTransposed && alpha == 1 && beta == 1 && (!c || NodeImport::rankOf(c) == 1)) {
    n.setOutput(0, n.op("linear", {a, b, NodeImport::optional(c)}));
    return;
  }
  if (isTransposed)
    b = n.permute(b, {1, 0});
  Value product = n.op("mm", {a, b});
  if (alpha != 1)
    product = n.op("mul", {product, n.scalarLike(alpha, product)});
  if (c && beta != 1)
    c = n.op("mul", {c, n.scalarLike(beta, c)});
  n.setOutput(0, c ? n.op("add", {product, c}) : product);
}

//===----------------------------------------------------------------------===//
// Convolution
//===----------------------------------------------------------------------===//

/// An attribute with a number for each spatial dim, `least` or more.
static SmallVector<int64_t> perDim(NodeImport &n, StringRef name, unsigned spatial, int64_t least) {
  SmallVector<int64_t> list(n.intsAttr(name));
  if (list.empty())
    list.assign(spatial, 1);
  if (list.size() != spatial)
    n.fail("attribute '" + name + "' has " + Twine(list.size()) + " entries, expected " +
           Twine(spatial));
  for (int64_t v : list)
    if (v < least)
      n.fail("attribute '" + name + "' has the entry " + Twine(v) + ", expected at least " +
             Twine(least));
  return list;
}

/// Zeros before each spatial dim, then those behind: `pads`, or what `auto_pad` asks for
/// (as many windows as sizes / strides, rounded up).
static SmallVector<int64_t> getPadding(NodeImport &n, ArrayRef<Dim> sizes, ArrayRef<Dim> kernel,
                                       ArrayRef<int64_t> strides, ArrayRef<int64_t> dilations) {
  unsigned spatial = sizes.size();
  SmallVector<int64_t> padding(2 * spatial, 0);
  StringRef automatic = n.stringAttr("auto_pad", "NOTSET");
  if (automatic == "VALID")
    return padding;
  if (automatic == "NOTSET") {
    ArrayRef<int64_t> pads = n.intsAttr("pads");
    if (pads.empty())
      return padding;
    if (pads.size() != 2 * spatial)
      n.fail("attribute 'pads' has " + Twine(pads.size()) + " entries, expected " +
             Twine(2 * spatial));
    for (int64_t p : pads)
      if (p < 0)
        n.fail("attribute 'pads' has the entry " + Twine(p) + ", expected at least 0");
    return SmallVector<int64_t>(pads);
  }
  if (automatic != "SAME_UPPER" && automatic != "SAME_LOWER") {
    n.fail("attribute 'auto_pad' is " + quoted(automatic) +
           ", expected NOTSET, VALID, SAME_UPPER or SAME_LOWER");
    return padding;
  }
  for (unsigned i = 0; i < spatial; ++i) {
    if (!kernel[i].isConstant() || (strides[i] != 1 && !sizes[i].isConstant())) {
      n.refuse("auto_pad " + automatic + " with strides over a free size");
      return padding;
    }
    int64_t window = dilations[i] * (kernel[i].getConstant() - 1) + 1;
    int64_t total = window - 1; // stride 1: as many windows as elements
    if (strides[i] != 1) {
      int64_t size = sizes[i].getConstant();
      int64_t windows = llvm::divideCeil(size, strides[i]);
      total = std::max<int64_t>((windows - 1) * strides[i] + window - size, 0);
    }
    // The odd one stands at the end of upper, at the start of lower.
    padding[i] = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
    padding[spatial + i] = total - padding[i];
  }
  return padding;
}

static void importConv(NodeImport &n) {
  Value x = n.input(0), w = n.input(1);
  if (n.failed())
    return;
  SmallVector<Dim> dimsX = NodeImport::dimsOf(x), dimsW = NodeImport::dimsOf(w);
  if (dimsX.size() < 3 || dimsW.size() != dimsX.size()) {
    n.fail("ranks of X and W are " + Twine(dimsX.size()) + " and " + Twine(dimsW.size()) +
           ", expected the same, at least 3");
    return;
  }
  unsigned spatial = dimsX.size() - 2;
  if (spatial > 3) {
    n.refuse("convolution over " + Twine(spatial) + " dims");
    return;
  }
  SmallVector<int64_t> strides = perDim(n, "strides", spatial, 1);
  SmallVector<int64_t> dilations = perDim(n, "dilations", spatial, 1);
  ArrayRef<Dim> kernel = ArrayRef(dimsW).drop_front(2);
  if (n.hasAttr("kernel_shape")) {
    SmallVector<int64_t> shape = perDim(n, "kernel_shape", spatial, 1);
    for (auto [i, given] : llvm::enumerate(shape))
      if (!n.failed() && kernel[i].isConstant() && kernel[i].getConstant() != given)
        n.fail("attribute 'kernel_shape' is " + dimsString(shape) + ", but dim " + Twine(i + 2) +
               " of W is " + Twine(kernel[i].getConstant()));
  }
  int64_t group = n.intAttr("group", 1);
  if (group < 1)
    n.fail("attribute 'group' is " + Twine(group) + ", expected at least 1");
  if (n.failed())
    return;
  SmallVector<int64_t> padding =
      getPadding(n, ArrayRef(dimsX).drop_front(2), kernel, strides, dilations);
  n.setOutput(0, n.op("convolution", {x, w, NodeImport::optional(n.optionalInput(2))},
                      {n.attr("stride", ArrayRef<int64_t>(strides)),
                       n.attr("padding", ArrayRef<int64_t>(padding)),
                       n.attr("dilation", ArrayRef<int64_t>(dilations)), n.attr("groups", group)}));
}

llvm::ArrayRef<OpEntry> getContractionEntries() {
  constexpr llvm::StringLiteral gemm = "alpha:float beta:float transA:int transB:int";
  static const OpEntry table[] = {
      {"MatMul", 1, latest, 2, 2, 1, "", importMatMul},
      {"Gemm", 7, 10, 3, 3, 1, gemm, importGemm},
      {"Gemm", 11, latest, 2, 3, 1, gemm, importGemm},
      {"Conv", 1, latest, 2, 3, 1,
       "auto_pad:string dilations:ints group:int kernel_shape:ints pads:ints strides:ints",
       importConv},
  };
  return table;
}

} // namespace quern::onnx
