//===- Control.cpp - ONNX ops that are checked, but not handled yet -------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A mistake in them is the user's, and is told before "not handled".
//
//===----------------------------------------------------------------------===//

#include "NodeImport.h"

using namespace mlir;

namespace quern::onnx {

static void importIf(NodeImport &n) {
  size_t outputs = n.node.outputs.size();
  for (StringRef name : {"then_branch", "else_branch"}) {
    size_t given = n.node.getAttribute(name)->graphs.front().outputs.size();
    if (given != outputs)
      n.fail(quoted(name) + " gives " + Twine(given) + " values, expected " + Twine(outputs) +
             ", one for each output");
  }
  Value condition = n.input(0);
  if (!n.failed() && !NodeImport::dtypeOf(condition).isInteger(1))
    n.fail("the condition is of type " + dtypeName(NodeImport::dtypeOf(condition)) +
           ", expected bool");
  n.refuse("branches");
}

static void importLoop(NodeImport &n) { n.refuse("loops"); }

/// Pads of each dim (all of begin, then all of end) may crop, but not more than there is.
static void checkPads(NodeImport &n, Value x, ArrayRef<int64_t> pads, ArrayRef<int64_t> axes) {
  if (n.failed())
    return;
  if (pads.size() != 2 * axes.size()) {
    n.fail("pads has " + Twine(pads.size()) + " entries, expected " + Twine(2 * axes.size()));
    return;
  }
  for (auto [i, axis] : llvm::enumerate(axes)) {
    Dim size = NodeImport::dimsOf(x)[axis];
    int64_t begin = pads[i], end = pads[i + axes.size()];
    if (size.isConstant() && double(begin) + double(end) + double(size.getConstant()) < 0)
      n.fail("pads of dim " + Twine(axis) + " are " + Twine(begin) + " and " + Twine(end) +
             ", but its size is " + Twine(size.getConstant()));
  }
}

static void importPad(NodeImport &n) {
  Value x = n.input(0);
  if (n.failed())
    return;
  SmallVector<int64_t> axes = llvm::to_vector(llvm::seq<int64_t>(0, NodeImport::rankOf(x)));
  SmallVector<int64_t> pads(n.intsAttr("pads"));
  if (n.hasInput(3))
    axes = n.wrapAxes(n.integers(3, "axes"), axes.size());
  if (n.node.version >= 11)
    pads = n.integers(1, "pads");
  checkPads(n, x, pads, axes);
  n.refuse("padding");
}

llvm::ArrayRef<OpEntry> getControlEntries() {
  static const OpEntry table[] = {
      {"If", 1, latest, 1, 1, many, "then_branch:graph! else_branch:graph!", importIf},
      {"Loop", 1, latest, 2, many, many, "body:graph!", importLoop},
      {"Pad", 2, 10, 1, 1, 1, "mode:string pads:ints! value:float", importPad},
      {"Pad", 11, latest, 2, 4, 1, "mode:string", importPad},
  };
  return table;
}

} // namespace quern::onnx
