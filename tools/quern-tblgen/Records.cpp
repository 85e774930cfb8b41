//===- Records.cpp - Op records, read and checked -------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Records.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/TableGen/Error.h"

using namespace llvm;

namespace quern::tblgen {

const Operand *OpDef::findOperand(StringRef name) const {
  for (const Operand &o : operands)
    if (o.name == name)
      return &o;
  return nullptr;
}
const Attribute *OpDef::findAttr(StringRef name) const {
  for (const Attribute &a : attrs)
    if (a.name == name)
      return &a;
  return nullptr;
}
const Result *OpDef::findResult(StringRef name) const {
  for (const Result &r : results)
    if (r.name == name)
      return &r;
  return nullptr;
}

std::optional<unsigned> scalarFunctionArity(StringRef name) {
  static const StringMap<unsigned> functions = {
      // arithmetic and comparisons, as the operators are called
      {"add", 2},
      {"sub", 2},
      {"mul", 2},
      {"div", 2},
      {"neg", 1},
      {"eq", 2},
      {"ne", 2},
      {"lt", 2},
      {"le", 2},
      {"gt", 2},
      {"ge", 2},
      // functions of one float
      {"exp", 1},
      {"log", 1},
      {"sqrt", 1},
      {"rsqrt", 1},
      {"tanh", 1},
      {"erf", 1},
      {"abs", 1},
      {"exp2", 1},
      {"expm1", 1},
      {"log1p", 1},
      {"log2", 1},
      {"log10", 1},
      {"sin", 1},
      {"cos", 1},
      {"tan", 1},
      {"asin", 1},
      {"acos", 1},
      {"atan", 1},
      {"sinh", 1},
      {"cosh", 1},
      {"asinh", 1},
      {"acosh", 1},
      {"atanh", 1},
      {"floor", 1},
      {"ceil", 1},
      {"round", 1},
      {"trunc", 1},
      {"sigmoid", 1},
      {"isnan", 1},
      {"isinf", 1},
      // several operands
      {"max", 2},
      {"min", 2},
      {"pow", 2},
      {"atan2", 2},
      {"copysign", 2},
      {"rem", 2},
      {"select", 3},
      {"fma", 3},
      // logic on bools, bits on ints
      {"and", 2},
      {"or", 2},
      {"xor", 2},
      {"not", 1},
      {"shl", 2},
      {"shr", 2},
      // to the result's dtype
      {"convert", 1}};
  auto it = functions.find(name);
  if (it == functions.end())
    return std::nullopt;
  return it->second;
}

namespace {

/// An expression may stand on several lines in its record.
std::string oneLine(StringRef text) {
  SmallVector<StringRef> words;
  SplitString(text, words, " \t\n\r");
  return join(words, " ");
}

/// Reads one record; every complaint goes through PrintFatalError at the record.
class Reader {
public:
  Reader(OpDef &op, const Dialect &dialect) : op(op), def(op.def), dialect(dialect) {}

  void readShape() {
    op.mnemonic = def->getValueAsString("opName").str();
    op.className = op.op.getCppClassName().str();
    SMLoc loc = def->getLoc().front();
    auto [line, column] = SrcMgr.getLineAndColumn(loc);
    (void)column;
    unsigned buffer = SrcMgr.FindBufferContainingLoc(loc);
    StringRef path = SrcMgr.getMemoryBuffer(buffer)->getBufferIdentifier();
    op.line = line;
    op.family = sys::path::stem(path).str();
    op.file = sys::path::filename(path).str();
    for (int i = 0; i < op.op.getNumOperands(); ++i) {
      const auto &operand = op.op.getOperand(i);
      if (operand.name == "into")
        continue;
      Operand o;
      o.name = operand.name.str();
      o.arity = operand.isOptional()   ? Operand::Optional
                : operand.isVariadic() ? Operand::Variadic
                                       : Operand::Required;
      op.operands.push_back(std::move(o));
    }
    for (int i = 0; i < op.op.getNumNativeAttributes(); ++i) {
      const auto &attr = op.op.getAttribute(i);
      Attribute a;
      a.name = attr.name.str();
      a.type = attr.attr.getBaseAttr().getAttrDefName().str();
      if (attr.attr.hasDefaultValue())
        a.defaultValue = attr.attr.getDefaultValue().str();
      a.optional = attr.attr.isOptional();
      op.attrs.push_back(std::move(a));
    }
    for (int i = 0; i < op.op.getNumResults(); ++i)
      op.results.push_back({op.op.getResultName(i).str(), false});
    if (def->getValueAsString("summary").empty())
      PrintFatalError(def, "op '" + op.mnemonic + "' has no summary");
    op.fusion = required("fusion", "say how kernels see it")->getValueAsString("Name").str();
    op.meta = requiredString("meta", "name its meta function").str();
  }

