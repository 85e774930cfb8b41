//===- Expression.h - The expression language of op records -----*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Expressions stand in records as strings: scalar bodies and derivatives.
///
///     text   := ('let' name '=' expr ';')* expr
///     expr   := sum (('=='|'!='|'<'|'<='|'>'|'>=') sum)?
///     sum    := product (('+'|'-') product)*
///     product:= unary (('*'|'/') unary)*
///     unary  := '-' unary | primary
///     primary:= number | 'true' | 'false' | word | '[' args ']' | '(' expr ')'
///             | name ('.' name)? | name '(' args ')'
///     args   := (expr | name '=' expr) (',' …)*
///     word   := a text in single quotes
///
/// A word is only compared with an attribute, as the condition of `select` or `where`: the choice
/// is made when code is built (`select(approximate == 'tanh', …, …)`).
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_TBLGEN_EXPRESSION_H
#define QUERN_TBLGEN_EXPRESSION_H

#include "llvm/ADT/StringRef.h"
#include <memory>
#include <string>
#include <vector>

namespace quern::tblgen {

struct Expr {
  enum Kind { Number, Bool, Word, List, Name, Member, Call, Let } kind;
  std::string text;       ///< number's digits, word, name, callee, let's name
  std::string member;     ///< of `grad.mean`
  std::vector<Expr> args; ///< positional arguments, list elements; Let: value, rest
  std::vector<std::pair<std::string, Expr>> keywords;
};

/// Whether it is a call of `select` or `where` on an attribute compared with a word.
bool isChoice(const Expr &e);

/// Parses; on a mistake `error` says what and where, and the result is null.
std::unique_ptr<Expr> parseExpression(llvm::StringRef text, std::string &error);

} // namespace quern::tblgen

#endif // QUERN_TBLGEN_EXPRESSION_H
