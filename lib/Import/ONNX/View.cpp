//===- View.cpp - ONNX ops that move elements -----------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Fold.h"
#include "NodeImport.h"
#include "llvm/ADT/Sequence.h"

using namespace mlir;

namespace quern::onnx {

//===----------------------------------------------------------------------===//
// Reshape
//===----------------------------------------------------------------------===//

/// The dims of Reshape: 0 copies (without allowzero), one -1 is what is left.
static SmallVector<Dim> reshapedDims(NodeImport &n, Value x, ArrayRef<Dim> shape, bool allowZero) {
  SmallVector<Dim> from = NodeImport::dimsOf(x), dims;
  std::optional<size_t> inferred;
  for (auto [i, given] : llvm::enumerate(shape)) {
    Dim d = given;
    if (d.isConstant(-1)) {
      if (inferred)
        n.fail("shape has -1 twice");
      inferred = i;
      d = n.dim(1);
    } else if (d.isConstant() && d.getConstant() < 0) {
      n.fail("shape has the size " + Twine(d.getConstant()));
    } else if (d.isConstant(0) && !allowZero) {
      if (i >= from.size())
        n.fail("shape has 0 (copy) at " + Twine(i) + ", but the data has rank " +
               Twine(from.size()));
      else
        d = from[i];
    }
    dims.push_back(d);
  }
  if (n.failed())
    return {};
  Dim total = Dim::product(n.getContext(), from), known = Dim::product(n.getContext(), dims);
  if (inferred) {
    if (known.isConstant(0)) {
      n.fail("shape has -1 beside 0: nothing tells its size");
      return {};
    }
    // Sizes that both sides have cancel, so that nothing is divided by what may be 0.
    SmallVector<Dim> left, over;
    for (Dim d : from)
      left.push_back(d);
    for (auto [i, d] : llvm::enumerate(dims)) {
      auto it = llvm::find(left, d);
      if (i == *inferred)
        continue;
      if (it != left.end())
        left.erase(it);
      else
        over.push_back(d);
    }
    Dim rest = Dim::product(n.getContext(), left), divisor = Dim::product(n.getContext(), over);
    dims[*inferred] = divisor.isConstant(1) ? rest : Dim::floorDiv(rest, divisor);
    known = Dim::product(n.getContext(), dims);
  }
  if (total.isConstant() && known.isConstant() && total != known) {
    std::string text;
    llvm::raw_string_ostream os(text);
    os << "cannot reshape " << total << " elements [";
    llvm::interleaveComma(from, os);
    os << "] into ";
    if (inferred)
      os << "a multiple of ";
    dims = SmallVector<Dim>(shape);
    if (inferred)
      known = Dim::product(n.getContext(), [&] {
        SmallVector<Dim> given(dims);
        given.erase(given.begin() + *inferred);
        return given;
      }());
    os << known << " [";
    llvm::interleaveComma(dims, os);
    os << ']';
    n.fail(text);
  }
  return dims;
}

static void importReshapeAttribute(NodeImport &n) {
  Value x = n.input(0);
  if (n.failed())
    return;
  SmallVector<Dim> shape;
  for (int64_t d : n.intsAttr("shape"))
    shape.push_back(n.dim(d));
  n.setOutput(0, n.reshape(x, reshapedDims(n, x, shape, false)));
}
static void importReshape(NodeImport &n) {
  Value x = n.input(0);
  SmallVector<Dim> shape = n.sizes(1, "shape");
  if (n.failed())
    return;
  n.setOutput(0, n.reshape(x, reshapedDims(n, x, shape, n.intAttr("allowzero", 0) != 0)));
}

static void importFlatten(NodeImport &n) {
  Value x = n.input(0);
  if (n.failed())
    return;
  n.setOutput(0, n.reshape(x, n.matrixAtAxis(x)));
}

/// Axes of Squeeze and Unsqueeze: an attribute, from opset 13 on input 1.
static SmallVector<int64_t> getAxes(NodeImport &n, int64_t rank) {
  if (n.node.version >= 13)
    return n.wrapAxes(n.integers(1, "axes"), rank);
  return n.wrapAxes(n.intsAttr("axes"), rank);
}

static void importSqueeze(NodeImport &n) {
  Value x = n.input(0);
  if (n.failed())
    return;
  SmallVector<Dim> dims = NodeImport::dimsOf(x), kept;
  bool isGiven = n.node.version >= 13 ? n.hasInput(1) : n.hasAttr("axes");
  SmallVector<int64_t> axes;
  if (isGiven)
    axes = getAxes(n, dims.size());
  for (auto [i, d] : llvm::enumerate(dims)) {
    if (!isGiven && !d.isConstant())
      n.refuse("without axes, and dim " + Twine(i) + " is free");
    if (isGiven ? !llvm::is_contained(axes, int64_t(i)) : !d.isConstant(1))
      kept.push_back(d);
    else if (d.isConstant() && !d.isConstant(1))
      n.fail("cannot squeeze dim " + Twine(i) + ": its size is " + Twine(d.getConstant()) +
             ", expected 1");
  }
  // A free size is checked when the function is called: the reshape keeps the count.
  n.setOutput(0, n.reshape(x, kept));
}

static void importUnsqueeze(NodeImport &n) {
  Value x = n.input(0);
  if (n.failed())
    return;
  SmallVector<Dim> dims = NodeImport::dimsOf(x), result;
  size_t count = n.node.version >= 13 ? n.integers(1, "axes").size() : n.intsAttr("axes").size();
  SmallVector<int64_t> axes = getAxes(n, dims.size() + count);
  if (n.failed())
    return;
  const Dim *next = dims.begin();
  for (int64_t i = 0, rank = dims.size() + count; i < rank; ++i)
    result.push_back(llvm::is_contained(axes, i) ? n.dim(1) : *next++);
  n.setOutput(0, n.reshape(x, result));
}

//===----------------------------------------------------------------------===//
// Permutation and repetition
//===----------------------------------------------------------------------===//

static void importTranspose(NodeImport &n) {
  Value x = n.input(0);
  if (n.failed())
    return;
  int64_t rank = NodeImport::rankOf(x);
  SmallVector<int64_t> perm(n.intsAttr("perm"));
  if (!n.hasAttr("perm"))
    perm = llvm::to_vector(llvm::reverse(llvm::seq<int64_t>(0, rank)));
  SmallVector<int64_t> sorted(perm);
  llvm::sort(sorted);
  if (!llvm::equal(sorted, llvm::seq<int64_t>(0, rank))) {
    n.fail("attribute 'perm' is " + dimsString(perm) + ", which is no permutation of " +
           Twine(rank) + " dims");
    return;
  }
  n.setOutput(0, n.permute(x, perm));
}

static void importExpand(NodeImport &n) {
  Value x = n.input(0);
  SmallVector<Dim> shape = n.sizes(1, "shape");
  if (n.failed())
    return;
  SmallVector<Dim> dims = NodeImport::dimsOf(x), result;
  size_t rank = std::max(dims.size(), shape.size());
  for (size_t i = 0; i < rank; ++i) {
    Dim from = i + dims.size() >= rank ? dims[i + dims.size() - rank] : n.dim(1);
    Dim to = i + shape.size() >= rank ? shape[i + shape.size() - rank] : n.dim(1);
    if (to.isConstant() && to.getConstant() < 0)
      n.fail("shape has the size " + Twine(to.getConstant()));
    else if (from.isConstant() && to.isConstant() && from != to && !from.isConstant(1) &&
             !to.isConstant(1))
      n.fail("cannot expand dim " + Twine(i) + " of size " + Twine(from.getConstant()) + " to " +
             Twine(to.getConstant()));
    if (n.failed())
      return;
    result.push_back(Dim::bcast(from, to));
  }
  n.setOutput(0, n.expand(x, result));
}

static void importTile(NodeImport &n) {
  Value x = n.input(0);
  SmallVector<Dim> repeats = n.sizes(1, "repeats");
  if (n.failed())
    return;
  SmallVector<Dim> dims = NodeImport::dimsOf(x), apart, repeated, result;
  if (repeats.size() != dims.size()) {
    n.fail("repeats has " + Twine(repeats.size()) + " entries, expected " + Twine(dims.size()));
    return;
  }
  for (auto [d, r] : llvm::zip(dims, repeats)) {
    if (r.isConstant() && r.getConstant() < 0)
      n.fail("repeats has the entry " + Twine(r.getConstant()));
    apart.append({n.dim(1), d});
    repeated.append({r, d});
    result.push_back(r * d);
  }
  if (n.failed())
    return;
  n.setOutput(0, n.reshape(n.expand(n.reshape(x, apart), repeated), result));
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

static void importConcat(NodeImport &n) {
  OperandGroup parts;
  for (unsigned i = 0; i < n.numInputs(); ++i)
    parts.push_back(n.input(i));
  if (n.failed())
    return;
  int64_t axis = n.wrapAxis(n.intAttr("axis", 1), NodeImport::rankOf(parts[0]));
  n.setOutput(0, n.op("cat", {parts}, {n.attr("dim", axis)}));
}

/// Elements [start, end) of one dim, both in range; itself where that is all.
static Value slice(NodeImport &n, Value x, int64_t axis, int64_t start, int64_t end, int64_t step) {
  SmallVector<NamedAttribute> attrs{n.attr("dim", axis), n.attr("start", n.dim(start)),
                                    n.attr("step", step)};
  if (end != INT64_MAX)
    attrs.push_back(n.attr("end", n.dim(end)));
  return n.op("slice", {x}, attrs);
}

/// Numbers from here on mean "to the end" in exporters' files (tf2onnx writes 10^9 and
/// INT32_MAX), also for a size that is free.
static constexpr int64_t toTheEnd = 1'000'000'000;

/// Slices one dim as ONNX does: negative bounds count from the end, all are clamped.
static Value sliceDim(NodeImport &n, Value x, int64_t axis, int64_t start, int64_t end,
                      int64_t step) {
  if (n.failed())
    return {};
  if (step == 0)
    return n.fail("steps has 0");
  if (step < 0)
    return n.refuse("step " + Twine(step));
  Dim size = NodeImport::dimsOf(x)[axis];
  if (size.isConstant()) {
    int64_t count = size.getConstant();
    auto clamp = [&](int64_t bound) {
      return std::clamp<int64_t>(bound < 0 ? std::max(bound, -count) + count : bound, 0, count);
    };
    start = clamp(start);
    end = std::max(clamp(end), start);
    if (start == 0 && end == count && step == 1)
      return x;
    return slice(n, x, axis, start, end, step);
  }
  if (end >= toTheEnd)
    end = INT64_MAX;
  if (start <= -toTheEnd)
    start = 0;
  if (end <= -toTheEnd)
    end = 0;
  if (start == 0 && end == INT64_MAX && step == 1)
    return x;
  return slice(n, x, axis, start, end, step);
}

static void sliceAll(NodeImport &n, Value x, ArrayRef<int64_t> starts, ArrayRef<int64_t> ends,
                     SmallVector<int64_t> axes, SmallVector<int64_t> steps, bool hasAxes) {
  if (n.failed())
    return;
  if (!hasAxes)
    axes = llvm::to_vector(llvm::seq<int64_t>(0, starts.size()));
  if (steps.empty())
    steps.assign(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() ||
      steps.size() != starts.size()) {
    n.fail("starts, ends, axes and steps have " + Twine(starts.size()) + ", " + Twine(ends.size()) +
           ", " + Twine(axes.size()) + " and " + Twine(steps.size()) +
           " entries, expected the same number");
    return;
  }
  axes = n.wrapAxes(axes, NodeImport::rankOf(x));
  for (auto [start, end, axis, step] : llvm::zip(starts, ends, axes, steps))
    x = sliceDim(n, x, axis, start, end, step);
  n.setOutput(0, x);
}

static void importSliceAttributes(NodeImport &n) {
  sliceAll(n, n.input(0), n.intsAttr("starts"), n.intsAttr("ends"),
           SmallVector<int64_t>(n.intsAttr("axes")), {}, n.hasAttr("axes"));
}
static void importSlice(NodeImport &n) {
  Value x = n.input(0);
  SmallVector<int64_t> starts = n.integers(1, "starts"), ends = n.integers(2, "ends"), axes, steps;
  if (n.hasInput(3))
    axes = n.integers(3, "axes");
  if (n.hasInput(4))
    steps = n.integers(4, "steps");
  sliceAll(n, x, starts, ends, axes, steps, n.hasInput(3));
}

static void importSplit(NodeImport &n) {
  Value x = n.input(0);
  if (n.failed())
    return;
  int64_t axis = n.wrapAxis(n.intAttr("axis", 0), NodeImport::rankOf(x));
  if (n.failed())
    return;
  Dim size = NodeImport::dimsOf(x)[axis];
  int64_t count = n.node.outputs.size();
  SmallVector<int64_t> lengths(n.intsAttr("split"));
  if (n.hasInput(1))
    lengths = n.integers(1, "split");
  if (n.failed())
    return;
  if (lengths.empty()) {
    // Equal parts; from opset 18 on the last one may be smaller.
    if (!size.isConstant()) {
      n.refuse("equal parts of a free size");
      return;
    }
    if (n.intAttr("num_outputs", count) != count)
      n.fail("attribute 'num_outputs' is " + Twine(n.intAttr("num_outputs", count)) +
             ", but there are " + Twine(count) + " outputs");
    int64_t total = size.getConstant(), part = (total + count - 1) / count;
    if (n.node.version < 18 && total % count)
      n.fail("cannot split dim " + Twine(axis) + " of size " + Twine(total) + " into " +
             Twine(count) + " equal parts");
    for (int64_t i = 0; i < count; ++i)
      lengths.push_back(std::clamp<int64_t>(total - i * part, 0, part));
  }
  int64_t sum = 0;
  for (int64_t length : lengths) {
    if (length < 0 || length > toTheEnd)
      n.fail("split has the length " + Twine(length));
    else
      sum += length;
  }
  if (int64_t(lengths.size()) != count)
    n.fail("split has " + Twine(lengths.size()) + " lengths, but there are " + Twine(count) +
           " outputs");
  if (size.isConstant() && size.getConstant() != sum)
    n.fail("split adds up to " + Twine(sum) + ", but dim " + Twine(axis) + " is " +
           Twine(size.getConstant()));
  else if (!size.isConstant())
    n.refuse("a free size in parts of given lengths");
  if (n.failed())
    return;
  int64_t start = 0;
  for (auto [i, length] : llvm::enumerate(lengths)) {
    n.setOutput(i, length == sum ? x : slice(n, x, axis, start, start + length, 1));
    start += length;
  }
}

llvm::ArrayRef<OpEntry> getViewEntries() {
  static const OpEntry table[] = {
      {"Reshape", 1, 4, 1, 1, 1, "shape:ints", importReshapeAttribute},
      {"Reshape", 5, latest, 2, 2, 1, "allowzero:int", importReshape, foldReshape},
      {"Flatten", 1, latest, 1, 1, 1, "axis:int", importFlatten},
      {"Squeeze", 1, 12, 1, 1, 1, "axes:ints", importSqueeze, foldSqueeze},
      {"Squeeze", 13, latest, 1, 2, 1, "", importSqueeze, foldSqueeze},
      {"Unsqueeze", 1, 12, 1, 1, 1, "axes:ints!", importUnsqueeze, foldUnsqueeze},
      {"Unsqueeze", 13, latest, 2, 2, 1, "", importUnsqueeze, foldUnsqueeze},
      {"Transpose", 1, latest, 1, 1, 1, "perm:ints", importTranspose},
      {"Expand", 8, latest, 2, 2, 1, "", importExpand, foldExpand},
      {"Tile", 6, latest, 2, 2, 1, "", importTile},
      {"Concat", 1, 3, 1, many, 1, "axis:int", importConcat, foldConcat},
      {"Concat", 4, latest, 1, many, 1, "axis:int!", importConcat, foldConcat},
      {"Slice", 1, 9, 1, 1, 1, "starts:ints! ends:ints! axes:ints", importSliceAttributes,
       foldSlice},
      {"Slice", 10, latest, 3, 5, 1, "", importSlice, foldSlice},
      {"Split", 2, 12, 1, 1, many, "axis:int split:ints", importSplit},
      {"Split", 13, 17, 1, 2, many, "axis:int", importSplit},
      {"Split", 18, latest, 1, 2, many, "axis:int num_outputs:int", importSplit},
  };
  return table;
}

} // namespace quern::onnx