  void readConstraints() {
    if (def->isValueUnset("constraints"))
      missing("constraints", "number what the meta function checks (an empty list if nothing)");
    for (StringRef c : def->getValueAsListOfStrings("constraints"))
      op.constraints.push_back(c.str());
  }

  void readInPlace() {
    const Record *rule = required("inPlace", "say InPlace<[operands]> or NotInPlace<\"reason\">");
    if (rule->isSubClassOf("NotInPlace")) {
      op.notInPlace = rule->getValueAsString("Reason").str();
      if (op.notInPlace.empty())
        PrintFatalError(def, "op '" + op.mnemonic + "': NotInPlace needs a reason");
      return;
    }
    for (StringRef name : rule->getValueAsListOfStrings("Operands"))
      findOperand(name, "in-place rule").mayOverwrite = true;
  }

  void readDerivatives() {
    if (def->isValueUnset("derivatives"))
      missing("derivatives", "one entry for each operand (Wrt, Custom or NonDifferentiable)");
    for (const Record *d : def->getValueAsListOfDefs("derivatives")) {
      Operand &operand = findOperand(d->getValueAsString("Operand"), "derivative");
      if (operand.derivative)
        PrintFatalError(def, "op '" + op.mnemonic + "' has two derivatives for operand '" +
                                 operand.name + "'");
      operand.derivative = d;
      if (d->isSubClassOf("Wrt")) {
        operand.kind = Operand::Expression;
        operand.text = oneLine(d->getValueAsString("Expr"));
        operand.expr = parse(operand.text, "derivative");
        StringSet<> lets;
        checkDerivative(*operand.expr, operand.text, lets);
      } else if (d->isSubClassOf("Custom")) {
        operand.kind = Operand::Custom;
        StringRef hook = d->getValueAsString("Hook");
        if (!op.hook.empty() && op.hook != hook)
          PrintFatalError(def, "op '" + op.mnemonic + "' names two derivative hooks");
        op.hook = hook.str();
        for (StringRef name : d->getValueAsListOfStrings("Reads"))
          markSaved(name, "Custom derivative");
      } else if (d->getValueAsString("Reason").empty()) {
        PrintFatalError(def, "op '" + op.mnemonic + "': NonDifferentiable needs a reason");
      }
    }
    for (const Operand &operand : op.operands)
      if (!operand.derivative)
        PrintFatalError(def, "op '" + op.mnemonic + "' has no derivative for operand '" +
                                 operand.name +
                                 "': say Wrt, Custom, or NonDifferentiable with a reason");
  }

  void readBody() {
    const Record *body =
        required("body", "say ScalarBody<\"expression\"> or Lowering<\"function\">");
    if (body->isSubClassOf("Lowering")) {
      op.lowering = body->getValueAsString("Function").str();
      return;
    }
    op.scalarText = oneLine(body->getValueAsString("Expr"));
    op.scalar = parse(op.scalarText, "scalar body");
    StringSet<> lets;
    checkScalar(*op.scalar, lets);
  }

  void readSamples() {
    if (def->isValueUnset("samples") || def->getValueAsListOfDefs("samples").empty())
      missing("samples", "at least one call that works");
    for (const Record *s : def->getValueAsListOfDefs("samples"))
      op.samples.push_back({s->getValueAsString("Call").str(), "", s->getValueAsBit("OpenToo")});
    if (def->isValueUnset("badSamples"))
      missing("badSamples", "one refused call for each constraint");
    std::vector<bool> covered(op.constraints.size());
    for (const Record *s : def->getValueAsListOfDefs("badSamples")) {
      StringRef message = s->getValueAsString("Message");
      op.samples.push_back({s->getValueAsString("Call").str(), message.str()});
      for (size_t i = 0; i < covered.size(); ++i)
        if (message.starts_with((op.mnemonic + "_c" + Twine(i + 1) + ":").str()))
          covered[i] = true;
    }
    for (size_t i = 0; i < covered.size(); ++i)
      if (!covered[i])
        PrintFatalError(def, "op '" + op.mnemonic + "' has no bad sample for constraint " +
                                 op.mnemonic + "_c" + Twine(i + 1) + ": " + op.constraints[i]);
  }

