//===- Sanitizers.cpp - What the sanitizers are told ----------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Linked into every program of the asan preset.
//
//===----------------------------------------------------------------------===//

// allow_user_poisoning=0: LLVM's allocators poison memory in our code (instrumented) and hand it
// out in their libraries (not instrumented), which looks like a use of poisoned memory.
// allocator_may_return_null=1: memory that is not there is an answer, not a fault.
extern "C" const char *__asan_default_options() {
  return "allow_user_poisoning=0:allocator_may_return_null=1";
}
