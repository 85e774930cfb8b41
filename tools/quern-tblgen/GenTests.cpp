//===- GenTests.cpp - Tests from samples ----------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// One file for each family and kind of test:
//   samples   every good call, with static and with open sizes and with a destination, is read,
//             verified, printed and read again, and has the result that its record says
//   lowering  every good call, with static and with named sizes, becomes linalg
//   invalid   every bad call gives its message
//
//===----------------------------------------------------------------------===//

#include "Records.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/TableGen/Error.h"

using namespace llvm;

namespace quern::tblgen {
namespace {

//===----------------------------------------------------------------------===//
// The samples' notation
//===----------------------------------------------------------------------===//

struct TensorText {
  std::string dtype;
  std::vector<std::string> dims; ///< numbers or `?`
};

/// A call as its record writes it.
struct Call {
  std::vector<std::vector<TensorText>> operands; ///< by declared operand
  std::vector<std::pair<const Attribute *, std::string>> attrs;
  std::vector<TensorText> results; ///< empty when the record does not say
};

/// Reads `op(f32[2,3], [i64[2], i64[3]], _, dim=[0], keepdim=true) -> f32[2]`.
class SampleParser {
public:
  SampleParser(const OpDef &op, StringRef text) : op(op), text(text), rest(text) {}

  Call parse() {
    Call call;
    expect(op.mnemonic);
    expect("(");
    while (!eat(")")) {
      if (const Attribute *attr = attribute()) {
        call.attrs.push_back({attr, value()});
      } else {
        auto &group = call.operands.emplace_back();
        if (eat("[")) {
          while (!eat("]")) {
            group.push_back(tensor());
            eat(",");
          }
        } else if (!eat("_")) {
          group.push_back(tensor());
        }
      }
      eat(",");
    }
    if (call.operands.size() > op.operands.size())
      fail("more operands than the op has");
    call.operands.resize(op.operands.size());
    if (eat("->"))
      do
        call.results.push_back(tensor());
      while (eat(","));
    rest = rest.ltrim();
    if (!rest.empty())
      fail("unexpected '" + rest + "'");
    return call;
  }

private:
  const OpDef &op;
  StringRef text, rest;

