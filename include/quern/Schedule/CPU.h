//===- CPU.h - Kernel bodies to loops and vectors for the CPU ---*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A kernel in tensor semantics becomes a module that `compileToObject` takes:
/// ```mlir
///   func.func @k(%bufs: !llvm.ptr, %dims: !llvm.ptr, %lo: i64, %hi: i64)
///   func.func @k_range(%dims: !llvm.ptr) -> i64      // independent units
///   func.func @k_unit_cost(%dims: !llvm.ptr) -> i64  // nanoseconds each, rough
/// ```
/// `bufs` are the ins, then the outs; `dims` the kernel's symbols in order of
/// appearance, then the strides (in elements, outermost first) of each argument in
/// `strided`. Any split of [0, range) over any number of threads gives the same bits.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_SCHEDULE_CPU_H
#define QUERN_SCHEDULE_CPU_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "quern/Dialect/Kernel/IR/Kernel.h"
#include "quern/Schedule/MachineModel.h"

#include <memory>
#include <optional>
#include <vector>

namespace mlir {
class Pass;
}

namespace quern {

struct ScheduleOptions {
  /// Plain scalar loops and libm, each op by itself: what others are compared with.
  bool reference = false;
  /// Rounds at each op as written: no contraction, no reciprocals, libm for
  /// transcendentals. Otherwise ("relaxed") products feed sums unrounded.
  bool strict = false;
};

/// Loops for one kernel, by the scheduler for its kind or else by the generic one.
/// An `unsupported:` error is emitted at the op that no scheduler handles.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
scheduleKernel(kernel::FuncOp kernel, const MachineModel &machine,
               const ScheduleOptions &options = {});

/// How a contraction reads a constant operand fastest: panels of `panel` columns,
/// `[batch][ceil(columns / panel)][depth][panel]`, the last panel filled up with zeros.
struct PackedLayout {
  int64_t batch = 1, depth = 0, columns = 0;
  int64_t panel = 0;
  /// Strides, in elements, of the unpacked operand.
  int64_t batchStride = 0, depthStride = 0, columnStride = 0;
  unsigned elementBytes = 4;

  int64_t numPanels() const { return (columns + panel - 1) / panel; }
  /// The packed operand, which may be a little larger than the plain one.
  int64_t numElements() const { return batch * numPanels() * depth * panel; }
};

/// The layout that argument `arg` of the kernel would be read in if it were listed in
/// the kernel's `packed`; none when it is not the right side of a contraction, or a
/// size of it is free. It depends on the machine's vectors.
std::optional<PackedLayout> getPackedLayout(kernel::FuncOp kernel, unsigned arg,
                                            const MachineModel &machine);

/// The operand's bytes in that layout.
std::vector<char> packConstant(const PackedLayout &layout, llvm::ArrayRef<char> data);

/// `quern-schedule-cpu`: a module becomes the functions of its kernels. `cpu`: see
/// CpuTarget::parse.
std::unique_ptr<mlir::Pass> createScheduleCPUPass(llvm::StringRef cpu = "native",
                                                  const ScheduleOptions &options = {});
void registerScheduleCPUPass();

} // namespace quern

#endif // QUERN_SCHEDULE_CPU_H
