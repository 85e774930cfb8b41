//===- UnitSupport.cpp - The part of every compiled unit ------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Kernels are compiled with -fsanitize=thread,bounds,… and linked without the
// sanitizers' libraries: the callbacks are these, and forward to the emulator.
// Compiled at run time, once, without instrumentation, and linked into every unit.
//
//===----------------------------------------------------------------------===//

#include "Emulate.h"

#pragma GCC visibility push(hidden)
uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;
namespace quern::emulator {
Hooks hooks;
Unit unit;
} // namespace quern::emulator

using namespace quern::emulator;

extern "C" {
extern char __start_quern_shared[] __attribute__((weak));
extern char __stop_quern_shared[] __attribute__((weak));
void *memset(void *, int, size_t);
void *memcpy(void *, const void *, size_t);
void *memmove(void *, const void *, size_t);

#define PC __builtin_return_address(0)
// An access of a type that demands its alignment; clang leaves copies of vectors to us.
static inline void typed(void *p, size_t bytes, Access kind, void *pc) {
  if (reinterpret_cast<size_t>(p) % bytes)
    hooks.misaligned(p, bytes, pc);
  hooks.access(p, bytes, kind, pc);
}

#define CALLBACKS(bytes)                                                                           \
  void __tsan_read##bytes(void *p) {                                                               \
    if (!unit.skipsReads)                                                                          \
      typed(p, bytes, Access::Read, PC);                                                           \
  }                                                                                                \
  void __tsan_write##bytes(void *p) { typed(p, bytes, Access::Write, PC); }                        \
  void __tsan_unaligned_read##bytes(void *p) { hooks.access(p, bytes, Access::Read, PC); }         \
  void __tsan_unaligned_write##bytes(void *p) { hooks.access(p, bytes, Access::Write, PC); }
CALLBACKS(1)
CALLBACKS(2)
CALLBACKS(4)
CALLBACKS(8)
CALLBACKS(16)
void __tsan_init() { unit.checked = true; }
void __tsan_func_entry(void *) {}
void __tsan_func_exit() {}
void __tsan_read_range(void *p, size_t n) { hooks.access(p, n, Access::Read, PC); }
void __tsan_write_range(void *p, size_t n) { hooks.access(p, n, Access::Write, PC); }
void *__tsan_memset(void *p, int value, size_t n) {
  hooks.access(p, n, Access::Write, PC);
  return memset(p, value, n);
}
void *__tsan_memcpy(void *to, const void *from, size_t n) {
  hooks.access(from, n, Access::Read, PC), hooks.access(to, n, Access::Write, PC);
  return memcpy(to, from, n);
}
void *__tsan_memmove(void *to, const void *from, size_t n) {
  hooks.access(from, n, Access::Read, PC), hooks.access(to, n, Access::Write, PC);
  return memmove(to, from, n);
}

struct Location {
  const char *file;
  unsigned line, column;
};
#define UNDEFINED(name, what)                                                                      \
  void __ubsan_handle_##name(Location *where, long value) {                                        \
    hooks.undefined(what, value, where->file, where->line);                                        \
  }
UNDEFINED(out_of_bounds, "index out of an array's bounds")
UNDEFINED(add_overflow, "signed overflow in +")
UNDEFINED(sub_overflow, "signed overflow in -")
UNDEFINED(mul_overflow, "signed overflow in *")
UNDEFINED(negate_overflow, "signed overflow in -")
UNDEFINED(divrem_overflow, "division by zero or overflow in /")
UNDEFINED(shift_out_of_bounds, "shift out of range")
void __ubsan_handle_type_mismatch_v1(Location *where, long p) {
  hooks.undefined(p ? "misaligned access" : "null pointer", p % 16, where->file, where->line);
}
}
#pragma GCC visibility pop

extern "C" __attribute__((visibility("default"))) Unit *quern_unit_attach(const Hooks *with) {
  hooks = *with;
  unit.threadIdx = &threadIdx, unit.blockIdx = &blockIdx;
  unit.blockDim = &blockDim, unit.gridDim = &gridDim;
  unit.sharedBegin = __start_quern_shared, unit.sharedEnd = __stop_quern_shared;
  return &unit;
}
