//===- Importer.cpp - ONNX model to MLIR module ---------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Import/ONNX/Importer.h"
#include "NodeImport.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "quern/Dialect/Quern/IR/Quern.h"
#include "quern/Import/ONNX/Reader.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using llvm::Error;
using llvm::Expected;

namespace quern::onnx {
namespace {

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

/// The entry for an op of ONNX's own domain at a version, or null.
const OpEntry *lookupEntry(StringRef op, int64_t version) {
  static const llvm::StringMap<SmallVector<const OpEntry *, 2>> byName = [] {
    llvm::StringMap<SmallVector<const OpEntry *, 2>> map;
    for (ArrayRef<OpEntry> group :
         {getPointwiseEntries(), getReductionEntries(), getContractionEntries(), getViewEntries(),
          getIndexingEntries(), getControlEntries()})
      for (const OpEntry &entry : group)
        map[entry.op].push_back(&entry);
    return map;
  }();
  auto it = byName.find(op);
  if (it == byName.end())
    return nullptr;
  for (const OpEntry *entry : it->second)
    if (version >= entry->since && version <= entry->until)
      return entry;
  return nullptr;
}

/// What the entry says of an attribute: its type's name, and whether it is required.
struct AttributeSpec {
  StringRef name, type;
  bool isRequired;
};

SmallVector<AttributeSpec> parseSpecs(StringRef text) {
  SmallVector<StringRef> words;
  text.split(words, ' ', -1, /*KeepEmpty=*/false);
  SmallVector<AttributeSpec> specs;
  for (StringRef word : words) {
    bool isRequired = word.consume_back("!");
    auto [name, type] = word.split(':');
    specs.push_back({name, type, isRequired});
  }
  return specs;
}

/// Counts of inputs and outputs, and attributes, against the entry.
void checkNode(NodeImport &n, const OpEntry &entry) {
  const Node &node = n.node;
  unsigned inputs = node.inputs.size(), outputs = node.outputs.size();
  while (inputs && node.inputs[inputs - 1].empty())
    --inputs;
  if (inputs < entry.minInputs || inputs > entry.maxInputs)
    n.fail("has " + Twine(inputs) + " inputs, expected " + Twine(entry.minInputs) +
           (entry.maxInputs == entry.minInputs ? ""
            : entry.maxInputs == many          ? " or more"
                                               : " to " + std::to_string(entry.maxInputs)));
  if (outputs > entry.maxOutputs)
    n.fail("has " + Twine(outputs) + " outputs, expected at most " + Twine(entry.maxOutputs));

  SmallVector<AttributeSpec> specs = parseSpecs(entry.attributes);
  for (const Attribute &attribute : node.attributes) {
    const AttributeSpec *spec =
        llvm::find_if(specs, [&](const AttributeSpec &s) { return s.name == attribute.name; });
    // An early way to say that a result may take an input's buffer.
    if (attribute.name == "consumed_inputs" && node.version < 6)
      continue;
    if (spec == specs.end())
      n.fail("has an unknown attribute " + quoted(attribute.name));
    else if (spec->type != name(attribute.type))
      n.fail("attribute " + quoted(attribute.name) + " is of type " + name(attribute.type) +
             ", expected " + spec->type);
  }
  for (const AttributeSpec &spec : specs)
    if (spec.isRequired && !node.getAttribute(spec.name))
      n.fail("attribute " + quoted(spec.name) + " (" + spec.type + ") is missing");
}

//===----------------------------------------------------------------------===//
// The graph
//===----------------------------------------------------------------------===//

class Importer {
public:
  Importer(MLIRContext &ctx, const Model &model)
      : ctx(ctx), model(model), builder(&ctx), state(builder, model) {}

  Expected<OwningOpRef<ModuleOp>> run();

private:
  Expected<RankedTensorType> inputType(const ValueInfo &input);
  Error importInputs();
  Error importNode(const Node &node);
  Error importOutputs();
  Error checkDeclared(const ValueInfo &info, RankedTensorType type);
  void reportUnsupported(const Node &node, const Twine &reason);
  Error unsupportedError();

