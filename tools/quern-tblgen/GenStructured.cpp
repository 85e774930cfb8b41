//===- GenStructured.cpp - Members and records of ops ---------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// One file for each family, in two parts: GET_STRUCTURED_ARGS (the argument
// structs, before the meta functions) and GET_STRUCTURED_DEFS (members of the op
// classes and the records).
//
//===----------------------------------------------------------------------===//

#include "Records.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/TableGen/Error.h"

using namespace llvm;

namespace quern::tblgen {
namespace {

/// A C++ string literal; UTF-8 stays as it is.
std::string quoted(StringRef text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out + '"';
}

std::string getter(StringRef name) { return "get" + convertToCamelFromSnakeCase(name, true); }

/// The C++ type of an attribute in an argument struct.
std::string attrCppType(const OpDef &op, const Attribute &attr) {
  static const StringMap<StringRef> types = {{"I64Attr", "int64_t"},
                                             {"BoolAttr", "bool"},
                                             {"F64Attr", "double"},
                                             {"StrAttr", "::llvm::StringRef"},
                                             {"TypeAttr", "::mlir::Type"},
                                             {"DenseI64ArrayAttr", "::llvm::ArrayRef<int64_t>"},
                                             {"Quern_ScalarAttr", "::mlir::TypedAttr"},
                                             {"Quern_DimAttr", "::quern::Dim"},
                                             {"Quern_DimsAttr", "::llvm::ArrayRef<::quern::Dim>"}};
  auto it = types.find(attr.type);
  if (it == types.end())
    PrintFatalError(op.def, "op '" + op.mnemonic + "': attribute '" + attr.name +
                                "' has a type that meta functions do not know: " + attr.type);
  return it->second.str();
}

/// An operand, result or attribute of the op in C++: numbers as plain numbers (ODS reads signless
/// integers as unsigned, floats as APFloat).
std::string read(const OpDef &op, StringRef name) {
  std::string call = "operation." + getter(name) + "()";
  const Attribute *attr = op.findAttr(name);
  if (!attr || attr->optional)
    return call;
  if (attr->type == "I64Attr")
    return "int64_t(" + call + ")";
  if (attr->type == "F64Attr")
    return call + ".convertToDouble()";
  return call;
}

/// `AddOp` has `AddArgs`.
std::string argsName(const OpDef &op) {
  StringRef name = op.className;
  name.consume_back("Op");
  return (name + "Args").str();
}

void emitArgs(const OpDef &op, raw_ostream &os) {
  os << "/// The operands and attributes of `" << op.mnemonic << "` (" << op.file << ":" << op.line
     << ").\nstruct " << argsName(op) << " {\n";
  for (const Operand &o : op.operands)
    os << (o.arity == Operand::Variadic ? "  ::llvm::SmallVector<::quern::TensorMeta, 1> "
                                        : "  ::quern::TensorMeta ")
       << o.name << ";\n";
  for (const Attribute &a : op.attrs) {
    std::string type = attrCppType(op, a);
    if (a.optional)
      os << "  std::optional<" << type << "> " << a.name << ";\n";
    else if (a.type == "Quern_ScalarAttr") // made in a context: null stands for the default
      os << "  " << type << " " << a.name << ";\n";
    else
      os << "  " << type << " " << a.name
         << (a.defaultValue.empty() ? "{}" : " = " + a.defaultValue) << ";\n";
  }
  os << "};\n\n";
}

//===----------------------------------------------------------------------===//
// Expressions to C++
//===----------------------------------------------------------------------===//

/// The C++ condition of a choice.
std::string choice(const Expr &e) {
  const Expr &condition = e.args[0];
  return "operation." + getter(condition.args[0].text) + "()" +
         (condition.text == "eq" ? " == " : " != ") + quoted(condition.args[1].text);
}

class DerivativeEmitter {
public:
  DerivativeEmitter(const OpDef &op, raw_ostream &os) : op(op), os(os) {}

  void emit(unsigned index, const Operand &operand) {
    os << "  // " << operand.name << ": " << operand.text << "\n"
       << "  if (b.wants(" << index << ")) {\n";
    std::string value = statement(*operand.expr);
    os << "    b.set(" << index << ", " << value << ");\n  }\n";
  }

private:
  const OpDef &op;
  raw_ostream &os;
  StringSet<> lets;

