//===- Kernels.h - The kernels of a model, each by itself -------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Kernels travel as text: equal text is one kernel, a hash of it is its symbol and
/// its key in the cache, and each compiling thread parses it in a context of its own.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_LIB_COMPILER_KERNELS_H
#define QUERN_LIB_COMPILER_KERNELS_H

#include "quern/Codegen/CPU/Compile.h"
#include "quern/Compiler/Compiler.h"
#include "quern/Conversion/HostToLLVM/HostToLLVM.h"
#include "quern/Schedule/CPU.h"

namespace quern {

/// One kernel to compile.
struct KernelUnit {
  std::string symbol;  ///< kind and hash: the name of its functions
  std::string display; ///< the name that `quern-fuse` gave it
  std::string text;    ///< the kernel.func, named `@kernel`
};

/// How kernels are compiled: all that their code depends on beside their text.
struct KernelSettings {
  CpuTarget target;
  MachineModel machine;
  ScheduleOptions schedule;
  CodegenOptions codegen;
  bool device = false; ///< CUDA text instead of CPU code
  std::string key() const;
};

/// Lets contractions read constant operands in the order that is fastest: the
/// constants of the host functions are replaced by packed ones.
mlir::LogicalResult packConstants(mlir::ModuleOp module, const MachineModel &machine);

/// Gives each kernel the name of its content, joins equal ones, drops those that
/// nobody launches. The launches follow.
std::vector<KernelUnit> nameKernels(mlir::ModuleOp module, llvm::StringRef settingsKey);

/// The row-major bytes of a constant, one byte for a bool.
std::vector<char> elementBytes(mlir::ElementsAttr value);

/// The kernel of a unit, under the unit's symbol and with its body in linalg: the only op of a
/// module in a context of the caller.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> loadUnit(mlir::MLIRContext &ctx,
                                                            const KernelUnit &unit);
/// The loops of one kernel, or its device function, in a context of the caller.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
scheduleUnit(mlir::MLIRContext &ctx, const KernelUnit &unit, const KernelSettings &settings);

/// What each unit becomes (objects, or text by `settings.codegen.emit`), from the
/// cache or by several threads: this one works in `ctx`, others in contexts of their own.
/// Errors name the kernel; of several, the first kernel's is answered.
llvm::Expected<std::vector<std::unique_ptr<llvm::MemoryBuffer>>>
compileKernels(mlir::MLIRContext &ctx, llvm::ArrayRef<KernelUnit> units,
               const KernelSettings &settings, const CompileOptions &options);

/// A kernel for a device: its text and the object of its `_range`, as one piece.
mlir::FailureOr<std::string> compileDeviceUnit(mlir::MLIRContext &ctx, const KernelUnit &unit,
                                               const KernelSettings &settings);

/// The kernels of a module for a device.
struct DeviceKernels {
  std::vector<std::string> texts; ///< CUDA C++, by unit
  std::vector<std::unique_ptr<llvm::MemoryBuffer>> objects;
  std::vector<DeviceImage> images;
};

/// Compiles them and writes on each `kernel.func` where its images are.
llvm::Expected<DeviceKernels> compileDeviceKernels(mlir::ModuleOp module,
                                                   llvm::ArrayRef<KernelUnit> units,
                                                   const KernelSettings &settings,
                                                   const CompileOptions &options);

} // namespace quern

#endif // QUERN_LIB_COMPILER_KERNELS_H
