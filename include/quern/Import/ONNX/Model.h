//===- Model.h - An ONNX model in memory ------------------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What the reader makes of a file: an ONNX model whose structure is known to be
/// sound. Names are unique and defined, nodes are sorted, tensors have as many
/// bytes as they need. What operators mean is the importer's business.
///
/// All strings and tensors point into memory that `Model::storage` keeps alive.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_IMPORT_ONNX_MODEL_H
#define QUERN_IMPORT_ONNX_MODEL_H

#include "quern/Support/HostTensor.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"

namespace quern::onnx {

/// The versions that are read.
inline constexpr int64_t minIrVersion = 3, maxIrVersion = 14;
inline constexpr int64_t minOpset = 1, maxOpset = 27;

/// An element type of ONNX (TensorProto.DataType).
struct ElementType {
  int32_t number;
  llvm::StringLiteral name;   ///< as in Quern's messages: f32, i64, bool, string
  unsigned bits;              ///< of one element; 0 for strings
  std::optional<DType> dtype; ///< what Quern computes with, if it does
};
/// The type with this number, or null.
const ElementType *getElementType(int32_t number);
/// The type that holds a Quern dtype.
const ElementType &getElementType(DType dtype);

/// A stored tensor (initializer, attribute, data file).
struct Tensor {
  llvm::StringRef name;
  const ElementType *type = nullptr;
  llvm::SmallVector<int64_t, 4> dims;
  /// The values; empty when `type->dtype` is.
  HostTensor data;
};

/// A declared size: a number, a name, or neither.
struct DimInfo {
  int64_t value = -1; ///< -1: not a number
  llvm::StringRef param;
};

/// A value with its declared type.
struct ValueInfo {
  enum class Kind : uint8_t { None, Tensor, SparseTensor, Sequence, Map, Optional };
  llvm::StringRef name;
  Kind kind = Kind::None;
  const ElementType *elementType = nullptr; ///< of tensors; null when not declared
  bool hasShape = false;
  llvm::SmallVector<DimInfo, 4> dims;
};

/// Types of attributes, with ONNX's numbers.
enum class AttributeType : uint8_t {
  Undefined,
  Float,
  Int,
  String,
  Tensor,
  Graph,
  Floats,
  Ints,
  Strings,
  Tensors,
  Graphs,
  SparseTensor,
  SparseTensors,
  TypeProto,
  TypeProtos
};
inline constexpr int32_t numAttributeTypes = 15;
/// `int`, `floats`, `tensor`.
llvm::StringRef name(AttributeType type);

struct Graph;

/// An attribute of a node. Only the fields of its type are filled; a single tensor
/// or graph is the only element of its list.
struct Attribute {
  llvm::StringRef name;
  AttributeType type = AttributeType::Undefined;
  llvm::StringRef refName; ///< the function's attribute that gives the value
  int64_t i = 0;
  float f = 0;
  llvm::StringRef s;
  llvm::SmallVector<int64_t, 0> ints;
  llvm::SmallVector<float, 0> floats;
  llvm::SmallVector<llvm::StringRef, 0> strings;
  std::vector<Tensor> tensors;
  std::vector<Graph> graphs;
};

struct Node {
  llvm::StringRef name; ///< may be empty, may repeat
  llvm::StringRef op;
  llvm::StringRef domain; ///< "" for ONNX's own
  llvm::StringRef overload;
  int64_t version = 0;                           ///< of the domain
  bool isFunctionCall = false;                   ///< a function of the model has this name
  llvm::SmallVector<llvm::StringRef, 4> inputs;  ///< "" where left out
  llvm::SmallVector<llvm::StringRef, 2> outputs; ///< "" where not wanted
  std::vector<Attribute> attributes;

  const Attribute *getAttribute(llvm::StringRef name) const;
  /// `Conv`, `com.microsoft.FusedConv`.
  std::string opName() const;
  /// `node 'conv1' (Conv)`, or by its output where it has no name.
  std::string str() const;
};

struct Graph {
  llvm::StringRef name;
  std::vector<ValueInfo> inputs;  ///< with those that are initializers too (defaults)
  std::vector<ValueInfo> outputs; ///< may repeat, may be inputs or initializers
  std::vector<ValueInfo> valueInfo;
  std::vector<Tensor> initializers;
  std::vector<Node> nodes; ///< each after those that it needs, else in the file's order
  /// Names of enclosing graphs that are used here or in a graph inside.
  std::vector<llvm::StringRef> captures;
};

/// A model-local function.
struct Function {
  llvm::StringRef domain, name, overload;
  std::vector<Attribute> defaults;
  Graph body; ///< its inputs and outputs have no types
};

struct Model {
  std::string path; ///< as given, for messages
  int64_t irVersion = 0;
  llvm::StringRef producer;
  llvm::StringMap<int64_t> opsets; ///< by domain, "" for ONNX's own
  Graph graph;
  std::vector<Function> functions;
  std::shared_ptr<void> storage; ///< what names and tensors point into
};

/// A name for messages: in single quotes, control characters and bytes that are not
/// UTF-8 escaped, shortened in the middle when it is very long.
std::string quoted(llvm::StringRef name);
/// `[2, 3]`.
std::string dimsString(llvm::ArrayRef<int64_t> dims);

} // namespace quern::onnx
#endif // QUERN_IMPORT_ONNX_MODEL_H
