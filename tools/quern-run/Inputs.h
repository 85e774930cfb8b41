//===- Inputs.h - Tensors for a call ----------------------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_TOOLS_QUERN_RUN_INPUTS_H
#define QUERN_TOOLS_QUERN_RUN_INPUTS_H

#include "quern-c/Runtime.h"
#include "quern/Support/HostTensor.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

namespace quern {

/// Sizes of free dims by name, from `B=4` (several with commas).
llvm::Expected<llvm::StringMap<int64_t>> parseDims(llvm::ArrayRef<std::string> texts);

/// Tensors of the function's signature: free dims by name (1 where none is given),
/// floats in [-1, 1), integers in [0, 8), bools, all from `seed`.
llvm::Expected<std::vector<HostTensor>> randomInputs(const quern_function &fn, uint64_t seed,
                                                     const llvm::StringMap<int64_t> &dims);

/// Reads `.npy` and `.pb` files.
llvm::Expected<std::vector<HostTensor>> readInputs(llvm::ArrayRef<std::string> files);

} // namespace quern

#endif // QUERN_TOOLS_QUERN_RUN_INPUTS_H
