//===- Grid.cpp - Runs the blocks of a launch -----------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Grid.h"
#include "Memory.h"
#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <numeric>
#include <vector>

// Saves the callee-saved registers, exchanges the stack pointer, restores.
// swapcontext would make a system call each time: 250 ns against 7.
extern "C" void quern_emulator_switch(void **save, void *load);
#if defined(__x86_64__)
asm(R"(.text
.hidden quern_emulator_switch
.globl quern_emulator_switch
quern_emulator_switch:
  push %rbp
  push %rbx
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp, (%rdi)
  mov %rsi, %rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbx
  pop %rbp
  ret
)");
static constexpr int returnWord = 6, frameWords = 8;
#elif defined(__aarch64__)
asm(R"(.text
.hidden quern_emulator_switch
.globl quern_emulator_switch
quern_emulator_switch:
  sub sp, sp, #160
  stp x19, x20, [sp]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
)");
static constexpr int returnWord = 11, frameWords = 20;
#else
#error "one more switch to write: save the callee-saved registers, exchange the stack pointer"
#endif

namespace quern::emulator {
namespace {

constexpr unsigned maxThreads = 1024;
/// Reads of a launch that are judged. Blocks run in random order, so a launch that has more has
/// shown by then what its threads do; all writes are judged.
constexpr uint64_t maxReads = 1 << 24;
// Not a multiple of the page size, so that stacks fall into different cache sets.
constexpr size_t stackBytes = (64 << 10) + 320;

struct Fibre {
  enum State { Ready, AtBarrier, AtWarp, Done };
  void *sp = nullptr;
  char *stack = nullptr;
  unsigned thread = 0;
  State state = Ready;
  Op op{};
  int line = 0;
  unsigned mask = 0;
  Operand *operand = nullptr;
};

/// The launch that is running.
struct Grid {
  Memory *memory = nullptr;
  Launch launch{};
  unsigned threads = 0, doneThreads = 0, barrierThreads = 0;
  int barrierLine = 0, barrierAnd = 0, barrierOr = 0, barrierResult[2] = {};
  uint32_t interval = 1;
  uint16_t warpStep[maxThreads / 32] = {};
  Fibre fibres[maxThreads];
  Fibre *current = nullptr;
  std::vector<Fibre *> ready;
  std::vector<char *> freeStacks;
  char *stacks = reserve(stackBytes * maxThreads);
  void *schedulerStack = nullptr;
  uint64_t random = 1, readsLeft = 0;
  std::string error;

