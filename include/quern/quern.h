//===- quern.h - The C++ interface of Quern ---------------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Load or build a model, compile it, run it. Only the C++ library's types and
/// quern-c/Runtime.h are used here; nothing throws.
///
/// \code
/// quern::Result<quern::Model> model = quern::Model::load("model.onnx");
/// if (!model)
///   return fail(model.error().message);
/// quern::Result<quern::Program> program = quern::compile(*model);
/// quern::Session session;
/// auto outputs = session.run(program->functions()[0], {input});
/// \endcode
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_QUERN_H
#define QUERN_QUERN_H

#include "quern-c/Runtime.h"
#include "quern/Support/DType.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace quern {

/// What went wrong; false when nothing did.
struct Error {
  quern_status status = QUERN_OK;
  std::string message;
  explicit operator bool() const { return status != QUERN_OK; }
};

/// A value, or the error why there is none.
template <typename T> class [[nodiscard]] Result {
public:
  Result(T value) : content(std::move(value)) {}
  Result(Error error) : content(std::move(error)) {}
  explicit operator bool() const { return content.index() == 0; }
  T &operator*() { return std::get<0>(content); }
  T *operator->() { return &std::get<0>(content); }
  const Error &error() const { return std::get<1>(content); }

private:
  std::variant<T, Error> content;
};

/// A row-major tensor in host memory. Copies share the bytes.
class Tensor {
public:
  Tensor() = default;
  /// Zeros. Where `dtype` and dims make no size, or one that there is no memory for, `data` is
  /// null.
  Tensor(DType dtype, std::vector<int64_t> dims);
  /// Memory of the caller, which must live as long as the tensor and its copies.
  static Tensor view(DType dtype, std::vector<int64_t> dims, void *data);

  DType dtype() const { return type; }
  const std::vector<int64_t> &dims() const { return sizes; }
  int64_t numElements() const;
  size_t numBytes() const;
  void *data() const { return bytes; }
  template <typename T> T *as() const { return static_cast<T *>(bytes); }

private:
  DType type = DType::F32;
  std::vector<int64_t> sizes;
  void *bytes = nullptr;
  std::shared_ptr<void> owner;
};

/// A size: a number, or a name for a free one. Equal names are equal sizes.
struct Size {
  Size(int64_t value) : value(value) {}
  Size(int value) : value(value) {}
  Size(const char *name) : name(name) {}
  Size(std::string name) : name(std::move(name)) {}
  int64_t value = -1;
  std::string name;
};

/// A tensor in a function that is being built. Null after an error.
class Value {
public:
  Value() = default;
  explicit operator bool() const { return handle; }

private:
  friend class FunctionBuilder;
  explicit Value(void *handle) : handle(handle) {}
  void *handle = nullptr;
};

/// The value of an argument of a call.
using Argument = std::variant<Value, std::vector<Value>, bool, int64_t, double,
                              std::vector<int64_t>, std::string, DType>;
using Arguments = std::vector<std::pair<std::string, Argument>>;

/// One or more functions of tensors.
class Model {
public:
  /// An empty model, to be filled by function builders.
  Model();
  /// Reads `.onnx` or `.mlir`.
  static Result<Model> load(const std::string &path);

  /// Adds the gradient of a function: for a function whose first result is a scalar
  /// loss, `<name>_joint` has its results, then the gradients of the arguments of
  /// these numbers (empty: of every float argument). Answers the new name.
  Result<std::string> addGradient(const std::string &function, std::vector<int64_t> wrt = {});

  /// The model as MLIR text.
  std::string text() const;

  struct Impl;

private:
  friend class FunctionBuilder;
  friend struct ModelAccess;
  std::shared_ptr<Impl> impl;
};

/// Builds a function out of calls of ATen's operators. After the first bad call every
/// value is null, and `finish` tells the error.
class FunctionBuilder {
public:
  FunctionBuilder(Model &model, const std::string &name);
  ~FunctionBuilder();
  FunctionBuilder(const FunctionBuilder &) = delete;

  /// A donated input may be overwritten by the call.
  Value input(const std::string &name, DType dtype, const std::vector<Size> &dims,
              bool donated = false);
  /// The first result of an ATen overload: `call("mm.default", {{"self", a}, {"mat2", b}})`.
  Value call(const std::string &overload, const Arguments &arguments);
  /// All its results.
  std::vector<Value> calls(const std::string &overload, const Arguments &arguments);
  /// An op that ATen does not have (`sgd_step`), with numbers as attributes.
  std::vector<Value> op(const std::string &mnemonic, const std::vector<Value> &operands,
                        const std::vector<std::pair<std::string, double>> &attributes = {});
  /// What another function of the model computes.
  std::vector<Value> inlined(const std::string &function, const std::vector<Value> &arguments);
  /// `into`: the input whose buffer the result is.
  void output(const std::string &name, Value value, Value into = {});
  Error finish();

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

enum class Target {
  CPU,
  CUDA,
  CUDAEmulated ///< CUDA text, run on the CPU: for tests
};

struct Options {
  Target target = Target::CPU;
  /// "native", or a CPU of LLVM's with features: "x86-64-v3,+avx512f".
  std::string cpu = "native";
  /// 0: every op by itself in plain loops, as a reference.
  unsigned level = 1;
  /// Rounds at each op as written.
  bool strict = false;
  bool useCache = true;
  /// What the passes chose and refused, one line each.
  std::function<void(const std::string &remark)> onRemark;
  /// Called while kernels are compiled.
  std::function<void(size_t done, size_t all)> onProgress;
};

/// A compiled function: its signature is in quern-c/Runtime.h.
using Function = const quern_function *;

/// Compiled functions; they live as long as the program or a copy of it.
class Program {
public:
  std::vector<Function> functions() const;
  /// Null when there is none.
  Function function(const std::string &name) const;

private:
  friend struct ModelAccess;
  std::shared_ptr<void> impl;
};

/// Compiles a copy of the model into this process.
Result<Program> compile(const Model &model, const Options &options = {});
/// Compiles to `m.so` or `m.o`, with the header `m.h` beside it.
Error compileToFile(const Model &model, const std::string &path, const Options &options = {});

/// Runs functions, one at a time. It has the threads and the working memory.
class Session {
public:
  /// 0: a thread for each core. `target` as of the programs that it runs; when the
  /// device cannot be opened every run answers why.
  explicit Session(int threads = 0, Target target = Target::CPU);
  ~Session();
  Session(const Session &) = delete;

  /// Outputs that are an input's buffer are that tensor.
  Result<std::vector<Tensor>> run(Function function, const std::vector<Tensor> &inputs);
  Error run(Function function, const std::vector<Tensor> &inputs, std::vector<Tensor> &outputs);

  /// For the C functions.
  quern_context *context() const { return ctx; }

private:
  std::shared_ptr<void> device;
  quern_context *ctx;
  Error problem;
};

} // namespace quern

#endif // QUERN_QUERN_H
