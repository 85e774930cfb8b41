//===- Compiler.h - Options to pipeline to code -----------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What the tools and the C++ API share: a module of quern ops becomes functions in
/// this process, or an artefact.
///
/// Errors carry their status (quern/Support/Error.h): `invalid:` and `unsupported:`
/// texts come from the diagnostics of the passes, with their notes.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_COMPILER_COMPILER_H
#define QUERN_COMPILER_COMPILER_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "quern-c/Runtime.h"
#include "quern/Compiler/DeviceKind.h"
#include "quern/Support/DiskCache.h"
#include "llvm/Support/Error.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace quern {

struct CompileOptions {
  DeviceKind device = DeviceKind::CPU;
  /// CPU of host code and CPU kernels: see CpuTarget::parse.
  std::string cpu = "native";
  /// Chips that CUDA kernels are compiled for.
  std::vector<std::string> chips = {"sm_80", "sm_90"};
  /// 0: every op its own kernel of plain scalar loops and libm, what others are
  /// compared with; 1: fusion and schedules.
  unsigned level = 1;
  /// Rounds at each op boundary as written.
  bool strict = false;
  /// Results may take the buffers of operands that die.
  bool inplace = true;
  /// Threads that compile; 0: one for each core.
  unsigned threads = 0;
  DiskCache cache = DiskCache::user();

  /// Passes tell what they chose and refused, as remarks.
  bool report = false;
  /// Prints the IR to stderr after each pass of this name ("all": every pass).
  std::string dumpAfter;
  /// Called for every remark and warning, with its line (quern/Transforms/Report.h).
  std::function<void(llvm::StringRef)> onRemark;
  /// Called by compiling threads, one at a time, after each kernel.
  std::function<void(size_t done, size_t all)> onProgress;
};

/// What `compileText` answers.
enum class Stage : uint8_t {
  Import,    ///< quern ops, as given
  Planned,   ///< the host function with its memory planned, and the kernels
  Scheduled, ///< the loops of every kernel
  LLVM,      ///< LLVM IR of host and kernels
  Assembly,
  Cuda, ///< CUDA C++ of every kernel
};

/// Bytes of the buffers that a call needs for itself, as expressions over the names of the
/// function's sizes.
struct MemoryPlan {
  std::string functional; ///< each value in a buffer of its own; empty without in-place
  std::string unplanned;  ///< after in-place, each buffer in memory of its own
  std::string arena;      ///< what a call takes
};

/// Functions compiled into this process. They live as long as this object; contexts
/// that called one on a device are destroyed first, or told (quern_context_release).
class CompiledModel {
public:
  ~CompiledModel();
  CompiledModel(const CompiledModel &) = delete;

  /// In the order of the module.
  llvm::ArrayRef<const quern_function *> functions() const { return table; }
  /// By its name in the model; null when there is none.
  const quern_function *lookup(llvm::StringRef name) const;
  /// What was planned for a function of this name.
  const MemoryPlan &memoryPlan(llvm::StringRef name) const;

  struct Impl;
  explicit CompiledModel(std::unique_ptr<Impl> impl, std::vector<const quern_function *> table);

private:
  std::unique_ptr<Impl> impl;
  std::vector<const quern_function *> table;
};

/// Everything that modules of a context need to be compiled: dialects, interfaces.
void registerCompilerDialects(mlir::DialectRegistry &registry);
/// A context with them, and without threads of its own.
std::unique_ptr<mlir::MLIRContext> createContext();

/// Reads a model: `.mlir` text or bytecode. (ONNX: quern/Import/ONNX/Importer.h.) The text's names
/// of arguments (`%image`) become the names of inputs, where no `quern.name` gives another.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> parseModelFile(mlir::MLIRContext &ctx,
                                                                 llvm::StringRef path);

/// Compiles every public function of `module`, which is changed on the way.
llvm::Expected<std::unique_ptr<CompiledModel>> compileModel(mlir::ModuleOp module,
                                                            const CompileOptions &options = {});

/// Compiles to `.o` or `.so` (by the name of `output`) and, when `header` is not
/// empty, writes a C header that describes the functions. Files appear whole or not
/// at all. A function `f` of `m.so` is the symbol `m_f`, or `m` when it is the only one.
llvm::Error compileArtefact(mlir::ModuleOp module, const CompileOptions &options,
                            llvm::StringRef output, llvm::StringRef header = "");

/// The code of one kernel for one chip.
struct KernelImage {
  std::string kernel; ///< the name that fusion gave it
  std::string target; ///< "sm_80": a cubin; "compute_80": PTX
  std::string bytes;
};

/// Every kernel for every chip of the options (`compute_80` for PTX), with NVRTC.
llvm::Expected<std::vector<KernelImage>> compileImages(mlir::ModuleOp module,
                                                       const CompileOptions &options);

/// The text of a stage.
llvm::Expected<std::string> compileText(mlir::ModuleOp module, const CompileOptions &options,
                                        Stage stage);

} // namespace quern

#endif // QUERN_COMPILER_COMPILER_H