  std::string statement(const Expr &e) {
    if (e.kind != Expr::Let)
      return term(e);
    std::string value = term(e.args[0]);
    os << "    ::quern::Term let_" << e.text << " = " << value << ";\n";
    lets.insert(e.text);
    return statement(e.args[1]);
  }

  std::string value(StringRef name) { return read(op, name); }

  // A tensor, or a number that takes its dtype from its partner.
  std::string term(const Expr &e) {
    switch (e.kind) {
    case Expr::Number:
      return "::quern::Term(" + e.text + ")";
    case Expr::Bool:
      return "::quern::Term(" + e.text + ")";
    case Expr::Member:
      for (auto [i, r] : enumerate(op.results))
        if (r.name == e.member)
          return "b.grad(" + std::to_string(i) + ")";
      return "";
    case Expr::Name:
      if (e.text == "grad")
        return "b.grad(0)";
      if (lets.contains(e.text))
        return "let_" + e.text;
      if (op.findAttr(e.text))
        return "::quern::Term(" + value(e.text) + ")";
      return "::quern::Term(" + value(e.text) + ")";
    case Expr::Call: {
      if (isChoice(e))
        return "(" + choice(e) + " ? " + term(e.args[1]) + " : " + term(e.args[2]) + ")";
      if (e.text == "count") {
        std::string args;
        for (const Expr &a : drop_begin(e.args))
          args += ", " + attribute(a);
        return "b.count(" + value(e.args[0].text) + args + ")";
      }
      std::string out = "b.call(" + quoted(e.text) + ", {";
      ListSeparator comma;
      for (const Expr &a : e.args)
        out += std::string(StringRef(comma)) + term(a);
      out += "}, {";
      ListSeparator comma2;
      for (const auto &[name, v] : e.keywords)
        out +=
            std::string(StringRef(comma2)) + "{" + quoted(name) + ", b.attr(" + attribute(v) + ")}";
      return out + "})";
    }
    case Expr::Word:
    case Expr::List:
    case Expr::Let:
      break;
    }
    PrintFatalError(op.def,
                    "op '" + op.mnemonic + "': a word, list or let stands where a tensor should");
  }

