//===- Graph.cpp - Functions written as ATen calls ------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Import/ATen/Graph.h"
#include "mlir/IR/IRMapping.h"
#include "quern/Dialect/Quern/IR/FunctionAttrs.h"
#include "quern/Dialect/Quern/IR/OpRecord.h"

using namespace mlir;
using llvm::ArrayRef;
using llvm::StringRef;

namespace quern::aten {

GraphBuilder::GraphBuilder(ModuleOp module, StringRef name)
    : ops(OpBuilder::atBlockEnd(module.getBody())) {
  func = func::FuncOp::create(ops, ops.getUnknownLoc(), name, ops.getFunctionType({}, {}));
  ops.setInsertionPointToEnd(func.addEntryBlock());
}

Value GraphBuilder::input(StringRef name, Type type, bool donated) {
  unsigned index = func.getNumArguments();
  if (failed(func.insertArgument(index, type, {}, func.getLoc()))) {
    hasFailed = true;
    return {};
  }
  func.setArgAttr(index, nameAttrName, ops.getStringAttr(name));
  if (donated)
    func.setArgAttr(index, donatedAttrName, ops.getUnitAttr());
  return func.getArgument(index);
}

Value GraphBuilder::input(StringRef name, DType dtype, ArrayRef<int64_t> dims, bool donated) {
  SmallVector<int64_t> shape;
  for (int64_t dim : dims)
    shape.push_back(dim < 0 ? ShapedType::kDynamic : dim);
  return input(name, RankedTensorType::get(shape, getElementType(ops.getContext(), dtype)),
               donated);
}

SmallVector<Value> GraphBuilder::calls(StringRef overload, ArrayRef<NamedArgument> arguments) {
  Arguments named;
  for (const auto &[name, argument] : arguments) {
    if (const Value *value = std::get_if<Value>(&argument); value && !*value)
      hasFailed = true;
    named[name] = argument;
  }
  if (hasFailed)
    return {};
  FailureOr<SmallVector<Value>> results = buildCall(ops, func.getLoc(), overload, named);
  hasFailed = failed(results);
  return hasFailed ? SmallVector<Value>() : std::move(*results);
}

Value GraphBuilder::call(StringRef overload, ArrayRef<NamedArgument> arguments) {
  SmallVector<Value> results = calls(overload, arguments);
  return results.empty() ? Value() : results.front();
}

SmallVector<Value> GraphBuilder::op(StringRef mnemonic, ArrayRef<Value> operands,
                                    ArrayRef<NamedAttribute> attrs) {
  hasFailed |= llvm::is_contained(operands, Value());
  if (hasFailed)
    return {};
  SmallVector<OperandGroup> groups(operands.begin(), operands.end());
  FailureOr<Operation *> created = tryCreate(ops, func.getLoc(), mnemonic, groups, attrs);
  hasFailed = failed(created);
  return hasFailed ? SmallVector<Value>() : SmallVector<Value>((*created)->getResults());
}

SmallVector<Value> GraphBuilder::inlined(func::FuncOp callee, ArrayRef<Value> arguments) {
  hasFailed |= llvm::is_contained(arguments, Value());
  if (hasFailed)
    return {};
  Block &body = callee.getBody().front();
  IRMapping mapping;
  mapping.map(body.getArguments(), arguments);
  for (Operation &op : body.without_terminator())
    ops.clone(op, mapping);
  SmallVector<Value> results;
  for (Value value : body.getTerminator()->getOperands())
    results.push_back(mapping.lookupOrDefault(value));
  return results;
}

void GraphBuilder::output(StringRef name, Value value, Value into) {
  hasFailed |= !value;
  outputs.push_back({name.str(), value, into});
}

FailureOr<func::FuncOp> GraphBuilder::finish() {
  if (hasFailed) {
    func.erase();
    return failure();
  }
  SmallVector<Value> values;
  for (const Output &output : outputs)
    values.push_back(output.value);
  func::ReturnOp::create(ops, func.getLoc(), values);
  func.setFunctionType(ops.getFunctionType(func.getArgumentTypes(), ValueRange(values).getTypes()));
  for (auto [i, output] : llvm::enumerate(outputs)) {
    func.setResultAttr(i, nameAttrName, ops.getStringAttr(output.name));
    if (output.into)
      func.setResultAttr(i, resultIntoAttrName,
                         ops.getI64IntegerAttr(cast<BlockArgument>(output.into).getArgNumber()));
  }
  return func;
}

} // namespace quern::aten
