//===- Onnx.cpp - quern-conformance onnx ----------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Program.h"
#include "Report.h"
#include "mlir/IR/MLIRContext.h"
#include "quern/Conformance/Conformance.h"
#include "quern/Import/ONNX/Importer.h"
#include "quern/Import/ONNX/Reader.h"
#include "quern/Import/ONNX/TestFolder.h"
#include "quern/Support/Error.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Regex.h"
#include <set>

using namespace llvm;

namespace quern::conformance {
namespace {

struct TestFolder {
  std::string path, id;
};

/// Folders with a model.onnx, at any depth. The id is the path below the folder that was given.
/// A folder in `seen` (a link leads to it) is left out.
void findFolders(StringRef folder, StringRef id, std::set<sys::fs::UniqueID> &seen,
                 std::vector<TestFolder> &found) {
  sys::fs::UniqueID unique;
  if (sys::fs::getUniqueID(folder, unique) || !seen.insert(unique).second)
    return;
  SmallString<256> model(folder);
  sys::path::append(model, "model.onnx");
  if (sys::fs::exists(model)) {
    found.push_back({folder.str(), id.str()});
    return;
  }
  std::error_code ec;
  for (sys::fs::directory_iterator it(folder, ec), end; it != end && !ec; it.increment(ec))
    if (sys::fs::is_directory(it->path())) {
      StringRef name = sys::path::filename(it->path());
      findFolders(it->path(), id.empty() ? name.str() : (id + "/" + name).str(), seen, found);
    }
}

/// What the table's row of a test is named after: its op, when it is of one.
std::string opOf(StringRef folder) {
  SmallString<256> path(folder);
  sys::path::append(path, "model.onnx");
  Expected<onnx::Model> model = onnx::readModel(path);
  if (!model) {
    consumeError(model.takeError());
    return "(not readable)";
  }
  StringSet<> ops;
  for (const onnx::Node &node : model->graph.nodes)
    if (node.op != "Constant" || !node.domain.empty())
      ops.insert(node.opName());
  return ops.size() == 1 ? ops.begin()->first().str() : "(several)";
}

/// Compiles for calls in this process; what it holds lives as long as the callable.
Expected<onnx::Callable> compile(const onnx::Model &model, Target target) {
  struct Compiled {
    mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
    mlir::OwningOpRef<mlir::ModuleOp> module;
    std::unique_ptr<Program> program;
  };
  auto compiled = std::make_shared<Compiled>();
  loadDialects(compiled->context);
  auto module = onnx::importModel(compiled->context, model);
  if (!module)
    return module.takeError();
  compiled->module = std::move(*module);
  Expected<std::unique_ptr<Program>> program = Program::compile(*compiled->module, target);
  if (!program)
    return program.takeError();
  compiled->program = std::move(*program);
  return [compiled](std::vector<HostTensor> inputs) {
    return compiled->program->call("main", inputs);
  };
}

TestResult runTest(StringRef folder, Target target) {
  Expected<onnx::TestOutcome> outcome =
      onnx::runTestFolder(folder, [&](const onnx::Model &model) { return compile(model, target); });
  TestResult result;
  if (!outcome) {
    quern_status status = takeError(outcome.takeError(), result.message);
    result.status = status == QUERN_UNSUPPORTED ? Status::Unsupported : Status::Failed;
    return result;
  }
  result.status = outcome->mismatch.empty() ? Status::Passed : Status::Failed;
  result.maxError = outcome->maxError;
  result.message = outcome->mismatch;
  return result;
}

} // namespace

Expected<bool> runOnnx(const RunOptions &options, const std::vector<std::string> &folders) {
  Regex filter(options.filter.empty() ? ".*" : options.filter);
  std::string wrong;
  if (!filter.isValid(wrong))
    return invalidInput("--filter: " + wrong);
  Expected<Waivers> waivers = Waivers::read(options.waiversFile);
  if (!waivers)
    return waivers.takeError();
  std::vector<TestFolder> tests;
  for (const std::string &folder : folders) {
    size_t before = tests.size();
    StringRef name = sys::path::filename(StringRef(folder).rtrim('/'));
    std::set<sys::fs::UniqueID> seen;
    findFolders(folder, "", seen, tests);
    if (tests.size() == before)
      return invalidInput(folder + ": no folder with a model.onnx");
    for (TestFolder &test : MutableArrayRef(tests).drop_front(before))
      if (test.id.empty())
        test.id = name.str();
  }
  llvm::erase_if(tests, [&](const TestFolder &test) { return !filter.match(test.id); });
  llvm::sort(tests, [](const TestFolder &a, const TestFolder &b) { return a.id < b.id; });

  const std::string mode = "value";
  std::vector<ReportedTest> reported;
  std::vector<std::vector<unsigned>> batches;
  for (auto [number, test] : enumerate(tests)) {
    reported.push_back({test.id, opOf(test.path), mode, {}});
    if (std::optional<StringRef> reason = waivers->find(mode, test.id)) {
      reported.back().result = {Status::Waived, 0, reason->str()};
      continue;
    }
    if (batches.empty() || batches.back().size() >= options.batch)
      batches.emplace_back();
    batches.back().push_back(number);
  }
  IsolationOptions isolation;
  isolation.workers = options.workers;
  isolation.timeout = options.timeout;
  isolation.verbose = options.verbose;
  runIsolated(
      std::move(batches), isolation,
      [&](ArrayRef<unsigned> batch, Report report) {
        for (unsigned test : batch)
          report(test, runTest(tests[test].path, options.target));
      },
      [&](unsigned test, TestResult result) { reported[test].result = std::move(result); });

  llvm::stable_sort(reported,
                    [](const ReportedTest &a, const ReportedTest &b) { return a.op < b.op; });
  return finishReport(reported, {mode}, options.jsonFile);
}

} // namespace quern::conformance
