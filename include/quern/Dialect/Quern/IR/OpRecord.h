//===- OpRecord.h - What a record says, at run time -------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The record of an op as data and functions. quern-tblgen generates one for each
/// op; passes ask it instead of naming ops.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_DIALECT_QUERN_IR_OPRECORD_H
#define QUERN_DIALECT_QUERN_IR_OPRECORD_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/Operation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "quern/Shape/Meta.h"

namespace quern {
class DerivativeBuilder;
class ScalarBuilder;
class Scalar;

/// How kernels see an op (StructuredOp.td describes each).
enum class FusionClass : uint8_t {
  Pointwise,
  Reduction,
  RowWise,
  Contraction,
  Convolution,
  IndexMap,
  Reshape,
  Gather,
  Scatter,
  Creation,
};

enum class Arity : uint8_t { Required, Optional, Variadic };
enum class DerivativeKind : uint8_t { Expression, Custom, NonDifferentiable };

struct OperandRecord {
  llvm::StringRef name;
  Arity arity;
  DerivativeKind derivative;
  llvm::StringRef nonDifferentiable; ///< the reason, or ""
  bool mayOverwrite;                 ///< a result may take its buffer
  /// The value is read by a derivative of some operand, so that it must live until the backward.
  bool savedForBackward;
};

struct AttrRecord {
  llvm::StringRef name;
  llvm::StringRef type;         ///< `I64Attr`, …: the ODS constraint's name
  llvm::StringRef defaultValue; ///< C++ text; "" when it has none
  bool optional;
};

struct ResultRecord {
  llvm::StringRef name;
  bool savedForBackward;
};

struct SampleRecord {
  llvm::StringRef call;
  llvm::StringRef message; ///< "" for a good call
};

/// The result is operand `same` where operand `other` is `number` everywhere.
struct IdentityRecord {
  unsigned same, other;
  double number;
};

/// What a meta function is given: the operands by declaration, and the attributes.
struct MetaInputs {
  llvm::SmallVector<llvm::SmallVector<TensorMeta, 1>> operands;
  mlir::DictionaryAttr attrs;
};

struct OpRecord {
  llvm::StringRef name;     ///< `quern.add`
  llvm::StringRef mnemonic; ///< `add`
  llvm::StringRef family;
  llvm::StringRef summary;
  llvm::StringRef file; ///< where the record stands
  unsigned line;
  FusionClass fusion;
  llvm::ArrayRef<OperandRecord> operands; ///< without `into`
  llvm::ArrayRef<AttrRecord> attrs;
  llvm::ArrayRef<ResultRecord> results;
  llvm::ArrayRef<llvm::StringRef> constraints;
  llvm::StringRef notInPlace; ///< the reason, or ""
  llvm::ArrayRef<SampleRecord> samples;
  llvm::StringRef scalarText; ///< the expression, or ""
  llvm::StringRef lowering;   ///< name of the lowering function, or ""
  llvm::ArrayRef<IdentityRecord> identities;
  bool identityOnSameType; ///< the result is `self` where their types are equal

