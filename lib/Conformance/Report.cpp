//===- Report.cpp - Tables and JSON of test results -----------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Report.h"
#include "quern/Support/Error.h"
#include "quern/Support/Output.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cmath>

using namespace llvm;

namespace quern::conformance {

void Score::add(Status status) {
  ++all;
  attempted += status != Status::Unsupported && status != Status::Waived;
  passed += status == Status::Passed;
}

std::string Score::str() const {
  if (all == 0)
    return "-";
  return formatv("{0}/{1}/{2}", passed, attempted, all);
}

static void printTable(raw_ostream &os, ArrayRef<ReportedTest> tests, ArrayRef<std::string> modes) {
  MapVector<StringRef, StringMap<Score>> rows;
  StringMap<Score> total;
  size_t width = 5;
  for (const ReportedTest &test : tests) {
    rows[test.op][test.mode].add(test.result.status);
    total[test.mode].add(test.result.status);
    width = std::max(width, test.op.size());
  }
  auto printRow = [&](StringRef title, function_ref<std::string(StringRef)> cell) {
    os << left_justify(title, width);
    for (const std::string &mode : modes)
      os << right_justify(cell(mode), 16);
    os << '\n';
  };
  printRow("", [](StringRef mode) { return mode.str(); });
  for (auto &[op, scores] : rows)
    printRow(op, [&scores = scores](StringRef mode) { return scores.lookup(mode).str(); });
  printRow("total", [&](StringRef mode) { return total.lookup(mode).str(); });
  printRow("", [&](StringRef mode) {
    Score score = total.lookup(mode);
    return score.all ? formatv("{0:P}", double(score.passed) / score.all).str() : "";
  });
  os << "(passed / attempted / all)\n";
}

static void printMisses(raw_ostream &os, ArrayRef<ReportedTest> tests) {
  for (const ReportedTest &test : tests)
    if (test.result.status != Status::Passed)
      os << name(test.result.status) << ' ' << test.mode << ' ' << test.id << ": "
         << test.result.message << '\n';
}

static Error writeJson(StringRef path, ArrayRef<ReportedTest> tests) {
  Score total;
  for (const ReportedTest &test : tests)
    total.add(test.result.status);
  return writeOutput(path, [&](raw_ostream &os) {
    json::OStream json(os, 1);
    json.object([&] {
      json.attribute("total", total.all);
      json.attribute("attempted", total.attempted);
      json.attribute("passed", total.passed);
      json.attributeArray("tests", [&] {
        for (const ReportedTest &test : tests) {
          json::Value error = nullptr;
          if (std::isfinite(test.result.maxError))
            error = test.result.maxError;
          json.value(json::Object{{"id", test.id},
                                  {"op", test.op},
                                  {"mode", test.mode},
                                  {"status", name(test.result.status)},
                                  {"max_error", error},
                                  {"message", json::fixUTF8(test.result.message)}});
        }
      });
    });
    os << '\n';
  });
}

Expected<bool> finishReport(ArrayRef<ReportedTest> tests, ArrayRef<std::string> modes,
                            StringRef jsonFile) {
  printMisses(outs(), tests);
  printTable(outs(), tests, modes);
  if (!jsonFile.empty())
    if (Error error = writeJson(jsonFile, tests))
      return std::move(error);
  return all_of(tests, [](const ReportedTest &test) {
    return test.result.status == Status::Passed || test.result.status == Status::Waived;
  });
}

Expected<Waivers> Waivers::read(StringRef path) {
  if (path.empty())
    return Waivers();
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer = MemoryBuffer::getFile(path);
  if (!buffer)
    return invalidInput(path + ": " + buffer.getError().message());
  Waivers waivers;
  SmallVector<StringRef> lines;
  (*buffer)->getBuffer().split(lines, '\n');
  for (auto [i, line] : enumerate(lines)) {
    StringRef text = line.split('#').first.trim();
    if (text.empty())
      continue;
    auto [mode, rest] = text.split(' ');
    auto [id, reason] = rest.trim().split(' ');
    if (reason.trim().empty())
      return invalidInput(path + ":" + Twine(i + 1) + ": expected '<mode> <id> <reason>'");
    waivers.reasons[(mode + " " + id).str()] = reason.trim().str();
  }
  return waivers;
}

std::optional<StringRef> Waivers::find(StringRef mode, StringRef id) const {
  auto it = reasons.find((mode + " " + id).str());
  if (it == reasons.end())
    return std::nullopt;
  return StringRef(it->second);
}

} // namespace quern::conformance
