//===- Fold.cpp - Integers that are known at import -----------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Fold.h"
#include "NodeImport.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace quern::onnx {

/// More elements than a shape has.
static constexpr int64_t maxFolded = 1024;

static int64_t countOf(ArrayRef<int64_t> dims) {
  int64_t count = 1;
  for (int64_t d : dims)
    count *= d;
  return count;
}

/// Whether a number can be stored in the dtype; sizes that are free count as small.
static bool fits(Dim value, DType dtype) {
  if (!value.isConstant())
    return isInteger(dtype) && sizeOf(dtype) >= 4;
  int64_t number = value.getConstant();
  unsigned bits = dtype == DType::Bool ? 1 : 8 * sizeOf(dtype);
  return isSigned(dtype) ? llvm::isIntN(bits, number) : llvm::isUIntN(bits, number);
}

static bool setFolded(NodeImport &n, Contents contents) {
  if (int64_t(contents.values.size()) > maxFolded ||
      !llvm::all_of(contents.values, [&](Dim d) { return d && fits(d, contents.dtype); }))
    return false;
  n.setOutput(0, std::move(contents));
  return true;
}

//===----------------------------------------------------------------------===//
// Element by element
//===----------------------------------------------------------------------===//

/// The dims of a broadcast; nothing where they do not fit (the op's own check says so).
static std::optional<SmallVector<int64_t>> broadcastDims(ArrayRef<const Contents *> operands) {
  SmallVector<int64_t> dims;
  for (const Contents *operand : operands) {
    if (operand->dims.size() > dims.size())
      dims.insert(dims.begin(), operand->dims.size() - dims.size(), 1);
    size_t offset = dims.size() - operand->dims.size();
    for (auto [i, d] : llvm::enumerate(operand->dims)) {
      int64_t &to = dims[offset + i];
      if (to != d && to != 1 && d != 1)
        return std::nullopt;
      if (to == 1)
        to = d;
    }
  }
  return dims;
}

/// The element of `operand` at the index `flat` of a tensor of `dims`.
static Dim elementAt(const Contents &operand, ArrayRef<int64_t> dims, int64_t flat) {
  int64_t index = 0, stride = 1;
  size_t offset = dims.size() - operand.dims.size();
  for (size_t i = dims.size(); i-- > 0;) {
    int64_t coordinate = flat % dims[i];
    flat /= dims[i];
    if (i < offset)
      continue;
    int64_t size = operand.dims[i - offset];
    index += (size == 1 ? 0 : coordinate) * stride;
    stride *= size;
  }
  return operand.values[index];
}

/// Applies `fn` to the elements of all inputs; a null Dim of it gives up.
static bool foldElements(NodeImport &n, DType dtype, llvm::function_ref<Dim(ArrayRef<Dim>)> fn) {
  SmallVector<const Contents *> operands;
  for (unsigned i = 0; i < n.numInputs(); ++i)
    operands.push_back(n.contents(i));
  if (llvm::is_contained(operands, nullptr))
    return false;
  std::optional<SmallVector<int64_t>> dims = broadcastDims(operands);
  if (!dims || countOf(*dims) > maxFolded)
    return false;
  Contents result;
  result.dtype = dtype;
  result.dims = *dims;
  for (int64_t flat = 0, count = countOf(*dims); flat < count; ++flat) {
    SmallVector<Dim> elements;
    for (const Contents *operand : operands)
      elements.push_back(elementAt(*operand, *dims, flat));
    Dim value = fn(elements);
    if (!value)
      return false;
    result.values.push_back(value);
  }
  return setFolded(n, std::move(result));
}

/// Arithmetic on operands of one integer dtype, from left to right.
static bool foldArithmetic(NodeImport &n, llvm::function_ref<Dim(Dim, Dim)> fn) {
  DType dtype = n.contents(0)->dtype;
  for (unsigned i = 0; i < n.numInputs(); ++i)
    if (n.contents(i)->dtype != dtype || !isInteger(dtype) || dtype == DType::U64)
      return false;
  return foldElements(n, dtype, [&](ArrayRef<Dim> elements) {
    Dim value = elements.front();
    for (Dim d : elements.drop_front())
      value = value ? fn(value, d) : Dim();
    return value;
  });
}

