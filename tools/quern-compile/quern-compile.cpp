//===- quern-compile.cpp - Models to artefacts ----------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Compiler/CommandLine.h"
#include "quern/Compiler/Compiler.h"
#include "quern/Import/ONNX/Importer.h"
#include "quern/Support/Error.h"
#include "quern/Support/Output.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"

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
// Beside the stages of compileText.
static constexpr Stage ptx = Stage(100), cubin = Stage(101);
static cl::opt<Stage> emit(
    "emit", cl::desc("Print a stage instead of making an artefact"), cl::cat(compilation.category),
    cl::values(clEnumValN(Stage::Import, "mlir-import", "quern ops as imported"),
               clEnumValN(Stage::Planned, "mlir-planned", "launches and memory, and kernels"),
               clEnumValN(Stage::Scheduled, "mlir-scheduled", "the loops of the kernels"),
               clEnumValN(Stage::LLVM, "llvm", "LLVM IR"),
               clEnumValN(Stage::Assembly, "asm", "assembly"),
               clEnumValN(Stage::Cuda, "cuda", "CUDA C++ of the kernels"),
               clEnumValN(ptx, "ptx", "PTX of the kernels"),
               clEnumValN(cubin, "cubin", "a cubin of each kernel and chip, in the folder -o")));

// Compiles for the chips; PTX into `text`, cubins into the folder of -o.
static Error emitImages(mlir::ModuleOp module, std::string &text) {
  CompileOptions options = compilation.get();
  if (emit == ptx)
    for (std::string &chip : options.chips)
      if (StringRef(chip).starts_with("sm_"))
        chip = "compute_" + chip.substr(3);
  auto images = compileImages(module, options);
  if (!images)
    return images.takeError();
  for (const KernelImage &image : *images) {
    if (emit == ptx) {
      text += "// " + image.kernel + ", " + image.target + "\n" + image.bytes + "\n";
      continue;
    }
    SmallString<128> path(output);
    sys::path::append(path, image.kernel + "." + image.target + ".cubin");
    if (Error error = writeOutput(path, [&](raw_ostream &os) { os << image.bytes; }))
      return error;
  }
  return Error::success();
}

static Error run() {
  // Before the work: what cannot be written.
  if (emit.getNumOccurrences() && emit == cubin) {
    if (!sys::fs::is_directory(output))
      return invalidInput("expected -o FOLDER for cubins, got '" + output + "'");
  } else if (emit.getNumOccurrences() && !output.empty()) {
    if (Error error = checkOutputPath(output))
      return error;
  }
  StringRef ending = sys::path::extension(model);
  std::unique_ptr<mlir::MLIRContext> ctx = createContext();
  Expected<mlir::OwningOpRef<mlir::ModuleOp>> module =
      ending == ".onnx" ? onnx::importFile(*ctx, model) : parseModelFile(*ctx, model);
  if (!module)
    return module.takeError();
  if (emit.getNumOccurrences()) {
    Expected<std::string> text = std::string();
    if (emit == ptx || emit == cubin) {
      if (Error error = emitImages(**module, *text); error || emit == cubin)
        return error;
    } else {
      text = compileText(**module, compilation.get(), emit);
    }
    if (!text)
      return text.takeError();
    return writeOutput(output.empty() ? "-" : StringRef(output),
                       [&](raw_ostream &os) { os << *text; });
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