  /// Runs the meta function.
  MetaResult (*meta)(mlir::MLIRContext *, const MetaInputs &, const Facts *);
  /// Builds the scalar body; null for ops with a lowering. `inputs` are the operands' elements.
  Scalar (*scalar)(mlir::Operation *, ScalarBuilder &, llvm::ArrayRef<Scalar> inputs);
  /// Builds the gradients of the operands that are wanted.
  void (*derivative)(mlir::Operation *, DerivativeBuilder &);
  /// The op's own fold; null when it has none.
  mlir::Value (*folder)(mlir::Operation *);
  /// The attributes that have defaults, as a dictionary; null when none has.
  mlir::Attribute (*defaults)(mlir::OperationName);
};

/// The record of a structured op; null for any other op.
const OpRecord *getOpRecord(mlir::Operation *op);
/// The record by name (`quern.add` or `add`); null when there is none.
const OpRecord *lookupOpRecord(llvm::StringRef name);
/// All records, in the order of families and of definition.
llvm::ArrayRef<const OpRecord *> getOpRecords();
/// Called by each family when the dialect is loaded.
void registerOpRecords(llvm::ArrayRef<const OpRecord *> records);

/// The operands and attributes of an op as its meta function sees them.
MetaInputs getMetaInputs(mlir::Operation *op);
/// Runs an op's meta function on its own operands.
MetaResult runMeta(mlir::Operation *op, const Facts *facts = nullptr);

/// One declared operand in a call: nothing (`_`), a value, or a list.
struct OperandGroup : llvm::SmallVector<mlir::Value, 1> {
  OperandGroup() = default;
  OperandGroup(mlir::Value value) {
    if (value)
      push_back(value);
  }
  OperandGroup(llvm::ArrayRef<mlir::Value> values) : SmallVector(values) {}
};

/// Creates an op by name with inferred result types, or reports the meta function's error at
/// `loc` (prefix `invalid: ` is the caller's) and fails. Never aborts. Attributes left out take
/// their defaults.
mlir::FailureOr<mlir::Operation *> tryCreate(mlir::OpBuilder &builder, mlir::Location loc,
                                             llvm::StringRef mnemonic,
                                             llvm::ArrayRef<OperandGroup> operands,
                                             llvm::ArrayRef<mlir::NamedAttribute> attrs = {},
                                             mlir::ValueRange into = {});
template <typename OpTy>
mlir::FailureOr<OpTy>
tryCreate(mlir::OpBuilder &builder, mlir::Location loc, llvm::ArrayRef<OperandGroup> operands,
          llvm::ArrayRef<mlir::NamedAttribute> attrs = {}, mlir::ValueRange into = {}) {
  auto op = tryCreate(builder, loc, OpTy::getOperationName().drop_front(6), operands, attrs, into);
  if (mlir::failed(op))
    return mlir::failure();
  return mlir::cast<OpTy>(*op);
}

namespace meta {
/// A dry run without IR: what `name` would give for these inputs.
MetaResult infer(mlir::MLIRContext *ctx, llvm::StringRef name, const MetaInputs &inputs,
                 const Facts *facts = nullptr);
} // namespace meta

namespace detail {
// What the generated members of op classes call.
mlir::ParseResult parseStructuredOp(const OpRecord &record, mlir::OpAsmParser &parser,
                                    mlir::OperationState &result);
/// Attributes that have their default are left out.
void printStructuredOp(mlir::Operation *op, mlir::OpAsmPrinter &printer);
mlir::OpFoldResult foldStructuredOp(mlir::Operation *op);
/// A number as an attribute: i64, f64 or bool.
mlir::TypedAttr numberAttr(mlir::Builder builder, int64_t value);
mlir::TypedAttr numberAttr(mlir::Builder builder, int value);
mlir::TypedAttr numberAttr(mlir::Builder builder, double value);
mlir::TypedAttr numberAttr(mlir::Builder builder, bool value);
mlir::LogicalResult inferStructuredOp(const OpRecord &record, mlir::MLIRContext *ctx,
                                      std::optional<mlir::Location> loc,
                                      llvm::ArrayRef<mlir::ValueRange> groups,
                                      mlir::DictionaryAttr attrs,
                                      llvm::SmallVectorImpl<mlir::Type> &types);
bool areCompatibleTypes(mlir::TypeRange inferred, mlir::TypeRange actual);
mlir::Speculation::Speculatability getSpeculatability(mlir::Operation *op);
/// Reads an attribute where it is there; otherwise the value stays (its default).
void readAttr(mlir::DictionaryAttr attrs, llvm::StringRef name, int64_t &value);
void readAttr(mlir::DictionaryAttr attrs, llvm::StringRef name, bool &value);
void readAttr(mlir::DictionaryAttr attrs, llvm::StringRef name, double &value);
void readAttr(mlir::DictionaryAttr attrs, llvm::StringRef name, llvm::StringRef &value);
void readAttr(mlir::DictionaryAttr attrs, llvm::StringRef name, mlir::Type &value);
void readAttr(mlir::DictionaryAttr attrs, llvm::StringRef name, llvm::ArrayRef<int64_t> &value);
void readAttr(mlir::DictionaryAttr attrs, llvm::StringRef name, mlir::TypedAttr &value);
void readAttr(mlir::DictionaryAttr attrs, llvm::StringRef name, Dim &value);
void readAttr(mlir::DictionaryAttr attrs, llvm::StringRef name, llvm::ArrayRef<Dim> &value);
template <typename T>
void readAttr(mlir::DictionaryAttr attrs, llvm::StringRef name, std::optional<T> &value) {
  if (attrs && attrs.get(name))
    readAttr(attrs, name, value.emplace());
}
} // namespace detail
} // namespace quern

#endif // QUERN_DIALECT_QUERN_IR_OPRECORD_H
