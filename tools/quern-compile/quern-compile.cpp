//===- quern-compile.cpp - Models to artefacts ----------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Compiler/CommandLine.h"
#include "quern/Compiler/Compiler.h"
#include "quern/Import/ONNX/Importer.h"
#include "quern/Support/Error.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace llvm;
using namespace quern;

static CompileCommandLine compilation;

static cl::opt<std::string> model(cl::Positional, cl::Required, cl::desc("<MODEL>"),
                                  cl::value_desc("model.onnx | model.mlir"),
                                  cl::cat(compilation.category));
static cl::opt<std::string> output("o",
                                   cl::desc("Artefact: m.so, or m.o to link; or the file of --emit "
                                            "(- is standard output)"),
                                   cl::value_desc("file"), cl::cat(compilation.category));
static cl::opt<std::string> header("header",
                                   cl::desc("C header (default: the artefact's name with .h)"),
                                   cl::value_desc("file"), cl::cat(compilation.category));
static cl::opt<Stage>
    emit("emit", cl::desc("Print a stage instead of making an artefact"),
         cl::cat(compilation.category),
         cl::values(clEnumValN(Stage::Import, "mlir-import", "quern ops as imported"),
                    clEnumValN(Stage::Planned, "mlir-planned", "launches and memory, and kernels"),
                    clEnumValN(Stage::Scheduled, "mlir-scheduled", "the loops of the kernels"),
                    clEnumValN(Stage::LLVM, "llvm", "LLVM IR"),
                    clEnumValN(Stage::Assembly, "asm", "assembly"),
                    clEnumValN(Stage::Cuda, "cuda", "CUDA C++ of the kernels")));

static Error run() {
  StringRef ending = sys::path::extension(model);
  std::unique_ptr<mlir::MLIRContext> ctx = createContext();
  Expected<mlir::OwningOpRef<mlir::ModuleOp>> module =
      ending == ".onnx" ? onnx::importFile(*ctx, model) : parseModelFile(*ctx, model);
  if (!module)
    return module.takeError();
  if (emit.getNumOccurrences()) {
    Expected<std::string> text = compileText(**module, compilation.get(), emit);
    if (!text)
      return text.takeError();
    std::error_code error;
    ToolOutputFile file(output.empty() ? "-" : StringRef(output), error, sys::fs::OpenFlags());
    if (error)
      return runtimeError(output + ": cannot be written: " + error.message());
    file.os() << *text;
    file.keep();
    return Error::success();
  }
  if (output.empty())
    return invalidInput("expected -o FILE.so, -o FILE.o or --emit");
  SmallString<128> headerPath(header);
  if (headerPath.empty()) {
    headerPath = output;
    sys::path::replace_extension(headerPath, ".h");
  }
  return compileArtefact(**module, compilation.get(), output, headerPath);
}

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  cl::HideUnrelatedOptions(compilation.category);
  parseToolOptions(
      argc, argv,
      "Compiles a model to an artefact that needs libc and libm only.\n\n"
      "Exit codes: 0 ok, 1 error, 2 unsupported, 3 invalid input, 4 internal error.\n");
  return reportError(run());
}
