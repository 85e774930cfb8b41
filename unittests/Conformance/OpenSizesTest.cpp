//===- OpenSizesTest.cpp --------------------------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Every op of several tensors, compiled once with all sizes free, and called with each
// pattern of sizes (1 and n): it gives what the op of exactly these sizes gives, value and
// gradients, or is refused where that is. Each operand ends where a page ends that may not
// be touched behind, so that a read past it is a crash.
//
//===----------------------------------------------------------------------===//

#include "../../lib/Conformance/Program.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "quern/Dialect/Quern/IR/DTypes.h"
#include "quern/Dialect/Quern/IR/Quern.h"
#include "quern/Support/Compare.h"
#include "quern/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "gtest/gtest.h"
#include <functional>
#include <sys/mman.h>
#include <unistd.h>

using namespace mlir;
using namespace quern;
using namespace quern::conformance;
using llvm::ArrayRef;

namespace {

using Sizes = std::vector<int64_t>;
using Attrs = std::vector<NamedAttribute>;

/// An argument of the function and the shapes that it is called with.
struct Argument {
  DType dtype;
  std::vector<Sizes> shapes;
};

/// A call of one op. Arguments beyond its operands are there for their sizes.
struct OpenCall {
  std::string mnemonic;
  std::vector<Argument> arguments;
  /// Arguments by declared operand.
  std::vector<std::vector<unsigned>> operands;
  /// From the sizes of the arguments.
  std::function<Attrs(Builder &, ArrayRef<SmallVector<Dim>>)> attrs = [](auto &, auto) {
    return Attrs();
  };
};

/// Bytes that end at a page which cannot be read.
HostTensor guarded(const HostTensor &tensor) {
  size_t page = getpagesize(), bytes = tensor.numBytes();
  size_t length = (bytes + page - 1) / page * page;
  char *base = static_cast<char *>(
      mmap(nullptr, length + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (base == MAP_FAILED || mprotect(base + length, page, PROT_NONE))
    abort();
  char *data = base + length - bytes;
  if (bytes)
    memcpy(data, tensor.data(), bytes);
  return HostTensor::view(tensor.dtype(), tensor.dims(), data,
                          std::shared_ptr<void>(base, [=](void *p) { munmap(p, length + page); }));
}

/// Numbers that differ by place and argument; indices stay small.
HostTensor numbers(DType dtype, const Sizes &dims, unsigned seed) {
  HostTensor tensor(dtype, dims);
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    tensor.set(i, isFloat(dtype) ? 0.25 + double((i * 7 + seed * 13) % 29) / 16
                                 : double((i + seed) % (dtype == DType::Bool ? 2 : 3)));
  return tensor;
}

class OpenSizes : public ::testing::Test {
protected:
  OpenSizes() : context(MLIRContext::Threading::DISABLED) {
    loadDialects(context);
    handler = std::make_unique<ScopedDiagnosticHandler>(&context, [this](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
        lastError = diagnostic.str();
      return success();
    });
  }

  /// A function that makes the call; `sizes` empty: with every size free.
  LogicalResult build(ModuleOp module, const OpenCall &call, StringRef name, ArrayRef<Sizes> sizes);
  LogicalResult differentiate(ModuleOp module, const OpenCall &call, StringRef name);
  void run(const OpenCall &call);
  /// The dtype of each operand for which the op takes tensors of this shape, if any.
  std::optional<std::vector<DType>> operandDTypes(const OpRecord &record, const Sizes &dims);

  MLIRContext context;
  std::unique_ptr<ScopedDiagnosticHandler> handler;
  std::string lastError;
};

LogicalResult OpenSizes::build(ModuleOp module, const OpenCall &call, StringRef name,
                               ArrayRef<Sizes> sizes) {
  OpBuilder b = OpBuilder::atBlockEnd(module.getBody());
  Location loc = b.getUnknownLoc();
  SmallVector<SmallVector<Dim>> dims;
  SmallVector<Type> types;
  for (auto [i, argument] : llvm::enumerate(call.arguments)) {
    auto &own = dims.emplace_back();
    for (size_t d = 0; d < argument.shapes.front().size(); ++d)
      own.push_back(sizes.empty()
                        ? Dim::symbol(&context, "a" + std::to_string(i) + std::to_string(d))
                        : Dim::constant(&context, sizes[i][d]));
    types.push_back(getTensorType(own, getElementType(&context, argument.dtype)));
  }
  auto func = func::FuncOp::create(b, loc, name, b.getFunctionType(types, {}));
  b.setInsertionPointToEnd(func.addEntryBlock());
  std::vector<OperandGroup> groups;
  for (const std::vector<unsigned> &list : call.operands) {
    auto &group = groups.emplace_back();
    for (unsigned i : list)
      group.push_back(func.getArgument(i));
  }
  FailureOr<Operation *> op = tryCreate(b, loc, call.mnemonic, groups, call.attrs(b, dims));
  if (failed(op)) {
    func.erase();
    return failure();
  }
  // The loss is there for the gradients: it depends on each element of each result.
  SmallVector<Value> results((*op)->getResults());
  Value loss;
  for (Value v : (*op)->getResults()) {
    if (!isa<FloatType>(cast<RankedTensorType>(v.getType()).getElementType()))
      continue;
    Value square = (*tryCreate(b, loc, "mul", {v, v}))->getResult(0);
    Value sum = (*tryCreate(b, loc, "sum", {square}))->getResult(0);
    loss = loss ? (*tryCreate(b, loc, "add", {loss, sum}))->getResult(0) : sum;
  }
  if (loss)
    results.insert(results.begin(), loss);
  func::ReturnOp::create(b, loc, results);
  // Names of results stay inside of the function.
  SmallVector<Type> resultTypes;
  for (Value v : results) {
    auto type = cast<RankedTensorType>(v.getType());
    resultTypes.push_back(RankedTensorType::get(type.getShape(), type.getElementType()));
    v.setType(resultTypes.back());
  }
  func.setFunctionType(b.getFunctionType(types, resultTypes));
  return success();
}

LogicalResult OpenSizes::differentiate(ModuleOp module, const OpenCall &call, StringRef name) {
  PassManager passes(&context);
  QuernAutodiffOptions options;
  options.function = name.str();
  for (auto [i, argument] : llvm::enumerate(call.arguments))
    if (isFloat(argument.dtype))
      options.arguments.push_back(i);
  passes.addPass(createQuernAutodiff(options));
  return passes.run(module);
}

void OpenSizes::run(const OpenCall &call) {
  SCOPED_TRACE(call.mnemonic);
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  ASSERT_TRUE(succeeded(build(*module, call, "open", {}))) << lastError;

  // All patterns, each with the function of exactly these sizes, if there is one.
  std::vector<std::vector<Sizes>> patterns{{}};
  for (const Argument &argument : call.arguments) {
    std::vector<std::vector<Sizes>> longer;
    for (const auto &pattern : patterns)
      for (const Sizes &shape : argument.shapes) {
        longer.push_back(pattern);
        longer.back().push_back(shape);
      }
    patterns = std::move(longer);
  }
  std::vector<std::string> exact;
  unsigned good = 0;
  for (auto [n, pattern] : llvm::enumerate(patterns)) {
    exact.push_back("exact" + std::to_string(n));
    if (failed(build(*module, call, exact.back(), pattern)))
      exact.back().clear();
    else
      ++good;
  }
  EXPECT_GT(good, 0u) << lastError;
  PassManager propagate(&context);
  propagate.addPass(createQuernPropagateShapes());
  ASSERT_TRUE(succeeded(propagate.run(*module))) << lastError;
  bool hasLoss = module->lookupSymbol<func::FuncOp>("open").getNumResults() >
                 lookupOpRecord(call.mnemonic)->results.size();
  std::string suffix = hasLoss ? "_joint" : "";
  std::vector<std::string> names = exact;
  names.push_back("open");
  for (const std::string &name : names)
    if (hasLoss && !name.empty()) {
      ASSERT_TRUE(succeeded(differentiate(*module, call, name))) << lastError;
      module->lookupSymbol(name)->erase();
    }
  llvm::Expected<std::unique_ptr<Program>> program = Program::compile(*module, Target::CPU);
  ASSERT_TRUE(bool(program)) << llvm::toString(program.takeError()) << lastError;

  for (auto [n, pattern] : llvm::enumerate(patterns)) {
    std::string text;
    for (const Sizes &shape : pattern)
      text += " [" +
              llvm::join(llvm::map_range(shape, [](int64_t d) { return std::to_string(d); }), ",") +
              "]";
    SCOPED_TRACE(text);
    std::vector<HostTensor> inputs;
    for (auto [i, shape] : llvm::enumerate(pattern))
      inputs.push_back(guarded(numbers(call.arguments[i].dtype, shape, i)));
    llvm::Expected<std::vector<HostTensor>> got = (*program)->call("open" + suffix, inputs);
    if (exact[n].empty()) {
      EXPECT_FALSE(bool(got)) << "accepted";
      if (!got)
        llvm::consumeError(got.takeError());
      continue;
    }
    ASSERT_TRUE(bool(got)) << llvm::toString(got.takeError());
    llvm::Expected<std::vector<HostTensor>> want = (*program)->call(exact[n] + suffix, inputs);
    ASSERT_TRUE(bool(want)) << llvm::toString(want.takeError());
    ASSERT_EQ(got->size(), want->size());
    for (size_t i = 0; i < got->size(); ++i) {
      Comparison comparison =
          compare((*got)[i], (*want)[i],
                  getTolerance((*want)[i].dtype(), Rounding::Accumulating, 256, /*gradient=*/true));
      EXPECT_TRUE(comparison.ok) << "result " << i << ": " << comparison.message;
    }
  }
}

std::optional<std::vector<DType>> OpenSizes::operandDTypes(const OpRecord &record,
                                                           const Sizes &dims) {
  SmallVector<Dim> sizes;
  for (int64_t d : dims)
    sizes.push_back(Dim::constant(&context, d));
  for (DType first : {DType::F32, DType::Bool}) {
    MetaInputs inputs;
    inputs.attrs = DictionaryAttr::get(&context);
    std::vector<DType> dtypes;
    for (const OperandRecord &operand : record.operands) {
      dtypes.push_back(dtypes.empty() ? first : DType::F32);
      inputs.operands.push_back(
          {TensorMeta{operand.name, sizes, getElementType(&context, dtypes.back())}});
    }
    if (meta::infer(&context, record.name, inputs).ok)
      return dtypes;
  }
  return std::nullopt;
}

constexpr DType f32 = DType::F32, i64 = DType::I64;

/// The sizes of an argument as an attribute.
std::function<Attrs(Builder &, ArrayRef<SmallVector<Dim>>)>
sizesOf(unsigned argument, StringRef name, StringRef others = "{}") {
  return [=](Builder &b, ArrayRef<SmallVector<Dim>> dims) {
    Attrs attrs{b.getNamedAttr(name, DimsAttr::get(b.getContext(), dims[argument]))};
    llvm::append_range(attrs, cast<DictionaryAttr>(parseAttribute(others, b.getContext())));
    return attrs;
  };
}
std::function<Attrs(Builder &, ArrayRef<SmallVector<Dim>>)> fixed(StringRef text) {
  return [=](Builder &b, ArrayRef<SmallVector<Dim>>) {
    Attrs attrs;
    llvm::append_range(attrs, cast<DictionaryAttr>(parseAttribute(text, b.getContext())));
    return attrs;
  };
}

// Long enough for vectors, their unrolling and a rest.
constexpr int64_t n = 37;

/// Ops that do more than broadcast all of their operands.
std::vector<OpenCall> otherCalls() {
  StringRef window = "{stride = array<i64: 1>, padding = array<i64: 1>, dilation = array<i64: 1>}";
  Argument matrix{f32, {{3, n}, {1, n}, {3, 1}, {1, 1}}};
  return {
      {"expand", {matrix, {f32, {{3, n}, {1, n}, {3, 1}}}}, {{0}}, sizesOf(1, "size")},
      {"expand", {{f32, {{n}, {1}}}, {f32, {{3, n}}}}, {{0}}, sizesOf(1, "size")},
      {"sum_to_size", {{f32, {{3, n}, {1, n}}}, matrix}, {{0}}, sizesOf(1, "size")},
      {"sum_to_size", {{f32, {{3, n}}}, {f32, {{n}, {1}}}}, {{0}}, sizesOf(1, "size")},
      {"mm", {{f32, {{3, 5}, {1, 5}}}, {f32, {{5, n}, {5, 1}, {1, n}}}}, {{0}, {1}}},
      {"bmm",
       {{f32, {{2, 3, 5}, {1, 3, 5}}}, {f32, {{2, 5, n}, {1, 5, n}, {2, 1, n}}}},
       {{0}, {1}}},
      {"addmm", {matrix, {f32, {{3, 5}, {1, 5}}}, {f32, {{5, n}, {5, 1}}}}, {{0}, {1}, {2}}},
      {"addmm", {{f32, {{n}, {1}}}, {f32, {{3, 5}}}, {f32, {{5, n}}}}, {{0}, {1}, {2}}},
      {"linear",
       {{f32, {{3, 5}, {1, 5}}}, {f32, {{n, 5}, {1, 5}, {n, 1}}}, {f32, {{n}, {1}}}},
       {{0}, {1}, {2}}},
      {"layer_norm",
       {{f32, {{3, n}, {1, n}, {3, 1}}}, {f32, {{n}, {1}}}, {f32, {{n}, {1}}}},
       {{0}, {1}, {2}},
       [](Builder &b, ArrayRef<SmallVector<Dim>> dims) {
         return Attrs{b.getNamedAttr("normalized_shape", DimsAttr::get(b.getContext(), dims[0][1])),
                      b.getNamedAttr("eps", b.getF64FloatAttr(0.5))};
       }},
      {"nll_loss",
       {{f32, {{3, n}, {1, n}, {3, 1}, {3, 0}}}, {i64, {{3}, {1}}}, {f32, {{n}, {1}, {0}}}},
       {{0}, {1}, {2}}},
      {"nll_loss",
       {{f32, {{3, n}, {1, n}}}, {i64, {{3}, {1}}}},
       {{0}, {1}},
       fixed("{reduction = 0 : i64}")},
      {"nll_loss", {{f32, {{n}, {1}}}, {i64, {{1}, {2}}}}, {{0}, {1}}},
      {"nll_loss_backward",
       {{f32, {{3}, {1}}}, {i64, {{3}, {1}}}, {f32, {{n}, {1}}}, {f32, {{}}}, {f32, {{3, n}}}},
       {{0}, {1}, {2}, {3}},
       sizesOf(4, "size", "{reduction = 0 : i64}")},
      {"embedding", {{f32, {{5, n}, {1, n}, {0, n}}}, {i64, {{3}, {1}, {0}}}}, {{0}, {1}}},
      {"embedding_dense_backward",
       {{f32, {{3, n}, {1, n}}}, {i64, {{3}, {1}}}, {f32, {{5}, {1}, {0}}}},
       {{0}, {1}},
       [](Builder &b, ArrayRef<SmallVector<Dim>> dims) {
         return Attrs{b.getNamedAttr("num_weights", dims[2][0].getAttr())};
       }},
      {"index_select",
       {{f32, {{3, n}, {1, n}, {0, n}}}, {i64, {{2}, {1}, {0}}}},
       {{0}, {1}},
       fixed("{dim = 0 : i64}")},
      {"index_select", {{f32, {{}}}, {i64, {{1}, {0}, {2}}}}, {{0}, {1}}, fixed("{dim = 0 : i64}")},
      {"index_add",
       {{f32, {{3, n}, {1, n}}}, {i64, {{2}, {1}}}, {f32, {{2, n}, {1, n}, {2, 1}}}},
       {{0}, {1}, {2}},
       fixed("{dim = 0 : i64}")},
      {"gather",
       {{f32, {{3, n}, {1, n}, {3, 1}, {0, n}}}, {i64, {{2, n}, {2, 1}, {1, n}, {0, 50}}}},
       {{0}, {1}},
       fixed("{dim = 0 : i64}")},
      {"gather", {{f32, {{n}}}, {i64, {{2, 0}, {2, 1}}}}, {{0}, {1}}, fixed("{dim = 0 : i64}")},
      {"scatter_add",
       {{f32, {{3, n}, {1, n}}},
        {i64, {{2, n}, {2, 1}, {1, n}, {0, 50}}},
        {f32, {{2, n}, {1, n}, {2, 1}}}},
       {{0}, {1}, {2}},
       fixed("{dim = 0 : i64}")},
      {"cat",
       {{f32, {{3, n}, {1, n}, {3, 0}}}, {f32, {{3, 2}, {1, 2}, {3, 0}}}, {f32, {{3, 1}}}},
       {{0, 1, 2}},
       fixed("{dim = 1 : i64}")},
      {"slice_backward",
       {{f32, {{2, n}, {1, n}, {2, 1}}}, {f32, {{3, n}, {2, n}, {3, 1}}}},
       {{0}},
       sizesOf(1, "input_sizes", "{start = #quern.dim<1>}")},
      {"select_backward",
       {{f32, {{n}, {1}}}, {f32, {{3, n}, {1, n}, {3, 1}}}},
       {{0}},
       sizesOf(1, "input_sizes", "{dim = 0 : i64, index = #quern.dim<1>}")},
      {"convolution",
       {{f32, {{2, 3, 9}, {1, 3, 9}, {2, 1, 9}, {2, 3, 0}}},
        {f32, {{4, 3, 3}, {4, 1, 3}, {4, 3, 1}, {1, 3, 3}}},
        {f32, {{4}, {1}}}},
       {{0}, {1}, {2}},
       fixed(window)},
      {"convolution_input_backward",
       {{f32, {{2, 4, 9}, {1, 4, 9}, {2, 1, 9}}},
        {f32, {{4, 3, 3}, {4, 1, 3}, {1, 3, 3}}},
        {f32, {{2, 3, 9}, {1, 3, 9}, {2, 1, 9}, {2, 3, 8}}}},
       {{0}, {1}},
       sizesOf(2, "size", window)},
      {"convolution_weight_backward",
       {{f32, {{2, 4, 9}, {1, 4, 9}, {2, 1, 9}}},
        {f32, {{2, 3, 9}, {1, 3, 9}, {2, 1, 9}}},
        {f32, {{4, 3, 3}, {1, 3, 3}, {4, 1, 3}, {4, 3, 1}}}},
       {{0}, {1}},
       sizesOf(2, "size", window)},
      {"sgd_step", {matrix, matrix}, {{0}, {1}}, fixed("{lr = 0.1 : f64}")},
      {"adamw_step",
       {{f32, {{n}, {1}}}, {f32, {{n}, {1}}}, {f32, {{n}, {1}}}, {f32, {{n}, {1}}}, {i64, {{}}}},
       {{0}, {1}, {2}, {3}, {4}},
       fixed("{lr = 0.1 : f64}")},
  };
}
} // namespace

TEST_F(OpenSizes, Broadcasts) {
  for (const OpRecord *record : getOpRecords()) {
    std::optional<std::vector<DType>> dtypes;
    if (record->fusion == FusionClass::Pointwise && record->operands.size() > 1)
      dtypes = operandDTypes(*record, {2, 3});
    if (!dtypes)
      continue;
    for (size_t flat = 0; flat < dtypes->size(); ++flat) {
      // All of rank 2, then one of them of rank 1, which is aligned from the last dim.
      OpenCall call{record->mnemonic.str(), {}, {}};
      for (auto [i, dtype] : llvm::enumerate(*dtypes)) {
        bool isRow = flat > 0 && i == flat;
        call.arguments.push_back({dtype, isRow
                                             ? std::vector<Sizes>{{n}, {1}}
                                             : std::vector<Sizes>{{3, n}, {1, n}, {3, 1}, {1, 1}}});
        call.operands.push_back({unsigned(i)});
      }
      run(call);
    }
  }
}

TEST_F(OpenSizes, OtherOps) {
  for (const OpenCall &call : otherCalls())
    run(call);
}

// An op of several tensors that nobody thought of here is a failure.
TEST_F(OpenSizes, AllOpsAreCovered) {
  llvm::StringSet<> covered;
  for (const OpenCall &call : otherCalls())
    covered.insert(call.mnemonic);
  for (const OpRecord *record : getOpRecords()) {
    bool isList = llvm::any_of(record->operands, [](const OperandRecord &operand) {
      return operand.arity == Arity::Variadic;
    });
    if ((record->operands.size() < 2 && !isList) || covered.contains(record->mnemonic))
      continue;
    EXPECT_TRUE(record->fusion == FusionClass::Pointwise && operandDTypes(*record, {2, 3}))
        << record->mnemonic.str();
  }
}
