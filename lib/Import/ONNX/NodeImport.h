//===- NodeImport.h - One node being imported -------------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_LIB_IMPORT_ONNX_NODEIMPORT_H
#define QUERN_LIB_IMPORT_ONNX_NODEIMPORT_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "quern/Dialect/Quern/IR/DTypes.h"
#include "quern/Dialect/Quern/IR/OpRecord.h"
#include "quern/Import/ONNX/Model.h"
#include "quern/Support/Error.h"

namespace quern::onnx {

/// A small tensor of integers (or bools) whose elements are known: numbers, or
/// expressions over the function's sizes.
struct Contents {
  llvm::SmallVector<int64_t> dims;
  llvm::SmallVector<Dim> values; ///< row-major
  DType dtype = DType::I64;

  int64_t rank() const { return dims.size(); }
  /// All numbers, or nothing.
  std::optional<llvm::SmallVector<int64_t>> asConstants() const;
};

/// An ONNX value during the import: what is known of it so far.
struct Imported {
  mlir::Value value;                ///< null until it is needed as a tensor
  const Tensor *constant = nullptr; ///< a stored tensor
  std::optional<Contents> contents;
  bool isMissing = false; ///< its node is not handled
};

class NodeImport;

/// How one op is imported, for a range of versions.
struct OpEntry {
  llvm::StringLiteral op;
  int64_t since, until; ///< opset versions, both included
  unsigned minInputs, maxInputs, maxOutputs;
  /// The attributes, `name:type`, with `!` where one is required.
  llvm::StringLiteral attributes;
  void (*import)(NodeImport &);
  /// Computes the outputs' contents from the inputs', all of which are known; false
  /// where it cannot.
  bool (*fold)(NodeImport &) = nullptr;
};
inline constexpr int64_t latest = maxOpset;
inline constexpr unsigned many = ~0u;

// One table for each group of ops.
llvm::ArrayRef<OpEntry> getPointwiseEntries();
llvm::ArrayRef<OpEntry> getReductionEntries();
llvm::ArrayRef<OpEntry> getContractionEntries();
llvm::ArrayRef<OpEntry> getViewEntries();
llvm::ArrayRef<OpEntry> getIndexingEntries();
llvm::ArrayRef<OpEntry> getControlEntries();

/// The importer's state that nodes share.
class GraphState {
public:
  GraphState(mlir::OpBuilder &builder, const Model &model) : builder(builder), model(model) {}

  mlir::OpBuilder &builder;
  const Model &model;
  llvm::StringMap<Imported> values;
  std::string lastDiagnostic; ///< what the last failed op creation said

  /// The contents, read from the stored tensor at the first call; null where they are
  /// not known.
  const Contents *getContents(Imported &imported);
  /// The value as a tensor, made at the first call; null where that is impossible.
  mlir::Value getValue(Imported &imported);
  mlir::Value makeConstant(const HostTensor &tensor, llvm::StringRef name);

private:
  /// A tensor of sizes that are known only at run time.
  mlir::Value makeSizes(const Contents &contents);
};

/// The inputs and attributes of a node, and what is built from them. The first error
/// is kept; after it every further step gives a null value, so that importers need no
/// checks between steps (only before looking at a null value's type).
class NodeImport {
public:
  NodeImport(GraphState &state, const Node &node, mlir::Location loc)
      : node(node), state(state), loc(loc) {}

  const Node &node;

  // Errors, without the node's name.
  mlir::Value fail(const llvm::Twine &text) { return report(QUERN_INVALID, text); }
  mlir::Value refuse(const llvm::Twine &text) { return report(QUERN_UNSUPPORTED, text); }
  bool failed() const { return status != QUERN_OK; }
  quern_status getStatus() const { return status; }
  llvm::StringRef getMessage() const { return message; }

  // Inputs.
  unsigned numInputs() const { return node.inputs.size(); }
  bool hasInput(unsigned i) const { return i < node.inputs.size() && !node.inputs[i].empty(); }
  /// The tensor; one that is left out is an error.
  mlir::Value input(unsigned i);
  /// Null when it is left out.
  mlir::Value optionalInput(unsigned i) { return hasInput(i) ? input(i) : mlir::Value(); }
  /// The dims of input i, which need not be a tensor yet.
  llvm::SmallVector<Dim> inputDims(unsigned i);
  /// The stored tensor behind an input; null where it is computed.
  const Tensor *storedTensor(unsigned i);
  /// What is known of a tensor of integers; null where nothing is.
  const Contents *contents(unsigned i);
  /// The numbers or sizes in input i, a vector or scalar called `what`. An error
  /// where they are known only at run time.
  llvm::SmallVector<Dim> sizes(unsigned i, llvm::StringRef what);
  llvm::SmallVector<int64_t> integers(unsigned i, llvm::StringRef what);

