//===- Aten.cpp - quern-conformance aten ----------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "AtenTest.h"
#include "Report.h"
#include "quern/Conformance/Conformance.h"
#include "quern/Support/Error.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Regex.h"

using namespace mlir;
using llvm::StringRef;

namespace quern::conformance {

/// The words of a file, one a line, without comments.
static llvm::Expected<llvm::StringSet<>> readLines(StringRef path) {
  llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    return invalidInput(path + ": " + buffer.getError().message());
  llvm::StringSet<> lines;
  SmallVector<StringRef> parts;
  (*buffer)->getBuffer().split(parts, '\n');
  for (StringRef line : parts)
    if (StringRef text = line.split('#').first.trim(); !text.empty())
      lines.insert(text);
  return lines;
}

namespace {
struct TestEntry {
  unsigned index; ///< of the case
  Mode mode;
};

class AtenRun {
public:
  explicit AtenRun(const AtenOptions &options) : options(options) {}
  llvm::Error collect(const std::vector<std::string> &files);
  llvm::Expected<bool> run();

private:
  void runBatch(llvm::ArrayRef<unsigned> batch, Report report);

  const AtenOptions &options;
  std::vector<OpCase> cases;
  std::vector<TestEntry> tests;
  std::vector<std::string> modes;
};
} // namespace

llvm::Error AtenRun::collect(const std::vector<std::string> &files) {
  llvm::Regex filter(options.filter.empty() ? ".*" : options.filter);
  std::string wrong;
  if (!filter.isValid(wrong))
    return invalidInput("--filter: " + wrong);
  llvm::StringSet<> overloads;
  if (!options.overloadsFile.empty()) {
    llvm::Expected<llvm::StringSet<>> read = readLines(options.overloadsFile);
    if (!read)
      return read.takeError();
    overloads = std::move(*read);
  }
  for (unsigned i = 0; i < numModes; ++i)
    if (options.modes.empty() || llvm::is_contained(options.modes, name(Mode(i))))
      modes.push_back(name(Mode(i)).str());
  for (const std::string &mode : options.modes)
    if (!llvm::is_contained(modes, mode))
      return invalidInput("--mode: no mode '" + mode + "'");

  for (const std::string &file : files) {
    llvm::Expected<std::vector<OpCase>> read = readCases(file);
    if (!read)
      return read.takeError();
    for (OpCase &test : *read) {
      if (!filter.match(test.id) || (!overloads.empty() && !overloads.contains(test.overload)))
        continue;
      cases.push_back(std::move(test));
    }
  }
  for (unsigned m = 0; m < numModes; ++m)
    for (unsigned i = 0; i < cases.size(); ++i)
      if (llvm::is_contained(modes, name(Mode(m))) && applies(cases[i], Mode(m)))
        tests.push_back({i, Mode(m)});
  return llvm::Error::success();
}

/// In a child: the batch is one module.
void AtenRun::runBatch(llvm::ArrayRef<unsigned> batch, Report report) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  loadDialects(context);
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  std::vector<std::pair<unsigned, AtenTest>> built;
  for (unsigned number : batch) {
    const TestEntry &entry = tests[number];
    AtenTest test(cases[entry.index], entry.mode, number);
    if (std::optional<TestResult> result = test.build(*module))
      report(number, std::move(*result));
    else
      built.emplace_back(number, std::move(test));
  }
  if (built.empty())
    return;
  llvm::Expected<std::unique_ptr<Program>> program = Program::compile(*module, options.target);
  if (!program) {
    TestResult result = errorResult(program.takeError());
    // With others in the module it may be their fault: each is tried alone.
    if (batch.size() == 1)
      report(built.front().first, std::move(result));
    return;
  }
  for (auto &[number, test] : built)
    report(number, test.run(**program));
}

llvm::Expected<bool> AtenRun::run() {
  llvm::Expected<Waivers> waivers = Waivers::read(options.waiversFile);
  if (!waivers)
    return waivers.takeError();
  std::vector<ReportedTest> reported;
  std::vector<std::vector<unsigned>> batches;
  for (auto [number, entry] : llvm::enumerate(tests)) {
    const OpCase &test = cases[entry.index];
    reported.push_back({test.id, test.overload, name(entry.mode).str(), {}});
    if (std::optional<StringRef> reason = waivers->find(name(entry.mode), test.id)) {
      reported.back().result = {Status::Waived, 0, reason->str()};
      continue;
    }
    // Modes do not mix: one that does not compile would take the others' time.
    bool fits = !batches.empty() && batches.back().size() < options.batch &&
                tests[batches.back().front()].mode == entry.mode;
    if (!fits)
      batches.emplace_back();
    batches.back().push_back(number);
  }
  IsolationOptions isolation;
  isolation.workers = options.workers;
  isolation.timeout = options.timeout;
  isolation.verbose = options.verbose;
  runIsolated(
      std::move(batches), isolation,
      [&](llvm::ArrayRef<unsigned> batch, Report report) { runBatch(batch, report); },
      [&](unsigned test, TestResult result) { reported[test].result = std::move(result); });

  return finishReport(reported, modes, options.jsonFile);
}

llvm::Expected<bool> runAten(const AtenOptions &options, const std::vector<std::string> &files) {
  AtenRun run(options);
  if (llvm::Error error = run.collect(files))
    return std::move(error);
  return run.run();
}

} // namespace quern::conformance
