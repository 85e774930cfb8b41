//===- AtenTest.cpp - One recorded call in one mode -----------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "AtenTest.h"
#include "Tolerances.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "quern/Dialect/Quern/IR/FunctionAttrs.h"
#include "quern/Dialect/Quern/IR/Quern.h"
#include "quern/Support/Error.h"
#include "quern/Transforms/Passes.h"
#include <cmath>

using namespace mlir;
using llvm::ArrayRef;
using llvm::StringRef;

namespace quern::conformance {

StringRef name(Mode mode) {
  static constexpr StringRef names[numModes] = {"value", "dynamic", "into", "grad", "error"};
  return names[unsigned(mode)];
}

bool applies(const OpCase &test, Mode mode) {
  if (mode == Mode::Error)
    return !test.refusal.empty();
  return test.refusal.empty() && (mode != Mode::Gradient || !test.gradients.empty());
}

static TestResult resultOf(Status status, const llvm::Twine &message) {
  return {status, HUGE_VAL, message.str()};
}

TestResult errorResult(llvm::Error error) {
  std::string message;
  quern_status status = takeError(std::move(error), message);
  return resultOf(status == QUERN_UNSUPPORTED ? Status::Unsupported : Status::Failed, message);
}

namespace {
/// Keeps the first error that is reported in this scope.
class FirstError {
public:
  explicit FirstError(MLIRContext *ctx)
      : handler(ctx, [this](Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() == DiagnosticSeverity::Error && text.empty())
            text = diagnostic.str();
          return success();
        }) {}
  TestResult result() const {
    bool isUnsupported = StringRef(text).contains("unsupported: ");
    return resultOf(isUnsupported ? Status::Unsupported : Status::Failed,
                    text.empty() ? "no reason given" : text);
  }

private:
  std::string text;
  ScopedDiagnosticHandler handler;
};
} // namespace

/// The tensors of a call in the order of its arguments.
std::vector<HostTensor> AtenTest::inputs() const {
  std::vector<HostTensor> tensors;
  for (const CaseArgument &argument : test.arguments) {
    if (const auto *tensor = std::get_if<HostTensor>(&argument.value))
      tensors.push_back(tensor->clone());
    else if (const auto *list = std::get_if<std::vector<HostTensor>>(&argument.value))
      for (const HostTensor &element : *list)
        tensors.push_back(element.clone());
  }
  return tensors;
}

FailureOr<func::FuncOp> AtenTest::buildFunction(ModuleOp module, StringRef name,
                                                Placement placement) {
  MLIRContext *ctx = module.getContext();
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  Location loc = UnknownLoc::get(ctx);
  auto func = func::FuncOp::create(builder, loc, name, builder.getFunctionType({}, {}));
  Block *body = func.addEntryBlock();
  builder.setInsertionPointToEnd(body);

  auto addTensor = [&](const HostTensor &tensor) -> Value {
    SmallVector<int64_t> dims(tensor.dims());
    if (mode == Mode::Dynamic)
      dims.assign(dims.size(), ShapedType::kDynamic);
    auto type = RankedTensorType::get(dims, getElementType(ctx, tensor.dtype()));
    return body->addArgument(type, loc);
  };
  aten::Arguments arguments;
  for (const CaseArgument &argument : test.arguments) {
    aten::Argument &value = arguments[argument.name];
    if (const auto *tensor = std::get_if<HostTensor>(&argument.value)) {
      value = addTensor(*tensor);
    } else if (const auto *list = std::get_if<std::vector<HostTensor>>(&argument.value)) {
      SmallVector<Value> values;
      for (const HostTensor &element : *list)
        values.push_back(addTensor(element));
      value = values;
    } else if (const auto *number = std::get_if<aten::Scalar>(&argument.value)) {
      value = *number;
    } else if (const auto *numbers = std::get_if<SmallVector<int64_t>>(&argument.value)) {
      value = *numbers;
    } else if (const auto *text = std::get_if<std::string>(&argument.value)) {
      value = *text;
    } else if (const auto *dtype = std::get_if<DType>(&argument.value)) {
      value = getElementType(ctx, *dtype);
    }
  }
  FailureOr<SmallVector<Value>> results = aten::buildCall(builder, loc, test.overload, arguments);
  if (failed(results) || !place(func, *results, placement)) {
    func.erase();
    return failure();
  }
  return func;
}