  void readFolds() {
    for (const Record *r : def->getValueAsListOfDefs("identities")) {
      auto number = [&](StringRef name) {
        return unsigned(&findOperand(name, "identity") - op.operands.data());
      };
      double value;
      StringRef text = r->getValueAsString("Number");
      if (text.getAsDouble(value))
        PrintFatalError(def, "op '" + op.mnemonic + "': identity with '" + text +
                                 "', which is no number");
      op.identities.push_back({number(r->getValueAsString("Same")),
                               number(r->getValueAsString("Other")), text.str() + ".0"});
    }
    op.identityOnSameType = def->getValueAsBit("identityOnSameType");
    op.folder = def->getValueAsString("folder").str();
  }

private:
  OpDef &op;
  const Record *def;
  const Dialect &dialect;

  [[noreturn]] void missing(StringRef field, StringRef help) {
    PrintFatalError(def, "op '" + op.mnemonic + "' has no " + field + ": " + help);
  }
  const Record *required(StringRef field, StringRef help) {
    if (def->isValueUnset(field))
      missing(field, help);
    return def->getValueAsDef(field);
  }
  StringRef requiredString(StringRef field, StringRef help) {
    if (def->isValueUnset(field))
      missing(field, help);
    return def->getValueAsString(field);
  }
  Operand &findOperand(StringRef name, StringRef where) {
    for (Operand &o : op.operands)
      if (o.name == name)
        return o;
    PrintFatalError(def, "op '" + op.mnemonic + "': " + where + " names '" + name +
                             "', which is no operand");
  }
  std::unique_ptr<Expr> parse(StringRef text, StringRef where) {
    std::string error;
    auto expr = parseExpression(text, error);
    if (!expr)
      PrintFatalError(def, "op '" + op.mnemonic + "': " + error + " of the " + where + " \"" +
                               text + "\"");
    return expr;
  }

  void markSaved(StringRef name, StringRef where) {
    for (Operand &o : op.operands)
      if (o.name == name) {
        o.saved = true;
        return;
      }
    for (Result &r : op.results)
      if (r.name == name) {
        r.saved = true;
        return;
      }
    PrintFatalError(def, "op '" + op.mnemonic + "': " + where + " reads '" + name +
                             "', which is no operand or result");
  }

  void unknown(StringRef name, StringRef text) {
    PrintFatalError(def,
                    "op '" + op.mnemonic + "': unknown name '" + name + "' in \"" + text + "\"");
  }

  void checkChoice(const Expr &e, StringRef text) {
    StringRef name = e.args[0].args[0].text;
    const Attribute *attr = op.findAttr(name);
    if (!attr || attr->type != "StrAttr")
      PrintFatalError(def, "op '" + op.mnemonic + "': '" + name +
                               "' is no string attribute of it, in \"" + text + "\"");
  }

  // A derivative: values are tensors, attributes stand in keyword arguments.
  void checkDerivative(const Expr &e, StringRef text, StringSet<> &lets) {
    if (isChoice(e)) {
      checkChoice(e, text);
      checkDerivative(e.args[1], text, lets);
      checkDerivative(e.args[2], text, lets);
      return;
    }
    switch (e.kind) {
    case Expr::Number:
    case Expr::Bool:
      return;
    case Expr::Word:
      PrintFatalError(def, "op '" + op.mnemonic +
                               "': a word is compared with an attribute only, "
                               "in \"" +
                               text + "\"");
    case Expr::List:
      for (const Expr &a : e.args)
        checkDerivative(a, text, lets);
      return;
    case Expr::Let:
      checkDerivative(e.args[0], text, lets);
      lets.insert(e.text);
      checkDerivative(e.args[1], text, lets);
      return;
    case Expr::Member:
      if (e.text != "grad" || !op.findResult(e.member))
        unknown(e.text + "." + e.member, text);
      return;
    case Expr::Name:
      if (e.text == "grad" || lets.contains(e.text) || op.findAttr(e.text))
        return;
      if (!op.findOperand(e.text) && !op.findResult(e.text))
        unknown(e.text, text);
      markSaved(e.text, "derivative");
      return;
    case Expr::Call:
      if (e.text == "shape" || e.text == "count" || e.text == "dtype") {
        // Only the shape is read, so nothing is saved.
        if (e.args.empty() || e.args[0].kind != Expr::Name ||
            (!op.findOperand(e.args[0].text) && !op.findResult(e.args[0].text)))
          PrintFatalError(def, "op '" + op.mnemonic + "': " + e.text +
                                   "() takes an operand or a result, in \"" + text + "\"");
        for (const Expr &a : drop_begin(e.args))
          checkDerivative(a, text, lets);
        return;
      }
      for (const Expr &a : e.args)
        checkDerivative(a, text, lets);
      auto it = dialect.byName.find(e.text);
      for (const auto &[name, value] : e.keywords) {
        if (it != dialect.byName.end() && !it->second->findAttr(name))
          PrintFatalError(def, "op '" + op.mnemonic + "': op '" + e.text + "' has no attribute '" +
                                   name + "', in \"" + text + "\"");
        checkAttribute(value, text, lets);
      }
      if (it == dialect.byName.end())
        PrintFatalError(def, "op '" + op.mnemonic + "': '" + e.text +
                                 "' is no op of the dialect, in \"" + text + "\"");
      if (e.args.size() > it->second->operands.size())
        PrintFatalError(def, "op '" + op.mnemonic + "': op '" + e.text + "' takes " +
                                 Twine(it->second->operands.size()) + " operands, in \"" + text +
                                 "\"");
      return;
    }
  }