  unsigned randomBelow(unsigned bound) {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    return static_cast<unsigned>((random >> 32) * bound >> 32);
  }
  bool onStack(const void *p) const {
    return static_cast<size_t>(static_cast<const char *>(p) - stacks) < stackBytes * maxThreads;
  }
  void stop() { quern_emulator_switch(&current->sp, schedulerStack); }
  void wake(Fibre &fibre) { fibre.state = Fibre::Ready, ready.push_back(&fibre); }
  [[gnu::format(printf, 3, 4)]] void fail(const std::string &where, const char *format, ...);
  void resume(Fibre &fibre);
  void runBlock();
  bool shuffleLanes(Op op, unsigned mask, Operand **lanes);
};
Grid grid;

/// " at text.cu:12" for an address in a unit, when it was compiled with lines.
std::string lineOf(void *pc) {
  Dl_info info;
  if (!pc || !dladdr(pc, &info) || !info.dli_fname)
    return "";
  for (const char *tool : {"addr2line", "llvm-addr2line-22", "llvm-addr2line"}) {
    char text[1024];
    std::snprintf(text, sizeof text, "%s -i -e '%s' %#zx 2>/dev/null", tool, info.dli_fname,
                  size_t(static_cast<char *>(pc) - 1 - static_cast<char *>(info.dli_fbase)));
    std::string result;
    if (FILE *pipe = popen(text, "r")) {
      while (std::fgets(text, sizeof text, pipe)) { // from the inlined callee to the caller
        const char *slash = std::strrchr(text, '/');
        const char *name = slash ? slash + 1 : text;
        if (result.empty() && std::strstr(name, ".cu:"))
          result = " at " + std::string(name, std::strcspn(name, " \n"));
      }
      pclose(pipe);
    }
    if (!result.empty())
      return result;
  }
  return "";
}

void Grid::fail(const std::string &where, const char *format, ...) {
  if (error.empty()) {
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    error = "kernel " + std::string(launch.kernel->name) + ": " + text + where + ", block " +
            std::to_string(launch.unit->blockIdx->x);
    if (current)
      error += ", thread " + std::to_string(current->thread);
  }
  if (current) { // the fibre is abandoned; its stack holds nothing to destroy
    void *unused;
    quern_emulator_switch(&unused, schedulerStack);
  }
}

void entry() {
  grid.launch.kernel->call(grid.launch.kernel->function, grid.launch.arguments);
  Fibre &fibre = *grid.current;
  fibre.state = Fibre::Done, ++grid.doneThreads;
  grid.freeStacks.push_back(fibre.stack);
  grid.stop();
}

void Grid::resume(Fibre &fibre) {
  if (!fibre.stack) {
    fibre.stack = freeStacks.back(), freeStacks.pop_back();
    void **frame = reinterpret_cast<void **>(fibre.stack + stackBytes) - frameWords;
    frame[returnWord] = reinterpret_cast<void *>(entry);
    fibre.sp = frame;
  }
  current = &fibre;
  *launch.unit->threadIdx = {fibre.thread, 0, 0};
  quern_emulator_switch(&schedulerStack, fibre.sp);
  current = nullptr;
}

void Grid::runBlock() {
  doneThreads = barrierThreads = 0;
  memory->beginBlock(++interval, warpStep);
  std::memset(warpStep, 0, sizeof warpStep);
  ready.clear(), freeStacks.clear();
  for (unsigned i = maxThreads; i--;)
    freeStacks.push_back(stacks + i * stackBytes);
  for (unsigned i = 0; i < threads; ++i) {
    fibres[i].stack = nullptr, fibres[i].thread = i;
    wake(fibres[i]);
  }
  while (!ready.empty() && error.empty()) {
    unsigned i = randomBelow(ready.size());
    Fibre &next = *ready[i];
    ready[i] = ready.back(), ready.pop_back();
    resume(next);
  }
  if (doneThreads == threads || !error.empty())
    return;
  // Nobody can go on: a deadlock is barrier divergence.
  std::map<std::string, int> waits;
  for (unsigned i = 0; i < threads; ++i)
    ++waits[fibres[i].state == Fibre::Done ? "have left"
            : fibres[i].state == Fibre::AtBarrier
                ? "are at the barrier of line " + std::to_string(fibres[i].line)
                : "are at the warp operation of line " + std::to_string(fibres[i].line)];
  std::string text;
  for (auto &[what, count] : waits)
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " threads " + what;
  fail("", "barrier divergence: %s", text.c_str());
}

bool Grid::shuffleLanes(Op op, unsigned mask, Operand **lanes) {
  unsigned ballot = 0;
  for (int lane = 0; lane < 32; ++lane)
    if ((mask >> lane & 1) && lanes[lane]->value)
      ballot |= 1u << lane;
  for (int lane = 0; lane < 32; ++lane) {
    if (!(mask >> lane & 1) || op == Op::SyncWarp)
      continue;
    Operand &operand = *lanes[lane];
    if (op == Op::Ballot) {
      operand.result = ballot;
      continue;
    }
    int width = operand.width, base = lane & ~(width - 1), from = lane;
    if (op == Op::Shuffle)
      from = base + (operand.argument & (width - 1));
    else if (op == Op::ShuffleUp)
      from = lane - operand.argument < base ? lane : lane - operand.argument;
    else if (op == Op::ShuffleDown)
      from = lane + operand.argument >= base + width ? lane : lane + operand.argument;
    else
      from = lane ^ operand.argument;
    if (from < 0 || from > 31 || !(mask >> from & 1)) {
      fail(" at line " + std::to_string(current->line),
           "lane %d reads lane %d, which is not in the mask %#x", lane, from, mask);
      return false;
    }
    operand.result = lanes[from]->value;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// What units call
//===----------------------------------------------------------------------===//

void hookAccess(const void *p, unsigned long bytes, Access kind, void *pc) {
  if (!grid.current || !bytes || !grid.launch.unit->checked || grid.onStack(p))
    return;
  if (kind == Access::Read) {
    if (!grid.readsLeft) {
      grid.launch.unit->skipsReads = true;
      return;
    }
    --grid.readsLeft;
  }
  unsigned thread = grid.current->thread;
  Accessor who{grid.interval, static_cast<uint16_t>(thread), grid.warpStep[thread / 32]};
  // Not destroyed when the fibre is abandoned, so it must not be the fibre's own.
  static std::string what;
  if (!grid.memory->access(p, bytes, kind, who, what))
    grid.fail(lineOf(pc), "%s", what.c_str());
}

void hookMisaligned(const void *p, unsigned long bytes, void *pc) {
  if (grid.current && !grid.onStack(p))
    grid.fail(lineOf(pc), "misaligned access of %lu bytes", bytes);
}

void hookUndefined(const char *what, long value, const char *file, unsigned line) {
  if (!grid.current)
    return;
  const char *slash = std::strrchr(file, '/');
  char where[128];
  std::snprintf(where, sizeof where, " at %s:%u", slash ? slash + 1 : file, line);
  grid.fail(where, "%s (%ld)", what, value);
}

int hookBarrier(Op op, int line, int predicate) {
  if (grid.barrierThreads++ == 0)
    grid.barrierLine = line, grid.barrierAnd = 1, grid.barrierOr = 0;
  else if (line != grid.barrierLine)
    grid.fail("", "barrier divergence: the barriers of lines %d and %d met", grid.barrierLine,
              line);
  grid.barrierAnd &= predicate != 0, grid.barrierOr |= predicate != 0;
  grid.current->line = line, grid.current->state = Fibre::AtBarrier;
  if (grid.barrierThreads == grid.threads) { // one that has left never arrives: divergence
    grid.barrierThreads = 0, ++grid.interval;
    grid.barrierResult[0] = grid.barrierAnd, grid.barrierResult[1] = grid.barrierOr;
    std::memset(grid.warpStep, 0, sizeof grid.warpStep);
    for (unsigned i = 0; i < grid.threads; ++i)
      grid.wake(grid.fibres[i]);
  }
  grid.stop();
  return grid.barrierResult[op == Op::BarrierOr];
}

void hookCollective(Op op, unsigned mask, int line, Operand &operand) {
  Fibre &current = *grid.current;
  Fibre *warp = grid.fibres + current.thread / 32 * 32;
  if (!(mask >> current.thread % 32 & 1))
    grid.fail(" at line " + std::to_string(line), "lane %u is not in its own mask %#x",
              current.thread % 32, mask);
  current.op = op, current.mask = mask, current.line = line, current.operand = &operand;
  current.state = Fibre::AtWarp;
  Operand *lanes[32] = {};
  for (int lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1) {
      const Fibre &other = warp[lane];
      if (other.state != Fibre::AtWarp || other.op != op || other.mask != mask ||
          other.line != line || other.thread >= grid.threads)
        return grid.stop(); // not all have arrived
      lanes[lane] = other.operand;
    }
  if (!grid.shuffleLanes(op, mask, lanes))
    return;
  if (op == Op::SyncWarp)
    ++grid.warpStep[current.thread / 32];
  for (int lane = 0; lane < 32; ++lane)
    if (lanes[lane])
      grid.wake(warp[lane]);
  grid.stop();
}

void *hookDynamicShared() { return grid.memory->dynamicShared(); }

} // namespace

const Hooks &gridHooks() {
  static const Hooks hooks = {hookAccess,  hookMisaligned, hookUndefined,
                              hookBarrier, hookCollective, hookDynamicShared};
  return hooks;
}

std::string runGrid(Memory &memory, const Launch &launch) {
  grid.memory = &memory, grid.launch = launch, grid.threads = launch.threads;
  grid.current = nullptr, grid.error.clear();
  if (launch.blocks <= 0 || launch.blocks > INT32_MAX || launch.threads <= 0 ||
      launch.threads > int(maxThreads) || launch.threads % 32 || launch.sharedBytes < 0 ||
      launch.sharedBytes > int(Memory::maxShared))
    return "kernel " + std::string(launch.kernel->name) + ": cannot launch " +
           std::to_string(launch.blocks) + " blocks of " + std::to_string(launch.threads) +
           " threads with " + std::to_string(launch.sharedBytes) + " bytes of shared memory";
  Unit &unit = *launch.unit;
  unit.skipsReads = false, grid.readsLeft = maxReads;
  unit.blockDim->x = launch.threads, unit.gridDim->x = launch.blocks;
  grid.random = launch.seed * 2 + 0x9e3779b97f4a7c15;
  memory.beginLaunch(unit.sharedBegin, unit.sharedEnd, launch.sharedBytes, grid.interval + 1);
  std::vector<unsigned> order(launch.blocks);
  std::iota(order.begin(), order.end(), 0u);
  for (size_t i = order.size(); i-- > 1;)
    std::swap(order[i], order[grid.randomBelow(i + 1)]);
  for (unsigned block : order) {
    *unit.blockIdx = {block, 0, 0};
    grid.runBlock();
    if (!grid.error.empty())
      break;
  }
  return grid.error;
}

} // namespace quern::emulator
