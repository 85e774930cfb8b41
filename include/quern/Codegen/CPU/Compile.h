//===- Compile.h - MLIR to object code --------------------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// From a module that is convertible to the LLVM dialect to an object file in
/// memory. The JIT loads the very object that an artefact would contain.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_CODEGEN_CPU_COMPILE_H
#define QUERN_CODEGEN_CPU_COMPILE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"

#include "quern/Codegen/CPU/Target.h"
#include <string>
#include <vector>

namespace quern {

/// The bytes of an ELF object file (relocatable, position-independent).
struct ObjectCode {
  llvm::SmallVector<char, 0> bytes;
  llvm::StringRef ref() const { return {bytes.data(), bytes.size()}; }
};

struct CodegenOptions {
  enum class Emit { Object, Assembly, LLVM };
  /// What `bytes` holds: an object, assembly text, or LLVM IR text after the
  /// function pipeline.
  Emit emit = Emit::Object;
  /// 0: no LLVM pass at all (the reference); 1: the light pipeline for code that
  /// is already vectorised and unrolled (what the schedulers print); 2: LLVM's O2
  /// with its vectorisers, for the generic fallback's plain scalar loops.
  unsigned level = 1;
  /// The module holds kernels, whose names tell their content: public functions are
  /// hidden outside the artefact and may be defined in several of its objects.
  bool kernels = true;
};

/// Dialects, conversion interfaces and translations that `compileToObject` needs
/// in the module's context: builtin, func, cf, scf, arith, math, index, memref,
/// vector, ub, llvm.
void registerCodegenDialects(mlir::DialectRegistry &registry);

/// Lowers `module` (it is changed on the way) and generates code.
///
/// A kernel module holds, for each kernel,
/// ```mlir
///   func.func @k(%bufs: !llvm.ptr, %dims: !llvm.ptr, %lo: i64, %hi: i64)
///   func.func @k_range(%dims: !llvm.ptr) -> i64
///   func.func @k_unit_cost(%dims: !llvm.ptr) -> i64       // optional
/// ```
/// (the types of `quern_kernel` in quern-c/Runtime.h), and private helpers.
/// An error is emitted at the module's operations and names the op that is left.
llvm::FailureOr<ObjectCode> compileToObject(mlir::ModuleOp module, const CpuTarget &target,
                                            const CodegenOptions &options = {});

/// An object that defines hidden symbols with these bytes, 64-byte aligned.
llvm::Expected<ObjectCode>
compileConstants(llvm::ArrayRef<std::pair<std::string, std::vector<char>>> constants,
                 const CpuTarget &target);

} // namespace quern

#endif // QUERN_CODEGEN_CPU_COMPILE_H
