//===- Tolerances.h - What is allowed for a recorded call -------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_LIB_CONFORMANCE_TOLERANCES_H
#define QUERN_LIB_CONFORMANCE_TOLERANCES_H

#include "Case.h"
#include "quern/Support/Compare.h"

namespace quern::conformance {

/// For output `i` of a recorded call.
Tolerance outputTolerance(const OpCase &test, const aten::Overload &overload, unsigned i);
/// For one of its gradients.
Tolerance gradientTolerance(const OpCase &test, const aten::Overload &overload,
                            const CaseGradient &gradient);

} // namespace quern::conformance
#endif // QUERN_LIB_CONFORMANCE_TOLERANCES_H
