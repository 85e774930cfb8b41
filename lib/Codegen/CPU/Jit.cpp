//===- Jit.cpp - Objects loaded into this process -------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Codegen/CPU/Jit.h"

#include "quern-c/Builtins.h"
#include "quern-c/Runtime.h"
#include "quern/Codegen/CPU/Target.h"
#include "llvm/ExecutionEngine/Orc/AbsoluteSymbols.h"
#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Target/TargetMachine.h"

#include <atomic>

using namespace llvm;
using namespace llvm::orc;

namespace quern {

struct JitLibrary::Impl {
  LLJIT &jit;
  JITDylib &library;
};

// One for the process, never destroyed: libraries may outlive static objects.
static Expected<LLJIT &> session() {
  static Expected<LLJIT *> jit = []() -> Expected<LLJIT *> {
    CpuTarget host = CpuTarget::native();
    auto machine = host.createMachine(); // also initialises the backend
    JITTargetMachineBuilder builder(machine->getTargetTriple());
    builder.setCPU(host.cpu);
    auto made = LLJITBuilder()
                    .setJITTargetMachineBuilder(std::move(builder))
                    .setDataLayout(machine->createDataLayout())
                    .create();
    if (!made)
      return made.takeError();
    return made->release();
  }();
  if (!jit)
    return createStringError("cannot start the JIT: " + toString(jit.takeError()));
  return **jit;
}

Expected<std::unique_ptr<JitLibrary>> JitLibrary::create() {
  static std::atomic<unsigned> count{0};
  Expected<LLJIT &> jit = session();
  if (!jit)
    return jit.takeError();
  Expected<JITDylib &> library = jit->createJITDylib("quern" + std::to_string(count++));
  if (!library)
    return library.takeError();
  std::unique_ptr<JitLibrary> result(new JitLibrary(std::make_unique<Impl>(Impl{*jit, *library})));

  // The runtime is part of this program, but not among its dynamic symbols.
  SymbolMap runtime;
  auto define = [&](StringRef name, auto *function) {
    runtime[jit->mangleAndIntern(name)] = {ExecutorAddr::fromPtr(function),
                                           JITSymbolFlags::Exported | JITSymbolFlags::Callable};
  };
  define("quern_rt_launch", &quern_rt_launch);
  define("quern_rt_guard_failed", &quern_rt_guard_failed);
#define QUERN_BUILTIN(NAME) define(#NAME, &NAME);
  QUERN_BUILTINS
#undef QUERN_BUILTIN
  if (Error error = library->define(absoluteSymbols(std::move(runtime))))
    return std::move(error);
  auto process =
      DynamicLibrarySearchGenerator::GetForCurrentProcess(jit->getDataLayout().getGlobalPrefix());
  if (!process)
    return process.takeError();
  library->addGenerator(std::move(*process));
  return result;
}

JitLibrary::JitLibrary(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}

JitLibrary::~JitLibrary() {
  consumeError(impl->jit.getExecutionSession().removeJITDylib(impl->library));
}

Error JitLibrary::add(std::unique_ptr<MemoryBuffer> object) {
  return impl->jit.addObjectFile(impl->library, std::move(object));
}

Error JitLibrary::define(StringRef name, const void *data) {
  return impl->library.define(
      absoluteSymbols({{impl->jit.mangleAndIntern(name),
                        {ExecutorAddr::fromPtr(data), JITSymbolFlags::Exported}}}));
}

Expected<void *> JitLibrary::lookup(StringRef name) {
  Expected<ExecutorAddr> address = impl->jit.lookup(impl->library, name);
  if (!address)
    return address.takeError();
  return address->toPtr<void *>();
}

} // namespace quern
