//===- Expression.cpp - The expression language of op records -------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Expression.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"

using namespace llvm;

namespace quern::tblgen {
namespace {

class Parser {
public:
  Parser(StringRef text, std::string &error) : text(text), rest(text), error(error) {}

  std::unique_ptr<Expr> run() {
    Expr result = parseLets();
    skip();
    if (!failed && !rest.empty())
      fail("unexpected '" + rest.take_front(1) + "'");
    return failed ? nullptr : std::make_unique<Expr>(std::move(result));
  }

private:
  StringRef text, rest;
  std::string &error;
  bool failed = false;
  unsigned depth = 0;

  void skip() { rest = rest.ltrim(" \t\n\r"); }
  void fail(const Twine &message) {
    if (!failed)
      error = (message + " at column " + Twine(text.size() - rest.size() + 1)).str();
    failed = true;
    rest = "";
  }
  bool eat(StringRef token) {
    skip();
    if (!rest.consume_front(token))
      return false;
    return true;
  }
  void expect(StringRef token) {
    if (!eat(token))
      fail("expected '" + token + "'");
  }
  StringRef identifier() {
    skip();
    if (rest.empty() || !(isAlpha(rest.front()) || rest.front() == '_'))
      return "";
    StringRef name = rest.take_while([](char c) { return isAlnum(c) || c == '_'; });
    rest = rest.drop_front(name.size());
    return name;
  }

  static Expr call(StringRef callee, std::vector<Expr> args) {
    return Expr{Expr::Call, callee.str(), "", std::move(args), {}};
  }

  Expr parseLets() {
    skip();
    StringRef before = rest;
    if (identifier() == "let") {
      Expr let{Expr::Let, identifier().str(), "", {}, {}};
      expect("=");
      let.args.push_back(parseExpr());
      expect(";");
      if (failed)
        return let;
      let.args.push_back(parseLets());
      return let;
    }
    rest = before;
    return parseExpr();
  }

  Expr parseExpr() {
    if (++depth > 64) {
      fail("expression is nested too deeply");
      return {};
    }
    Expr left = parseSum();
    static const std::pair<const char *, const char *> comparisons[] = {
        {"==", "eq"}, {"!=", "ne"}, {"<=", "le"}, {">=", "ge"}, {"<", "lt"}, {">", "gt"}};
    for (auto [token, name] : comparisons)
      if (eat(token)) {
        left = call(name, {left, parseSum()});
        break;
      }
    --depth;
    return left;
  }
  Expr parseSum() {
    Expr left = parseProduct();
    for (;;) {
      if (eat("+"))
        left = call("add", {left, parseProduct()});
      else if (eat("-"))
        left = call("sub", {left, parseProduct()});
      else
        return left;
    }
  }
  Expr parseProduct() {
    Expr left = parseUnary();
    for (;;) {
      if (eat("*"))
        left = call("mul", {left, parseUnary()});
      else if (eat("/"))
        left = call("div", {left, parseUnary()});
      else
        return left;
    }
  }
  Expr parseUnary() {
    if (eat("-")) {
      Expr operand = parseUnary();
      if (operand.kind == Expr::Number) {
        operand.text = "-" + operand.text;
        return operand;
      }
      return call("neg", {operand});
    }
    return parsePrimary();
  }
  Expr parsePrimary() {
    skip();
    if (rest.empty()) {
      fail("expected a value");
      return {};
    }
    if (eat("(")) {
      Expr inner = parseExpr();
      expect(")");
      return inner;
    }
    if (eat("[")) {
      Expr list{Expr::List, "", "", {}, {}};
      if (!eat("]")) {
        do
          list.args.push_back(parseExpr());
        while (eat(","));
        expect("]");
      }
      return list;
    }
    if (eat("'")) {
      size_t end = rest.find('\'');
      if (end == StringRef::npos) {
        fail("a word without its closing quote");
        return {};
      }
      Expr word{Expr::Word, rest.take_front(end).str(), "", {}, {}};
      rest = rest.drop_front(end + 1);
      return word;
    }
    if (isDigit(rest.front()) || rest.front() == '.') {
      size_t n = 0;
      while (n < rest.size() && (isDigit(rest[n]) || rest[n] == '.' || rest[n] == 'e' ||
                                 ((rest[n] == '-' || rest[n] == '+') && n && rest[n - 1] == 'e')))
        ++n;
      Expr number{Expr::Number, rest.take_front(n).str(), "", {}, {}};
      rest = rest.drop_front(n);
      return number;
    }
    StringRef name = identifier();
    if (name.empty()) {
      fail("expected a value");
      return {};
    }
    if (name == "true" || name == "false")
      return Expr{Expr::Bool, name.str(), "", {}, {}};
    if (eat(".")) {
      StringRef member = identifier();
      if (member.empty())
        fail("expected a name after '.'");
      return Expr{Expr::Member, name.str(), member.str(), {}, {}};
    }
    if (!eat("("))
      return Expr{Expr::Name, name.str(), "", {}, {}};
    Expr result{Expr::Call, name.str(), "", {}, {}};
    if (eat(")"))
      return result;
    do {
      skip();
      StringRef before = rest;
      StringRef keyword = identifier();
      skip();
      if (!keyword.empty() && rest.starts_with("=") && !rest.starts_with("==")) {
        expect("=");
        result.keywords.push_back({keyword.str(), parseExpr()});
        continue;
      }
      rest = before;
      if (!result.keywords.empty())
        fail("expected a keyword argument");
      result.args.push_back(parseExpr());
    } while (eat(","));
    expect(")");
    return result;
  }
};

} // namespace

bool isChoice(const Expr &e) {
  if (e.kind != Expr::Call || (e.text != "select" && e.text != "where") || e.args.size() != 3)
    return false;
  const Expr &condition = e.args[0];
  return condition.kind == Expr::Call && (condition.text == "eq" || condition.text == "ne") &&
         condition.args[0].kind == Expr::Name && condition.args[1].kind == Expr::Word;
}

std::unique_ptr<Expr> parseExpression(StringRef text, std::string &error) {
  return Parser(text, error).run();
}

} // namespace quern::tblgen
