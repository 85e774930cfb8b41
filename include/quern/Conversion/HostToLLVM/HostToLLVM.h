//===- HostToLLVM.h - The host function as C ABI code -----------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The last step of the host side: a bufferised, memory-planned function becomes
/// the two functions and the tables of `quern_function` (quern-c/Runtime.h).
///
/// Input: `func.func` with memref arguments (attributes: FunctionAttrs.h), no
/// results, one block, and in it
/// - `kernel.launch` on memrefs; `kernel.view`; `kernel.guard`;
/// - at most one `memref.alloc` of i8, the arena, whose size depends on dims only;
/// - `memref.view` of the arena, `memref.subview`, `memref.cast`, `memref.dim`;
/// - `kernel.dim`, arithmetic on index, integers and i1.
/// Anything else is refused, `memref.copy` among it: copies are kernels.
///
/// Output, for `@f`: private `llvm.func`s `@f_prepare` and `@f_run`, constant tables,
/// and the public `@f`, a `quern_function`; for the module, `@quern_artefact_table`,
/// which lists its functions. A kernel `@k` is referred to as `@k`,
/// `@k_range` and `@k_unit_cost`, which other objects define. There are no memref
/// descriptors: each memref is a pointer and sizes.
///
/// A guard must depend on dims only; it is checked in `prepare`, as is that every
/// argument dim has the size that its name says (`B` given twice, `2*S`).
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_CONVERSION_HOSTTOLLVM_HOSTTOLLVM_H
#define QUERN_CONVERSION_HOSTTOLLVM_HOSTTOLLVM_H

#include "mlir/IR/BuiltinAttributeInterfaces.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace quern {

/// Code for a device, which the tables name: the bytes of a `quern_image`.
struct DeviceImage {
  std::string target;
  std::string bytes;
};

struct HostToLLVMOptions {
  /// Kernels run on a device: the tables take `kernel.func` attributes
  /// `quern.image`, `quern.image_count`, `quern.block_threads`, `quern.shared_bytes`
  /// (integers), only `@k_range` is referred to, and the kernel's name in the table is
  /// its symbol, by which the device looks it up.
  bool device = false;
  std::vector<DeviceImage> images;
  /// What host code and kernels need of the CPU: the bits of quern-c/CpuFeatures.def.
  uint64_t cpuFeatures = 0;
};

/// A constant that the tables refer to and another object defines.
struct HostConstant {
  std::string symbol;
  mlir::ElementsAttr value;
};

/// Converts every public `func.func` of the module and erases its `kernel.func`s.
/// The function's name in messages is its `quern.name`, else its symbol. Answers the
/// constants: their bytes are not copied into the module.
mlir::FailureOr<std::vector<HostConstant>> convertHostToLLVM(mlir::ModuleOp module,
                                                             const HostToLLVMOptions &options = {});

/// `quern-convert-host-to-llvm`.
void registerHostToLLVMPass();

} // namespace quern

#endif // QUERN_CONVERSION_HOSTTOLLVM_HOSTTOLLVM_H