  // The value of a keyword argument: attributes, literals, or a call of a C++ helper on them
  // (any name: the C++ compiler checks it).
  void checkAttribute(const Expr &e, StringRef text, StringSet<> &lets) {
    if (e.kind == Expr::Call && e.text != "shape" && e.text != "count" && e.text != "dtype" &&
        e.text != "neg") {
      for (const Expr &a : e.args)
        checkAttribute(a, text, lets);
      return;
    }
    if (e.kind == Expr::Word)
      return;
    if (e.kind == Expr::Name && !op.findAttr(e.text))
      PrintFatalError(def, "op '" + op.mnemonic + "': '" + e.text +
                               "' is no attribute of it, in \"" + text + "\"");
    checkDerivative(e, text, lets);
  }

  void checkScalar(const Expr &e, StringSet<> &lets) {
    StringRef text = op.scalarText;
    if (isChoice(e)) {
      checkChoice(e, text);
      checkScalar(e.args[1], lets);
      checkScalar(e.args[2], lets);
      return;
    }
    switch (e.kind) {
    case Expr::Number:
    case Expr::Bool:
      return;
    case Expr::Name:
      if (!lets.contains(e.text) && !op.findOperand(e.text) && !op.findAttr(e.text))
        unknown(e.text, text);
      return;
    case Expr::Let:
      checkScalar(e.args[0], lets);
      lets.insert(e.text);
      checkScalar(e.args[1], lets);
      return;
    case Expr::Word:
    case Expr::List:
    case Expr::Member:
      PrintFatalError(def, "op '" + op.mnemonic + "': a scalar body has numbers only, in \"" +
                               text + "\"");
    case Expr::Call:
      std::optional<unsigned> arity = scalarFunctionArity(e.text);
      if (!arity)
        PrintFatalError(def, "op '" + op.mnemonic + "': '" + e.text +
                                 "' is no scalar function, in \"" + text + "\"");
      if (e.args.size() != *arity || !e.keywords.empty())
        PrintFatalError(def, "op '" + op.mnemonic + "': scalar function '" + e.text + "' takes " +
                                 Twine(*arity) + " arguments, in \"" + text + "\"");
      for (const Expr &a : e.args)
        checkScalar(a, lets);
      return;
    }
  }
};

} // namespace

Dialect readDialect(const RecordKeeper &records) {
  Dialect dialect;
  for (const Record *def : records.getAllDerivedDefinitions("Quern_Op")) {
    dialect.ops.push_back(std::make_unique<OpDef>(def));
    OpDef &op = *dialect.ops.back();
    Reader(op, dialect).readShape();
    if (!dialect.byName.insert({op.mnemonic, &op}).second)
      PrintFatalError(def, "op '" + op.mnemonic + "' is defined twice");
  }
  for (auto &op : dialect.ops) {
    Reader reader(*op, dialect);
    reader.readConstraints();
    reader.readInPlace();
    reader.readDerivatives();
    reader.readBody();
    reader.readSamples();
    reader.readFolds();
  }
  // In the order of the files, so that generated text follows the definitions.
  llvm::sort(dialect.ops, [](const auto &a, const auto &b) {
    return std::tie(a->family, a->line) < std::tie(b->family, b->line);
  });
  return dialect;
}

} // namespace quern::tblgen
