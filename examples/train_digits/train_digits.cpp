//===- train_digits.cpp - A classifier trained by one compiled step -------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// train_digits [DIGITS.CSV [EPOCHS]]: learns to read handwritten digits (8 × 8
/// pixels; see DATA.md) and prints the progress, the accuracy and the memory used.
///
/// A training step is one compiled function: loss, gradients and the AdamW update of
/// every parameter. Parameters and the optimiser's state are donated, so the step
/// writes the new values over the old ones and nothing is copied.
///
//===----------------------------------------------------------------------===//

#include "quern/quern.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <numeric>
#include <random>
#include <sstream>

using namespace quern;

namespace {
constexpr int64_t pixels = 64, classes = 10, batch = 128, hidden1 = 128, hidden2 = 64;
constexpr int64_t trainRows = 1437;
constexpr double learningRate = 3e-3;

struct Digits {
  std::vector<float> images; ///< rows of 64, from 0 to 1
  std::vector<int64_t> labels;
  int64_t rows() const { return int64_t(labels.size()); }
};

struct Parameter {
  const char *name;
  std::vector<int64_t> dims;
};
const std::vector<Parameter> parameters = {
    {"w1", {pixels, hidden1}},  {"b1", {hidden1}}, {"gamma", {hidden1}},       {"beta", {hidden1}},
    {"w2", {hidden1, hidden2}}, {"b2", {hidden2}}, {"w3", {hidden2, classes}}, {"b3", {classes}},
};

std::vector<Size> sizes(const std::vector<int64_t> &dims) { return {dims.begin(), dims.end()}; }
} // namespace

static int fail(const std::string &what, const Error &error) {
  std::fprintf(stderr, "error: %s: %s\n", what.c_str(), error.message.c_str());
  return error.status;
}

static bool readDigits(const std::string &path, Digits &digits) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    std::stringstream fields(line);
    std::string field;
    std::vector<float> row;
    while (std::getline(fields, field, ','))
      row.push_back(std::strtof(field.c_str(), nullptr));
    if (int64_t(row.size()) != pixels + 1)
      return false;
    for (int64_t i = 0; i < pixels; ++i)
      digits.images.push_back(row[i] / 16);
    digits.labels.push_back(int64_t(row[pixels]));
  }
  return digits.rows() > trainRows;
}

/// Linear, relu, layer norm, linear, gelu, linear. Weights stand as [in, out].
static Value logits(FunctionBuilder &f, Value x, std::map<std::string, Value> p) {
  auto linear = [&](Value v, const char *weight, const char *bias) {
    return f.call("addmm.default", {{"self", p[bias]}, {"mat1", v}, {"mat2", p[weight]}});
  };
  Value h = f.call("relu.default", {{"self", linear(x, "w1", "b1")}});
  h = f.call("layer_norm.default", {{"input", h},
                                    {"normalized_shape", std::vector<int64_t>{hidden1}},
                                    {"weight", p["gamma"]},
                                    {"bias", p["beta"]}});
  h = f.call("gelu.default", {{"self", linear(h, "w2", "b2")}});
  return linear(h, "w3", "b3");
}

/// `predict`: images of any number and the parameters to logits.
static Error buildPredict(Model &model) {
  FunctionBuilder f(model, "predict");
  Value x = f.input("x", DType::F32, {"N", pixels});
  std::map<std::string, Value> p;
  for (const Parameter &parameter : parameters)
    p[parameter.name] = f.input(parameter.name, DType::F32, sizes(parameter.dims));
  f.output("logits", logits(f, x, p));
  return f.finish();
}

/// `loss`: the mean cross entropy of a batch.
static Error buildLoss(Model &model) {
  FunctionBuilder f(model, "loss");
  Value x = f.input("x", DType::F32, {batch, pixels});
  Value target = f.input("target", DType::I64, {batch});
  std::map<std::string, Value> p;
  for (const Parameter &parameter : parameters)
    p[parameter.name] = f.input(parameter.name, DType::F32, sizes(parameter.dims));
  Value logProb = f.call("log_softmax.int", {{"self", logits(f, x, p)}, {"dim", int64_t(1)}});
  f.output("loss", f.call("nll_loss.default", {{"self", logProb}, {"target", target}}));
  return f.finish();
}

/// `step`: the loss, and each parameter with its two moving averages after an update.
static Error buildStep(Model &model, const std::string &gradient) {
  FunctionBuilder f(model, "step");
  Value x = f.input("x", DType::F32, {batch, pixels});
  Value target = f.input("target", DType::I64, {batch});
  Value number = f.input("number", DType::I64, {});
  std::vector<Value> arguments = {x, target};
  std::vector<std::vector<Value>> state;
  for (const Parameter &parameter : parameters) {
    std::vector<Value> values;
    for (const char *suffix : {"", ".mean", ".square"})
      values.push_back(f.input(std::string(parameter.name) + suffix, DType::F32,
                               sizes(parameter.dims), /*donated=*/true));
    arguments.push_back(values[0]);
    state.push_back(values);
  }
  std::vector<Value> results = f.inlined(gradient, arguments);
  results.resize(1 + parameters.size());
  f.output("loss", results[0]);
  for (size_t i = 0; i < parameters.size(); ++i) {
    std::vector<Value> updated =
        f.op("adamw_step", {state[i][0], results[1 + i], state[i][1], state[i][2], number},
             {{"lr", learningRate}});
    updated.resize(3);
    for (size_t k = 0; k < 3; ++k)
      f.output(std::string(parameters[i].name) + std::to_string(k), updated[k], state[i][k]);
  }
  return f.finish();
}