  MLIRContext &ctx;
  const Model &model;
  OpBuilder builder;
  GraphState state;
  func::FuncOp function;
  llvm::StringSet<> symbols; ///< names of free dims in the inputs
  /// What is not handled, by op and reason, with the nodes' names.
  llvm::MapVector<std::string, SmallVector<std::string>, std::map<std::string, unsigned>>
      unsupportedNodes;
};

std::string typeString(StringRef dtype, ArrayRef<Dim> dims) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << dtype << '[';
  llvm::interleaveComma(dims, os);
  os << ']';
  return text;
}

Expected<RankedTensorType> Importer::inputType(const ValueInfo &input) {
  std::string what = "input " + quoted(input.name);
  if (input.kind == ValueInfo::Kind::None)
    return invalidInput(what + " has no type");
  if (input.kind != ValueInfo::Kind::Tensor)
    return unsupported(what + " is not a dense tensor");
  if (!input.elementType)
    return invalidInput(what + " has no element type");
  if (!input.elementType->dtype)
    return unsupported(what + " has elements of type " + input.elementType->name);
  if (!input.hasShape)
    return unsupported(what + " has no declared rank");
  SmallVector<Dim> dims;
  for (auto [i, d] : llvm::enumerate(input.dims)) {
    if (d.value >= 0) {
      dims.push_back(Dim::constant(&ctx, d.value));
      continue;
    }
    std::string symbol = d.param.str();
    if (symbol.empty()) {
      symbol = (input.name + "_" + Twine(i)).str();
      while (symbols.contains(symbol))
        symbol += '_';
    }
    symbols.insert(symbol);
    dims.push_back(Dim::symbol(&ctx, symbol));
  }
  return getTensorType(dims, getElementType(&ctx, *input.elementType->dtype));
}

Error Importer::importInputs() {
  for (const Tensor &tensor : model.graph.initializers)
    state.values[tensor.name].constant = &tensor;
  // Names that the model gives come first: made ones must differ from them.
  for (const ValueInfo &input : model.graph.inputs)
    for (const DimInfo &d : input.dims)
      if (!d.param.empty())
        symbols.insert(d.param);
  SmallVector<Type> types;
  SmallVector<StringRef> names;
  for (const ValueInfo &input : model.graph.inputs) {
    if (state.values.lookup(input.name).constant)
      continue; // a default, compiled as a constant
    Expected<RankedTensorType> type = inputType(input);
    if (!type)
      return type.takeError();
    types.push_back(*type);
    names.push_back(input.name);
  }
  function = func::FuncOp::create(builder, builder.getUnknownLoc(), "main",
                                  builder.getFunctionType(types, {}));
  Block *entry = function.addEntryBlock();
  for (auto [i, name] : llvm::enumerate(names)) {
    function.setArgAttr(i, "quern.name", builder.getStringAttr(name));
    state.values[name].value = entry->getArgument(i);
  }
  builder.setInsertionPointToStart(entry);
  return Error::success();
}

void Importer::reportUnsupported(const Node &node, const Twine &reason) {
  std::string what = node.opName() + " (opset " + std::to_string(node.version) + "): ";
  unsupportedNodes[what + reason.str()].push_back(
      node.name.empty() ? node.outputs.empty() ? "without a name" : "of " + quoted(node.outputs[0])
                        : quoted(node.name));
  for (StringRef output : node.outputs)
    if (!output.empty())
      state.values[output].isMissing = true;
}

Error Importer::importNode(const Node &node) {
  NodeImport n(state, node, NameLoc::get(builder.getStringAttr(node.str())));
  const OpEntry *entry = node.domain.empty() ? lookupEntry(node.op, node.version) : nullptr;
  if (!entry) {
    reportUnsupported(node, node.isFunctionCall   ? "a function of the model"
                            : node.domain.empty() ? "no such op is handled"
                                                  : "an op of another domain");
    return Error::success();
  }
  checkNode(n, *entry);
  if (n.failed())
    return invalidInput(node.str() + ": " + n.getMessage());
  bool isMissing = llvm::any_of(node.inputs, [&](StringRef input) {
    return !input.empty() && state.values[input].isMissing;
  });
  if (isMissing) {
    for (StringRef output : node.outputs)
      state.values[output].isMissing = true;
    return Error::success();
  }
  for (auto [i, input] : llvm::enumerate(node.inputs)) {
    if (input.empty())
      continue;
    const Imported &imported = state.values[input];
    if (imported.constant && !imported.constant->type->dtype)
      n.refuse("input " + Twine(i) + ", " + quoted(input) + ", has elements of type " +
               imported.constant->type->name);
  }

  if (!n.failed()) {
    bool allKnown =
        entry->fold && llvm::all_of(llvm::seq<unsigned>(0, n.numInputs()),
                                    [&](unsigned i) { return !n.hasInput(i) || n.contents(i); });
    if (!allKnown || !entry->fold(n))
      entry->import(n);
  }
  if (n.getStatus() == QUERN_INVALID)
    return invalidInput(node.str() + ": " + n.getMessage());
  if (n.failed()) {
    reportUnsupported(node, n.getMessage());
    return Error::success();
  }
  // An output that nobody made: the entry has fewer than the node asks for.
  for (StringRef output : node.outputs) {
    const Imported &imported = state.values[output];
    if (!output.empty() && !imported.value && !imported.constant && !imported.contents) {
      reportUnsupported(node, "output " + quoted(output));
      break;
    }
  }
  return Error::success();
}

Error Importer::checkDeclared(const ValueInfo &info, RankedTensorType type) {
  if (info.kind != ValueInfo::Kind::Tensor)
    return info.kind == ValueInfo::Kind::None
               ? Error::success()
               : invalidInput("output " + quoted(info.name) +
                              " is declared as something else than the tensor that it is");
  auto differs = [&](const Twine &declared) {
    return invalidInput("output " + quoted(info.name) + " is declared " + declared + ", but is " +
                        typeString(dtypeName(type.getElementType()), getDims(type)));
  };
  if (info.elementType && (!info.elementType->dtype ||
                           getElementType(&ctx, *info.elementType->dtype) != type.getElementType()))
    return differs(Twine("of type ") + info.elementType->name);
  if (info.hasShape && int64_t(info.dims.size()) != type.getRank())
    return differs("with rank " + Twine(info.dims.size()));
  return Error::success();
}

Error Importer::importOutputs() {
  SmallVector<Value> results;
  for (const ValueInfo &output : model.graph.outputs) {
    Imported &imported = state.values[output.name];
    if (imported.constant && !imported.constant->type->dtype)
      return unsupported("output " + quoted(output.name) + " has elements of type " +
                         imported.constant->type->name);
    Value value = state.getValue(imported);
    if (!value)
      return unsupported("output " + quoted(output.name) + " is made of sizes that are free");
    if (Error e = checkDeclared(output, cast<RankedTensorType>(value.getType())))
      return e;
    results.push_back(value);
  }
  func::ReturnOp::create(builder, builder.getUnknownLoc(), results);
  SmallVector<Type> argTypes(function.getArgumentTypes());
  function.setType(builder.getFunctionType(argTypes, ValueRange(results).getTypes()));
  for (auto [i, output] : llvm::enumerate(model.graph.outputs))
    function.setResultAttr(i, "quern.name", builder.getStringAttr(output.name));
  return Error::success();
}

Error Importer::unsupportedError() {
  unsigned count = 0;
  std::string text;
  for (auto &[reason, nodes] : unsupportedNodes) {
    count += nodes.size();
    text += (text.empty() ? "" : "; ") + reason + (nodes.size() == 1 ? ": node " : ": nodes ") +
            llvm::join(nodes, ", ");
  }
  return unsupported(Twine(count) + " of " + Twine(model.graph.nodes.size()) +
                     " nodes cannot be imported: " + text);
}

Expected<OwningOpRef<ModuleOp>> Importer::run() {
  // A failed op creation reports the meta function's text here, and is put into words
  // with the node's name by the node.
  ScopedDiagnosticHandler handler(&ctx, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
      return mlir::failure();
    state.lastDiagnostic = diagnostic.str();
    return mlir::success();
  });
  OwningOpRef<ModuleOp> module = ModuleOp::create(builder.getUnknownLoc());
  builder.setInsertionPointToStart(module->getBody());
  if (Error e = importInputs())
    return std::move(e);
  for (const Node &node : model.graph.nodes)
    if (Error e = importNode(node))
      return std::move(e);
  if (!unsupportedNodes.empty())
    return unsupportedError();
  if (Error e = importOutputs())
    return std::move(e);
  return module;
}

} // namespace

Expected<OwningOpRef<ModuleOp>> importModel(MLIRContext &ctx, const Model &model) {
  ctx.loadDialect<QuernDialect, func::FuncDialect, arith::ArithDialect>();
  Expected<OwningOpRef<ModuleOp>> module = Importer(ctx, model).run();
  if (!module)
    return withContext(module.takeError(), model.path + ": ");
  return module;
}

Expected<OwningOpRef<ModuleOp>> importFile(MLIRContext &ctx, StringRef path) {
  Expected<Model> model = readModel(path);
  if (!model)
    return model.takeError();
  return importModel(ctx, *model);
}

} // namespace quern::onnx
