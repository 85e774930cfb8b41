//===- GenTests.cpp - Tests from samples ----------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Records.h"

using namespace llvm;

namespace quern::tblgen {
void emitTests(const Dialect &, StringRef, raw_ostream &) {}
} // namespace quern::tblgen