/// Weights as randn / sqrt(fan in), gamma ones, the rest zeros.
static Tensor initial(const Parameter &parameter, std::mt19937 &random) {
  Tensor tensor(DType::F32, parameter.dims);
  std::normal_distribution<float> normal(0, 1 / std::sqrt(float(parameter.dims[0])));
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    tensor.as<float>()[i] = parameter.name[0] == 'w'                ? normal(random)
                            : !std::strcmp(parameter.name, "gamma") ? 1.0f
                                                                    : 0.0f;
  return tensor;
}

/// How many of the test images are read correctly, from 0 to 1.
static Result<double> accuracy(Session &session, Function predict, const Digits &digits,
                               const std::vector<Tensor> &values) {
  int64_t count = digits.rows() - trainRows;
  std::vector<Tensor> inputs = {Tensor::view(
      DType::F32, {count, pixels}, const_cast<float *>(&digits.images[trainRows * pixels]))};
  inputs.insert(inputs.end(), values.begin(), values.end());
  Result<std::vector<Tensor>> outputs = session.run(predict, inputs);
  if (!outputs)
    return outputs.error();
  int64_t right = 0;
  for (int64_t i = 0; i < count; ++i) {
    const float *row = (*outputs)[0].as<float>() + i * classes;
    right += std::max_element(row, row + classes) - row == digits.labels[trainRows + i];
  }
  return double(right) / double(count);
}

int main(int argc, char **argv) {
  std::string path = argc > 1 ? argv[1] : QUERN_DIGITS_CSV;
  int epochs = argc > 2 ? std::atoi(argv[2]) : 100;
  Digits digits;
  if (!readDigits(path, digits) || epochs < 1) {
    std::fprintf(stderr,
                 "error: invalid: %s: expected lines of 64 pixels and a label, and a "
                 "number of epochs\n",
                 path.c_str());
    return QUERN_INVALID;
  }

  Model model;
  if (Error error = buildPredict(model))
    return fail("predict", error);
  if (Error error = buildLoss(model))
    return fail("loss", error);
  std::vector<int64_t> numbers(parameters.size());
  std::iota(numbers.begin(), numbers.end(), 2); // after x and target
  Result<std::string> gradient = model.addGradient("loss", numbers);
  if (!gradient)
    return fail("gradient", gradient.error());
  if (Error error = buildStep(model, *gradient))
    return fail("step", error);

  auto now = [] { return std::chrono::steady_clock::now(); };
  auto seconds = [&](auto since) { return std::chrono::duration<double>(now() - since).count(); };
  auto start = now();
  Result<Program> program = compile(model);
  if (!program)
    return fail("compile", program.error());
  std::printf("compiled in %.2f s\n", seconds(start));

  std::mt19937 random(1);
  Session session(/*threads=*/1);
  Function step = program->function("step"), predict = program->function("predict");
  Tensor x(DType::F32, {batch, pixels}), target(DType::I64, {batch}), number(DType::I64, {});
  std::vector<Tensor> inputs = {x, target, number}, values;
  int64_t stateBytes = 0;
  for (const Parameter &parameter : parameters) {
    values.push_back(initial(parameter, random));
    inputs.push_back(values.back());
    for (int k = 0; k < 2; ++k)
      inputs.emplace_back(DType::F32, parameter.dims);
    stateBytes += 3 * int64_t(values.back().numBytes());
  }

  std::vector<int64_t> order(trainRows);
  std::iota(order.begin(), order.end(), 0);
  start = now();
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    std::shuffle(order.begin(), order.end(), random);
    double loss = 0;
    int64_t steps = trainRows / batch;
    for (int64_t s = 0; s < steps; ++s) {
      for (int64_t r = 0; r < batch; ++r) {
        int64_t row = order[s * batch + r];
        std::memcpy(x.as<float>() + r * pixels, &digits.images[row * pixels],
                    pixels * sizeof(float));
        target.as<int64_t>()[r] = digits.labels[row];
      }
      ++*number.as<int64_t>();
      Result<std::vector<Tensor>> outputs = session.run(step, inputs);
      if (!outputs)
        return fail("step", outputs.error());
      loss += *(*outputs)[0].as<float>() / double(steps);
    }
    if (epoch % 10 == 0 || epoch == epochs) {
      Result<double> right = accuracy(session, predict, digits, values);
      if (!right)
        return fail("predict", right.error());
      std::printf("epoch %3d: loss %.4f, test accuracy %.1f %%\n", epoch, loss, *right * 100);
    }
  }
  std::printf("trained in %.2f s on one thread\n", seconds(start));
  std::printf("memory: %.1f KiB of parameters and optimiser state, at most %.1f KiB beside them\n",
              double(stateBytes) / 1024,
              double(quern_context_peak_bytes(session.context())) / 1024);
  return QUERN_OK;
}
