//===- APITest.cpp - The C++ interface ------------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/quern.h"

#include "gtest/gtest.h"

using namespace quern;

namespace {

TEST(API, BuildsCompilesRuns) {
  Model model;
  FunctionBuilder f(model, "f");
  Value x = f.input("x", DType::F32, {"B", 2}), w = f.input("w", DType::F32, {2, 3});
  Value y = f.call("mm.default", {{"self", x}, {"mat2", w}});
  f.output("y", f.call("relu.default", {{"self", y}}));
  Error error = f.finish();
  ASSERT_FALSE(error) << error.message;

  Options options;
  options.useCache = false;
  Result<Program> program = compile(model, options);
  ASSERT_TRUE(bool(program)) << program.error().message;
  Function fn = program->function("f");
  ASSERT_TRUE(fn);
  Session session(1);
  Tensor a(DType::F32, {1, 2}), b(DType::F32, {2, 3});
  a.as<float>()[0] = 1, a.as<float>()[1] = 2;
  for (int i = 0; i < 6; ++i)
    b.as<float>()[i] = float(i - 3);
  Result<std::vector<Tensor>> out = session.run(fn, {a, b});
  ASSERT_TRUE(bool(out)) << out.error().message;
  // [1, 2] x [[-3, -2, -1], [0, 1, 2]] = [-3, 0, 3], and relu.
  Tensor r = (*out)[0];
  EXPECT_EQ(r.dims(), (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(r.as<float>()[0], 0);
  EXPECT_EQ(r.as<float>()[1], 0);
  EXPECT_EQ(r.as<float>()[2], 3);

  out = session.run(fn, {a});
  EXPECT_FALSE(bool(out));
  EXPECT_EQ(out.error().status, QUERN_INVALID);
  EXPECT_EQ(out.error().message, "invalid: expected 2 inputs of 'f', got 1");
  out = session.run(fn, {a, a});
  EXPECT_EQ(out.error().message, "invalid: input 1 'w' of 'f': expected dim 0 to be 2, got 1");
}

TEST(API, Gradient) {
  Model model;
  FunctionBuilder f(model, "loss");
  Value x = f.input("x", DType::F64, {3});
  f.output("l",
           f.call("sum.default", {{"self", f.call("mul.Tensor", {{"self", x}, {"other", x}})}}));
  ASSERT_FALSE(f.finish());
  Result<std::string> joint = model.addGradient("loss");
  ASSERT_TRUE(bool(joint)) << joint.error().message;
  Options options;
  options.useCache = false;
  Result<Program> program = compile(model, options);
  ASSERT_TRUE(bool(program)) << program.error().message;
  Session session(1);
  Tensor in(DType::F64, {3});
  for (int i = 0; i < 3; ++i)
    in.as<double>()[i] = i + 1;
  Result<std::vector<Tensor>> out = session.run(program->function(*joint), {in});
  ASSERT_TRUE(bool(out)) << out.error().message;
  EXPECT_EQ((*out)[0].as<double>()[0], 14);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ((*out)[1].as<double>()[i], 2.0 * (i + 1));
}

TEST(API, Errors) {
  Result<Model> none = Model::load("no/such/model.onnx");
  ASSERT_FALSE(bool(none));
  EXPECT_EQ(none.error().status, QUERN_INVALID);

  Model model;
  FunctionBuilder f(model, "f");
  Value x = f.input("x", DType::F32, {2, 3}), w = f.input("w", DType::F32, {2, 3});
  Value y = f.call("mm.default", {{"self", x}, {"mat2", w}});
  EXPECT_FALSE(bool(y));
  f.output("y", f.call("relu.default", {{"self", y}}));
  Error error = f.finish();
  EXPECT_EQ(error.status, QUERN_INVALID);
  EXPECT_NE(error.message.find("mm_c"), std::string::npos) << error.message;

  Session session(1);
  EXPECT_EQ(session.run(nullptr, {}).error().message, "invalid: expected a function, got null");
}

} // namespace
