//===- Optimizer.cpp - Optimiser steps ------------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Dialect/Quern/IR/Ops/Optimizer.h"

#define GET_STRUCTURED_ARGS
#include "quern/Dialect/Quern/IR/Ops/Optimizer.structured.inc"

using namespace mlir;

namespace quern::meta {

/// C1 and C2 of the family: dtype and shape of self, no broadcasting.
static bool likeSelf(MetaContext &m, const TensorMeta &self, ArrayRef<const TensorMeta *> others) {
  if (!m.check(1, isa<FloatType>(self.dtype), "expected self to be of a float dtype, got {0}",
               {self.dtype}))
    return false;
  for (const TensorMeta *t : others) {
    if (!m.check(1, t->dtype == self.dtype,
                 ("expected " + t->name + " to have the dtype of self, got {0} and {1}").str(),
                 {t->dtype, self.dtype}) ||
        !m.check(2, t->rank() == self.rank(),
                 ("expected " + t->name + " to have rank {0}, got rank {1}").str(),
                 {self.rank(), t->rank()}))
      return false;
    for (int64_t i = 0; i < self.rank(); ++i)
      if (!m.check(
              2, Condition::eq(t->dim(i), self.dim(i)),
              ("expected " + t->name + " dim {0} to equal self dim {0}, got {1} and {2}").str(),
              {i, t->dim(i), self.dim(i)}))
        return false;
  }
  return true;
}

static void sgdStep(const SgdStepArgs &a, MetaContext &m) {
  if (likeSelf(m, a.self, {&a.grad}))
    m.setOutput(0, a.self.dims, a.self.dtype);
}

static void adamwStep(const AdamwStepArgs &a, MetaContext &m) {
  if (!likeSelf(m, a.self, {&a.grad, &a.exp_avg, &a.exp_avg_sq}) ||
      !m.check(3, a.step.rank() == 0 && a.step.dtype.isSignlessInteger(64),
               "expected step to be one i64, got {0} of rank {1}", {a.step.dtype, a.step.rank()}))
    return;
  for (unsigned i = 0; i < 3; ++i)
    m.setOutput(i, a.self.dims, a.self.dtype);
}

} // namespace quern::meta

#define GET_STRUCTURED_DEFS
#include "quern/Dialect/Quern/IR/Ops/Optimizer.structured.inc"

#define GET_OP_CLASSES
#include "quern/Dialect/Quern/IR/Ops/Optimizer.cpp.inc"