  // Attributes, of the types that the entry lists.
  bool hasAttr(llvm::StringRef name) const { return node.getAttribute(name); }
  int64_t intAttr(llvm::StringRef name, int64_t otherwise) const;
  double floatAttr(llvm::StringRef name, double otherwise) const;
  llvm::StringRef stringAttr(llvm::StringRef name, llvm::StringRef otherwise) const;
  llvm::ArrayRef<int64_t> intsAttr(llvm::StringRef name) const;

  /// The dims of `x` as a matrix, {rows, columns}: the columns are the dims from attribute `axis`
  /// (1) on. Empty after an error.
  llvm::SmallVector<Dim> matrixAtAxis(mlir::Value x);

  // What is built. Null operands give null results.
  mlir::Value op(llvm::StringRef mnemonic, llvm::ArrayRef<OperandGroup> operands,
                 llvm::ArrayRef<mlir::NamedAttribute> attrs = {});
  /// An operand that may be left out.
  static OperandGroup optional(mlir::Value value) { return OperandGroup(value); }
  mlir::Value constant(const HostTensor &tensor);
  /// A scalar tensor.
  mlir::Value scalar(double value, mlir::Type dtype);
  mlir::Value scalarLike(double value, mlir::Value like);
  mlir::Value convert(mlir::Value value, mlir::Type dtype);
  mlir::Value reshape(mlir::Value value, llvm::ArrayRef<Dim> dims);
  mlir::Value expand(mlir::Value value, llvm::ArrayRef<Dim> dims);
  mlir::Value permute(mlir::Value value, llvm::ArrayRef<int64_t> dims);
  /// A tensor of these dims filled with the one element of `value`, in its dtype.
  mlir::Value full(const HostTensor &value, llvm::ArrayRef<Dim> dims);

  mlir::NamedAttribute attr(llvm::StringRef name, mlir::Attribute value);
  mlir::NamedAttribute attr(llvm::StringRef name, int64_t value);
  mlir::NamedAttribute attr(llvm::StringRef name, bool value);
  mlir::NamedAttribute attr(llvm::StringRef name, double value);
  mlir::NamedAttribute attr(llvm::StringRef name, llvm::StringRef value);
  mlir::NamedAttribute attr(llvm::StringRef name, mlir::Type value);
  mlir::NamedAttribute attr(llvm::StringRef name, llvm::ArrayRef<int64_t> value);
  mlir::NamedAttribute attr(llvm::StringRef name, Dim value);
  mlir::NamedAttribute attr(llvm::StringRef name, llvm::ArrayRef<Dim> value);

  // Types.
  static mlir::RankedTensorType typeOf(mlir::Value value) {
    return mlir::cast<mlir::RankedTensorType>(value.getType());
  }
  static mlir::Type dtypeOf(mlir::Value value) { return typeOf(value).getElementType(); }
  static int64_t rankOf(mlir::Value value) { return typeOf(value).getRank(); }
  static llvm::SmallVector<Dim> dimsOf(mlir::Value value) { return quern::getDims(typeOf(value)); }
  mlir::MLIRContext *getContext() const { return state.builder.getContext(); }
  Dim dim(int64_t value) const { return Dim::constant(getContext(), value); }

  /// An axis in [0, rank); negative ones count from the end. An error when it is out
  /// of range.
  int64_t wrapAxis(int64_t axis, int64_t rank, llvm::StringRef what = "axis");
  /// The same for a list; none may come twice.
  llvm::SmallVector<int64_t> wrapAxes(llvm::ArrayRef<int64_t> axes, int64_t rank);

  // Outputs.
  bool wantsOutput(unsigned i) const { return i < node.outputs.size() && !node.outputs[i].empty(); }
  void setOutput(unsigned i, mlir::Value value);
  void setOutput(unsigned i, Contents contents);
  void setOutput(unsigned i, const Tensor &stored);
  /// Output 0 is the same as input i, with whatever is known of it.
  void forward(unsigned i);

private:
  mlir::Value report(quern_status status, const llvm::Twine &text);
  Imported *find(unsigned i);

  GraphState &state;
  mlir::Location loc;
  quern_status status = QUERN_OK;
  std::string message;
};

} // namespace quern::onnx
#endif // QUERN_LIB_IMPORT_ONNX_NODEIMPORT_H
