//===- DimStorage.h - How sizes are stored ----------------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The uniqued storage of `#quern.dim`, `#quern.dims` and `#quern.range`. Only the dialect that
/// registers the attributes and the engine itself include this.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_SHAPE_DIMSTORAGE_H
#define QUERN_SHAPE_DIMSTORAGE_H

#include "mlir/IR/AttributeSupport.h"
#include "quern/Shape/Condition.h"

namespace quern::detail {

inline llvm::hash_code hashDims(llvm::ArrayRef<Dim> dims) {
  llvm::hash_code hash(dims.size());
  for (Dim d : dims)
    hash = llvm::hash_combine(hash, d.getAttr().getAsOpaquePointer());
  return hash;
}

/// One expression node. `operands` are canonical; `value` is the constant,
/// `symbol` the name; both are empty for other kinds.
struct DimAttrStorage : mlir::AttributeStorage {
  struct KeyTy {
    DimKind kind;
    int64_t value = 0;
    llvm::StringRef symbol = {};
    llvm::ArrayRef<Dim> operands = {};
    bool operator==(const KeyTy &o) const {
      return kind == o.kind && value == o.value && symbol == o.symbol && operands == o.operands;
    }
  };

  explicit DimAttrStorage(const KeyTy &key) : key(key) {}
  bool operator==(const KeyTy &other) const { return key == other; }
  static llvm::hash_code hashKey(const KeyTy &key) {
    return llvm::hash_combine(uint8_t(key.kind), key.value, key.symbol, hashDims(key.operands));
  }
  static DimAttrStorage *construct(mlir::AttributeStorageAllocator &allocator, const KeyTy &key);

  KeyTy key;
  /// Nodes of the expression written out as a tree: bounds the cost of walking it.
  uint32_t nodes = 1;
  /// No smaller value is possible where every symbol is at least 0 (INT64_MIN: not known).
  int64_t minimum = 0;
};

struct DimsAttrStorage : mlir::AttributeStorage {
  using KeyTy = llvm::ArrayRef<Dim>;

  explicit DimsAttrStorage(KeyTy dims) : dims(dims) {}
  bool operator==(const KeyTy &other) const { return dims == other; }
  static llvm::hash_code hashKey(const KeyTy &key) { return hashDims(key); }
  static DimsAttrStorage *construct(mlir::AttributeStorageAllocator &allocator, KeyTy key) {
    return new (allocator.allocate<DimsAttrStorage>()) DimsAttrStorage(allocator.copyInto(key));
  }

  KeyTy dims;
};

struct RangeAttrStorage : mlir::AttributeStorage {
  using KeyTy = std::tuple<int64_t, std::optional<int64_t>, int64_t>;

  explicit RangeAttrStorage(const KeyTy &key) : key(key) {}
  bool operator==(const KeyTy &other) const { return key == other; }
  static llvm::hash_code hashKey(const KeyTy &key) {
    auto [min, max, divisor] = key;
    return llvm::hash_combine(min, max.has_value(), max.value_or(0), divisor);
  }
  static RangeAttrStorage *construct(mlir::AttributeStorageAllocator &allocator, const KeyTy &key) {
    return new (allocator.allocate<RangeAttrStorage>()) RangeAttrStorage(key);
  }

  KeyTy key;
};

} // namespace quern::detail

#endif // QUERN_SHAPE_DIMSTORAGE_H