/// Constants are computed with a check of overflow, expressions are kept.
template <typename Checked, typename Symbolic>
static Dim combine(Dim a, Dim b, Checked checked, Symbolic symbolic) {
  if (!a.isConstant() || !b.isConstant())
    return symbolic(a, b);
  int64_t result;
  if (checked(a.getConstant(), b.getConstant(), result))
    return Dim();
  return Dim::constant(a.getContext(), result);
}

bool foldAdd(NodeImport &n) {
  return foldArithmetic(n, [](Dim a, Dim b) {
    return combine(a, b, llvm::AddOverflow<int64_t>, [](Dim x, Dim y) { return x + y; });
  });
}
bool foldSub(NodeImport &n) {
  return foldArithmetic(n, [](Dim a, Dim b) {
    return combine(a, b, llvm::SubOverflow<int64_t>, [](Dim x, Dim y) { return x - y; });
  });
}
bool foldMul(NodeImport &n) {
  return foldArithmetic(n, [](Dim a, Dim b) {
    return combine(a, b, llvm::MulOverflow<int64_t>, [](Dim x, Dim y) { return x * y; });
  });
}
bool foldDiv(NodeImport &n) {
  return foldArithmetic(n, [](Dim a, Dim b) -> Dim {
    if (!b.isConstant() || b.getConstant() == 0)
      return Dim();
    if (a.isConstant()) {
      if (b.isConstant(-1))
        return a.isConstant(INT64_MIN) ? Dim() : Dim::constant(a.getContext(), -a.getConstant());
      return Dim::constant(a.getContext(), a.getConstant() / b.getConstant());
    }
    // Toward zero is down only for what is not negative.
    std::optional<int64_t> least = Facts().lowerBound(a);
    if (b.getConstant() < 0 || !least || *least < 0)
      return Dim();
    return Dim::floorDiv(a, b);
  });
}
bool foldMax(NodeImport &n) {
  return foldArithmetic(n, [](Dim a, Dim b) { return Dim::max(a, b); });
}
bool foldMin(NodeImport &n) {
  return foldArithmetic(n, [](Dim a, Dim b) { return Dim::min(a, b); });
}
bool foldNeg(NodeImport &n) {
  DType dtype = n.contents(0)->dtype;
  if (!isInteger(dtype))
    return false;
  return foldElements(n, dtype, [](ArrayRef<Dim> x) -> Dim {
    return x[0].isConstant(INT64_MIN) ? Dim() : x[0] * -1;
  });
}

static bool foldComparison(NodeImport &n, llvm::function_ref<Condition(Dim, Dim)> fn) {
  DType dtype = n.contents(0)->dtype;
  if (n.contents(1)->dtype != dtype || dtype == DType::U64)
    return false;
  return foldElements(n, DType::Bool, [&](ArrayRef<Dim> x) {
    Truth truth = Facts().decide(fn(x[0], x[1]));
    return truth == Truth::Undecided ? Dim() : n.dim(truth == Truth::True);
  });
}
bool foldEqual(NodeImport &n) {
  return foldComparison(n, [](Dim a, Dim b) { return Condition::eq(a, b); });
}
bool foldLess(NodeImport &n) {
  return foldComparison(n, [](Dim a, Dim b) { return Condition::lt(a, b); });
}
bool foldGreater(NodeImport &n) {
  return foldComparison(n, [](Dim a, Dim b) { return Condition::lt(b, a); });
}

bool foldWhere(NodeImport &n) {
  DType dtype = n.contents(1)->dtype;
  if (n.contents(0)->dtype != DType::Bool || n.contents(2)->dtype != dtype)
    return false;
  return foldElements(n, dtype, [](ArrayRef<Dim> x) { return x[0].isConstant(0) ? x[2] : x[1]; });
}

