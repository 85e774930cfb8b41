//===- Isolation.cpp - Tests in processes of their own --------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Isolation.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <deque>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace llvm;

namespace quern::conformance {

StringRef name(Status status) {
  static constexpr StringRef names[] = {"passed",  "failed",  "unsupported",
                                        "crashed", "timeout", "waived"};
  return names[unsigned(status)];
}

namespace {
using Clock = std::chrono::steady_clock;

/// A child at work on one batch; results come as lines of JSON.
struct Worker {
  pid_t pid;
  int pipe;
  std::vector<unsigned> left; ///< tests without a result so far
  unsigned batchSize;
  std::string buffer;
  Clock::time_point deadline;
};

class Pool {
public:
  Pool(std::vector<std::vector<unsigned>> batches, const IsolationOptions &options, RunBatch run,
       Report report)
      : queue(std::make_move_iterator(batches.begin()), std::make_move_iterator(batches.end())),
        options(options), run(run), report(report) {}

  void loop() {
    while (!queue.empty() || !workers.empty()) {
      while (!queue.empty() && workers.size() < options.workers) {
        start(std::move(queue.front()));
        queue.pop_front();
      }
      wait();
    }
  }

private:
  void start(std::vector<unsigned> batch);
  void wait();
  /// False at the end of the child's output.
  bool read(Worker &worker);
  void takeLine(Worker &worker, StringRef line);
  void finish(Worker &worker, bool timedOut);

  std::deque<std::vector<unsigned>> queue;
  const IsolationOptions &options;
  RunBatch run;
  Report report;
  std::vector<Worker> workers;
};
} // namespace

static void writeAll(int fd, StringRef text) {
  while (!text.empty()) {
    ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      _exit(0); // nobody listens any more
    text = text.drop_front(written);
  }
}

void Pool::start(std::vector<unsigned> batch) {
  if (batch.empty())
    return;
  int fds[2];
  if (pipe(fds) != 0)
    report_fatal_error(Twine("pipe: ") + std::strerror(errno));
  outs().flush();
  errs().flush();
  pid_t pid = fork();
  if (pid < 0)
    report_fatal_error(Twine("fork: ") + std::strerror(errno));
  if (pid == 0) {
    close(fds[0]);
    if (!options.verbose) {
      int null = open("/dev/null", O_WRONLY);
      dup2(null, STDERR_FILENO);
      close(null);
    }
    // A crash should end the child, not print a trace through inherited handlers.
    for (int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT})
      signal(number, SIG_DFL);
    run(batch, [&](unsigned test, TestResult result) {
      std::string line;
      raw_string_ostream os(line);
      json::Value error = nullptr; // JSON has no infinity
      if (std::isfinite(result.maxError))
        error = result.maxError;
      os << json::Value(json::Object{{"test", int64_t(test)},
                                     {"status", int64_t(result.status)},
                                     {"max_error", error},
                                     {"message", json::fixUTF8(result.message)}})
         << '\n';
      writeAll(fds[1], line);
    });
    _exit(0);
  }
  close(fds[1]);
  unsigned size = batch.size();
  workers.push_back({pid,
                     fds[0],
                     std::move(batch),
                     size,
                     {},
                     Clock::now() + std::chrono::seconds(options.timeout)});
}

void Pool::wait() {
  std::vector<pollfd> polls;
  Clock::time_point first = Clock::time_point::max();
  for (const Worker &worker : workers) {
    polls.push_back({worker.pipe, POLLIN, 0});
    first = std::min(first, worker.deadline);
  }
  auto rest = std::chrono::duration_cast<std::chrono::milliseconds>(first - Clock::now()).count();
  poll(polls.data(), polls.size(), int(std::max<int64_t>(rest + 1, 0)));
  Clock::time_point now = Clock::now();
  for (int i = int(workers.size()) - 1; i >= 0; --i) {
    bool ended = polls[i].revents != 0 && !read(workers[i]);
    bool timedOut = !ended && now >= workers[i].deadline;
    if (!ended && !timedOut)
      continue;
    Worker worker = std::move(workers[i]);
    workers.erase(workers.begin() + i);
    finish(worker, timedOut);
  }
}

bool Pool::read(Worker &worker) {
  char bytes[65536];
  ssize_t count = ::read(worker.pipe, bytes, sizeof(bytes));
  if (count < 0)
    return errno == EINTR || errno == EAGAIN;
  worker.buffer.append(bytes, count);
  worker.deadline = Clock::now() + std::chrono::seconds(options.timeout);
  StringRef rest = worker.buffer;
  for (size_t end; (end = rest.find('\n')) != StringRef::npos; rest = rest.drop_front(end + 1))
    takeLine(worker, rest.take_front(end));
  worker.buffer = rest.str();
  return count > 0;
}

void Pool::takeLine(Worker &worker, StringRef line) {
  Expected<json::Value> value = json::parse(line);
  const json::Object *object = value ? value->getAsObject() : nullptr;
  if (!value)
    consumeError(value.takeError());
  if (!object)
    return;
  unsigned test = unsigned(object->getInteger("test").value_or(-1));
  auto it = find(worker.left, test);
  if (it == worker.left.end())
    return;
  worker.left.erase(it);
  TestResult result;
  result.status = Status(object->getInteger("status").value_or(int64_t(Status::Failed)));
  result.maxError = object->getNumber("max_error").value_or(HUGE_VAL);
  result.message = object->getString("message").value_or("").str();
  report(test, std::move(result));
}

void Pool::finish(Worker &worker, bool timedOut) {
  if (timedOut)
    kill(worker.pid, SIGKILL);
  close(worker.pipe);
  int status = 0;
  while (waitpid(worker.pid, &status, 0) < 0 && errno == EINTR)
    ;
  if (worker.left.empty())
    return;
  if (worker.batchSize > 1) {
    // Tests before the culprit have their results. A batch that ended on its own (it did not
    // compile) is halved; after a crash or a hang each test gets a process.
    bool ended = !timedOut && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    size_t step = ended ? (worker.left.size() + 1) / 2 : 1;
    for (size_t i = 0; i < worker.left.size(); i += step)
      queue.emplace_front(worker.left.begin() + i,
                          worker.left.begin() + std::min(i + step, worker.left.size()));
    return;
  }
  TestResult result;
  result.maxError = HUGE_VAL;
  if (timedOut) {
    result.status = Status::Timeout;
    result.message = "killed after " + std::to_string(options.timeout) + " s";
  } else if (WIFSIGNALED(status)) {
    result.status = Status::Crashed;
    result.message = std::string("signal ") + strsignal(WTERMSIG(status));
  } else if (WEXITSTATUS(status) != 0) {
    result.status = Status::Crashed;
    result.message = "exit code " + std::to_string(WEXITSTATUS(status));
  } else {
    result.message = "no result";
  }
  report(worker.left.front(), std::move(result));
}

void runIsolated(std::vector<std::vector<unsigned>> batches, const IsolationOptions &options,
                 RunBatch run, Report report) {
  Pool(std::move(batches), options, run, report).loop();
}

} // namespace quern::conformance
