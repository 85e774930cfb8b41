//===- ImporterTest.cpp - What ONNX models become -------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Import/ONNX/Importer.h"
#include "ModelBuilder.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/raw_ostream.h"
#include <gtest/gtest.h>

using namespace llvm;
using namespace quern;
using namespace quern::onnx;

namespace {

/// The module as text, or the error.
std::string import(const ModelProto &proto) {
  std::string text;
  Expected<Model> model = readModel(proto.SerializeAsString(), "m.onnx");
  if (!model) {
    takeError(model.takeError(), text);
    return text;
  }
  mlir::MLIRContext ctx(mlir::MLIRContext::Threading::DISABLED);
  auto module = importModel(ctx, *model);
  if (!module) {
    takeError(module.takeError(), text);
    return text;
  }
  EXPECT_TRUE(succeeded(mlir::verify(**module)));
  raw_string_ostream os(text);
  (*module)->print(os, mlir::OpPrintingFlags().elideLargeElementsAttrs(16));
  return text;
}

#define EXPECT_IMPORT(model, text) EXPECT_EQ(import(model), text)
#define EXPECT_CONTAINS(model, part)                                                               \
  do {                                                                                             \
    std::string text = import(model);                                                              \
    EXPECT_TRUE(StringRef(text).contains(part)) << text;                                           \
  } while (false)

AttributeProto &addAttribute(NodeProto &node, StringRef name, int32_t type) {
  AttributeProto &attribute = *node.add_attribute();
  attribute.set_name(name.str());
  attribute.set_type(type);
  return attribute;
}
void addInt(NodeProto &node, StringRef name, int64_t value) {
  addAttribute(node, name, 2).set_i(value);
}
void addInts(GraphProto &graph, StringRef name, ArrayRef<int64_t> values) {
  TensorProto &tensor = addTensor(graph, name, {int64_t(values.size())}, i64);
  for (int64_t v : values)
    tensor.add_int64_data(v);
}

/// A model of one node from x (and inputs of graph) to y.
ModelProto oneNode(StringRef op, std::initializer_list<const char *> inputs = {"x"}) {
  ModelProto model = emptyModel();
  addNode(*model.mutable_graph(), op, "n1", inputs, {"y"});
  return model;
}
NodeProto &node(ModelProto &model) { return *model.mutable_graph()->mutable_node(0); }

TEST(OnnxImport, Signature) {
  ModelProto model = emptyModel();
  GraphProto &graph = *model.mutable_graph();
  graph.clear_input();
  // A name, no name, a fixed size; an unused input; a default.
  addValue(*graph.mutable_input(), "a:0", {-1, -1, 2});
  auto &shape = *graph.mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  shape.mutable_dim(0)->set_dim_param("batch size");
  addValue(*graph.mutable_input(), "unused", {}, boolean);
  addValue(*graph.mutable_input(), "w", {2});
  TensorProto &w = addTensor(graph, "w", {2});
  w.add_float_data(1);
  w.add_float_data(-1);
  addNode(graph, "Mul", "mul1", {"a:0", "w"}, {"y"});
  graph.mutable_output(0)->mutable_type()->Clear();
  addValue(*graph.mutable_output(), "unused", {}, boolean);
  EXPECT_IMPORT(model,
                R"(module {
  func.func @main(%arg0: tensor<?x?x2xf32, #quern.dims<"batch size", "a:0_1">> {quern.name = "a:0"}, %arg1: tensor<i1> {quern.name = "unused"}) -> (tensor<?x?x2xf32, #quern.dims<"batch size", "a:0_1">> {quern.name = "y"}, tensor<i1> {quern.name = "unused"}) {
    %cst = arith.constant dense<[1.000000e+00, -1.000000e+00]> : tensor<2xf32>
    %0 = quern.mul %arg0, %cst : (tensor<?x?x2xf32, #quern.dims<"batch size", "a:0_1">>, tensor<2xf32>) -> tensor<?x?x2xf32, #quern.dims<"batch size", "a:0_1">>
    return %0, %arg1 : tensor<?x?x2xf32, #quern.dims<"batch size", "a:0_1">>, tensor<i1>
  }
}
)");
}

TEST(OnnxImport, WeightsAreResources) {
  TensorProto *weights;
  ModelProto model = addModel(weights, {100, 1});
  weights->set_raw_data(std::string(400, '\0'));
  model.mutable_graph()->mutable_output(0)->mutable_type()->Clear();
  EXPECT_CONTAINS(model, "arith.constant dense_resource<weights> : tensor<100x1xf32>");
}

TEST(OnnxImport, Inputs) {
  ModelProto model = oneNode("Neg");
  model.mutable_graph()->mutable_input(0)->clear_type();
  EXPECT_IMPORT(model, "invalid: m.onnx: input 'x' has no type");
  model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(8);
  EXPECT_IMPORT(model, "unsupported: m.onnx: input 'x' has elements of type string");
  model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(1);
  EXPECT_IMPORT(model, "unsupported: m.onnx: input 'x' has no declared rank");
  model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_sequence_type();
  EXPECT_IMPORT(model, "unsupported: m.onnx: input 'x' is not a dense tensor");
}

TEST(OnnxImport, DeclaredOutput) {
  ModelProto model = oneNode("Neg");
  auto *tensor = model.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(i32);
  EXPECT_IMPORT(model, "invalid: m.onnx: output 'y' is declared of type i32, but is f32[2]");
  tensor->set_elem_type(f32);
  tensor->mutable_shape()->add_dim();
  EXPECT_IMPORT(model, "invalid: m.onnx: output 'y' is declared with rank 2, but is f32[2]");
}

TEST(OnnxImport, ErrorsOfOps) {
  ModelProto model = oneNode("Add", {"x", "z"});
  addValue(*model.mutable_graph()->mutable_input(), "z", {2}, i64);
  EXPECT_IMPORT(model, "invalid: m.onnx: node 'n1' (Add): 'quern.add' op add_c1: expected other "
                       "to have the dtype of self, got i64 and f32");
}

TEST(OnnxImport, Arguments) {
  ModelProto model = oneNode("Neg");
  addInt(node(model), "axis", 0);
  EXPECT_IMPORT(model, "invalid: m.onnx: node 'n1' (Neg): has an unknown attribute 'axis'");
  model = oneNode("Neg", {"x", "x"});
  EXPECT_IMPORT(model, "invalid: m.onnx: node 'n1' (Neg): has 2 inputs, expected 1");
  model = oneNode("Add");
  EXPECT_IMPORT(model, "invalid: m.onnx: node 'n1' (Add): has 1 inputs, expected 2");
  model = oneNode("Concat", {"x", "x"});
  EXPECT_IMPORT(model, "invalid: m.onnx: node 'n1' (Concat): attribute 'axis' (int) is missing");
  addAttribute(node(model), "axis", 1).set_f(0);
  EXPECT_IMPORT(model, "invalid: m.onnx: node 'n1' (Concat): attribute 'axis' is of type float, "
                       "expected int");
  model = oneNode("Cast");
  addInt(node(model), "to", 99);
  EXPECT_IMPORT(model, "invalid: m.onnx: node 'n1' (Cast): attribute 'to' is 99, which is no "
                       "element type");
  model = oneNode("Transpose");
  AttributeProto &perm = addAttribute(node(model), "perm", 7);
  perm.add_ints(1);
  EXPECT_IMPORT(model, "invalid: m.onnx: node 'n1' (Transpose): attribute 'perm' is [1], which is "
                       "no permutation of 1 dims");
}

TEST(OnnxImport, Unsupported) {
  ModelProto model = emptyModel();
  GraphProto &graph = *model.mutable_graph();
  auto &vendor = *model.add_opset_import();
  vendor.set_domain("com.microsoft");
  vendor.set_version(1);
  addNode(graph, "Frobnicate", "first", {"x"}, {"a"});
  addNode(graph, "Neg", "", {"a"}, {"b"});
  addNode(graph, "FusedMatMul", "", {"b", "b"}, {"c"}).set_domain("com.microsoft");
  addNode(graph, "Frobnicate", "second", {"x"}, {"y"});
  EXPECT_IMPORT(
      model,
      "unsupported: m.onnx: 3 of 4 nodes cannot be imported: Frobnicate (opset 13): no such op is "
      "handled: nodes 'first', 'second'; com.microsoft.FusedMatMul (opset 1): an op of another "
      "domain: node of 'c'");
}

TEST(OnnxImport, Control) {
  ModelProto model = oneNode("If");
  for (const char *name : {"then_branch", "else_branch"}) {
    GraphProto &branch = *addAttribute(node(model), name, 5).mutable_g();
    addNode(branch, "Neg", "", {"x"}, {name});
    addValue(*branch.mutable_output(), name, {2});
  }
  EXPECT_IMPORT(model, "invalid: m.onnx: node 'n1' (If): the condition is of type f32, expected "
                       "bool");
  addValue(*model.mutable_graph()->mutable_input(), "c", {}, boolean);
  node(model).set_input(0, "c");
  EXPECT_IMPORT(model, "unsupported: m.onnx: 1 of 1 nodes cannot be imported: If (opset 13): "
                       "branches: node 'n1'");
  addValue(*node(model).mutable_attribute(1)->mutable_g()->mutable_output(), "x", {2});
  EXPECT_IMPORT(model, "invalid: m.onnx: node 'n1' (If): 'else_branch' gives 2 values, expected "
                       "1, one for each output");
  model = oneNode("Pad", {"x", "p"});
  addInts(*model.mutable_graph(), "p", {-3, 0});
  EXPECT_IMPORT(model, "invalid: m.onnx: node 'n1' (Pad): pads of dim 0 are -3 and 0, but its "
                       "size is 2");
}

TEST(OnnxImport, ShapeErrors) {
  ModelProto model = oneNode("Reshape", {"x", "s"});
  addInts(*model.mutable_graph(), "s", {3, -1});
  EXPECT_IMPORT(model, "invalid: m.onnx: node 'n1' (Reshape): cannot reshape 2 elements [2] into a "
                       "multiple of 3 [3, -1]");
  model = oneNode("Reshape", {"x", "x"});
  EXPECT_IMPORT(model, "unsupported: m.onnx: 1 of 1 nodes cannot be imported: Reshape (opset 13): "
                       "input 1 (shape) is known only at run time: node 'n1'");
  model = oneNode("Expand", {"x", "s"});
  addInts(*model.mutable_graph(), "s", {3});
  EXPECT_IMPORT(model, "invalid: m.onnx: node 'n1' (Expand): cannot expand dim 0 of size 2 to 3");
  model = oneNode("Squeeze", {"x", "s"});
  addInts(*model.mutable_graph(), "s", {0});
  EXPECT_IMPORT(model, "invalid: m.onnx: node 'n1' (Squeeze): cannot squeeze dim 0: its size is "
                       "2, expected 1");
}

/// A model where x is f32[B, 2].
std::string importFree(function_ref<void(GraphProto &)> build) {
  ModelProto model = emptyModel();
  GraphProto &graph = *model.mutable_graph();
  graph.clear_input();
  addValue(*graph.mutable_input(), "x", {-1, 2});
  auto &shape = *graph.mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  shape.mutable_dim(0)->set_dim_param("B");
  graph.mutable_output(0)->mutable_type()->Clear();
  addInts(graph, "zero", {0});
  addInts(graph, "one", {1});
  addInts(graph, "four", {4});
  addNode(graph, "Shape", "", {"x"}, {"shape"});
  build(graph);
  return import(model);
}

/// Integers made of sizes: the constant that y is, or the error.
std::string fold(function_ref<void(GraphProto &)> build) {
  std::string text = importFree(build);
  StringRef constant = StringRef(text).split("arith.constant ").second.split('\n').first;
  return constant.empty() ? text : constant.str();
}

TEST(OnnxImport, FoldedShapes) {
  // (shape[1] * 4 - 1) / 4, as i32 and back.
  EXPECT_EQ(fold([](GraphProto &graph) {
              addNode(graph, "Gather", "", {"shape", "one"}, {"a"});
              addInt(addNode(graph, "Cast", "", {"a"}, {"b"}), "to", i32);
              addInt(addNode(graph, "Cast", "", {"b"}, {"c"}), "to", i64);
              addNode(graph, "Mul", "", {"c", "four"}, {"d"});
              addNode(graph, "Sub", "", {"d", "one"}, {"e"});
              addNode(graph, "Div", "", {"e", "four"}, {"y"});
            }),
            "dense<1> : tensor<1xi64>");
  // shape[-1:] ++ [4], then the product.
  EXPECT_EQ(fold([](GraphProto &graph) {
              addInts(graph, "start", {-1});
              addInts(graph, "end", {INT64_MAX});
              addNode(graph, "Slice", "", {"shape", "start", "end"}, {"a"});
              addInt(addNode(graph, "Concat", "", {"a", "four"}, {"b"}), "axis", 0);
              addInt(addNode(graph, "ReduceProd", "", {"b"}, {"y"}), "keepdims", 0);
            }),
            "dense<8> : tensor<i64>");
  // PyTorch's expand: -1 stands for the size that is there.
  EXPECT_EQ(fold([](GraphProto &graph) {
              addInts(graph, "wanted", {-1, 7});
              addInts(graph, "minus", {-1});
              addInts(graph, "two", {2});
              addNode(graph, "ConstantOfShape", "", {"two"}, {"ones"});
              auto &value = *addAttribute(*graph.mutable_node(1), "value", 4).mutable_t();
              value.set_data_type(i64);
              value.add_dims(1);
              value.add_int64_data(1);
              addNode(graph, "Equal", "", {"wanted", "minus"}, {"isMinus"});
              addNode(graph, "Where", "", {"isMinus", "ones", "wanted"}, {"y"});
            }),
            "dense<[1, 7]> : tensor<2xi64>");
  // What stays free is made when the function runs, where it is needed as a tensor.
  std::string text =
      fold([](GraphProto &graph) { addNode(graph, "Mul", "", {"shape", "four"}, {"y"}); });
  EXPECT_TRUE(StringRef(text).contains("quern.dim_value  {dtype = i64, value = #quern.dim<4*B>}"))
      << text;
  EXPECT_TRUE(StringRef(text).contains("-> (tensor<2xi64> {quern.name = \"y\"})")) << text;
  // Negative indices into a free dim count from its end.
  text = importFree([](GraphProto &graph) {
    addValue(*graph.mutable_input(), "i", {3}, i64);
    addNode(graph, "Gather", "", {"x", "i"}, {"y"});
  });
  EXPECT_TRUE(StringRef(text).contains("quern.dim_value  {dtype = i64, value = #quern.dim<B>}"))
      << text;
  EXPECT_EQ(fold([](GraphProto &graph) {
              addInts(graph, "far", {7});
              addNode(graph, "Gather", "gather1", {"shape", "far"}, {"y"});
            }),
            "invalid: m.onnx: node 'gather1' (Gather): index 7 is out of range for a dim of size "
            "2");
}

} // namespace
