//===- API.cpp - The C++ interface of Quern -------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/quern.h"

#include "quern/Compiler/Compiler.h"
#include "quern/Compiler/Diagnostics.h"
#include "quern/Compiler/Execute.h"
#include "quern/Import/ATen/Graph.h"
#include "quern/Import/ONNX/Importer.h"
#include "quern/Pipelines/Pipelines.h"
#include "quern/Shape/Dim.h"
#include "quern/Support/Error.h"
#include "quern/Support/HostTensor.h"
#include "llvm/Support/Path.h"

namespace quern {

static Error toError(llvm::Error error) {
  Error result;
  if (error)
    result.status = takeError(std::move(error), result.message);
  return result;
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

Tensor::Tensor(DType dtype, std::vector<int64_t> dims) : type(dtype), sizes(std::move(dims)) {
  if (!HostTensor::countElements(type, sizes))
    return;
  auto tensor = std::make_shared<HostTensor>(type, sizes);
  bytes = tensor->data();
  owner = tensor;
}

Tensor Tensor::view(DType dtype, std::vector<int64_t> dims, void *data) {
  Tensor t;
  t.type = dtype;
  t.sizes = std::move(dims);
  t.bytes = data;
  return t;
}

int64_t Tensor::numElements() const { return HostTensor::countElements(type, sizes).value_or(0); }
size_t Tensor::numBytes() const { return size_t(numElements()) * sizeOf(type); }

//===----------------------------------------------------------------------===//
// Models
//===----------------------------------------------------------------------===//

struct Model::Impl {
  std::unique_ptr<mlir::MLIRContext> ctx = createContext();
  mlir::OwningOpRef<mlir::ModuleOp> module;
  Impl() : module(mlir::ModuleOp::create(mlir::UnknownLoc::get(ctx.get()))) {}
};

struct ModelAccess {
  static Model::Impl &of(const Model &model) { return *model.impl; }
  static Program program(std::shared_ptr<void> impl) {
    Program program;
    program.impl = std::move(impl);
    return program;
  }
};

/// What a context diagnoses while this lives, as an error of the API.
namespace {
class Diagnosed {
public:
  explicit Diagnosed(mlir::MLIRContext *ctx) : collector(ctx, {}) {}
  Error take(const char *what) { return toError(collector.take(what)); }

private:
  DiagnosticCollector collector;
};
} // namespace

Model::Model() : impl(std::make_shared<Impl>()) {}

Result<Model> Model::load(const std::string &path) {
  Model model;
  mlir::MLIRContext &ctx = *model.impl->ctx;
  llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> module =
      llvm::sys::path::extension(path) == ".onnx" ? onnx::importFile(ctx, path)
                                                  : parseModelFile(ctx, path);
  if (!module)
    return toError(module.takeError());
  model.impl->module = std::move(*module);
  return model;
}

Result<std::string> Model::addGradient(const std::string &function, std::vector<int64_t> wrt) {
  mlir::MLIRContext *ctx = impl->ctx.get();
  Diagnosed diagnosed(ctx);
  mlir::PassManager pm(ctx);
  buildBackwardPipeline(pm, {function, std::move(wrt)});
  if (failed(pm.run(*impl->module)))
    return diagnosed.take("autodiff");
  return function + "_joint";
}

std::string Model::text() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  impl->module->print(os);
  return text;
}

//===----------------------------------------------------------------------===//
// Building functions
//===----------------------------------------------------------------------===//

struct FunctionBuilder::Impl {
  Model model;
  Diagnosed diagnosed;
  aten::GraphBuilder builder;
  Impl(Model &m, const std::string &name)
      : model(m), diagnosed(ModelAccess::of(m).ctx.get()),
        builder(*ModelAccess::of(m).module, name) {}

  static mlir::Value get(Value v) { return mlir::Value::getFromOpaquePointer(v.handle); }
  static Value wrap(mlir::Value v) { return Value(v.getAsOpaquePointer()); }
  static std::vector<Value> wrap(llvm::ArrayRef<mlir::Value> values) {
    std::vector<Value> result;
    for (mlir::Value v : values)
      result.push_back(wrap(v));
    return result;
  }
  static llvm::SmallVector<mlir::Value> get(const std::vector<Value> &values) {
    llvm::SmallVector<mlir::Value> result;
    for (Value v : values)
      result.push_back(get(v));
    return result;
  }