/// Returns the results from the function, written where they should be. False when an operand
/// cannot be overwritten (that is no error).
bool AtenTest::place(func::FuncOp func, ArrayRef<Value> results, Placement placement) {
  Block *body = &func.getBody().front();
  OpBuilder builder = OpBuilder::atBlockEnd(body);
  Location loc = func.getLoc();
  SmallVector<Value> returned(results);
  SmallVector<unsigned> argumentOf(results.size(), 0);

  if (placement.loss) {
    Value loss = sumOfProducts(body, results);
    if (!loss)
      return false;
    returned = {loss};
  } else if (placement.destinations) {
    for (auto [i, value] : llvm::enumerate(returned)) {
      argumentOf[i] = body->getNumArguments();
      Value destination = body->addArgument(value.getType(), loc);
      auto op = value.getDefiningOp<StructuredOp>();
      if (!op || !op.getDestinations().empty()) {
        // An argument as it is, or the same result twice: a copy.
        Attribute dtype = TypeAttr::get(cast<RankedTensorType>(value.getType()).getElementType());
        auto copy = tryCreate(builder, loc, "convert", {OperandGroup(value)},
                              builder.getNamedAttr("dtype", dtype), destination);
        if (failed(copy))
          return false;
        value = (*copy)->getResult(0);
        continue;
      }
      SmallVector<Value> destinations;
      OpBuilder before(op);
      for (OpResult result : op->getResults()) {
        auto type = cast<RankedTensorType>(result.getType());
        destinations.push_back(result == value
                                   ? destination
                                   : Value(tensor::EmptyOp::create(before, loc, type.getShape(),
                                                                   type.getElementType())));
      }
      op.setDestinations(destinations);
    }
  } else if (placement.operand >= 0) {
    Value operand = body->getArgument(placement.operand);
    auto op = returned.size() == 1 ? returned[0].getDefiningOp<StructuredOp>() : StructuredOp();
    if (!op || op->getNumResults() != 1 || operand.getType() != returned[0].getType())
      return false;
    bool allowed = false;
    for (auto [i, record] : llvm::enumerate(op.getOpRecord().operands))
      if (record.mayOverwrite && llvm::is_contained(op.getOperandGroup(i), operand))
        allowed = true;
    if (!allowed)
      return false;
    op.setDestinations(operand);
    argumentOf[0] = placement.operand;
  }
  func::ReturnOp::create(builder, loc, returned);
  func.setFunctionType(
      builder.getFunctionType(body->getArgumentTypes(), ValueRange(returned).getTypes()));
  if (placement.destinations || placement.operand >= 0) {
    for (auto [i, argument] : llvm::enumerate(argumentOf))
      func.setResultAttr(i, resultIntoAttrName, builder.getI64IntegerAttr(argument));
    if (placement.operand >= 0)
      func.setArgAttr(placement.operand, donatedAttrName, builder.getUnitAttr());
  }
  return true;
}

/// The meta functions' answer against the recorded result.
std::optional<TestResult> AtenTest::checkTypes(func::FuncOp func) {
  TypeRange types = func.getResultTypes();
  if (types.size() != test.outputs.size())
    return resultOf(Status::Failed, "meta: got " + llvm::Twine(types.size()) +
                                        " results, expected " + llvm::Twine(test.outputs.size()));
  for (auto [type, output] : llvm::zip(types, test.outputs)) {
    auto tensorType = cast<RankedTensorType>(type);
    std::optional<DType> dtype = getDType(tensorType.getElementType());
    bool same = dtype == output.tensor.dtype() && tensorType.getRank() == output.tensor.rank();
    for (auto [size, want] : llvm::zip(tensorType.getShape(), output.tensor.dims()))
      same &= size == want || (mode == Mode::Dynamic && ShapedType::isDynamic(size));
    if (!same) {
      std::string text;
      llvm::raw_string_ostream(text)
          << "meta: got " << type << ", expected " << output.tensor.typeString();
      return resultOf(Status::Failed, text);
    }
  }
  return std::nullopt;
}

