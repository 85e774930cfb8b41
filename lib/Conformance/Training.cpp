//===- Training.cpp - quern-conformance training --------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Digits.h"
#include "Program.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "quern/Import/ATen/Graph.h"
#include "quern/Support/Error.h"
#include "quern/Support/Safetensors.h"
#include "quern/Transforms/Passes.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include <cmath>

using namespace mlir;
using llvm::ArrayRef;
using llvm::StringRef;
using quern::aten::GraphBuilder;
using quern::aten::Scalar;

namespace quern::conformance {

/// The two-layer graph: tanh, gelu, softmax, exp; its loss.
static FailureOr<func::FuncOp> buildTwoLayer(ModuleOp module, DType dtype,
                                             ArrayRef<HostTensor> inputs) {
  GraphBuilder g(module, "two_layer");
  Value x = g.input("x", dtype, inputs[0].dims());
  Value w = g.input("w", dtype, inputs[1].dims());
  Value b = g.input("b", dtype, inputs[2].dims());
  auto affine = [&](Value v) {
    return g.call("addmm.default", {{"self", b}, {"mat1", v}, {"mat2", w}});
  };
  Value h = g.call("tanh.default", {{"self", affine(x)}});
  Value gelu = g.call("gelu.default", {{"self", affine(h)}});
  Value softmax = g.call("softmax.int", {{"self", gelu}, {"dim", Scalar::integer(-1)}});
  Value scaled = g.call("mul.Scalar", {{"self", gelu}, {"other", Scalar::number(0.1)}});
  Value exp = g.call("exp.default", {{"self", scaled}});
  Value y = g.call("mul.Tensor", {{"self", softmax}, {"other", exp}});
  Value square = g.call("mul.Tensor", {{"self", y}, {"other", y}});
  g.output("loss", g.call("mean.default", {{"self", square}}));
  return g.finish();
}

/// The names of the classifier's parameters, in the order of its function.
static constexpr StringRef parameterNames[] = {"w1", "b1", "gamma", "beta", "w2", "b2", "w3", "b3"};

/// Linear, relu, layer norm, linear, gelu, linear; cross entropy.
static FailureOr<func::FuncOp> buildClassifier(ModuleOp module, DType dtype, int64_t batch,
                                               ArrayRef<HostTensor> parameters) {
  GraphBuilder g(module, "classifier");
  Value x = g.input("x", dtype, {batch, parameters[0].dims()[0]});
  Value target = g.input("target", DType::I64, {batch});
  llvm::StringMap<Value> p;
  for (auto [name, tensor] : llvm::zip(parameterNames, parameters))
    p[name] = g.input(name, dtype, tensor.dims());
  auto linear = [&](Value v, StringRef weight, StringRef bias) {
    return g.call("addmm.default", {{"self", p[bias]}, {"mat1", v}, {"mat2", p[weight]}});
  };
  Value h = g.call("relu.default", {{"self", linear(x, "w1", "b1")}});
  h = g.call("layer_norm.default",
             {{"input", h},
              {"normalized_shape", SmallVector<int64_t>(parameters[1].dims())},
              {"weight", p["gamma"]},
              {"bias", p["beta"]},
              {"eps", Scalar::number(1e-5)}});
  h = g.call("gelu.default", {{"self", linear(h, "w2", "b2")}});
  Value logits = linear(h, "w3", "b3");
  Value logProb = g.call("log_softmax.int", {{"self", logits}, {"dim", Scalar::integer(1)}});
  g.output("loss", g.call("nll_loss.default", {{"self", logProb}, {"target", target}}));
  return g.finish();
}

/// Loss and gradients of a function by `arguments`; the function itself goes.
static FailureOr<func::FuncOp> differentiate(func::FuncOp func, ArrayRef<int64_t> arguments) {
  QuernAutodiffOptions options;
  options.function = func.getName().str();
  options.arguments.assign(arguments.begin(), arguments.end());
  auto module = func->getParentOfType<ModuleOp>();
  PassManager passes(module.getContext());
  passes.addPass(createQuernAutodiff(options));
  if (failed(passes.run(module)))
    return failure();
  func->erase();
  return module.lookupSymbol<func::FuncOp>(options.function + "_joint");
}

namespace {
struct Optimizer {
  StringRef name;
  unsigned states; ///< tensors that it keeps for each parameter
};
constexpr Optimizer optimizers[] = {{"sgd", 0}, {"adamw", 2}};

/// The parameter and its states after a step (`tensors` are those before). `count`: the number of
/// the step, from 1.
SmallVector<Value> optimizerStep(GraphBuilder &g, const Optimizer &optimizer,
                                 ArrayRef<Value> tensors, Value gradient, Value count) {
  auto number = [&](StringRef name, double value) {
    return g.builder().getNamedAttr(name, g.builder().getF64FloatAttr(value));
  };
  if (optimizer.name == "sgd")
    return g.op("sgd_step", {tensors[0], gradient}, {number("lr", 0.1)});
  return g.op("adamw_step", {tensors[0], gradient, tensors[1], tensors[2], count},
              {number("lr", 3e-3), number("beta1", 0.9), number("beta2", 0.999),
               number("eps", 1e-8), number("weight_decay", 0.01)});
}

/// Prints differences, and remembers whether one was too large.
class Judge {
public:
  /// |got - want| / max(1, largest |want|) where `relative`, else |got - want|.
  void check(StringRef what, const HostTensor &got, const HostTensor &want, double allowed,
             bool relative) {
    double largest = 0, difference = 0;
    bool same = got.dims() == want.dims();
    for (int64_t i = 0; same && i < want.numElements(); ++i) {
      largest = std::max(largest, std::fabs(want.getDouble(i)));
      double d = std::fabs(got.getDouble(i) - want.getDouble(i));
      difference = std::max(difference, std::isnan(d) ? HUGE_VAL : d);
    }
    if (!same)
      difference = HUGE_VAL;
    if (relative && largest > 0)
      difference /= largest;
    report(what, difference, allowed);
  }
  void report(StringRef what, double difference, double allowed) {
    bool good = difference <= allowed;
    passed &= good;
    llvm::outs() << llvm::formatv("{0,-44} {1,10:e2}  allowed {2:e1}  {3}\n", what, difference,
                                  allowed, good ? "ok" : "WRONG");
  }
  bool passed = true;
};

/// One folder on one target.
class TrainingRun {
public:
  TrainingRun(StringRef folder, Target target) : folder(folder), target(target) {
    loadDialects(context);
    context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == DiagnosticSeverity::Error && firstError.empty())
        firstError = diagnostic.str();
    });
  }
  llvm::Expected<bool> run();

