//===- Family.h - What the file of an op family includes --------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_DIALECT_QUERN_IR_FAMILY_H
#define QUERN_DIALECT_QUERN_IR_FAMILY_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "quern/Dialect/Quern/IR/DerivativeBuilder.h"
#include "quern/Dialect/Quern/IR/Quern.h"
#include "quern/Dialect/Quern/IR/ScalarBuilder.h"

#endif // QUERN_DIALECT_QUERN_IR_FAMILY_H
