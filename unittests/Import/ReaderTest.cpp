//===- ReaderTest.cpp - What the ONNX reader accepts and refuses ----------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "ModelBuilder.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <gtest/gtest.h>

using namespace llvm;
using namespace quern;
using namespace quern::onnx;

namespace {

std::string readError(StringRef bytes) {
  Expected<Model> model = readModel(bytes, "dir/m.onnx");
  if (model)
    return "accepted";
  std::string text;
  takeError(model.takeError(), text);
  EXPECT_TRUE(StringRef(text).contains("dir/m.onnx: ")) << text;
  return text;
}
std::string readError(const ModelProto &model) { return readError(model.SerializeAsString()); }

#define EXPECT_ERROR(model, text) EXPECT_EQ(readError(model), text)

Model readOk(const ModelProto &proto) {
  Expected<Model> model = readModel(proto.SerializeAsString(), "m.onnx");
  if (!model) {
    ADD_FAILURE() << toString(model.takeError());
    return {};
  }
  return std::move(*model);
}

std::string varint(uint64_t n) {
  std::string out;
  for (; n > 127; n >>= 7)
    out += char(n | 128);
  return out + char(n);
}
std::string field(unsigned number, const std::string &payload, unsigned wire = 2) {
  return varint(number << 3 | wire) + (wire == 2 ? varint(payload.size()) : "") + payload;
}

//===----------------------------------------------------------------------===//
// The wire format
//===----------------------------------------------------------------------===//

TEST(OnnxWire, Truncated) {
  TensorProto *weights;
  ModelProto model = addModel(weights, {50});
  weights->set_raw_data(std::string(200, '\0'));
  std::string bytes = model.SerializeAsString();
  EXPECT_ERROR(bytes.substr(0, bytes.size() / 2),
               "invalid: dir/m.onnx: truncated: 284 bytes are announced, 141 are left in 'graph' "
               "at byte 5");
  // Every prefix is refused cleanly or is a model without some of its fields.
  for (size_t n = 0; n < bytes.size(); ++n)
    EXPECT_NE(readError(StringRef(bytes).take_front(n)), "accepted") << n;
}

TEST(OnnxWire, NotProtobuf) {
  EXPECT_ERROR("", "invalid: dir/m.onnx: the file is empty: no model, no graph");
  EXPECT_ERROR("<html><body>404 Not Found</body></html>\n",
               "invalid: dir/m.onnx: malformed protobuf: group (wire type 4) in field 7, which "
               "ONNX does not use in 'graph' at byte 1");
  std::string relu = reluModel().SerializeAsString();
  EXPECT_ERROR(field(900, "", 3) + relu,
               "invalid: dir/m.onnx: malformed protobuf: group (wire type 3) in field 900, which "
               "ONNX does not use in '(unknown)' at byte 2");
  EXPECT_ERROR("\x08" + std::string(11, '\xff') + "\x01" + relu,
               "invalid: dir/m.onnx: malformed protobuf: varint of more than 10 bytes in "
               "'ir_version' at byte 11");
  EXPECT_ERROR(field(1, varint(8), 0) + field(7, varint(5), 0),
               "invalid: dir/m.onnx: malformed protobuf: field has wire type 0, expected 2 in "
               "'graph' at byte 3");
  EXPECT_ERROR(std::string("\x06", 1) + relu,
               "invalid: dir/m.onnx: malformed protobuf: field number 0 at byte 1");
}

TEST(OnnxWire, Nesting) {
  std::string inner;
  for (int i = 0; i < 2000; ++i)
    inner = field(5, field(6, field(1, inner)));
  EXPECT_ERROR(field(1, varint(8), 0) + field(7, field(1, field(4, "If") + inner)),
               "invalid: dir/m.onnx: messages are nested deeper than 100 in "
               "'….attribute.g.node.attribute.g.node' at byte 410");
}

TEST(OnnxWire, OddButLegal) {
  std::string junk = field(900, varint(7), 0) + field(901, "8 bytes!", 1) + field(902, "anything") +
                     field(903, "four", 5);
  ModelProto model = emptyModel();
  addNode(*model.mutable_graph(), "Add", "add1", {"x", "w"}, {"y"});
  // dims and float_data unpacked, packed and unpacked again; op_type twice.
  auto bits = [](float f) { return std::string(reinterpret_cast<const char *>(&f), 4); };
  std::string tensor = field(1, varint(2), 0) + field(1, varint(2)) + field(2, varint(1), 0) +
                       field(8, "w") + field(4, bits(1), 5) + field(4, bits(2) + bits(3)) +
                       field(4, bits(4), 5);
  std::string node = field(1, "y") + field(2, "z") + field(4, "Frobnicate") + field(4, "Neg");
  std::string graph = model.graph().SerializeAsString() + junk + field(5, tensor) + field(1, node);
  Expected<Model> read = readModel(field(1, varint(3), 0) + field(1, varint(8), 0) + junk +
                                       field(8, field(2, varint(13), 0)) + field(7, graph),
                                   "m.onnx");
  ASSERT_TRUE(bool(read)) << toString(read.takeError());
  EXPECT_EQ(read->irVersion, 8);
  ASSERT_EQ(read->graph.nodes.size(), 2u);
  EXPECT_EQ(read->graph.nodes[1].op, "Neg");
  const HostTensor &w = read->graph.initializers[0].data;
  EXPECT_EQ(w.typeString(), "f32[2, 2]");
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(w.as<float>()[i], i + 1);
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

TEST(OnnxTensor, Sizes) {
  TensorProto *weights;
  ModelProto model = addModel(weights);
  weights->set_raw_data(std::string(12, '\0'));
  EXPECT_ERROR(model, "invalid: dir/m.onnx: initializer 'weights' of type f32[4] needs 16 bytes, "
                      "raw_data has 12");
  weights->clear_raw_data();
  weights->add_float_data(1);
  EXPECT_ERROR(model, "invalid: dir/m.onnx: initializer 'weights' of type f32[4] needs 4 values, "
                      "float_data has 1");
  weights->set_raw_data(std::string(16, '\0'));
  EXPECT_ERROR(model, "invalid: dir/m.onnx: initializer 'weights' has its values twice, in "
                      "raw_data and in float_data");
  model = addModel(weights, {-1, 4});
  EXPECT_ERROR(model, "invalid: dir/m.onnx: initializer 'weights' has dims [-1, 4]: a size cannot "
                      "be -1");
  model = addModel(weights, {int64_t(1) << 31, int64_t(1) << 31, 4});
  EXPECT_ERROR(model, "invalid: dir/m.onnx: initializer 'weights' has dims [2147483648, "
                      "2147483648, 4]: too many elements to count in 63 bits");
  model = addModel(weights, std::vector<int64_t>(5000, 1));
  EXPECT_ERROR(model, "unsupported: dir/m.onnx: initializer 'weights' has rank 5000; at most 16 "
                      "dimensions are handled");
}

TEST(OnnxTensor, Types) {
  TensorProto *weights;
  ModelProto model = addModel(weights, {4}, 99);
  EXPECT_ERROR(model, "unsupported: dir/m.onnx: initializer 'weights' has data_type 99, which is "
                      "not one of ONNX's types 1 to 26");
  model = addModel(weights, {4}, i32);
  weights->add_float_data(1);
  EXPECT_ERROR(model, "invalid: dir/m.onnx: initializer 'weights' is of type i32, but has its "
                      "values in float_data");
  model = addModel(weights, {1}, boolean);
  weights->add_int32_data(2);
  EXPECT_ERROR(model, "invalid: dir/m.onnx: initializer 'weights' of type bool has the value 2");
}

TEST(OnnxTensor, TypedFields) {
  TensorProto *weights;
  ModelProto model = addModel(weights, {}, f16);
  weights->add_int32_data(0x3c00);
  Model read = readOk(model);
  EXPECT_EQ(read.graph.initializers[0].data.typeString(), "f16[]");
  EXPECT_EQ(read.graph.initializers[0].data.getDouble(0), 1.0);
  model = addModel(weights, {2, 0}, i64);
  EXPECT_EQ(readOk(model).graph.initializers[0].data.typeString(), "i64[2, 0]");
}

TEST(OnnxTensor, External) {
  SmallString<128> folder, path, outside;
  ASSERT_FALSE(sys::fs::createUniqueDirectory("quern-onnx", folder));
  auto write = [&](StringRef name, StringRef bytes) {
    path = folder;
    sys::path::append(path, name);
    std::error_code ec;
    raw_fd_ostream(path, ec) << bytes;
  };
  write("data.bin", std::string(20, '\1'));
  outside = folder;
  sys::path::append(outside, "link.bin");
  ASSERT_FALSE(sys::fs::create_link("/etc/passwd", outside));

  auto read = [&](StringRef location, StringRef offset, StringRef length) -> std::string {
    TensorProto *weights;
    ModelProto model = addModel(weights);
    weights->set_data_location(1);
    auto add = [&](StringRef key, StringRef value) {
      if (value.empty())
        return;
      auto &entry = *weights->add_external_data();
      entry.set_key(key.str());
      entry.set_value(value.str());
    };
    add("location", location);
    add("offset", offset);
    add("length", length);
    path = folder;
    sys::path::append(path, "m.onnx");
    Expected<Model> result = readModel(model.SerializeAsString(), path);
    if (!result) {
      std::string text = toString(result.takeError());
      return StringRef(text).rsplit("m.onnx: ").second.str();
    }
    EXPECT_EQ(result->graph.initializers[0].data.as<uint32_t>()[3], 0x01010101u);
    return "";
  };
  EXPECT_EQ(read("data.bin", "4", "16"), "");
  EXPECT_EQ(read("data.bin", "3", ""), ""); // unaligned, and to the end of the need
  EXPECT_EQ(read("data.bin", "8", "16"),
            "initializer 'weights' needs 16 bytes at offset 8 of external data 'data.bin', which "
            "has 20 bytes");
  EXPECT_EQ(read("data.bin", "18446744073709551615", "16"),
            "initializer 'weights' external data has offset '18446744073709551615', expected a "
            "number of bytes");
  EXPECT_EQ(read("data.bin", "-4", "16"),
            "initializer 'weights' external data has offset '-4', expected a number of bytes");
  EXPECT_EQ(read("data.bin", "0", "12"),
            "initializer 'weights' needs 16 bytes, but its external data in 'data.bin' has length "
            "12");
  EXPECT_EQ(read("../data.bin", "", ""),
            "initializer 'weights' external data '../data.bin' leaves the model's folder");
  EXPECT_EQ(read("/etc/passwd", "", ""),
            "initializer 'weights' external data '/etc/passwd' is an absolute path; it must be "
            "relative to the model's folder");
  EXPECT_EQ(read("link.bin", "", ""),
            "initializer 'weights' external data 'link.bin' is a link that leaves the model's "
            "folder");
  EXPECT_EQ(read("none.bin", "", ""), "initializer 'weights' external data 'none.bin' cannot be "
                                      "opened: No such file or directory");
  EXPECT_EQ(read(".", "", ""), "initializer 'weights' external data '.' is not a file");
  sys::fs::remove_directories(folder);
}

TEST(OnnxTensor, Files) {
  SmallString<128> path;
  ASSERT_FALSE(sys::fs::createTemporaryFile("quern", "pb", path));
  HostTensor tensor = HostTensor::fromValues(DType::I16, {2, 2}, {1, -2, 3, 4});
  ASSERT_FALSE(bool(writeTensor(path, tensor, "t")));
  Expected<HostTensor> back = readTensor(path);
  ASSERT_TRUE(bool(back)) << toString(back.takeError());
  EXPECT_TRUE(tensor.sameBytes(*back));
  sys::fs::remove(path);
  EXPECT_EQ(toString(readTensor("no/such.pb").takeError()),
            "invalid: no/such.pb: cannot be read: No such file or directory");
}

//===----------------------------------------------------------------------===//
// Versions
//===----------------------------------------------------------------------===//

TEST(OnnxModel, Versions) {
  ModelProto model = reluModel();
  model.set_ir_version(1);
  EXPECT_ERROR(model, "unsupported: dir/m.onnx: IR version 1; versions 3 to 14 are read");
  model.clear_ir_version();
  EXPECT_ERROR(model, "invalid: dir/m.onnx: the model has no ir_version: not an ONNX model");
  model = reluModel();
  model.mutable_opset_import(0)->set_version(999);
  EXPECT_ERROR(model, "unsupported: dir/m.onnx: opset 999 of ai.onnx; opsets 1 to 27 are read");
  model.mutable_opset_import(0)->set_version(0);
  EXPECT_ERROR(model, "invalid: dir/m.onnx: opset 0 of ai.onnx: the first is 1");
  model.clear_opset_import();
  EXPECT_ERROR(model, "invalid: dir/m.onnx: the model has no opset_import");
  model = reluModel();
  auto *second = model.add_opset_import();
  second->set_domain("ai.onnx");
  second->set_version(13);
  EXPECT_EQ(readOk(model).graph.nodes[0].version, 13);
  second->set_version(12);
  EXPECT_ERROR(model,
               "invalid: dir/m.onnx: opset_import names ai.onnx twice, with versions 13 and 12");
  model = reluModel();
  model.clear_graph();
  EXPECT_ERROR(model, "invalid: dir/m.onnx: the model has no graph");
}

//===----------------------------------------------------------------------===//
// Names and order
//===----------------------------------------------------------------------===//

TEST(OnnxGraph, Undefined) {
  ModelProto model = emptyModel();
  addNode(*model.mutable_graph(), "Add", "add1", {"x", "missing"}, {"y"});
  EXPECT_ERROR(model, "invalid: dir/m.onnx: node 'add1' (Add): input 1, 'missing', is not defined "
                      "by any node, input or initializer");
  model = reluModel();
  model.mutable_graph()->mutable_output(0)->set_name("nowhere");
  EXPECT_ERROR(model, "invalid: dir/m.onnx: output 'nowhere' is not defined by any node, input or "
                      "initializer");
  model = reluModel();
  model.mutable_graph()->mutable_node(0)->set_domain("com.example");
  EXPECT_ERROR(model, "invalid: dir/m.onnx: node 'relu1' (com.example.Relu) is of domain "
                      "'com.example', for which there is no opset_import");
}

TEST(OnnxGraph, DefinedTwice) {
  ModelProto model = reluModel();
  addNode(*model.mutable_graph(), "Neg", "", {"x"}, {"y"});
  EXPECT_ERROR(model, "invalid: dir/m.onnx: the node of 'y' (Neg): output 'y' is defined twice, "
                      "first by node 'relu1' (Relu)");
  model = reluModel();
  for (int i = 0; i < 2; ++i)
    addTensor(*model.mutable_graph(), "w", {0});
  EXPECT_ERROR(model, "invalid: dir/m.onnx: initializer 'w' is defined twice");
  model = reluModel();
  addValue(*model.mutable_graph()->mutable_input(), "w", {3});
  addTensor(*model.mutable_graph(), "w", {4}).set_raw_data(std::string(16, '\0'));
  EXPECT_ERROR(model, "invalid: dir/m.onnx: initializer 'w' has dims [4], but as an input it is "
                      "declared [3]");
}

TEST(OnnxGraph, Order) {
  ModelProto model = emptyModel();
  GraphProto &graph = *model.mutable_graph();
  addNode(graph, "Neg", "second", {"a"}, {"y"});
  addNode(graph, "Relu", "first", {"x"}, {"a"});
  Model read = readOk(model);
  ASSERT_EQ(read.graph.nodes.size(), 2u);
  EXPECT_EQ(read.graph.nodes[0].name, "first");
  graph.mutable_node(1)->set_input(0, "y");
  EXPECT_ERROR(model, "invalid: dir/m.onnx: the graph has a cycle: node 'second' (Neg) needs 'a' "
                      "of node 'first' (Relu); node 'first' (Relu) needs 'y' of node 'second' "
                      "(Neg)");
}

TEST(OnnxGraph, Names) {
  ModelProto model = emptyModel();
  GraphProto &graph = *model.mutable_graph();
  addNode(graph, "Relu", "a b\tc", {"x"}, {"y"});
  graph.mutable_output(0)->set_name("Größe;\n");
  graph.mutable_node(0)->set_output(0, "Größe;\n");
  EXPECT_EQ(readOk(model).graph.outputs[0].name, "Größe;\n");
  graph.mutable_node(0)->set_output(0, std::string("\xff\xfey\0y", 5));
  EXPECT_ERROR(model, "invalid: dir/m.onnx: node 'a b\\tc' (Relu): the name of output 0 is not "
                      "UTF-8: '\\xff\\xfey\\x00y'");
}

/// A node with a graph attribute whose nodes are relu(`input`) -> `output`.
ModelProto subgraphModel(const char *input, const char *output) {
  ModelProto model = emptyModel();
  NodeProto &node = addNode(*model.mutable_graph(), "If", "if1", {"x"}, {"y"});
  AttributeProto &attribute = *node.add_attribute();
  attribute.set_name("then_branch");
  attribute.set_type(5);
  GraphProto &inner = *attribute.mutable_g();
  addNode(inner, "Relu", "inner", {input}, {output});
  addValue(*inner.mutable_output(), output, {2});
  return model;
}

TEST(OnnxGraph, Subgraphs) {
  Model read = readOk(subgraphModel("x", "z"));
  const Graph &inner = read.graph.nodes[0].attributes[0].graphs[0];
  ASSERT_EQ(inner.captures.size(), 1u);
  EXPECT_EQ(inner.captures[0], "x");
  EXPECT_ERROR(subgraphModel("nowhere", "z"),
               "invalid: dir/m.onnx: node 'if1' (If): 'then_branch': node 'inner' (Relu): input 0, "
               "'nowhere', is not defined by any node, input or initializer");
  EXPECT_ERROR(subgraphModel("x", "y"),
               "invalid: dir/m.onnx: node 'if1' (If): 'then_branch': node 'inner' (Relu): output "
               "'y' has the name of a value of an enclosing graph");
}

TEST(OnnxGraph, NestedSubgraphs) {
  GraphProto inner;
  addNode(inner, "Neg", "leaf", {"x"}, {"t0"});
  for (int k = 1; k <= 25; ++k) {
    GraphProto outer;
    NodeProto &node = addNode(outer, "If", "", {"x"}, {});
    node.add_output("t" + std::to_string(k));
    AttributeProto &attribute = *node.add_attribute();
    attribute.set_name("then_branch");
    attribute.set_type(5);
    attribute.mutable_g()->Swap(&inner);
    inner.Swap(&outer);
  }
  ModelProto model = emptyModel();
  *model.mutable_graph()->mutable_node() = inner.node();
  model.mutable_graph()->mutable_output(0)->set_name("t25");
  EXPECT_EQ(readOk(model).graph.nodes.size(), 1u);
}

//===----------------------------------------------------------------------===//
// Attributes and functions
//===----------------------------------------------------------------------===//

TEST(OnnxAttribute, Types) {
  ModelProto model = reluModel();
  AttributeProto &attribute = *model.mutable_graph()->mutable_node(0)->add_attribute();
  attribute.set_name("axis");
  attribute.set_f(1);
  EXPECT_ERROR(model, "invalid: dir/m.onnx: node 'relu1' (Relu): attribute 'axis' has type 0, "
                      "expected one of ONNX's types 1 to 14");
  attribute.set_type(2);
  EXPECT_ERROR(model, "invalid: dir/m.onnx: node 'relu1' (Relu): attribute 'axis' is of type int, "
                      "but holds float");
  attribute.clear_f();
  attribute.set_ref_attr_name("outer_axis");
  EXPECT_ERROR(model, "invalid: dir/m.onnx: node 'relu1' (Relu): attribute 'axis' has "
                      "ref_attr_name 'outer_axis', which means something only inside a function");
  attribute.clear_ref_attr_name();
  *model.mutable_graph()->mutable_node(0)->add_attribute() = attribute;
  EXPECT_ERROR(model, "invalid: dir/m.onnx: node 'relu1' (Relu): attribute 'axis' is given twice");
}

/// Functions f and g of domain local: f calls `callee`.
ModelProto functionModel(StringRef callee) {
  ModelProto model = emptyModel();
  model.add_opset_import()->set_domain("local");
  model.mutable_opset_import(1)->set_version(1);
  addNode(*model.mutable_graph(), "f", "call", {"x"}, {"y"}).set_domain("local");
  for (StringRef name : {"f", "g"}) {
    proto::FunctionProto &function = *model.add_functions();
    function.set_name(name.str());
    function.set_domain("local");
    function.add_input("a");
    function.add_output("b");
    auto &import = *function.add_opset_import();
    import.set_domain("local");
    import.set_version(1);
    NodeProto &node = *function.add_node();
    node.set_op_type(name == "f" ? callee.str() : "h");
    node.set_domain("local");
    node.add_input("a");
    node.add_output("b");
  }
  return model;
}

TEST(OnnxFunction, Recursion) {
  Model read = readOk(functionModel("g"));
  EXPECT_TRUE(read.graph.nodes[0].isFunctionCall);
  EXPECT_FALSE(read.functions[1].body.nodes[0].isFunctionCall);
  EXPECT_ERROR(functionModel("f"), "invalid: dir/m.onnx: function 'f' calls itself");
  ModelProto model = functionModel("g");
  model.mutable_functions(1)->mutable_node(0)->set_op_type("f");
  EXPECT_ERROR(model, "invalid: dir/m.onnx: function 'f' takes part in a recursion");
}

} // namespace