private:
  llvm::Error twoLayer(DType dtype);
  llvm::Error classifier(DType dtype, const Optimizer &optimizer);
  FailureOr<func::FuncOp> buildStep(ModuleOp module, DType dtype, int64_t batch,
                                    ArrayRef<HostTensor> parameters, const Optimizer &optimizer);
  /// What the diagnostics said, as an error.
  llvm::Error built() {
    StringRef text = firstError;
    if (text.consume_front("unsupported: "))
      return unsupported(text);
    return runtimeError(text);
  }
  std::string path(StringRef file) const {
    llvm::SmallString<128> p(folder);
    llvm::sys::path::append(p, file);
    return p.str().str();
  }

  StringRef folder;
  Target target;
  MLIRContext context{MLIRContext::Threading::DISABLED};
  std::string firstError;
  Judge judge;
};
} // namespace

llvm::Error TrainingRun::twoLayer(DType dtype) {
  llvm::Expected<Safetensors> file = Safetensors::open(path("two_layer.safetensors"));
  if (!file)
    return file.takeError();
  static constexpr StringRef names[] = {"x", "w", "b"};
  std::vector<HostTensor> inputs;
  for (StringRef name : names) {
    llvm::Expected<HostTensor> tensor = file->get(name);
    if (!tensor)
      return tensor.takeError();
    inputs.push_back(tensor->convert(dtype));
  }
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  FailureOr<func::FuncOp> func = buildTwoLayer(*module, dtype, inputs);
  if (succeeded(func))
    func = differentiate(*func, {0, 1, 2});
  if (failed(func))
    return built();
  std::string name = func->getName().str();
  llvm::Expected<std::unique_ptr<Program>> program = Program::compile(*module, target);
  if (!program)
    return program.takeError();
  llvm::Expected<std::vector<HostTensor>> outputs = (*program)->call(name, inputs);
  if (!outputs)
    return outputs.takeError();
  double allowed = dtype == DType::F64 ? 1e-12 : 1e-5;
  static constexpr StringRef quantities[] = {"loss", "dx", "dw", "db"};
  for (auto [got, quantity] : llvm::zip(*outputs, quantities)) {
    llvm::Expected<HostTensor> want = file->get((quantity + "_f64").str());
    if (!want)
      return want.takeError();
    if (want->numElements() != got.numElements())
      return invalidInput(path("two_layer.safetensors") + ": " + quantity +
                          "_f64 has the wrong size");
    judge.check(("two_layer " + quern::name(dtype) + " " + quantity).str(), got,
                want->reshape(got.dims()), allowed, /*relative=*/true);
  }
  return llvm::Error::success();
}

