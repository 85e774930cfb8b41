//===- Pointwise.cpp - Element-by-element ONNX ops ------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Fold.h"
#include "NodeImport.h"

using namespace mlir;

namespace quern::onnx {

/// Ops that are one op of Quern's.
#define QUERN_UNARY(function, mnemonic)                                                            \
  static void function(NodeImport &n) { n.setOutput(0, n.op(mnemonic, {n.input(0)})); }
#define QUERN_BINARY(function, mnemonic)                                                           \
  static void function(NodeImport &n) { n.setOutput(0, n.op(mnemonic, {n.input(0), n.input(1)})); }
QUERN_UNARY(importAbs, "abs")
QUERN_UNARY(importErf, "erf")
QUERN_UNARY(importExp, "exp")
QUERN_UNARY(importLog, "log")
QUERN_UNARY(importNeg, "neg")
QUERN_UNARY(importReciprocal, "reciprocal")
QUERN_UNARY(importRelu, "relu")
QUERN_UNARY(importSigmoid, "sigmoid")
QUERN_UNARY(importSqrt, "sqrt")
QUERN_UNARY(importTanh, "tanh")
QUERN_BINARY(importAdd, "add")
QUERN_BINARY(importSub, "sub")
QUERN_BINARY(importMul, "mul")
QUERN_BINARY(importDiv, "div")
QUERN_BINARY(importEqual, "eq")
QUERN_BINARY(importLess, "lt")
QUERN_BINARY(importLessOrEqual, "le")
QUERN_BINARY(importGreater, "gt")
QUERN_BINARY(importGreaterOrEqual, "ge")
#undef QUERN_UNARY
#undef QUERN_BINARY

/// Before opset 7 the second operand broadcasts only when told to, from `axis` on
/// (the end by default).
template <void (*importNumpy)(NodeImport &, Value, Value)>
static void importOldBroadcast(NodeImport &n) {
  Value a = n.input(0), b = n.input(1);
  if (n.failed())
    return;
  int64_t rankA = NodeImport::rankOf(a), rankB = NodeImport::rankOf(b);
  if (n.intAttr("broadcast", 0) == 0) {
    if (NodeImport::dimsOf(a) != NodeImport::dimsOf(b)) {
      n.fail("operands differ in shape, and attribute 'broadcast' is not set");
      return;
    }
  } else if (n.hasAttr("axis")) {
    int64_t axis = n.wrapAxis(n.intAttr("axis", 0), rankA);
    if (!n.failed() && axis + rankB > rankA) {
      n.fail("attribute 'axis' is " + Twine(axis) + ", but ranks are " + Twine(rankA) + " and " +
             Twine(rankB));
      return;
    }
    SmallVector<Dim> dims = NodeImport::dimsOf(b);
    dims.append(rankA - rankB - axis, n.dim(1));
    b = n.reshape(b, dims);
  }
  importNumpy(n, a, b);
}
#define QUERN_OLD_BINARY(function, mnemonic)                                                       \
  static void function(NodeImport &n, Value a, Value b) { n.setOutput(0, n.op(mnemonic, {a, b})); }
QUERN_OLD_BINARY(oldAdd, "add")
QUERN_OLD_BINARY(oldSub, "sub")
QUERN_OLD_BINARY(oldMul, "mul")
QUERN_OLD_BINARY(oldDiv, "div")
#undef QUERN_OLD_BINARY

/// Variadic ops, from left to right.
static Value accumulate(NodeImport &n, StringRef mnemonic) {
  Value result = n.input(0);
  for (unsigned i = 1; i < n.numInputs(); ++i)
    result = n.op(mnemonic, {result, n.input(i)});
  return result;
}
static void importMax(NodeImport &n) { n.setOutput(0, accumulate(n, "maximum")); }
static void importMin(NodeImport &n) { n.setOutput(0, accumulate(n, "minimum")); }
static void importSum(NodeImport &n) { n.setOutput(0, accumulate(n, "add")); }
static void importMean(NodeImport &n) {
  Value sum = accumulate(n, "add");
  n.setOutput(0, n.op("div", {sum, n.scalarLike(n.numInputs(), sum)}));
}

/// Whole exponents that are products, and the square root.
static void importPow(NodeImport &n) {
  Value base = n.input(0);
  const Tensor *exponent = n.storedTensor(1);
  if (n.failed())
    return;
  if (!exponent || exponent->data.numElements() != 1 ||
      int64_t(exponent->dims.size()) > NodeImport::rankOf(base)) {
    n.refuse("an exponent that is no stored number");
    return;
  }
  double e = exponent->data.getDouble(0);
  if (e == 1)
    return n.setOutput(0, base);
  if (e == 2)
    return n.setOutput(0, n.op("mul", {base, base}));
  if (e == 3)
    return n.setOutput(0, n.op("mul", {n.op("mul", {base, base}), base}));
  bool isFloat = isa<FloatType>(NodeImport::dtypeOf(base));
  if (isFloat && e == 0.5)
    return n.setOutput(0, n.op("sqrt", {base}));
  if (isFloat && e == -1)
    return n.setOutput(0, n.op("reciprocal", {base}));
  n.refuse("exponent " + llvm::formatv("{0}", e).str());
}

//===----------------------------------------------------------------------===//
// Bool
//===----------------------------------------------------------------------===//

static bool checkBool(NodeImport &n, unsigned i) {
  Value value = n.input(i);
  if (!n.failed() && !NodeImport::dtypeOf(value).isInteger(1))
    n.fail("input " + Twine(i) + " is of type " + dtypeName(NodeImport::dtypeOf(value)) +
           ", expected bool");
  return !n.failed();
}

template <unsigned operands> static void logical(NodeImport &n, StringRef mnemonic) {
  SmallVector<OperandGroup> values;
  for (unsigned i = 0; i < operands; ++i) {
    if (!checkBool(n, i))
      return;
    values.push_back(n.input(i));
  }
  n.setOutput(0, n.op(mnemonic, values));
}
static void importNot(NodeImport &n) { logical<1>(n, "logical_not"); }
static void importAnd(NodeImport &n) { logical<2>(n, "logical_and"); }
static void importOr(NodeImport &n) { logical<2>(n, "logical_or"); }
static void importXor(NodeImport &n) { logical<2>(n, "ne"); }
static void importWhere(NodeImport &n) {
  n.setOutput(0, n.op("where", {n.input(0), n.input(1), n.input(2)}));
}

//===----------------------------------------------------------------------===//
// Activations
//===----------------------------------------------------------------------===//

/// min(max(x, low), high): where low > high the result is high.
static Value clamp(NodeImport &n, Value x, Value low, Value high) {
  if (low)
    x = n.op("maximum", {x, low});
  return high ? n.op("minimum", {x, high}) : x;
}

static void importClipAttributes(NodeImport &n) {
  Value x = n.input(0);
  Value low, high;
  if (n.hasAttr("min"))
    low = n.scalarLike(n.floatAttr("min", 0), x);
  if (n.hasAttr("max"))
    high = n.scalarLike(n.floatAttr("max", 0), x);
  n.setOutput(0, clamp(n, x, low, high));
}
static void importClip(NodeImport &n) {
  n.setOutput(0, clamp(n, n.input(0), n.optionalInput(1), n.optionalInput(2)));
}

static void importGelu(NodeImport &n) {
  StringRef approximate = n.stringAttr("approximate", "none");
  n.setOutput(0, n.op("gelu", {n.input(0)}, {n.attr("approximate", approximate)}));
}

/// `positive` where x > 0 (or x is NaN), else `other`.
static Value select(NodeImport &n, Value x, Value positive, Value other) {
  return n.op("where", {n.op("le", {x, n.scalarLike(0, x)}), other, positive});
}

static void importLeakyRelu(NodeImport &n) {
  Value x = n.input(0);
  Value scaled = n.op("mul", {x, n.scalarLike(n.floatAttr("alpha", 0.01), x)});
  n.setOutput(0, select(n, x, x, scaled));
}
static void importPRelu(NodeImport &n) {
  Value x = n.input(0);
  n.setOutput(0, select(n, x, x, n.op("mul", {x, n.input(1)})));
}
/// scale * (x, or alpha * (exp(x / divisor) - 1) below 0). The exponent is kept from
/// overflowing where x is positive and the branch is not taken.
static void importEluLike(NodeImport &n, double scale, double alpha, double divisor) {
  Value x = n.input(0);
  Value low = n.op("minimum", {x, n.scalarLike(0, x)});
  if (divisor != 1)
    low = n.op("div", {low, n.scalarLike(divisor, x)});
  Value below = n.op("sub", {n.op("exp", {low}), n.scalarLike(1, x)});
  below = n.op("mul", {below, n.scalarLike(alpha, x)});
  Value result = select(n, x, x, below);
  if (scale != 1)
    result = n.op("mul", {result, n.scalarLike(scale, x)});
  n.setOutput(0, result);
}
static void importElu(NodeImport &n) { importEluLike(n, 1, n.floatAttr("alpha", 1), 1); }
static void importCelu(NodeImport &n) {
  double alpha = n.floatAttr("alpha", 1);
  importEluLike(n, 1, alpha, alpha);
}
static void importSelu(NodeImport &n) {
  importEluLike(n, n.floatAttr("gamma", 1.05070102214813232421875),
                n.floatAttr("alpha", 1.67326319217681884765625), 1);
}
static void importThresholdedRelu(NodeImport &n) {
  Value x = n.input(0);
  Value isAbove = n.op("gt", {x, n.scalarLike(n.floatAttr("alpha", 1), x)});
  n.setOutput(0, n.op("where", {isAbove, x, n.scalarLike(0, x)}));
}
static Value hardSigmoid(NodeImport &n, Value x, double alpha, double beta) {
  Value line = n.op("mul", {x, n.scalarLike(alpha, x)});
  line = n.op("add", {line, n.scalarLike(beta, x)});
  return clamp(n, line, n.scalarLike(0, x), n.scalarLike(1, x));
}
static void importHardSigmoid(NodeImport &n) {
  n.setOutput(0, hardSigmoid(n, n.input(0), n.floatAttr("alpha", 0.2), n.floatAttr("beta", 0.5)));
}
static void importHardSwish(NodeImport &n) {
  Value x = n.input(0);
  n.setOutput(0, n.op("mul", {x, hardSigmoid(n, x, 1.0 / 6, 0.5)}));
}
/// log(1 + exp(x)) without overflow: max(x, 0) + log(1 + exp(-|x|)).
static Value softplus(NodeImport &n, Value x) {
  Value e = n.op("exp", {n.op("neg", {n.op("abs", {x})})});
  Value rest = n.op("log", {n.op("add", {e, n.scalarLike(1, x)})});
  return n.op("add", {n.op("maximum", {x, n.scalarLike(0, x)}), rest});
}
static void importSoftplus(NodeImport &n) { n.setOutput(0, softplus(n, n.input(0))); }
static void importMish(NodeImport &n) {
  Value x = n.input(0);
  n.setOutput(0, n.op("mul", {x, n.op("tanh", {softplus(n, x)})}));
}
static void importSoftsign(NodeImport &n) {
  Value x = n.input(0);
  Value denominator = n.op("add", {n.op("abs", {x}), n.scalarLike(1, x)});
  n.setOutput(0, n.op("div", {x, denominator}));
}
static void importSwish(NodeImport &n) {
  Value x = n.input(0);
  Value scaled = x;
  if (double alpha = n.floatAttr("alpha", 1); alpha != 1)
    scaled = n.op("mul", {x, n.scalarLike(alpha, x)});
  n.setOutput(0, n.op("mul", {x, n.op("sigmoid", {scaled})}));
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

static void importIdentity(NodeImport &n) { n.forward(0); }

static void importCast(NodeImport &n) {
  int64_t number = n.intAttr("to", 0);
  const ElementType *to = number == int32_t(number) ? getElementType(int32_t(number)) : nullptr;
  if (!to) {
    n.fail("attribute 'to' is " + Twine(number) + ", which is no element type");
    return;
  }
  if (!to->dtype) {
    n.refuse("a cast to " + to->name);
    return;
  }
  n.setOutput(0, n.convert(n.input(0), getElementType(n.getContext(), *to->dtype)));
}
static void importCastLike(NodeImport &n) {
  Value like = n.input(1);
  if (!n.failed())
    n.setOutput(0, n.convert(n.input(0), NodeImport::dtypeOf(like)));
}

/// In inference it is the identity; the mask is all true.
static void importDropout(NodeImport &n) {
  if (n.hasInput(2)) {
    const Contents *training = n.contents(2);
    if (!training || training->values.size() != 1 || !training->values[0].isConstant(0)) {
      n.refuse("training_mode that is not false");
      return;
    }
  }
  if (n.node.version < 7 && n.intAttr("is_test", 0) == 0) {
    n.refuse("training (is_test is 0)");
    return;
  }
  n.forward(0);
  if (n.wantsOutput(1)) {
    Value x = n.input(0);
    if (n.failed())
      return;
    Value all = n.full(HostTensor::fromValues(DType::Bool, {}, {1}), NodeImport::dimsOf(x));
    n.setOutput(1, n.node.version >= 10 ? all : n.convert(all, NodeImport::dtypeOf(x)));
  }
}

llvm::ArrayRef<OpEntry> getPointwiseEntries() {
  constexpr llvm::StringLiteral oldBroadcast = "axis:int broadcast:int";
  static const OpEntry table[] = {
      {"Abs", 1, latest, 1, 1, 1, "", importAbs},
      {"Erf", 9, latest, 1, 1, 1, "", importErf},
      {"Exp", 1, latest, 1, 1, 1, "", importExp},
      {"Log", 1, latest, 1, 1, 1, "", importLog},
      {"Neg", 1, latest, 1, 1, 1, "", importNeg, foldNeg},
      {"Reciprocal", 1, latest, 1, 1, 1, "", importReciprocal},
      {"Relu", 1, latest, 1, 1, 1, "", importRelu},
      {"Sigmoid", 1, latest, 1, 1, 1, "", importSigmoid},
      {"Sqrt", 1, latest, 1, 1, 1, "", importSqrt},
      {"Tanh", 1, latest, 1, 1, 1, "", importTanh},
      {"Add", 1, 6, 2, 2, 1, oldBroadcast, importOldBroadcast<oldAdd>},
      {"Sub", 1, 6, 2, 2, 1, oldBroadcast, importOldBroadcast<oldSub>},
      {"Mul", 1, 6, 2, 2, 1, oldBroadcast, importOldBroadcast<oldMul>},
      {"Div", 1, 6, 2, 2, 1, oldBroadcast, importOldBroadcast<oldDiv>},
      {"Add", 7, latest, 2, 2, 1, "", importAdd, foldAdd},
      {"Sub", 7, latest, 2, 2, 1, "", importSub, foldSub},
      {"Mul", 7, latest, 2, 2, 1, "", importMul, foldMul},
      {"Div", 7, latest, 2, 2, 1, "", importDiv, foldDiv},
      {"Equal", 7, latest, 2, 2, 1, "", importEqual, foldEqual},
      {"Less", 7, latest, 2, 2, 1, "", importLess, foldLess},
      {"LessOrEqual", 12, latest, 2, 2, 1, "", importLessOrEqual},
      {"Greater", 7, latest, 2, 2, 1, "", importGreater, foldGreater},
      {"GreaterOrEqual", 12, latest, 2, 2, 1, "", importGreaterOrEqual},
      {"Max", 1, latest, 1, many, 1, "", importMax, foldMax},
      {"Min", 1, latest, 1, many, 1, "", importMin, foldMin},
      {"Sum", 1, latest, 1, many, 1, "", importSum},
      {"Mean", 1, latest, 1, many, 1, "", importMean},
      {"Pow", 7, latest, 2, 2, 1, "", importPow},
      {"Not", 1, latest, 1, 1, 1, "", importNot},
      {"And", 7, latest, 2, 2, 1, "", importAnd},
      {"Or", 7, latest, 2, 2, 1, "", importOr},
      {"Xor", 7, latest, 2, 2, 1, "", importXor},
      {"Where", 9, latest, 3, 3, 1, "", importWhere, foldWhere},
      {"Clip", 1, 10, 1, 1, 1, "max:float min:float", importClipAttributes},
      {"Clip", 11, latest, 1, 3, 1, "", importClip},
      {"Gelu", 20, latest, 1, 1, 1, "approximate:string", importGelu},
      {"LeakyRelu", 1, latest, 1, 1, 1, "alpha:float", importLeakyRelu},
      {"PRelu", 7, latest, 2, 2, 1, "", importPRelu},
      {"Elu", 1, latest, 1, 1, 1, "alpha:float", importElu},
      {"Celu", 12, latest, 1, 1, 1, "alpha:float", importCelu},
      {"Selu", 6, latest, 1, 1, 1, "alpha:float gamma:float", importSelu},
      {"ThresholdedRelu", 10, latest, 1, 1, 1, "alpha:float", importThresholdedRelu},
      {"HardSigmoid", 1, latest, 1, 1, 1, "alpha:float beta:float", importHardSigmoid},
      {"HardSwish", 14, latest, 1, 1, 1, "", importHardSwish},
      {"Softplus", 1, latest, 1, 1, 1, "", importSoftplus},
      {"Softsign", 1, latest, 1, 1, 1, "", importSoftsign},
      {"Mish", 18, latest, 1, 1, 1, "", importMish},
      {"Swish", 24, latest, 1, 1, 1, "alpha:float", importSwish},
      {"Identity", 1, latest, 1, 1, 1, "", importIdentity},
      {"Cast", 6, latest, 1, 1, 1, "to:int! saturate:int round_mode:string", importCast, foldCast},
      {"CastLike", 15, latest, 2, 2, 1, "saturate:int round_mode:string", importCastLike},
      {"Dropout", 1, 6, 1, 1, 2, "is_test:int ratio:float", importDropout},
      {"Dropout", 7, 11, 1, 1, 2, "ratio:float", importDropout},
      {"Dropout", 12, latest, 1, 3, 2, "seed:int", importDropout},
  };
  return table;
}

} // namespace quern::onnx
