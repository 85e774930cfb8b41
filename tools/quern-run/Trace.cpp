//===- Trace.cpp - Times of launches --------------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Trace.h"

#include "quern/Support/Error.h"
#include "quern/Support/Output.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"

using namespace llvm;

namespace quern {

Trace::Trace(Runner &runner) : runner(runner) {
  runner.runtime().setProfiler(
      runner.context(),
      [](void *self, const quern_kernel *kernel, const int64_t *dims, int64_t begin, int64_t end) {
        static_cast<Trace *>(self)->events.push_back(
            {kernel->name, {dims, dims + kernel->num_dims}, begin, end});
      },
      this);
}

Trace::~Trace() { runner.runtime().setProfiler(runner.context(), nullptr, nullptr); }

Error Trace::write(StringRef path) const {
  return writeOutput(path, [&](raw_ostream &os) {
    json::OStream json(os);
    json.array([&] {
      for (const Event &e : events)
        json.object([&] {
          json.attribute("name", e.kernel);
          json.attribute("ph", "X");
          json.attribute("pid", 0);
          json.attribute("tid", 0);
          json.attribute("ts", double(e.begin - events.front().begin) / 1000);
          json.attribute("dur", double(e.end - e.begin) / 1000);
          json.attributeObject("args", [&] { json.attribute("dims", json::Array(e.dims)); });
        });
    });
  });
}

void Trace::print(raw_ostream &os) const {
  MapVector<StringRef, std::pair<int64_t, int64_t>> byKernel;
  int64_t total = 0;
  for (const Event &e : events) {
    auto &[time, count] = byKernel[e.kernel];
    time += e.end - e.begin;
    total += e.end - e.begin;
    ++count;
  }
  auto rows = byKernel.takeVector();
  llvm::sort(rows, [](auto &a, auto &b) { return a.second.first > b.second.first; });
  os << "        ms     %  launches  kernel\n";
  for (auto &[kernel, row] : rows)
    os << format("%10.3f %5.1f %9lld  ", double(row.first) / 1e6,
                 100.0 * double(row.first) / double(std::max<int64_t>(total, 1)),
                 static_cast<long long>(row.second))
       << kernel << "\n";
}

} // namespace quern