/// One step: loss, then each parameter and its state, updated in place.
FailureOr<func::FuncOp> TrainingRun::buildStep(ModuleOp module, DType dtype, int64_t batch,
                                               ArrayRef<HostTensor> parameters,
                                               const Optimizer &optimizer) {
  FailureOr<func::FuncOp> joint = buildClassifier(module, dtype, batch, parameters);
  if (failed(joint))
    return failure();
  SmallVector<int64_t> numbers;
  for (unsigned i = 0; i < parameters.size(); ++i)
    numbers.push_back(2 + i);
  joint = differentiate(*joint, numbers);
  if (failed(joint))
    return failure();

  GraphBuilder g(module, "step");
  SmallVector<Value> arguments = {g.input("x", joint->getArgument(0).getType()),
                                  g.input("target", joint->getArgument(1).getType())};
  SmallVector<SmallVector<Value>> updated; // the parameter, then its states
  for (auto [name, tensor] : llvm::zip(parameterNames, parameters)) {
    SmallVector<Value> tensors;
    for (unsigned i = 0; i <= optimizer.states; ++i)
      tensors.push_back(g.input((name + (i ? ".state" + llvm::Twine(i) : llvm::Twine())).str(),
                                dtype, tensor.dims(), /*donated=*/true));
    arguments.push_back(tensors.front());
    updated.push_back(std::move(tensors));
  }
  Value count;
  if (optimizer.states)
    count = g.input("step", DType::I64, {});
  SmallVector<Value> gradients = g.inlined(*joint, arguments);
  if (gradients.empty())
    return failure();
  g.output("loss", gradients.front());
  for (auto [i, tensors] : llvm::enumerate(updated)) {
    SmallVector<Value> results = optimizerStep(g, optimizer, tensors, gradients[1 + i], count);
    for (auto [k, result] : llvm::enumerate(results))
      g.output((parameterNames[i] + (k ? ".state" + llvm::Twine(k) : llvm::Twine())).str(), result,
               tensors[k]);
  }
  FailureOr<func::FuncOp> step = g.finish();
  joint->erase();
  return step;
}