  [[noreturn]] void fail(const Twine &message) {
    PrintFatalError(op.def, "op '" + op.mnemonic + "': " + message + " in sample \"" + text + "\"");
  }
  bool eat(StringRef token) {
    rest = rest.ltrim();
    return rest.consume_front(token);
  }
  void expect(StringRef token) {
    if (!eat(token))
      fail("expected '" + token + "' before '" + rest + "'");
  }
  /// A name and `=` at the front.
  const Attribute *attribute() {
    StringRef trimmed = rest.ltrim();
    StringRef name = trimmed.take_while([](char c) { return isAlnum(c) || c == '_'; });
    StringRef after = trimmed.drop_front(name.size()).ltrim();
    if (name.empty() || !after.consume_front("="))
      return nullptr;
    const Attribute *attr = op.findAttr(name);
    if (!attr)
      fail("no attribute '" + name + "'");
    rest = after.ltrim();
    return attr;
  }
  /// Up to the next comma or parenthesis outside brackets.
  std::string value() {
    int depth = 0;
    size_t n = 0;
    for (; n < rest.size(); ++n) {
      char c = rest[n];
      if (depth == 0 && (c == ',' || c == ')'))
        break;
      depth += c == '[' || c == '(' ? 1 : c == ']' || c == ')' ? -1 : 0;
    }
    StringRef result = rest.take_front(n).rtrim();
    if (result.empty())
      fail("an attribute without a value");
    rest = rest.drop_front(n);
    return result.str();
  }
  TensorText tensor() {
    rest = rest.ltrim();
    TensorText t;
    t.dtype = rest.take_while([](char c) { return isAlnum(c); }).str();
    rest = rest.drop_front(t.dtype.size());
    if (t.dtype.empty())
      fail("expected a tensor before '" + rest + "'");
    if (t.dtype == "bool")
      t.dtype = "i1";
    else if (t.dtype[0] == 'u')
      t.dtype = "ui" + t.dtype.substr(1);
    expect("[");
    while (!eat("]")) {
      rest = rest.ltrim();
      StringRef dim = rest.take_while([](char c) { return isDigit(c) || c == '?'; });
      if (dim.empty())
        fail("expected a size before '" + rest + "'");
      rest = rest.drop_front(dim.size());
      t.dims.push_back(dim.str());
      eat(",");
    }
    return t;
  }
};

//===----------------------------------------------------------------------===//
// Calls as IR
//===----------------------------------------------------------------------===//

/// How sizes are written: as they are, as `?`, or as `?` with one name for each size (1 and 0 stay,
/// so that nothing is said about broadcasts).
enum class Sizes { Static, Open, Named };

std::string typeText(const TensorText &t, Sizes sizes) {
  std::string shape, names;
  for (StringRef dim : t.dims) {
    bool open = sizes == Sizes::Open || (sizes == Sizes::Named && dim != "0" && dim != "1");
    shape += (open ? "?" : dim.str()) + "x";
    if (open && sizes == Sizes::Named)
      names += (names.empty() ? "N" : ", N") + dim.str();
  }
  std::string encoding = names.empty() ? "" : ", #quern.dims<" + names + ">";
  return "tensor<" + shape + t.dtype + encoding + ">";
}

/// A FileCheck pattern: each size is what the record says, or open where operands are.
std::string typePattern(const TensorText &t, Sizes sizes) {
  if (sizes == Sizes::Static)
    return typeText(t, sizes);
  std::string pattern = "tensor<";
  for (StringRef dim : t.dims)
    pattern += "{{(" + dim.str() + "|\\?)}}x";
  return pattern + t.dtype + "{{(, #quern.dims<[^>]*>)?}}>";
}

bool isFloatText(StringRef text) { return text.find_first_of(".einf") != StringRef::npos; }

std::string numberText(StringRef text) {
  if (text == "true" || text == "false")
    return text.str();
  if (text.ends_with("inf"))
    return text.starts_with("-") ? "0xFFF0000000000000 : f64" : "0x7FF0000000000000 : f64";
  if (text == "nan")
    return "0x7FF8000000000000 : f64";
  return text.str() + (isFloatText(text) ? " : f64" : " : i64");
}

std::string attrText(const Attribute &attr, StringRef value) {
  StringRef list = value;
  bool isList = list.consume_front("[") && list.consume_back("]");
  if (attr.type == "DenseI64ArrayAttr" && isList)
    return list.empty() ? "array<i64>" : "array<i64: " + list.str() + ">";
  if (attr.type == "Quern_DimsAttr" && isList)
    return "#quern.dims<" + list.str() + ">";
  if (attr.type == "Quern_DimAttr")
    return "#quern.dim<" + value.str() + ">";
  if (attr.type == "StrAttr")
    return "\"" + value.str() + "\"";
  if (attr.type == "TypeAttr") {
    if (value == "bool")
      return "i1";
    return value.starts_with("u") ? "ui" + value.drop_front().str() : value.str();
  }
  if (attr.type == "Quern_ScalarAttr")
    return numberText(value);
  if (attr.type == "F64Attr")
    return value.str() + " : f64";
  return value.str();
}

struct CallWriter {
  const OpDef &op;
  const Call &call;
  Sizes sizes;

  std::string listTypes(ArrayRef<std::string> types) const { return "(" + join(types, ", ") + ")"; }

  std::vector<std::string> operandTypes() const {
    std::vector<std::string> types;
    for (const auto &group : call.operands)
      for (const TensorText &t : group)
        types.push_back(typeText(t, sizes));
    return types;
  }

  /// The operands in the op's text; `value` gives each its name.
  std::string operandText(function_ref<std::string(unsigned)> value) const {
    std::string text;
    unsigned n = 0;
    for (auto [i, operand] : enumerate(op.operands)) {
      if (i)
        text += ", ";
      std::string names;
      for (size_t k = 0; k < call.operands[i].size(); ++k)
        names += (k ? ", " : "") + value(n++);
      if (operand.arity == Operand::Variadic)
        text += "[" + names + "]";
      else
        text += names.empty() ? "_" : names;
    }
    return text;
  }