std::optional<TestResult> AtenTest::buildInto(ModuleOp module) {
  // The functional form is calls[0]; each of the others must give the same bits.
  Placement destinations;
  destinations.destinations = true;
  auto func = buildFunction(module, prefix + "_into", destinations);
  if (failed(func))
    return resultOf(Status::Failed, "no function that writes to destinations");
  Planned planned{func->getName().str(), inputs(), "into a destination"};
  for (const CaseOutput &output : test.outputs) {
    planned.inputs.emplace_back(output.tensor.dtype(), output.tensor.dims());
    std::memset(planned.inputs.back().data(), 0x5a, planned.inputs.back().numBytes());
  }
  calls.push_back(std::move(planned));
  for (unsigned i = 0, e = inputs().size(); i < e; ++i) {
    Placement inPlace;
    inPlace.operand = i;
    func = buildFunction(module, prefix + "_over" + std::to_string(i), inPlace);
    if (succeeded(func))
      calls.push_back({func->getName().str(), inputs(), "over argument " + std::to_string(i)});
  }
  return std::nullopt;
}

/// sum over the outputs of <cotangent, output>; the cotangents are further arguments.
Value AtenTest::sumOfProducts(Block *body, ArrayRef<Value> results) {
  Location loc = body->getParentOp()->getLoc();
  OpBuilder builder = OpBuilder::atBlockEnd(body);
  auto call = [&](StringRef overload, ArrayRef<std::pair<StringRef, Value>> operands) -> Value {
    aten::Arguments arguments;
    for (auto [name, value] : operands) {
      if (!value)
        return {};
      arguments[name] = value;
    }
    FailureOr<SmallVector<Value>> built = aten::buildCall(builder, loc, overload, arguments);
    return succeeded(built) ? built->front() : Value();
  };
  Value total;
  for (auto [value, cotangent] : llvm::zip(results, test.cotangents)) {
    if (!cotangent)
      continue;
    Value weight = body->addArgument(value.getType(), loc);
    Value sum =
        call("sum.default", {{"self", call("mul.Tensor", {{"self", value}, {"other", weight}})}});
    total = total ? call("add.Tensor", {{"self", total}, {"other", sum}}) : sum;
  }
  return total;
}

std::optional<TestResult> AtenTest::buildGradient(ModuleOp module) {
  // calls[0] gave the types only; the joint function has the gradients as its last results.
  calls.clear();
  Placement loss;
  loss.loss = true;
  FirstError error(module.getContext());
  FailureOr<func::FuncOp> func = buildFunction(module, prefix + "_loss", loss);
  if (failed(func))
    return error.result();
  // Numbers of the arguments, in their order; the wanted gradients in the same.
  std::vector<std::pair<int64_t, CaseGradient>> wanted;
  for (CaseGradient &gradient : gradients) {
    int64_t number = 0;
    for (const CaseArgument &argument : test.arguments) {
      const auto *list = std::get_if<std::vector<HostTensor>>(&argument.value);
      if (argument.name == gradient.argument)
        break;
      number += list ? list->size() : std::holds_alternative<HostTensor>(argument.value);
    }
    wanted.emplace_back(number + std::max<int64_t>(gradient.element, 0), gradient);
  }
  llvm::sort(wanted, [](const auto &a, const auto &b) { return a.first < b.first; });
  QuernAutodiffOptions options;
  options.function = func->getName().str();
  gradients.clear();
  for (auto &[number, gradient] : wanted) {
    options.arguments.push_back(number);
    gradients.push_back(gradient);
  }
  PassManager passes(module.getContext());
  passes.addPass(createQuernAutodiff(options));
  if (failed(passes.run(module)))
    return error.result();
  func->erase();
  module.lookupSymbol(prefix)->erase();
  Planned planned{prefix + "_loss_joint", inputs(), "gradient"};
  for (const HostTensor &cotangent : test.cotangents)
    if (cotangent)
      planned.inputs.push_back(cotangent.clone());
  calls.push_back(std::move(planned));
  return std::nullopt;
}

