//===- main.cpp - quern-tblgen: from op records to code and pages ---------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "llvm/TableGen/Main.h"
#include "Records.h"
#include "quern/Support/Tool.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"

using namespace llvm;

namespace {
enum Action { Check, Structured, LoweringDecls, LoweringTable, Pages, Tests };
cl::opt<Action> action(
    cl::desc("what to generate:"),
    cl::values(clEnumValN(Check, "check", "nothing: only check the records"),
               clEnumValN(Structured, "gen-structured", "members and records of one family's ops"),
               clEnumValN(LoweringDecls, "gen-lowering-decls", "declarations of the lowerings"),
               clEnumValN(LoweringTable, "gen-lowering-table", "op name to lowering function"),
               clEnumValN(Pages, "gen-op-pages", "the op reference in Markdown"),
               clEnumValN(Tests, "gen-tests", "tests from the samples")),
    cl::init(Check));
cl::opt<std::string> family("family", cl::desc("only this family (a file's stem)"));
cl::opt<std::string> testKind("tests", cl::desc("which tests: samples, lowering, invalid"));

bool run(raw_ostream &os, const RecordKeeper &records) {
  quern::tblgen::Dialect dialect = quern::tblgen::readDialect(records);
  switch (action) {
  case Check:
    break;
  case Structured:
    quern::tblgen::emitStructured(dialect, family, os);
    break;
  case LoweringDecls:
  case LoweringTable:
    quern::tblgen::emitLowerings(dialect, action == LoweringDecls, os);
    break;
  case Pages:
    quern::tblgen::emitPages(dialect, os);
    break;
  case Tests:
    quern::tblgen::emitTests(dialect, family, testKind, os);
    break;
  }
  return false;
}
} // namespace

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  quern::startTool();
  cl::ParseCommandLineOptions(argc, argv, "Quern's TableGen backends\n");
  return TableGenMain(argv[0], &run);
}
