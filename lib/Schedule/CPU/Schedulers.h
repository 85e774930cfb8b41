//===- Schedulers.h - One scheduler for each kind ---------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_LIB_SCHEDULE_CPU_SCHEDULERS_H
#define QUERN_LIB_SCHEDULE_CPU_SCHEDULERS_H

#include "Nest.h"

namespace quern::cpu {

/// Emits the kernel's three functions as one nest where the ops allow it, else op by
/// op (pointwise, row_reduction, column_reduction, gather, generic). An error is
/// emitted where neither is possible.
mlir::LogicalResult scheduleNest(Emitter &e);

/// Emits the kernel as a blocked matrix product with its epilogue if it is one; if not,
/// nothing is emitted and `reason` says why.
bool scheduleContraction(Emitter &e, std::string &reason);

/// Whether a value of the body is an argument, a table of constants, or a view of one.
bool isInMemory(kernel::FuncOp kernel, mlir::Value v);

/// The body in one form: linalg.generic only (and fills that are inits), each result
/// made by an op of its own. Other ops on tensors are refused.
mlir::LogicalResult normalize(kernel::FuncOp kernel);

} // namespace quern::cpu

#endif // QUERN_LIB_SCHEDULE_CPU_SCHEDULERS_H