std::optional<TestResult> AtenTest::build(ModuleOp module) {
  if (!test.unreadable.empty())
    return resultOf(Status::Unsupported, "unsupported: " + test.unreadable);
  FirstError error(module.getContext());
  FailureOr<func::FuncOp> func = buildFunction(module, prefix);
  if (mode == Mode::Error) {
    if (succeeded(func) && test.refusal != "value")
      return resultOf(Status::Failed, "accepted; PyTorch says: " + test.error);
    if (succeeded(func)) {
      calls.push_back({prefix, inputs(), ""});
      return std::nullopt;
    }
    TestResult result = error.result();
    if (result.status == Status::Failed)
      result = {Status::Passed, 0, result.message};
    return result;
  }
  if (failed(func))
    return error.result();
  if (std::optional<TestResult> wrong = checkTypes(*func))
    return wrong;
  calls.push_back({prefix, inputs(), ""});
  if (mode == Mode::Into)
    return buildInto(module);
  if (mode == Mode::Gradient)
    return buildGradient(module);
  return std::nullopt;
}

std::optional<TestResult> AtenTest::compareOutputs(const Planned &call,
                                                   ArrayRef<HostTensor> outputs, double &maxError) {
  const aten::Overload *overload = aten::lookupOverload(test.overload);
  auto check = [&](const HostTensor &got, const HostTensor &want, const Tolerance &tolerance,
                   const llvm::Twine &what) -> std::optional<TestResult> {
    Comparison comparison = compare(got, want, tolerance);
    maxError = std::max(maxError, comparison.maxError);
    if (comparison.ok)
      return std::nullopt;
    return TestResult{Status::Failed, comparison.maxError,
                      (what + ": " + comparison.message).str()};
  };
  if (mode == Mode::Gradient) {
    if (outputs.size() != gradients.size() + 1)
      return resultOf(Status::Failed, "wrong number of gradients");
    for (auto [got, want] : llvm::zip(outputs.drop_front(), gradients))
      if (auto bad = check(got, want.want, gradientTolerance(test, *overload, want),
                           "gradient of " + want.argument))
        return bad;
    return std::nullopt;
  }
  if (outputs.size() != test.outputs.size())
    return resultOf(Status::Failed, "wrong number of outputs");
  for (auto [i, want] : llvm::enumerate(test.outputs)) {
    Tolerance tolerance = outputTolerance(test, *overload, i);
    if (want.shapeOnly)
      tolerance.maxRel = HUGE_VAL;
    if (auto bad = check(outputs[i], want.tensor, tolerance, "output " + llvm::Twine(i)))
      return bad;
  }
  return std::nullopt;
}

TestResult AtenTest::run(Program &program) {
  double maxError = 0;
  std::vector<HostTensor> functional;
  for (auto [i, call] : llvm::enumerate(calls)) {
    llvm::Expected<std::vector<HostTensor>> outputs = program.call(call.function, call.inputs);
    if (mode == Mode::Error) {
      if (outputs)
        return resultOf(Status::Failed, "ran; PyTorch says: " + test.error);
      TestResult result = errorResult(outputs.takeError());
      if (result.status == Status::Failed)
        result = {Status::Passed, 0, result.message};
      return result;
    }
    if (!outputs)
      return errorResult(outputs.takeError());
    if (i == 0) {
      if (auto bad = compareOutputs(call, *outputs, maxError))
        return *bad;
      functional = *outputs;
      continue;
    }
    // Only `into` has further calls.
    const quern_function *function = program.lookup(call.function);
    for (auto [k, output] : llvm::enumerate(*outputs)) {
      if (function->output_alias[k] < 0)
        return resultOf(Status::Failed, call.what + ": the result has a buffer of its own");
      if (!output.sameBytes(functional[k]))
        return resultOf(Status::Failed, call.what + ": differs from the functional form");
    }
  }
  return {Status::Passed, maxError, ""};
}

} // namespace quern::conformance