bool foldCast(NodeImport &n) {
  int64_t number = n.intAttr("to", 0);
  const ElementType *to = number == int32_t(number) ? getElementType(int32_t(number)) : nullptr;
  if (!to || !to->dtype || !isInteger(*to->dtype))
    return false;
  Contents contents = *n.contents(0);
  contents.dtype = *to->dtype;
  return setFolded(n, std::move(contents));
}

bool foldReduceProd(NodeImport &n) {
  // Of a whole vector only: the number of elements.
  const Contents &x = *n.contents(0);
  SmallVector<int64_t> axes(n.intsAttr("axes"));
  if (n.hasInput(1))
    axes = n.integers(1, "axes");
  if (!isInteger(x.dtype) || x.rank() != 1 || n.failed() || n.intAttr("noop_with_empty_axes", 0) ||
      (!axes.empty() && axes != ArrayRef<int64_t>{0}))
    return false;
  Contents result;
  result.dtype = x.dtype;
  if (n.intAttr("keepdims", 1))
    result.dims.push_back(1);
  result.values.push_back(Dim::product(n.getContext(), x.values));
  return setFolded(n, std::move(result));
}

//===----------------------------------------------------------------------===//
// Moving elements
//===----------------------------------------------------------------------===//

bool foldGather(NodeImport &n) {
  const Contents &x = *n.contents(0);
  std::optional<SmallVector<int64_t>> indices = n.contents(1)->asConstants();
  int64_t axis = n.intAttr("axis", 0);
  if (x.rank() != 1 || !indices || (axis != 0 && axis != -1))
    return false;
  int64_t count = x.values.size();
  Contents result;
  result.dtype = x.dtype;
  result.dims = n.contents(1)->dims;
  for (int64_t index : *indices) {
    if (index < -count || index >= count) {
      n.fail("index " + Twine(index) + " is out of range for a dim of size " + Twine(count));
      return true;
    }
    result.values.push_back(x.values[index < 0 ? index + count : index]);
  }
  return setFolded(n, std::move(result));
}

bool foldConcat(NodeImport &n) {
  int64_t axis = n.intAttr("axis", 1);
  Contents result;
  result.dtype = n.contents(0)->dtype;
  for (unsigned i = 0; i < n.numInputs(); ++i) {
    const Contents *part = n.contents(i);
    if (!part || part->dtype != result.dtype || part->rank() != 1 || (axis != 0 && axis != -1))
      return false;
    llvm::append_range(result.values, part->values);
  }
  result.dims.push_back(result.values.size());
  return setFolded(n, std::move(result));
}

bool foldSlice(NodeImport &n) {
  // A vector, along its only axis.
  const Contents &x = *n.contents(0);
  if (x.rank() != 1)
    return false;
  auto number = [&](unsigned i, StringRef name, int64_t otherwise) -> std::optional<int64_t> {
    SmallVector<int64_t> list(n.intsAttr(name));
    if (n.node.version >= 10 && n.hasInput(i)) {
      std::optional<SmallVector<int64_t>> known = n.contents(i)->asConstants();
      if (!known)
        return std::nullopt;
      list = *known;
    }
    if (list.empty())
      return otherwise;
    return list.size() == 1 ? std::optional(list[0]) : std::nullopt;
  };
  std::optional<int64_t> start = number(1, "starts", 0), end = number(2, "ends", INT64_MAX),
                         axis = number(3, "axes", 0), step = number(4, "steps", 1);
  if (!start || !end || !axis || !step || (*axis != 0 && *axis != -1) || *step == 0)
    return false;
  int64_t count = x.values.size();
  // Going down, bounds are clamped to [-1, count - 1] instead of [0, count].
  int64_t low = *step > 0 ? 0 : -1, high = *step > 0 ? count : count - 1;
  auto clamp = [&](int64_t bound) {
    if (bound < 0)
      bound = bound < -count ? low : bound + count;
    return std::clamp(bound, low, high);
  };
  Contents result;
  result.dtype = x.dtype;
  int64_t last = clamp(*end);
  for (int64_t i = clamp(*start); *step > 0 ? i < last : i > last;) {
    result.values.push_back(x.values[i]);
    if (llvm::AddOverflow(i, *step, i))
      break;
  }
  result.dims.push_back(result.values.size());
  return setFolded(n, std::move(result));
}

