//===- Call.h - One call under construction ---------------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_LIB_IMPORT_ATEN_CALL_H
#define QUERN_LIB_IMPORT_ATEN_CALL_H

#include "quern/Dialect/Quern/IR/OpRecord.h"
#include "quern/Import/ATen/ATen.h"
#include "quern/Import/ATen/Promotion.h"

namespace quern::aten {

using Results = llvm::SmallVector<mlir::Value>;

/// The arguments by name, and ops to build from them. After the first error every
/// further op gives a null value, so that builders need no checks between steps.
class Call {
public:
  Call(mlir::OpBuilder &builder, mlir::Location loc, llvm::StringRef name,
       const Arguments &arguments)
      : builder(builder), loc(loc), name(name), arguments(arguments) {}

  bool failed() const { return hasFailed; }
  /// Reports an error; gives a null value.
  mlir::Value fail(const llvm::Twine &text) { return report("invalid: ", text); }
  /// The same for a legal call that is not handled.
  mlir::Value unsupported(const llvm::Twine &text) { return report("unsupported: ", text); }

  // Arguments. A missing or mistyped one is an error.
  bool has(llvm::StringRef argument) const;
  mlir::Value tensor(llvm::StringRef argument);
  /// Null when it is None.
  mlir::Value optionalTensor(llvm::StringRef argument);
  llvm::SmallVector<mlir::Value> tensors(llvm::StringRef argument);
  Scalar scalar(llvm::StringRef argument, Scalar otherwise);
  int64_t integer(llvm::StringRef argument, int64_t otherwise);
  bool boolean(llvm::StringRef argument, bool otherwise);
  llvm::SmallVector<int64_t> integers(llvm::StringRef argument);
  std::string string(llvm::StringRef argument, llvm::StringRef otherwise);
  /// Null when it is None.
  mlir::Type dtype(llvm::StringRef argument = "dtype");

  /// Whether one of them is a bool tensor or a bool.
  bool hasBool(llvm::ArrayRef<llvm::StringRef> arguments) const;

  // Ops.
  mlir::Value op(llvm::StringRef mnemonic, llvm::ArrayRef<OperandGroup> operands,
                 llvm::ArrayRef<mlir::NamedAttribute> attrs = {});
  Results ops(llvm::StringRef mnemonic, llvm::ArrayRef<OperandGroup> operands,
              llvm::ArrayRef<mlir::NamedAttribute> attrs = {});
  /// The value in this dtype (itself when it has it, or when `dtype` is null).
  mlir::Value convert(mlir::Value value, mlir::Type dtype);
  /// A scalar tensor, or one of these sizes.
  mlir::Value full(Scalar value, mlir::Type dtype, llvm::ArrayRef<int64_t> sizes = {});
  /// The operands in their common dtype, or in what `adjust` makes of it. A number becomes a scalar
  /// tensor.
  llvm::SmallVector<mlir::Value> promoted(llvm::ArrayRef<llvm::StringRef> arguments,
                                          mlir::Type (*adjust)(mlir::Type) = nullptr);

  // Attributes.
  mlir::NamedAttribute attr(llvm::StringRef name, int64_t value);
  mlir::NamedAttribute attr(llvm::StringRef name, bool value);
  mlir::NamedAttribute attr(llvm::StringRef name, double value);
  mlir::NamedAttribute attr(llvm::StringRef name, llvm::StringRef value);
  mlir::NamedAttribute attr(llvm::StringRef name, llvm::ArrayRef<int64_t> value);
  mlir::NamedAttribute attr(llvm::StringRef name, mlir::Attribute value);
  mlir::NamedAttribute attr(llvm::StringRef name, mlir::Type value);
  /// A number as an attribute of its own kind.
  mlir::NamedAttribute attr(llvm::StringRef name, Scalar value);
  /// A size as a `#quern.dim` attribute, sizes as a `#quern.dims` one.
  mlir::NamedAttribute sizeAttr(llvm::StringRef name, int64_t size);
  mlir::NamedAttribute sizesAttr(llvm::StringRef name, llvm::ArrayRef<int64_t> sizes);

  static mlir::RankedTensorType typeOf(mlir::Value value) {
    return mlir::cast<mlir::RankedTensorType>(value.getType());
  }
  static mlir::Type dtypeOf(mlir::Value value) { return typeOf(value).getElementType(); }
  static int64_t rankOf(mlir::Value value) { return typeOf(value).getRank(); }
  mlir::MLIRContext *getContext() const { return builder.getContext(); }

private:
  mlir::Value report(llvm::StringRef prefix, const llvm::Twine &text);
  const Argument *find(llvm::StringRef argument) const;
  template <typename T> const T *get(llvm::StringRef argument);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  llvm::StringRef name;
  const Arguments &arguments;
  bool hasFailed = false;
};

// One table for each family.
llvm::ArrayRef<Overload> getPointwiseOverloads();
llvm::ArrayRef<Overload> getReductionOverloads();
llvm::ArrayRef<Overload> getContractionOverloads();
llvm::ArrayRef<Overload> getRowOverloads();
llvm::ArrayRef<Overload> getViewOverloads();
llvm::ArrayRef<Overload> getIndexingOverloads();
llvm::ArrayRef<Overload> getCreationOverloads();

} // namespace quern::aten
#endif // QUERN_LIB_IMPORT_ATEN_CALL_H