llvm::Error TrainingRun::classifier(DType dtype, const Optimizer &optimizer) {
  llvm::Expected<Safetensors> file = Safetensors::open(path("digits_mlp.safetensors"));
  if (!file)
    return file.takeError();
  llvm::Expected<Digits> digits = readDigits(path("digits.csv.gz"));
  if (!digits)
    return digits.takeError();
  llvm::Expected<HostTensor> batches = file->get("batches");
  if (!batches)
    return batches.takeError();
  if (batches->rank() != 2 || batches->dtype() != DType::I64)
    return invalidInput(file->path() + ": expected batches to be i64[steps, batch]");
  int64_t steps = batches->dims()[0], batch = batches->dims()[1];
  std::vector<HostTensor> parameters;
  for (StringRef name : parameterNames) {
    llvm::Expected<HostTensor> tensor = file->get(("init." + name).str());
    if (!tensor)
      return tensor.takeError();
    parameters.push_back(tensor->convert(dtype));
  }
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  FailureOr<func::FuncOp> step = buildStep(*module, dtype, batch, parameters, optimizer);
  if (failed(step))
    return built();
  llvm::Expected<std::unique_ptr<Program>> program = Program::compile(*module, target);
  if (!program)
    return program.takeError();

  int64_t pixels = parameters[0].dims()[0];
  HostTensor x(dtype, {batch, pixels}), labels(DType::I64, {batch});
  std::vector<HostTensor> inputs = {x, labels};
  for (const HostTensor &parameter : parameters) {
    inputs.push_back(parameter);
    for (unsigned i = 0; i < optimizer.states; ++i)
      inputs.emplace_back(dtype, parameter.dims());
  }
  HostTensor count(DType::I64, {});
  if (optimizer.states)
    inputs.push_back(count);
  HostTensor losses(DType::F64, {steps});
  for (int64_t i = 0; i < steps; ++i) {
    for (int64_t r = 0; r < batch; ++r) {
      int64_t row = batches->getInt(i * batch + r);
      if (row < 0 || row >= int64_t(digits->labels.size()))
        return invalidInput(file->path() + ": batches name row " + llvm::Twine(row));
      labels.setInt(r, digits->labels[row]);
      for (int64_t k = 0; k < pixels; ++k)
        x.set(r * pixels + k, digits->pixels[row * pixels + k]);
    }
    count.setInt(0, i + 1);
    // Parameters and states are updated where they are.
    llvm::Expected<std::vector<HostTensor>> outputs = (*program)->call("step", inputs);
    if (!outputs)
      return outputs.takeError();
    losses.set(i, outputs->front().getDouble(0));
  }
  std::string label = ("digits_mlp " + quern::name(dtype) + " " + optimizer.name).str();
  llvm::Expected<HostTensor> want = file->get((optimizer.name + ".losses_f64").str());
  if (!want)
    return want.takeError();
  judge.check(label + " losses", losses, *want, dtype == DType::F64 ? 1e-10 : 1e-5,
              /*relative=*/false);
  unsigned stride = 1 + optimizer.states;
  for (auto [i, name] : llvm::enumerate(parameterNames)) {
    llvm::Expected<HostTensor> final = file->get((optimizer.name + ".final." + name).str());
    if (!final)
      return final.takeError();
    judge.check(label + " final " + name.str(), inputs[2 + i * stride], *final,
                dtype == DType::F64 ? 1e-9 : 1e-3, /*relative=*/true);
  }
  return llvm::Error::success();
}

llvm::Expected<bool> TrainingRun::run() {
  for (DType dtype : {DType::F32, DType::F64}) {
    if (dtype == DType::F64 && target != Target::CPU)
      continue;
    if (llvm::Error error = twoLayer(dtype))
      return std::move(error);
    for (const Optimizer &optimizer : optimizers)
      if (llvm::Error error = classifier(dtype, optimizer))
        return std::move(error);
  }
  return judge.passed;
}

llvm::Expected<bool> runTraining(StringRef folder, Target target) {
  return TrainingRun(folder, target).run();
}

} // namespace quern::conformance