  std::string attrsText() const {
    std::string text;
    for (const auto &[attr, value] : call.attrs)
      text += (text.empty() ? " {" : ", ") + attr->name + " = " + attrText(*attr, value);
    return text.empty() ? "" : text + "}";
  }

  /// A function that makes the call; with `into`, the results' types are given, too.
  void function(raw_ostream &os, const Twine &name, bool into = false) const {
    std::vector<std::string> types = operandTypes();
    unsigned given = types.size();
    std::vector<std::string> results;
    for (const TensorText &t : call.results)
      results.push_back(typeText(t, sizes));
    if (into)
      append_range(types, results);
    os << "func.func private @" << name << "(";
    for (auto [i, type] : enumerate(types))
      os << (i ? ", " : "") << "%arg" << i << ": " << type;
    os << ") {\n  %r" << (op.results.size() > 1 ? ":" + std::to_string(op.results.size()) : "")
       << " = quern." << op.mnemonic << " "
       << operandText([](unsigned i) { return "%arg" + std::to_string(i); });
    if (into)
      for (size_t i = 0; i < results.size(); ++i)
        os << (i ? ", " : " into ") << "%arg" << given + i;
    os << attrsText() << " : " << listTypes(types);
    if (into)
      os << " -> " << (results.size() == 1 ? results[0] : listTypes(results));
    os << "\n  return\n}\n";
  }

  void expectation(raw_ostream &os, const Twine &name) const {
    std::vector<std::string> results;
    for (const TensorText &t : call.results)
      results.push_back(typePattern(t, sizes));
    os << "// CHECK-LABEL: func.func private @" << name << "(\n// CHECK: quern." << op.mnemonic
       << " ";
    if (!results.empty())
      os << "{{.*}} -> " << (results.size() == 1 ? results[0] : listTypes(results)) << "{{$}}";
    os << "\n";
  }
};

} // namespace

void emitTests(const Dialect &dialect, StringRef family, StringRef kind, raw_ostream &os) {
  if (kind == "samples")
    os << "// RUN: quern-opt %s | quern-opt | FileCheck %s\n";
  else if (kind == "lowering")
    os << "// RUN: quern-opt --quern-to-linalg %s | FileCheck %s\n// CHECK-NOT: {{= quern[.]}}\n";
  else
    os << "// RUN: quern-opt %s -split-input-file -verify-diagnostics\n";
  os << "// Generated by quern-tblgen from " << family << ".td.\n";
  for (const auto &op : dialect.ops) {
    if (op->family != family)
      continue;
    unsigned n = 0;
    for (const OpDef::Sample &sample : op->samples) {
      if (sample.message.empty() == (kind == "invalid"))
        continue;
      Call call = SampleParser(*op, sample.call).parse();
      CallWriter fixed{*op, call, Sizes::Static}, open{*op, call, Sizes::Open},
          named{*op, call, Sizes::Named};
      std::string name = op->mnemonic + "_" + std::to_string(n++);
      bool first = n == 1;
      os << (kind == "invalid" && !first ? "\n// -----\n" : "\n");
      os << "// " << op->file << ":" << op->line << ": " << sample.call << "\n";
      if (kind == "invalid") {
        std::string text;
        raw_string_ostream body(text);
        fixed.function(body, name);
        // The expectation stands above the op's line, the second one.
        auto [head, tail] = StringRef(text).split('\n');
        os << head << "\n  // expected-error @below {{" << sample.message << "}}\n" << tail;
        continue;
      }
      if (kind == "lowering") {
        fixed.function(os, name);
        if (sample.openToo)
          named.function(os, name + "_named");
        continue;
      }
      fixed.expectation(os, name);
      fixed.function(os, name);
      if (sample.openToo) {
        open.expectation(os, name + "_open");
        open.function(os, name + "_open");
      }
      if (!call.results.empty()) {
        fixed.expectation(os, name + "_into");
        fixed.function(os, name + "_into", /*into=*/true);
      }
    }
    if (kind == "invalid" && n)
      os << "\n// -----\n";
  }
}

} // namespace quern::tblgen
