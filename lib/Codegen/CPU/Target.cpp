//===- Target.cpp - Which CPU code is generated for -----------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Codegen/CPU/Target.h"

#include "Flags.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

#include <mutex>

using namespace llvm;

namespace quern {

void setCodegenFlags() {
  // Loops of ours have their addresses in final form: loop strength reduction costs a
  // third of code generation and gains nothing (measured: 8.6 to 5.5 ms a kernel).
  auto set = [](StringRef name, StringRef value) {
    cl::Option *option = cl::getRegisteredOptions().lookup(name);
    if (option && !option->getNumOccurrences()) // some count only if they are given
      option->addOccurrence(0, name, value);
  };
  set("disable-lsr", "true");
  // They do the same to several vectors at a time. The scheduler would take the vectors
  // one after another, to save registers: a constant is then loaded for each, and there
  // is less to do while a result is waited for (measured: gelu 5 %, softmax 4 % slower).
  set("enable-misched", "false");
}

static const Target &backend() {
  static const Target *target = [] {
    InitializeNativeTarget();
    InitializeNativeTargetAsmPrinter();
    InitializeNativeTargetAsmParser();
    setCodegenFlags();
    std::string error;
    return TargetRegistry::lookupTarget(Triple(sys::getProcessTriple()), error);
  }();
  return *target;
}

/// What LLVM knows of a CPU. Made once: it takes a fraction of a millisecond, and a
/// compilation asks for a dozen features.
static const MCSubtargetInfo &subtarget(StringRef triple, StringRef cpu, StringRef features) {
  static std::mutex mutex;
  static StringMap<std::unique_ptr<MCSubtargetInfo>> known;
  std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<MCSubtargetInfo> &info =
      known[(triple + Twine('\0') + cpu + Twine('\0') + features).str()];
  if (!info)
    info.reset(backend().createMCSubtargetInfo(Triple(triple), cpu, features));
  return *info;
}

CpuTarget CpuTarget::native() {
  static const CpuTarget host = [] {
    SmallVector<std::string> features;
    for (auto &feature : sys::getHostCPUFeatures())
      features.push_back((feature.second ? "+" : "-") + feature.first().str());
    llvm::sort(features);
    return CpuTarget{sys::getProcessTriple(), sys::getHostCPUName().str(), join(features, ",")};
  }();
  return host;
}

FailureOr<CpuTarget> CpuTarget::parse(StringRef text, function_ref<void(const Twine &)> error) {
  SmallVector<StringRef> parts;
  text.split(parts, ',');
  CpuTarget target = native();
  if (parts.front() != "native")
    target = {target.triple, parts.front().str(), ""};
  const MCSubtargetInfo &all = subtarget(target.triple, "", "");
  if (!all.isCPUStringValid(target.cpu))
    return error("invalid: unknown CPU '" + parts.front() +
                 "' (expected native, or a name such as x86-64-v3)"),
           failure();
  for (StringRef part : ArrayRef(parts).drop_front()) {
    StringRef name = part;
    bool sign = name.consume_front("+") || name.consume_front("-");
    bool known = llvm::any_of(all.getAllProcessorFeatures(),
                              [&](const SubtargetFeatureKV &kv) { return name == kv.Key; });
    if (!sign || !known)
      return error("invalid: CPU feature '" + part +
                   "' (expected + or -, and a name of LLVM's such as avx2)"),
             failure();
    target.features += (target.features.empty() ? "" : ",") + part.str();
  }
  return target;
}

bool CpuTarget::has(StringRef feature) const {
  return subtarget(triple, cpu, features).checkFeatures(("+" + feature).str());
}

uint64_t CpuTarget::featureBits() const {
  uint64_t bits = 0;
#define QUERN_CPU_FEATURE(number, name, leaf, subleaf, reg, bit, state)                            \
  if (has(name))                                                                                   \
    bits |= uint64_t(1) << (number);
  if (Triple(triple).isX86()) {
#include "quern-c/CpuFeatures.def"
  }
  return bits;
}

unsigned CpuTarget::vectorBits() const { return has("avx512f") ? 512 : has("avx") ? 256 : 128; }

std::string CpuTarget::str() const { return triple + " " + cpu + " " + features; }

std::unique_ptr<TargetMachine> CpuTarget::createMachine() const {
  TargetOptions options;
  options.AllowFPOpFusion = FPOpFusion::Strict;
  options.FunctionSections = true;
  return std::unique_ptr<TargetMachine>(
      backend().createTargetMachine(Triple(triple), cpu, features, options, Reloc::PIC_,
                                    CodeModel::Small, CodeGenOptLevel::Default));
}

} // namespace quern
