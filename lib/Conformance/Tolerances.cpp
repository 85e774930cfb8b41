//===- Tolerances.cpp - What is allowed for a recorded call ---------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Tolerances.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace quern::conformance {

static int64_t product(ArrayRef<int64_t> dims) {
  int64_t result = 1;
  for (int64_t dim : dims)
    result *= dim;
  return result;
}

static const HostTensor *findTensor(const OpCase &test, ArrayRef<StringRef> names) {
  for (StringRef name : names)
    if (const CaseValue *value = test.find(name))
      if (const auto *tensor = std::get_if<HostTensor>(value))
        return tensor;
  return nullptr;
}

static SmallVector<int64_t> findIntegers(const OpCase &test, StringRef name) {
  const CaseValue *value = test.find(name);
  if (!value)
    return {};
  if (const auto *list = std::get_if<SmallVector<int64_t>>(value))
    return *list;
  if (const auto *number = std::get_if<aten::Scalar>(value))
    return {number->asInt};
  return {};
}

/// The number of terms summed into one element of the result.
static int64_t countTerms(const OpCase &test, aten::Terms terms) {
  switch (terms) {
  case aten::Terms::One:
    return 1;
  case aten::Terms::Reduced: {
    const HostTensor *self = findTensor(test, {"self", "input"});
    SmallVector<int64_t> dims = findIntegers(test, "dim");
    if (!self)
      return 1;
    if (dims.empty())
      return self->numElements();
    int64_t count = 1;
    for (int64_t dim : dims) {
      dim = dim < 0 ? dim + self->rank() : dim;
      if (dim >= 0 && dim < self->rank())
        count *= self->dims()[dim];
    }
    return count;
  }
  case aten::Terms::LastDim: {
    const HostTensor *first = findTensor(test, {"mat1", "self", "input"});
    return first && first->rank() ? first->dims().back() : 1;
  }
  case aten::Terms::Window: {
    const HostTensor *weight = findTensor(test, {"weight"});
    return weight && weight->rank() ? product(weight->dims().drop_front()) : 1;
  }
  case aten::Terms::Normalized:
    return product(findIntegers(test, "normalized_shape"));
  case aten::Terms::FirstDim: {
    const HostTensor *self = findTensor(test, {"self"});
    return self && self->rank() ? self->dims().front() : 1;
  }
  }
  llvm_unreachable("every kind of term is handled");
}

Tolerance outputTolerance(const OpCase &test, const aten::Overload &overload, unsigned i) {
  return getTolerance(test.outputs[i].tensor.dtype(), overload.rounding,
                      countTerms(test, overload.terms), /*gradient=*/false, test.err64);
}

Tolerance gradientTolerance(const OpCase &test, const aten::Overload &overload,
                            const CaseGradient &gradient) {
  // Every product or term of the forward sends one term backward; they spread evenly over the
  // elements of the operand. A vector (a bias, a scale) gets one term from each result element.
  int64_t work = test.outputs.front().tensor.numElements();
  if (gradient.want.rank() > 1 || overload.terms != aten::Terms::Window)
    work *= countTerms(test, overload.terms);
  int64_t size = std::max<int64_t>(gradient.want.numElements(), 1);
  int64_t terms = std::max<int64_t>((work + size - 1) / size, 1);
  // Gathers may send all of their elements to one place.
  if (const HostTensor *index = findTensor(test, {"index", "indices"}))
    terms = std::max(terms, index->numElements());
  Rounding rounding = overload.gradientRounding;
  if (terms > 1)
    rounding = Rounding::Accumulating;
  return getTolerance(gradient.want.dtype(), rounding, terms, /*gradient=*/true, test.err64);
}

} // namespace quern::conformance