  aten::Argument convert(const Argument &argument) {
    mlir::MLIRContext *ctx = ModelAccess::of(model).ctx.get();
    return std::visit(
        [&](const auto &v) -> aten::Argument {
          using T = std::decay_t<decltype(v)>;
          if constexpr (std::is_same_v<T, Value> || std::is_same_v<T, std::vector<Value>>)
            return get(v);
          else if constexpr (std::is_same_v<T, bool>)
            return aten::Scalar::boolean(v);
          else if constexpr (std::is_same_v<T, int64_t>)
            return aten::Scalar::integer(v);
          else if constexpr (std::is_same_v<T, double>)
            return aten::Scalar::number(v);
          else if constexpr (std::is_same_v<T, DType>)
            return getElementType(ctx, v);
          else if constexpr (std::is_same_v<T, std::string>)
            return v;
          else
            return llvm::SmallVector<int64_t>(v.begin(), v.end());
        },
        argument);
  }
};

FunctionBuilder::FunctionBuilder(Model &model, const std::string &name)
    : impl(std::make_unique<Impl>(model, name)) {}
FunctionBuilder::~FunctionBuilder() = default;

Value FunctionBuilder::input(const std::string &name, DType dtype, const std::vector<Size> &dims,
                             bool donated) {
  mlir::MLIRContext *ctx = ModelAccess::of(impl->model).ctx.get();
  llvm::SmallVector<Dim> sizes;
  for (const Size &size : dims)
    sizes.push_back(!size.name.empty() ? Dim::symbol(ctx, size.name)
                    : size.value >= 0  ? Dim::constant(ctx, size.value)
                                       : Dim::unknown(ctx));
  return Impl::wrap(
      impl->builder.input(name, getTensorType(sizes, getElementType(ctx, dtype)), donated));
}

std::vector<Value> FunctionBuilder::calls(const std::string &overload, const Arguments &arguments) {
  llvm::SmallVector<aten::GraphBuilder::NamedArgument> converted;
  for (const auto &[name, argument] : arguments)
    converted.emplace_back(name, impl->convert(argument));
  return Impl::wrap(impl->builder.calls(overload, converted));
}

Value FunctionBuilder::call(const std::string &overload, const Arguments &arguments) {
  std::vector<Value> results = calls(overload, arguments);
  return results.empty() ? Value() : results.front();
}

std::vector<Value>
FunctionBuilder::op(const std::string &mnemonic, const std::vector<Value> &operands,
                    const std::vector<std::pair<std::string, double>> &attributes) {
  mlir::OpBuilder &b = impl->builder.builder();
  llvm::SmallVector<mlir::NamedAttribute> attrs;
  for (const auto &[name, value] : attributes)
    attrs.push_back(b.getNamedAttr(name, b.getF64FloatAttr(value)));
  return Impl::wrap(impl->builder.op(mnemonic, Impl::get(operands), attrs));
}

std::vector<Value> FunctionBuilder::inlined(const std::string &function,
                                            const std::vector<Value> &arguments) {
  auto callee = ModelAccess::of(impl->model).module->lookupSymbol<mlir::func::FuncOp>(function);
  if (!callee) {
    mlir::emitError(impl->builder.builder().getUnknownLoc())
        << "invalid: no function '" << function << "' in the model";
    return {};
  }
  return Impl::wrap(impl->builder.inlined(callee, Impl::get(arguments)));
}

void FunctionBuilder::output(const std::string &name, Value value, Value into) {
  impl->builder.output(name, Impl::get(value), Impl::get(into));
}

Error FunctionBuilder::finish() {
  if (failed(impl->builder.finish()))
    return impl->diagnosed.take("building a function");
  return {};
}

//===----------------------------------------------------------------------===//
// Compiling
//===----------------------------------------------------------------------===//

static DeviceKind deviceKind(Target target) {
  return target == Target::CPU    ? DeviceKind::CPU
         : target == Target::CUDA ? DeviceKind::CUDA
                                  : DeviceKind::CUDAEmulated;
}

static CompileOptions convert(const Options &options) {
  CompileOptions result;
  result.device = deviceKind(options.target);
  result.cpu = options.cpu;
  result.level = options.level;
  result.strict = options.strict;
  if (!options.useCache)
    result.cache = DiskCache();
  result.report = bool(options.onRemark);
  if (options.onRemark)
    result.onRemark = [fn = options.onRemark](llvm::StringRef text) { fn(text.str()); };
  result.onProgress = options.onProgress;
  return result;
}

Result<Program> compile(const Model &model, const Options &options) {
  mlir::OwningOpRef<mlir::ModuleOp> copy = ModelAccess::of(model).module->clone();
  llvm::Expected<std::unique_ptr<CompiledModel>> compiled = compileModel(*copy, convert(options));
  if (!compiled)
    return toError(compiled.takeError());
  return ModelAccess::program(std::shared_ptr<CompiledModel>(std::move(*compiled)));
}

Error compileToFile(const Model &model, const std::string &path, const Options &options) {
  mlir::OwningOpRef<mlir::ModuleOp> copy = ModelAccess::of(model).module->clone();
  llvm::SmallString<128> header(path);
  llvm::sys::path::replace_extension(header, ".h");
  return toError(compileArtefact(*copy, convert(options), path, header));
}

std::vector<Function> Program::functions() const {
  if (!impl)
    return {};
  llvm::ArrayRef<Function> all = static_cast<CompiledModel *>(impl.get())->functions();
  return {all.begin(), all.end()};
}

Function Program::function(const std::string &name) const {
  return impl ? static_cast<CompiledModel *>(impl.get())->lookup(name) : nullptr;
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

Session::Session(int threads, Target target) : ctx(quern_context_create(threads)) {
  if (!ctx) {
    problem = {QUERN_ERROR, "not enough memory for a session"};
    return;
  }
  llvm::Expected<std::unique_ptr<Device>> opened = Device::open(deviceKind(target));
  if (!opened) {
    problem = toError(opened.takeError());
    return;
  }
  quern_context_set_device(ctx, (*opened)->get());
  device = std::shared_ptr<Device>(std::move(*opened));
}

Session::~Session() { quern_context_destroy(ctx); }

static DLTensor toDLPack(const Tensor &t) {
  return {t.data(),
          {kDLCPU, 0},
          int32_t(t.dims().size()),
          getInfo(t.dtype()).dlpack,
          const_cast<int64_t *>(t.dims().data()),
          nullptr,
          0};
}

static Error countError(Function fn, size_t inputs) {
  return {QUERN_INVALID, "invalid: expected " + std::to_string(fn->num_inputs) + " inputs of '" +
                             fn->name + "', got " + std::to_string(inputs)};
}

Error Session::run(Function fn, const std::vector<Tensor> &inputs, std::vector<Tensor> &outputs) {
  if (problem)
    return problem;
  if (!fn)
    return {QUERN_INVALID, "invalid: expected a function, got null"};
  if (inputs.size() != size_t(fn->num_inputs))
    return countError(fn, inputs.size());
  if (outputs.size() != size_t(fn->num_outputs))
    return {QUERN_INVALID, "invalid: expected " + std::to_string(fn->num_outputs) +
                               " outputs of '" + fn->name + "', got " +
                               std::to_string(outputs.size())};
  std::vector<DLTensor> storage;
  for (const std::vector<Tensor> *list :
       {&inputs, static_cast<const std::vector<Tensor> *>(&outputs)})
    for (const Tensor &t : *list)
      storage.push_back(toDLPack(t));
  std::vector<DLTensor *> pointers;
  for (DLTensor &t : storage)
    pointers.push_back(&t);
  quern_status status = quern_call(ctx, fn, pointers.data(), pointers.data() + inputs.size());
  if (status == QUERN_OK)
    return {};
  return {status, quern_context_error(ctx)};
}

Result<std::vector<Tensor>> Session::run(Function fn, const std::vector<Tensor> &inputs) {
  if (problem)
    return problem;
  if (!fn)
    return Error{QUERN_INVALID, "invalid: expected a function, got null"};
  if (inputs.size() != size_t(fn->num_inputs))
    return countError(fn, inputs.size());
  std::vector<DLTensor> storage;
  for (const Tensor &t : inputs)
    storage.push_back(toDLPack(t));
  std::vector<const DLTensor *> pointers;
  for (DLTensor &t : storage)
    pointers.push_back(&t);
  std::vector<int64_t> dims(size_t(fn->num_outputs) * QUERN_MAX_RANK);
  if (quern_status status = quern_query(ctx, fn, pointers.data(), dims.data(), nullptr))
    return Error{status, quern_context_error(ctx)};
  std::vector<Tensor> outputs;
  for (int32_t o = 0; o < fn->num_outputs; ++o) {
    if (fn->output_alias && fn->output_alias[o] >= 0) {
      outputs.push_back(inputs[size_t(fn->output_alias[o])]);
      continue;
    }
    std::optional<DType> dtype = getDType(fn->outputs[o].dtype);
    const int64_t *sizes = dims.data() + o * QUERN_MAX_RANK;
    if (!dtype || !HostTensor::countElements(*dtype, {sizes, size_t(fn->outputs[o].rank)}))
      return Error{QUERN_ERROR,
                   "not enough memory for output " + std::to_string(o) + " of '" + fn->name + "'"};
    outputs.emplace_back(*dtype, std::vector<int64_t>(sizes, sizes + fn->outputs[o].rank));
  }
  if (Error error = run(fn, inputs, outputs))
    return error;
  return outputs;
}

} // namespace quern