  // An attribute's value in C++.
  std::string attribute(const Expr &e) {
    switch (e.kind) {
    case Expr::Number:
      return StringRef(e.text).contains('.') ? e.text : "int64_t(" + e.text + ")";
    case Expr::Bool:
      return e.text;
    case Expr::Word:
      return "::llvm::StringRef(" + quoted(e.text) + ")";
    case Expr::Name:
      return value(e.text);
    case Expr::List: {
      std::string out = "::llvm::ArrayRef<int64_t>{";
      ListSeparator comma;
      for (const Expr &a : e.args)
        out += std::string(StringRef(comma)) + attribute(a);
      return out + "}";
    }
    case Expr::Call: {
      if (e.text == "shape")
        return "b.shape(" + value(e.args[0].text) + ")";
      if (e.text == "dtype")
        return "b.dtype(" + value(e.args[0].text) + ")";
      if (e.text == "neg")
        return "-(" + attribute(e.args[0]) + ")";
      std::string out = "::quern::derivative::" + e.text + "(";
      ListSeparator comma;
      for (const Expr &a : e.args)
        out += std::string(StringRef(comma)) + attribute(a);
      return out + ")";
    }
    default:
      PrintFatalError(op.def, "op '" + op.mnemonic + "': unexpected attribute value");
    }
  }
};

std::string scalarExpr(const OpDef &op, const Expr &e, StringSet<> &lets, raw_ostream &os) {
  switch (e.kind) {
  case Expr::Number:
    return "::quern::Scalar(" + e.text + ")";
  case Expr::Bool:
    return "::quern::Scalar(" + e.text + ")";
  case Expr::Name:
    if (lets.contains(e.text))
      return "let_" + e.text;
    for (auto [i, o] : enumerate(op.operands))
      if (o.name == e.text)
        return "in[" + std::to_string(i) + "]";
    return "::quern::Scalar(" + read(op, e.text) + ")";
  case Expr::Let: {
    std::string value = scalarExpr(op, e.args[0], lets, os);
    os << "  ::quern::Scalar let_" << e.text << " = " << value << ";\n";
    lets.insert(e.text);
    return scalarExpr(op, e.args[1], lets, os);
  }
  case Expr::Call: {
    if (isChoice(e))
      return "(" + choice(e) + " ? " + scalarExpr(op, e.args[1], lets, os) + " : " +
             scalarExpr(op, e.args[2], lets, os) + ")";
    // `and`, `or`, `xor`, `not` are C++ keywords.
    bool keyword = e.text == "and" || e.text == "or" || e.text == "xor" || e.text == "not";
    std::string out = "s." + e.text + (keyword ? "_(" : "(");
    ListSeparator comma;
    for (const Expr &a : e.args)
      out += std::string(StringRef(comma)) + scalarExpr(op, a, lets, os);
    return out + ")";
  }
  default:
    return "";
  }
}

//===----------------------------------------------------------------------===//
// Members and records
//===----------------------------------------------------------------------===//

void emitMeta(const OpDef &op, raw_ostream &os) {
  os << "static ::quern::MetaResult " << op.mnemonic
     << "Meta(::mlir::MLIRContext *ctx, const ::quern::MetaInputs &in, const ::quern::Facts "
        "*facts) "
        "{\n  "
     << argsName(op) << " args;\n";
  for (auto [i, o] : enumerate(op.operands)) {
    if (o.arity == Operand::Variadic)
      os << "  args." << o.name << ".assign(in.operands[" << i << "].begin(), in.operands[" << i
         << "].end());\n";
    else if (o.arity == Operand::Optional)
      os << "  if (!in.operands[" << i << "].empty())\n    args." << o.name << " = in.operands["
         << i << "][0];\n";
    else
      os << "  args." << o.name << " = in.operands[" << i << "][0];\n";
  }
  for (const Attribute &a : op.attrs)
    os << "  ::quern::detail::readAttr(in.attrs, " << quoted(a.name) << ", args." << a.name
       << ");\n";
  os << "  ::quern::MetaContext m(ctx, " << quoted(op.mnemonic) << ", facts);\n"
     << "  ::quern::meta::" << op.meta << "(args, m);\n  return m.take();\n}\n";
}

void emitDerivative(const OpDef &op, raw_ostream &os) {
  os << "static void " << op.mnemonic
     << "Derivative(::mlir::Operation *untyped, ::quern::DerivativeBuilder &b) {\n"
     << "  auto operation = ::llvm::cast<::quern::" << op.className << ">(untyped);\n"
     << "  (void)operation;\n";
  DerivativeEmitter emitter(op, os);
  for (auto [i, o] : enumerate(op.operands))
    if (o.kind == Operand::Expression)
      emitter.emit(i, o);
  if (!op.hook.empty())
    os << "  ::quern::derivative::" << op.hook << "(operation, b);\n";
  os << "}\n";
}

bool hasDefaults(const OpDef &op) {
  return any_of(op.attrs, [](const Attribute &a) { return !a.defaultValue.empty(); });
}

void emitDefaults(const OpDef &op, raw_ostream &os) {
  os << "static ::mlir::Attribute " << op.mnemonic << "Defaults(::mlir::OperationName name) {\n"
     << "  ::quern::" << op.className << "::Properties properties;\n"
     << "  ::quern::" << op.className << "::populateDefaultProperties(name, properties);\n"
     << "  return ::quern::" << op.className
     << "::getPropertiesAsAttr(name.getContext(), properties);\n}\n";
}

void emitFolder(const OpDef &op, raw_ostream &os) {
  os << "static ::mlir::Value " << op.mnemonic << "Fold(::mlir::Operation *op) {\n"
     << "  return ::quern::fold::" << op.folder << "(::llvm::cast<::quern::" << op.className
     << ">(op));\n}\n";
}

void emitScalar(const OpDef &op, raw_ostream &os) {
  os << "// " << op.scalarText << "\nstatic ::quern::Scalar " << op.mnemonic
     << "Scalar(::mlir::Operation *untyped, ::quern::ScalarBuilder &s, "
        "::llvm::ArrayRef<::quern::Scalar> in) {\n"
     << "  auto operation = ::llvm::cast<::quern::" << op.className << ">(untyped);\n"
     << "  (void)operation;\n";
  StringSet<> lets;
  std::string value = scalarExpr(op, *op.scalar, lets, os);
  os << "  return " << value << ";\n}\n";
}

void emitRecord(const OpDef &op, raw_ostream &os) {
  std::string p = op.mnemonic;
  auto list = [&](StringRef type, StringRef name, size_t size, auto each) {
    if (!size)
      return;
    os << "static const " << type << " " << p << name << "[] = {\n";
    for (size_t i = 0; i < size; ++i) {
      os << "    ";
      each(i);
      os << ",\n";
    }
    os << "};\n";
  };
  auto ref = [&](StringRef name, size_t size) { return size ? p + name.str() : std::string("{}"); };
  list("::quern::OperandRecord", "Operands", op.operands.size(), [&](size_t i) {
    const Operand &o = op.operands[i];
    static const char *arity[] = {"Required", "Optional", "Variadic"};
    static const char *kinds[] = {"Expression", "Custom", "NonDifferentiable"};
    os << "{" << quoted(o.name) << ", ::quern::Arity::" << arity[o.arity]
       << ", ::quern::DerivativeKind::" << kinds[o.kind] << ", "
       << quoted(o.kind == Operand::NonDifferentiable ? o.derivative->getValueAsString("Reason")
                                                      : "")
       << ", " << (o.mayOverwrite ? "true" : "false") << ", " << (o.saved ? "true" : "false")
       << "}";
  });
  list("::quern::AttrRecord", "Attrs", op.attrs.size(), [&](size_t i) {
    const Attribute &a = op.attrs[i];
    os << "{" << quoted(a.name) << ", " << quoted(a.type) << ", " << quoted(a.defaultValue) << ", "
       << (a.optional ? "true" : "false") << "}";
  });
  list("::quern::ResultRecord", "Results", op.results.size(), [&](size_t i) {
    os << "{" << quoted(op.results[i].name) << ", " << (op.results[i].saved ? "true" : "false")
       << "}";
  });
  list("::llvm::StringRef", "Constraints", op.constraints.size(),
       [&](size_t i) { os << quoted(op.constraints[i]); });
  list("::quern::IdentityRecord", "Identities", op.identities.size(), [&](size_t i) {
    const Identity &id = op.identities[i];
    os << "{" << id.same << ", " << id.other << ", " << id.number << "}";
  });
  list("::quern::SampleRecord", "Samples", op.samples.size(), [&](size_t i) {
    os << "{" << quoted(op.samples[i].call) << ", " << quoted(op.samples[i].message) << "}";
  });
  os << "static const ::quern::OpRecord " << p << "Record = {\n    \"quern." << op.mnemonic
     << "\", " << quoted(op.mnemonic) << ", " << quoted(op.family) << ",\n    "
     << quoted(op.def->getValueAsString("summary")) << ",\n    " << quoted(op.file) << ", "
     << op.line << ", ::quern::FusionClass::" << op.fusion << ",\n    "
     << ref("Operands", op.operands.size()) << ", " << ref("Attrs", op.attrs.size()) << ", "
     << ref("Results", op.results.size()) << ", " << ref("Constraints", op.constraints.size())
     << ",\n    " << quoted(op.notInPlace) << ", " << ref("Samples", op.samples.size()) << ",\n    "
     << quoted(op.scalarText) << ", " << quoted(op.lowering) << ",\n    "
     << ref("Identities", op.identities.size()) << ", "
     << (op.identityOnSameType ? "true" : "false") << ",\n    " << p << "Meta, "
     << (op.scalar ? p + "Scalar" : "nullptr") << ", " << p << "Derivative, "
     << (op.folder.empty() ? "nullptr" : p + "Fold") << ", "
     << (hasDefaults(op) ? p + "Defaults" : "nullptr") << "};\n";
}

void emitMembers(const OpDef &op, raw_ostream &os) {
  StringRef c = op.className;
  os << "const ::quern::OpRecord &" << c << "::getOpRecord() { return " << op.mnemonic
     << "Record; }\n"
     << "::mlir::ParseResult " << c
     << "::parse(::mlir::OpAsmParser &parser, ::mlir::OperationState &result) {\n"
     << "  return ::quern::detail::parseStructuredOp(getOpRecord(), parser, result);\n}\n"
     << "void " << c << "::print(::mlir::OpAsmPrinter &printer) {\n"
     << "  ::quern::detail::printStructuredOp(*this, printer);\n}\n";
  if (op.results.size() == 1)
    os << "::mlir::OpFoldResult " << c << "::fold(FoldAdaptor) {\n"
       << "  return ::quern::detail::foldStructuredOp(*this);\n}\n";
  else
    os << "::mlir::LogicalResult " << c
       << "::fold(FoldAdaptor, ::llvm::SmallVectorImpl<::mlir::OpFoldResult> &) {\n"
       << "  return ::mlir::failure();\n}\n";
  os << "::mlir::LogicalResult " << c
     << "::inferReturnTypes(::mlir::MLIRContext *ctx, std::optional<::mlir::Location> loc, "
        "::mlir::ValueRange operands, ::mlir::DictionaryAttr attrs, ::mlir::OpaqueProperties "
        "properties, ::mlir::RegionRange regions, ::llvm::SmallVectorImpl<::mlir::Type> &types) "
        "{\n"
     << "  Adaptor adaptor(operands, attrs, properties, regions);\n"
     << "  ::llvm::SmallVector<::mlir::ValueRange> groups;\n"
     << "  for (unsigned i = 0; i < " << op.operands.size() + 1 << "; ++i)\n"
     << "    groups.push_back(adaptor.getODSOperands(i));\n"
     << "  if (properties)\n"
     << "    attrs = ::llvm::cast<::mlir::DictionaryAttr>(getPropertiesAsAttr(ctx, "
        "*properties.as<Properties *>()));\n"
     << "  return ::quern::detail::inferStructuredOp(getOpRecord(), ctx, loc, groups, attrs, "
        "types);\n}\n"
     << "::mlir::Speculation::Speculatability " << c << "::getSpeculatability() {\n"
     << "  return ::quern::detail::getSpeculatability(*this);\n}\n";
}

} // namespace

void emitStructured(const Dialect &dialect, StringRef family, raw_ostream &os) {
  os << "// Generated by quern-tblgen from " << family << ".td.\n\n";
  os << "#ifdef GET_STRUCTURED_ARGS\n#undef GET_STRUCTURED_ARGS\nnamespace quern {\n";
  for (const auto &op : dialect.ops)
    if (op->family == family)
      emitArgs(*op, os);
  os << "} // namespace quern\n#endif\n\n#ifdef GET_STRUCTURED_DEFS\n#undef "
        "GET_STRUCTURED_DEFS\nnamespace quern {\n";
  for (const auto &op : dialect.ops) {
    if (op->family != family)
      continue;
    os << "\n// " << op->file << ":" << op->line << ": " << op->mnemonic << "\n";
    emitMeta(*op, os);
    if (op->scalar)
      emitScalar(*op, os);
    emitDerivative(*op, os);
    if (hasDefaults(*op))
      emitDefaults(*op, os);
    if (!op->folder.empty())
      emitFolder(*op, os);
    emitRecord(*op, os);
    emitMembers(*op, os);
  }
  os << "\nvoid QuernDialect::add" << family << "Ops() {\n  addOperations<\n#define GET_OP_LIST\n"
     << "#include \"quern/Dialect/Quern/IR/Ops/" << family << ".cpp.inc\"\n      >();\n"
     << "  static const OpRecord *const records[] = {\n";
  for (const auto &op : dialect.ops)
    if (op->family == family)
      os << "      &" << op->mnemonic << "Record,\n";
  os << "  };\n  registerOpRecords(records);\n}\n} // namespace quern\n#endif\n";
}

void emitLowerings(const Dialect &dialect, bool declarations, raw_ostream &os) {
  std::vector<std::string> seen;
  for (const auto &op : dialect.ops) {
    if (op->lowering.empty())
      continue;
    if (!declarations) {
      os << "{\"quern." << op->mnemonic << "\", ::quern::lowering::" << op->lowering << "},\n";
      continue;
    }
    if (is_contained(seen, op->lowering))
      continue;
    seen.push_back(op->lowering);
    os << "::mlir::FailureOr<::llvm::SmallVector<::mlir::Value>> " << op->lowering
       << "(::mlir::Operation *op, ::quern::LoweringBuilder &b); // " << op->file << ":" << op->line
       << "\n";
  }
}

} // namespace quern::tblgen
