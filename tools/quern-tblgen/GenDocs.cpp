//===- GenDocs.cpp - Op pages and the coverage table ----------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Records.h"

using namespace llvm;

namespace quern::tblgen {

void emitPages(const Dialect &dialect, raw_ostream &os) {
  os << "# Operators\n\nGenerated from the op records.\n";
  StringRef family;
  for (const auto &op : dialect.ops) {
    if (family != op->family)
      os << "\n## " << (family = op->family) << "\n";
    os << "\n### quern." << op->mnemonic << "\n\n" << op->def->getValueAsString("summary") << "\n";
    StringRef description = op->def->getValueAsString("description").trim();
    if (!description.empty())
      os << "\n" << description << "\n";
    os << "\n| operand | | gradient | may be overwritten |\n| --- | --- | --- | --- |\n";
    for (const Operand &o : op->operands) {
      static const char *arity[] = {"", "optional", "any number"};
      os << "| `" << o.name << "` | " << arity[o.arity] << " | ";
      if (o.kind == Operand::Expression)
        os << "`" << o.text << "`";
      else if (o.kind == Operand::Custom)
        os << "by `" << op->hook << "`";
      else
        os << "none: " << o.derivative->getValueAsString("Reason");
      os << " | " << (o.mayOverwrite ? "yes" : "no") << " |\n";
    }
    if (!op->notInPlace.empty())
      os << "\nNot in place: " << op->notInPlace << ".\n";
    if (!op->attrs.empty()) {
      os << "\n| attribute | type | default |\n| --- | --- | --- |\n";
      for (const Attribute &a : op->attrs)
        os << "| `" << a.name << "` | " << a.type << (a.optional ? ", optional" : "") << " | "
           << (a.defaultValue.empty() ? "" : "`" + a.defaultValue + "`") << " |\n";
    }
    if (!op->constraints.empty()) {
      os << "\nConstraints:\n\n";
      for (auto [i, c] : enumerate(op->constraints))
        os << "- `" << op->mnemonic << "_c" << i + 1 << "`: " << c << "\n";
    }
    if (op->scalar)
      os << "\nEach element is `" << op->scalarText << "`.\n";
    os << "\nCalls:\n\n";
    for (const auto &s : op->samples)
      os << "- `" << s.call << "`" << (s.message.empty() ? "" : " is refused: `" + s.message + "`")
         << "\n";
  }
}

void emitCoverage(const Dialect &dialect, raw_ostream &os) {
  os << "# Coverage\n\nGenerated from the op records. A word in place of yes is the reason.\n\n"
     << "| op | family | meta, symbolic | into | in place | derivative | CPU, CUDA | samples |\n"
     << "| --- | --- | --- | --- | --- | --- | --- | --- |\n";
  for (const auto &op : dialect.ops) {
    unsigned differentiable = 0;
    StringRef reason;
    for (const Operand &o : op->operands) {
      if (o.kind != Operand::NonDifferentiable)
        ++differentiable;
      else if (reason.empty())
        reason = o.derivative->getValueAsString("Reason");
    }
    os << "| " << op->mnemonic << " | " << op->family << " | yes | yes | "
       << (op->notInPlace.empty() ? "yes" : op->notInPlace) << " | "
       << (differentiable   ? "yes"
           : reason.empty() ? StringRef("no operand")
                            : reason)
       << " | " << (op->scalar ? "scalar body" : op->lowering) << " | " << op->samples.size()
       << " |\n";
  }
}

} // namespace quern::tblgen