static bool setReshaped(NodeImport &n, ArrayRef<int64_t> dims) {
  Contents result = *n.contents(0);
  if (countOf(dims) != int64_t(result.values.size()))
    return false;
  result.dims.assign(dims.begin(), dims.end());
  return setFolded(n, std::move(result));
}

bool foldReshape(NodeImport &n) {
  const Contents &x = *n.contents(0);
  std::optional<SmallVector<int64_t>> shape = n.contents(1)->asConstants();
  if (!shape || shape->size() > 2)
    return false;
  int64_t count = x.values.size();
  // Vectors and scalars: anything else keeps its zeros and -1 for the op.
  if (shape->empty())
    return setReshaped(n, {});
  if (shape->size() == 1 && (shape->front() == -1 || shape->front() == count) && count)
    return setReshaped(n, {count});
  return false;
}

/// The axes of Squeeze and Unsqueeze.
static std::optional<SmallVector<int64_t>> knownAxes(NodeImport &n) {
  if (n.node.version < 13)
    return SmallVector<int64_t>(n.intsAttr("axes"));
  if (!n.hasInput(1))
    return SmallVector<int64_t>();
  return n.contents(1)->asConstants();
}

bool foldSqueeze(NodeImport &n) {
  const Contents &x = *n.contents(0);
  std::optional<SmallVector<int64_t>> axes = knownAxes(n);
  if (!axes || x.rank() != 1 || x.dims[0] != 1 || axes->size() > 1 ||
      (axes->size() == 1 && axes->front() != 0 && axes->front() != -1))
    return false;
  return setReshaped(n, {});
}

bool foldUnsqueeze(NodeImport &n) {
  const Contents &x = *n.contents(0);
  std::optional<SmallVector<int64_t>> axes = knownAxes(n);
  if (!axes || x.rank() != 0 || axes->size() != 1 || (axes->front() != 0 && axes->front() != -1))
    return false;
  return setReshaped(n, {1});
}

bool foldExpand(NodeImport &n) {
  const Contents &x = *n.contents(0);
  std::optional<SmallVector<int64_t>> shape = n.contents(1)->asConstants();
  if (!shape || llvm::any_of(*shape, [](int64_t d) { return d < 0 || d > maxFolded; }))
    return false;
  Contents target;
  target.dims = *shape;
  std::optional<SmallVector<int64_t>> dims = broadcastDims({&x, &target});
  if (!dims || dims->size() > 2 || countOf(*dims) > maxFolded)
    return false;
  Contents result;
  result.dtype = x.dtype;
  result.dims = *dims;
  for (int64_t flat = 0, count = countOf(*dims); flat < count; ++flat)
    result.values.push_back(elementAt(x, *dims, flat));
  return setFolded(n, std::move(result));
}

bool foldRange(NodeImport &n) {
  SmallVector<int64_t> bounds;
  for (unsigned i = 0; i < 3; ++i) {
    std::optional<SmallVector<int64_t>> known = n.contents(i)->asConstants();
    if (!known || known->size() != 1 || n.contents(i)->dtype != n.contents(0)->dtype)
      return false;
    bounds.push_back(known->front());
  }
  auto [start, limit, delta] = std::tuple(bounds[0], bounds[1], bounds[2]);
  if (delta == 0) {
    n.fail("delta is 0");
    return true;
  }
  double count = std::ceil((double(limit) - double(start)) / double(delta));
  if (count > maxFolded)
    return false;
  Contents result;
  result.dtype = n.contents(0)->dtype;
  for (int64_t i = 0; i < int64_t(count); ++i)
    result.values.push_back(n.dim(start + i * delta));
  result.dims.push_back(result.values.size());
  return setFolded(n, std::move(result));
}

} // namespace quern::onnx
