//===- NvrtcAttr.h - Device code by NVRTC -----------------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_DIALECT_QUERN_IR_NVRTCATTR_H
#define QUERN_DIALECT_QUERN_IR_NVRTCATTR_H

#include "mlir/IR/AttributeSupport.h"
#include "mlir/IR/Attributes.h"
#include "mlir/IR/OpImplementation.h"

namespace quern {
namespace detail {
struct NvrtcAttrStorage : mlir::AttributeStorage {
  using KeyTy = llvm::StringRef;
  explicit NvrtcAttrStorage(llvm::StringRef chip) : chip(chip) {}
  bool operator==(const KeyTy &key) const { return chip == key; }
  static NvrtcAttrStorage *construct(mlir::AttributeStorageAllocator &allocator, const KeyTy &key) {
    return new (allocator.allocate<NvrtcAttrStorage>()) NvrtcAttrStorage(allocator.copyInto(key));
  }
  llvm::StringRef chip;
};
} // namespace detail

/// `#quern.nvrtc<chip = "sm_90">`, a target of a `gpu.module`: its functions are printed as CUDA
/// C++ and compiled by NVRTC for that chip. It implements `gpu::TargetAttrInterface` where
/// `registerNvrtcTarget` (quern/Codegen/CUDA/Emitter.h) was called, so that upstream's
/// `gpu-module-to-binary` works: `format=isa` the text, `format=bin` or `fatbin` a cubin.
class NvrtcAttr
    : public mlir::Attribute::AttrBase<NvrtcAttr, mlir::Attribute, detail::NvrtcAttrStorage> {
public:
  using Base::Base;
  static constexpr llvm::StringLiteral name = "quern.nvrtc";
  static constexpr llvm::StringLiteral dialectName = "quern";
  static constexpr llvm::StringLiteral getMnemonic() { return "nvrtc"; }

  static NvrtcAttr get(mlir::MLIRContext *ctx, llvm::StringRef chip);
  /// "sm_90" for a cubin, "compute_90" for PTX.
  llvm::StringRef getChip() const;
};

/// After the mnemonic: `<chip = "sm_90">`.
mlir::Attribute parseNvrtcAttr(mlir::AsmParser &parser);
void printNvrtcAttr(NvrtcAttr attr, mlir::AsmPrinter &printer);

} // namespace quern

#endif // QUERN_DIALECT_QUERN_IR_NVRTCATTR_H
