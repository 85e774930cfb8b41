//===- app.cpp - A program over an installed Quern ------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Compiles relu(a * b) for any number of rows and prints a value of it.
///
//===----------------------------------------------------------------------===//

#include <quern/quern.h>

#include <cstdio>

static int fail(const quern::Error &error) {
  std::fprintf(stderr, "error: %s\n", error.message.c_str());
  return error.status;
}

int main() {
  quern::Model model;
  quern::FunctionBuilder builder(model, "f");
  quern::Value a = builder.input("a", quern::DType::F32, {"rows", 3});
  quern::Value b = builder.input("b", quern::DType::F32, {3, 2});
  quern::Value product = builder.call("mm.default", {{"self", a}, {"mat2", b}});
  builder.output("y", builder.call("relu.default", {{"self", product}}));
  if (quern::Error error = builder.finish())
    return fail(error);
  quern::Result<quern::Program> program = quern::compile(model);
  if (!program)
    return fail(program.error());

  quern::Tensor x(quern::DType::F32, {2, 3}), w(quern::DType::F32, {3, 2});
  for (int i = 0; i < 6; ++i) {
    x.as<float>()[i] = float(i);     // 0 1 2 / 3 4 5
    w.as<float>()[i] = float(2 - i); // 2 1 / 0 -1 / -2 -3
  }
  w.as<float>()[4] = 3; //             third row 3 -3
  quern::Session session;
  auto outputs = session.run(program->function("f"), {x, w});
  if (!outputs)
    return fail(outputs.error());
  const float *y = (*outputs)[0].as<float>();
  std::printf("%g %g %g %g\n", y[0], y[1], y[2], y[3]);

  // An error is a value.
  quern::Error error = session.run(program->function("f"), {x}).error();
  std::printf("%d %s\n", int(error.status), error.message.c_str());
}
