//===- Meta.cpp - What meta functions report ------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Shape/Meta.h"
#include "quern-c/Runtime.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace quern {

std::string dtypeName(Type type) {
  if (auto integer = dyn_cast_or_null<IntegerType>(type)) {
    if (integer.getWidth() == 1)
      return "bool";
    return (integer.isUnsigned() ? "u" : "i") + std::to_string(integer.getWidth());
  }
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

static std::string toText(const MetaArg &arg) {
  if (const Dim *dim = std::get_if<Dim>(&arg))
    return !*dim || dim->isUnknown() ? "?" : dim->str();
  if (const Type *type = std::get_if<Type>(&arg))
    return dtypeName(*type);
  if (const int64_t *number = std::get_if<int64_t>(&arg))
    return std::to_string(*number);
  return std::get<std::string>(arg);
}

/// Replaces {0}, {1}, … by what `replace` says for that argument.
static std::string fill(StringRef text, ArrayRef<MetaArg> args,
                        llvm::function_ref<std::string(const MetaArg &)> replace) {
  std::string result;
  while (!text.empty()) {
    auto [before, after] = text.split('{');
    result += before;
    if (before.size() == text.size())
      break;
    auto [inner, rest] = after.split('}');
    unsigned index;
    if (inner.getAsInteger(10, index) || index >= args.size()) {
      result += '{';
      text = after;
      continue;
    }
    result += replace(args[index]);
    text = rest;
  }
  return result;
}

static std::string idOf(StringRef op, StringRef rule) { return (op + "_" + rule).str(); }

/// The whole message with its arguments still open.
static std::string message(StringRef op, StringRef rule, StringRef text) {
  return ("'quern." + op + "' op " + idOf(op, rule) + ": " + text).str();
}

static std::string ruleOf(unsigned number) { return "c" + std::to_string(number); }

std::string getMessage(const UndecidedCheck &check, ArrayRef<Dim> values) {
  SmallVector<MetaArg> args(values.begin(), values.end());
  return fill(check.text, args, toText);
}

void MetaContext::fail(StringRef rule, StringRef text, ArrayRef<MetaArg> args) {
  if (!result.ok)
    return;
  result.ok = false;
  result.error = fill(message(op, rule, text), args, toText);
}

bool MetaContext::check(unsigned number, bool condition, StringRef text, ArrayRef<MetaArg> args) {
  if (!condition)
    fail(ruleOf(number), text, args);
  return condition;
}

bool MetaContext::check(unsigned number, const Condition &condition, StringRef text,
                        ArrayRef<MetaArg> args) {
  return checkRule(ruleOf(number), condition, text, args);
}

bool MetaContext::checkRule(StringRef rule, const Condition &condition, StringRef text,
                            ArrayRef<MetaArg> args) {
  Truth truth = decide(condition);
  if (truth == Truth::False) {
    fail(rule, text, args);
    return false;
  }
  if (truth == Truth::True || !condition.isCheckable() || !result.ok)
    return true;

  UndecidedCheck undecided{idOf(op, rule), condition, "", {}};
  undecided.text = fill(message(op, rule, text), args, [&](const MetaArg &arg) {
    const Dim *dim = std::get_if<Dim>(&arg);
    if (!dim || dim->isConstant() || dim->isUnknown())
      return toText(arg);
    // Each size once, however often the text names it.
    auto known = llvm::find(undecided.values, *dim);
    size_t index = known - undecided.values.begin();
    if (known == undecided.values.end())
      undecided.values.push_back(*dim);
    return "{" + std::to_string(index) + "}";
  });
  result.undecided.push_back(std::move(undecided));
  facts.assume(condition);
  return true;
}

void MetaContext::setOutput(unsigned i, ArrayRef<Dim> dims, Type dtype) {
  if (result.outputs.size() <= i)
    result.outputs.resize(i + 1);
  int64_t bytes =
      dtype && dtype.isIntOrFloat() ? llvm::divideCeil(dtype.getIntOrFloatBitWidth(), 8) : 1;
  bool fits = true;
  for (Dim d : dims)
    if (d.isConstant())
      fits &= !llvm::MulOverflow(bytes, d.getConstant(), bytes) && bytes <= QUERN_MAX_BYTES;
  if (!fits && llvm::none_of(dims, [](Dim d) { return d.isConstant(0); }))
    fail("result", "expected the result to take at most {0} bytes", {int64_t(QUERN_MAX_BYTES)});
  result.outputs[i].dims.assign(dims.begin(), dims.end());
  result.outputs[i].dtype = dtype;
}

bool MetaContext::broadcast(unsigned number, SmallVectorImpl<Dim> &dims, StringRef against,
                            const TensorMeta &b) {
  int64_t rankBefore = dims.size();
  if (b.dims.size() > dims.size())
    dims.insert(dims.begin(), b.dims.size() - dims.size(), constant(1));
  for (int64_t i = 1, rank = b.rank(); i <= rank; ++i) {
    Dim &size = dims[dims.size() - i];
    Dim other = b.dims[rank - i];
    Dim one = constant(1);
    if (other.isConstant(1))
      continue;
    if (size.isConstant(1)) {
      size = other;
      continue;
    }
    if (!check(number, Condition::broadcastable(size, other),
               "expected {0} dim {1} to equal {2} dim {3} or to be 1, got {4} and {5}",
               {b.name.str(), rank - i, against.str(), rankBefore - i, other, size}))
      return false;
    // The facts now hold that the sizes go together.
    if (decide(Condition::eq(size, other)) == Truth::True) {
      size = other.isConstant() ? other : size;
    } else if (decide(Condition::eq(size, one)) == Truth::True ||
               decide(Condition::eq(other, one)) == Truth::False) {
      size = other;
    } else if (decide(Condition::eq(other, one)) != Truth::True &&
               decide(Condition::eq(size, one)) != Truth::False) {
      size = Dim::bcast(size, other);
    }
  }
  return true;
}

bool MetaContext::checkSizes(unsigned number, ArrayRef<Dim> sizes, StringRef what) {
  for (auto [i, size] : llvm::enumerate(sizes))
    if (!check(number, Condition::le(constant(0), size),
               "expected {0} {1} to be at least 0, got {2}", {what.str(), int64_t(i), size}))
      return false;
  return true;
}

bool MetaContext::wrapDim(unsigned number, int64_t &dim, int64_t rank, StringRef what) {
  rank = std::max<int64_t>(rank, 1);
  if (!check(number, dim >= -rank && dim < rank, "expected {0} to be in [{1}, {2}], got {3}",
             {what.str(), -rank, rank - 1, dim}))
    return false;
  dim = dim < 0 ? dim + rank : dim;
  return true;
}

} // namespace quern
