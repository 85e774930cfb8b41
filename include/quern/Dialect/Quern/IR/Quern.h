//===- Quern.h - The quern dialect ------------------------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The dialect and the interface of its ops. The op classes themselves stand in
/// Ops/<Family>.h; passes do not need them.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_DIALECT_QUERN_IR_QUERN_H
#define QUERN_DIALECT_QUERN_IR_QUERN_H

#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "quern/Dialect/Quern/IR/OpRecord.h"

#include "quern/Dialect/Quern/IR/QuernDialect.h.inc"
#include "quern/Dialect/Quern/IR/QuernInterfaces.h.inc"

#endif // QUERN_DIALECT_QUERN_IR_QUERN_H
