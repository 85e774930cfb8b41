//===- GenDocs.cpp - Op pages ---------------------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Records.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace quern::tblgen {
namespace {

/// What a reader calls an attribute's type.
StringRef attrTypeText(StringRef type) {
  return StringSwitch<StringRef>(type)
      .Case("I64Attr", "integer")
      .Case("F64Attr", "number")
      .Case("BoolAttr", "true or false")
      .Case("StrAttr", "word")
      .Case("TypeAttr", "dtype")
      .Case("DenseI64ArrayAttr", "list of integers")
      .Case("Quern_ScalarAttr", "integer, float or bool")
      .Case("Quern_DimAttr", "size")
      .Case("Quern_DimsAttr", "list of sizes")
      .Default(type);
}

/// `{}` and `"none"` of C++ as the samples write them.
std::string defaultText(StringRef text) {
  if (text == "{}")
    return "[]";
  return text.trim("\\\"").str();
}

void emitSignature(const OpDef &op, raw_ostream &os) {
  os << "\n`" << op.mnemonic << "(";
  ListSeparator comma;
  for (const Operand &o : op.operands)
    os << comma << (o.arity == Operand::Variadic ? "[" + o.name + ", …]" : o.name)
       << (o.arity == Operand::Optional ? "?" : "");
  for (const Attribute &a : op.attrs)
    os << comma << a.name
       << (a.optional               ? "?"
           : a.defaultValue.empty() ? ""
                                    : "=" + defaultText(a.defaultValue));
  os << ")";
  if (op.results.size() > 1) {
    os << " -> ";
    ListSeparator between;
    for (const Result &r : op.results)
      os << between << r.name;
  }
  os << "`\n";
}

void emitOperands(const OpDef &op, raw_ostream &os) {
  os << "\n| operand | gradient | may be overwritten |\n| --- | --- | --- |\n";
  for (const Operand &o : op.operands) {
    os << "| `" << o.name << "` | ";
    if (o.kind == Operand::Expression)
      os << "`" << o.text << "`";
    else if (o.kind == Operand::Custom)
      os << "by a C++ rule";
    else
      os << "none: " << o.derivative->getValueAsString("Reason");
    os << " | " << (o.mayOverwrite ? "yes" : "no") << " |\n";
  }
  SmallVector<StringRef> saved;
  for (const Operand &o : op.operands)
    if (o.saved)
      saved.push_back(o.name);
  for (const Result &r : op.results)
    if (r.saved)
      saved.push_back(r.name);
  if (!saved.empty())
    os << "\nThe gradient reads `" << join(saved, "`, `") << "`.\n";
}

void emitPage(const OpDef &op, raw_ostream &os) {
  os << "\n### " << op.mnemonic << "\n\n" << op.def->getValueAsString("summary") << "\n";
  emitSignature(op, os);
  SmallVector<StringRef> lines;
  op.def->getValueAsString("description").trim().split(lines, '\n');
  if (!lines.front().empty()) {
    os << "\n";
    for (StringRef line : lines)
      os << line.trim() << "\n";
  }
  if (!op.operands.empty())
    emitOperands(op, os);
  if (!op.notInPlace.empty() && !op.operands.empty())
    os << "\nNot in place: " << op.notInPlace << ".\n";
  if (!op.attrs.empty()) {
    os << "\n| attribute | | default |\n| --- | --- | --- |\n";
    for (const Attribute &a : op.attrs)
      os << "| `" << a.name << "` | " << attrTypeText(a.type) << " | "
         << (a.optional               ? "left out"
             : a.defaultValue.empty() ? ""
                                      : "`" + defaultText(a.defaultValue) + "`")
         << " |\n";
  }
  if (op.scalar)
    os << "\nEach element is `" << op.scalarText << "`.\n";
  if (!op.constraints.empty()) {
    os << "\nChecked:\n\n";
    for (auto [i, c] : enumerate(op.constraints))
      os << "- `" << op.mnemonic << "_c" << i + 1 << "`: " << c << "\n";
  }
  os << "\nCalls:\n\n";
  for (const auto &s : op.samples)
    os << "- `" << s.call << "`" << (s.message.empty() ? "" : " is refused: `" + s.message + "`")
       << "\n";
}

} // namespace

void emitPages(const Dialect &dialect, raw_ostream &os) {
  os << "# Operators\n\nMade of the op records by the build. Names are ATen's. Every op also takes "
        "a "
        "destination for each result (`into`); operands broadcast only where it says so, and are "
        "never converted.\n";
  StringRef family;
  for (const auto &op : dialect.ops) {
    if (family == op->family) {
      os << ", ";
    } else {
      family = op->family;
      os << "\n- **" << family << "**: ";
    }
    os << "[" << op->mnemonic << "](#" << op->mnemonic << ")";
  }
  os << "\n";
  family = "";
  for (const auto &op : dialect.ops) {
    if (family != op->family)
      os << "\n## " << (family = op->family) << "\n";
    emitPage(*op, os);
  }
}

} // namespace quern::tblgen
