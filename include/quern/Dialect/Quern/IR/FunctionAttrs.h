//===- FunctionAttrs.h - What a function promises its callers ---*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Names of the attributes on a `func.func` that are contracts with its callers.
/// They end up in the compiled signature (`quern_function`). The dialect verifies them: an
/// attribute of another name or place, or with a value of another kind, is an error.
///
/// \code
/// func.func @step(%w: tensor<4xf32> {quern.donated}, %out: tensor<4xf32>)
///     -> (tensor<4xf32> {quern.into = 1 : i64})
/// \endcode
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_DIALECT_QUERN_IR_FUNCTIONATTRS_H
#define QUERN_DIALECT_QUERN_IR_FUNCTIONATTRS_H

#include "mlir/Interfaces/FunctionInterfaces.h"
#include <optional>

namespace quern {

/// On an argument: the call may overwrite its buffer. Its value is dead afterwards.
inline constexpr llvm::StringLiteral donatedAttrName = "quern.donated";
/// On a result: the index of the argument whose buffer it always is. That argument's
/// old value may be read (an update in place) or not (an out buffer).
inline constexpr llvm::StringLiteral resultIntoAttrName = "quern.into";
/// On an argument or a result: the name that users know it by (any UTF-8).
inline constexpr llvm::StringLiteral nameAttrName = "quern.name";

/// On a function: a dictionary of `#quern.range<…>` by the names of sizes.
inline constexpr llvm::StringLiteral dimRangesAttrName = "quern.dims";

// After bufferisation the function has no results: `quern-bufferize` writes these.
//
//   func.func @step(%x: memref<?x4xf32> {quern.name = "x", quern.dims = #quern.dims<B>},
//                   %w: memref<4xf32> {quern.donated, quern.result = 1 : i64},
//                   %y: memref<?x4xf32> {quern.out, quern.result = 0 : i64, quern.dims = …},
//                   %c: memref<8xf32> {quern.constant = dense_resource<c> : tensor<8xf32>})
//       attributes {quern.result_names = ["y", "w_new"]}
//
// Arguments stand in this order: the inputs (those of the tensor function, in its order),
// fresh out buffers, constants.

/// On an argument: the index of the result whose buffer it is.
inline constexpr llvm::StringLiteral resultAttrName = "quern.result";
/// On an argument: it is no input of the function, only the buffer of a result.
inline constexpr llvm::StringLiteral outAttrName = "quern.out";
/// On an argument: it is a constant with these elements (an ElementsAttr).
inline constexpr llvm::StringLiteral constantAttrName = "quern.constant";
/// On an argument: the encoding that its tensor type had (`#quern.dims<…>`).
inline constexpr llvm::StringLiteral dimsAttrName = "quern.dims";
/// On the function: the names of its results, in order.
inline constexpr llvm::StringLiteral resultNamesAttrName = "quern.result_names";

// Bytes of the buffers that a call needs for itself, as `#quern.dim<…>`.

/// On the function: each value that is not returned has a buffer of its own (before in-place).
inline constexpr llvm::StringLiteral functionalBytesAttrName = "quern.functional_bytes";
/// On the function: each buffer that is left has memory of its own (before the plan).
inline constexpr llvm::StringLiteral unplannedBytesAttrName = "quern.unplanned_bytes";
/// On the function: the arena.
inline constexpr llvm::StringLiteral arenaBytesAttrName = "quern.arena_bytes";

inline bool isDonated(mlir::FunctionOpInterface func, unsigned argument) {
  return bool(func.getArgAttr(argument, donatedAttrName));
}
/// The argument that the result is written to, if that is promised.
inline std::optional<unsigned> getResultInto(mlir::FunctionOpInterface func, unsigned result) {
  if (auto index = func.getResultAttrOfType<mlir::IntegerAttr>(result, resultIntoAttrName))
    return unsigned(index.getInt());
  return std::nullopt;
}

} // namespace quern
#endif // QUERN_DIALECT_QUERN_IR_FUNCTIONATTRS_H
