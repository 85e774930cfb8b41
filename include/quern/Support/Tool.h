//===- Tool.h - What every program does first -------------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_SUPPORT_TOOL_H
#define QUERN_SUPPORT_TOOL_H

#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>

namespace quern {

/// `--version` of this program prints Quern's version, not only LLVM's; and what cannot be written
/// to standard output, help texts included, is an error with exit code 1, where LLVM would end the
/// process. (In a header: quern-tblgen is built before any library of ours.)
inline void startTool() {
  llvm::cl::SetVersionPrinter([](llvm::raw_ostream &os) {
    os << "Quern " << QUERN_VERSION << " (LLVM " << LLVM_VERSION_STRING << ")\n";
  });
  (void)llvm::outs(); // made before, so destroyed after what runs at exit
  std::atexit([] {
    llvm::outs().flush();
    if (!llvm::outs().has_error())
      return;
    llvm::errs() << "error: standard output cannot be written: " << llvm::outs().error().message()
                 << "\n";
    llvm::outs().clear_error();
    std::_Exit(1);
  });
}

} // namespace quern

#endif // QUERN_SUPPORT_TOOL_H
