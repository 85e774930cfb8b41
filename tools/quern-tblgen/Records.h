//===- Records.h - Op records, read and checked -----------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_TBLGEN_RECORDS_H
#define QUERN_TBLGEN_RECORDS_H

#include "Expression.h"
#include "mlir/TableGen/Operator.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/TableGen/Record.h"
#include <map>
#include <optional>

namespace quern::tblgen {

/// One operand of a record, without `into`.
struct Operand {
  std::string name;
  enum Arity { Required, Optional, Variadic } arity;
  const llvm::Record *derivative = nullptr;
  enum DerivativeKind { Expression, Custom, NonDifferentiable } kind = NonDifferentiable;
  std::unique_ptr<Expr> expr;
  std::string text; ///< the expression, on one line
  bool mayOverwrite = false;
  bool saved = false; ///< its value is read by some derivative
};

struct Attribute {
  std::string name;
  std::string type; ///< ODS def: `I64Attr`
  std::string defaultValue;
  bool optional = false;
};

struct Result {
  std::string name;
  bool saved = false;
};

/// The result is operand `same` where operand `other` is `number` everywhere.
struct Identity {
  unsigned same, other;
  std::string number; ///< a C++ double
};

/// Everything a record says, checked: a mistake ends the program with the record's file and line.
struct OpDef {
  const llvm::Record *def;
  mlir::tblgen::Operator op;
  std::string mnemonic, className, family, file;
  unsigned line;
  std::vector<Operand> operands;
  std::vector<Attribute> attrs;
  std::vector<Result> results;
  std::string fusion;
  std::string meta;
  std::string notInPlace;
  std::vector<std::string> constraints;
  std::unique_ptr<Expr> scalar;
  std::string scalarText, lowering;
  struct Sample {
    std::string call, message;
    bool openToo = false; ///< it works with open sizes, too
  };
  std::vector<Sample> samples;
  std::string hook; ///< of Custom derivatives
  std::vector<Identity> identities;
  bool identityOnSameType = false;
  std::string folder;

  explicit OpDef(const llvm::Record *def) : def(def), op(*def) {}
  const Operand *findOperand(llvm::StringRef name) const;
  const Attribute *findAttr(llvm::StringRef name) const;
  const Result *findResult(llvm::StringRef name) const;
};

/// All ops of the dialect, by mnemonic and in order of definition.
struct Dialect {
  std::vector<std::unique_ptr<OpDef>> ops;
  llvm::StringMap<OpDef *> byName;
};

Dialect readDialect(const llvm::RecordKeeper &records);

/// The functions that scalar bodies may call: name and number of arguments.
std::optional<unsigned> scalarFunctionArity(llvm::StringRef name);

// The backends.
void emitStructured(const Dialect &dialect, llvm::StringRef family, llvm::raw_ostream &os);
void emitLowerings(const Dialect &dialect, bool declarations, llvm::raw_ostream &os);
void emitPages(const Dialect &dialect, llvm::raw_ostream &os);
void emitTests(const Dialect &dialect, llvm::StringRef family, llvm::StringRef kind,
               llvm::raw_ostream &os);

} // namespace quern::tblgen

#endif // QUERN_TBLGEN_RECORDS_H
