//===- ModelBuilder.h - Small ONNX models for tests -------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_UNITTESTS_IMPORT_MODELBUILDER_H
#define QUERN_UNITTESTS_IMPORT_MODELBUILDER_H

#include "onnx_subset.pb.h"
#include "quern/Import/ONNX/Reader.h"

namespace quern::onnx {

using proto::AttributeProto;
using proto::GraphProto;
using proto::ModelProto;
using proto::NodeProto;
using proto::TensorProto;

inline constexpr int32_t f32 = 1, i32 = 6, i64 = 7, boolean = 9, f16 = 10;

inline void addValue(google::protobuf::RepeatedPtrField<proto::ValueInfoProto> &list,
                     llvm::StringRef name, llvm::ArrayRef<int64_t> dims, int32_t type = f32) {
  proto::ValueInfoProto &value = *list.Add();
  value.set_name(name.str());
  auto &tensor = *value.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(type);
  tensor.mutable_shape(); // a scalar has a shape, too
  for (int64_t d : dims)
    tensor.mutable_shape()->add_dim()->set_dim_value(d);
}

inline NodeProto &addNode(GraphProto &graph, llvm::StringRef op, llvm::StringRef name,
                          std::initializer_list<const char *> inputs,
                          std::initializer_list<const char *> outputs) {
  NodeProto &node = *graph.add_node();
  node.set_op_type(op.str());
  node.set_name(name.str());
  for (const char *input : inputs)
    node.add_input(input);
  for (const char *output : outputs)
    node.add_output(output);
  return node;
}

inline TensorProto &addTensor(GraphProto &graph, llvm::StringRef name, llvm::ArrayRef<int64_t> dims,
                              int32_t type = f32) {
  TensorProto &tensor = *graph.add_initializer();
  tensor.set_name(name.str());
  tensor.set_data_type(type);
  for (int64_t d : dims)
    tensor.add_dims(d);
  return tensor;
}

/// x, y: f32[2]; opset 13; no nodes.
inline ModelProto emptyModel() {
  ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(13);
  GraphProto &graph = *model.mutable_graph();
  graph.set_name("g");
  addValue(*graph.mutable_input(), "x", {2});
  addValue(*graph.mutable_output(), "y", {2});
  return model;
}

/// y = relu1(x).
inline ModelProto reluModel() {
  ModelProto model = emptyModel();
  addNode(*model.mutable_graph(), "Relu", "relu1", {"x"}, {"y"});
  return model;
}

/// y = add1(x, weights), without values in weights.
inline ModelProto addModel(TensorProto *&weights, llvm::ArrayRef<int64_t> dims = {4},
                           int32_t type = f32) {
  ModelProto model = emptyModel();
  addNode(*model.mutable_graph(), "Add", "add1", {"x", "weights"}, {"y"});
  weights = &addTensor(*model.mutable_graph(), "weights", dims, type);
  return model;
}

} // namespace quern::onnx
#endif // QUERN_UNITTESTS_IMPORT_MODELBUILDER_H
