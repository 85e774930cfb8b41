//===- Kernel.h - The kernel dialect ----------------------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_DIALECT_KERNEL_IR_KERNEL_H
#define QUERN_DIALECT_KERNEL_IR_KERNEL_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "quern/Shape/Dim.h"

#include "quern/Dialect/Kernel/IR/KernelDialect.h.inc"
#define GET_OP_CLASSES
#include "quern/Dialect/Kernel/IR/KernelOps.h.inc"

#endif // QUERN_DIALECT_KERNEL_IR_KERNEL_H
