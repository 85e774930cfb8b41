//===- OpStatus.h - What is there of each op --------------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_DIALECT_QUERN_IR_OPSTATUS_H
#define QUERN_DIALECT_QUERN_IR_OPSTATUS_H

#include "llvm/Support/raw_ostream.h"

namespace quern {

/// Prints the coverage table in Markdown, a row for each op. A word in place of yes is the reason.
void printOpStatus(llvm::raw_ostream &os);

} // namespace quern

#endif // QUERN_DIALECT_QUERN_IR_OPSTATUS_H
