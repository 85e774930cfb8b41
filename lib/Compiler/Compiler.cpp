//===- Compiler.cpp - Options to pipeline to code -------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Compiler/Compiler.h"

#include "Header.h"
#include "Kernels.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/AsmParser/AsmParserState.h"
#include "mlir/Bytecode/BytecodeReader.h"
#include "quern/Codegen/CPU/Jit.h"
#include "quern/Codegen/CPU/Link.h"
#include "quern/Compiler/Diagnostics.h"
#include "quern/Conversion/HostToLLVM/HostToLLVM.h"
#include "quern/Dialect/Quern/IR/FunctionAttrs.h"
#include "quern/Dialect/Quern/IR/Quern.h"
#include "quern/Pipelines/Pipelines.h"
#include "quern/Pipelines/Registry.h"
#include "quern/Support/Error.h"
#include "quern/Support/Output.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;

namespace quern {

//===----------------------------------------------------------------------===//
// Contexts and files
//===----------------------------------------------------------------------===//

void registerCompilerDialects(DialectRegistry &registry) {
  registerDialects(registry);
  registerCodegenDialects(registry);
}

std::unique_ptr<MLIRContext> createContext() {
  DialectRegistry registry;
  registerCompilerDialects(registry);
  auto ctx = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  ctx->printOpOnDiagnostic(false); // an error about a function is not its whole text
  ctx->loadAllAvailableDialects();
  return ctx;
}

/// Inputs are called what the text calls the arguments: `%image` is `image`. A number is no name,
/// and a `quern.name` comes first.
static void nameArguments(ModuleOp module, const AsmParserState &names) {
  for (auto func : module.getOps<func::FuncOp>()) {
    const AsmParserState::BlockDefinition *entry =
        func.isExternal() ? nullptr : names.getBlockDef(&func.getBody().front());
    if (!entry)
      continue;
    for (auto [n, argument] : llvm::enumerate(entry->arguments)) {
      const char *begin = argument.loc.Start.getPointer(), *end = argument.loc.End.getPointer();
      StringRef name(begin, end - begin);
      name.consume_front("%");
      if (name.find_first_not_of("0123456789") != StringRef::npos &&
          !func.getArgAttr(n, nameAttrName) && !func.getArgAttr(n, outAttrName))
        func.setArgAttr(n, nameAttrName, StringAttr::get(module.getContext(), name));
    }
  }
}

llvm::Expected<OwningOpRef<ModuleOp>> parseModelFile(MLIRContext &ctx, StringRef path) {
  auto file = llvm::MemoryBuffer::getFile(path);
  if (!file)
    return invalidInput(path + ": cannot be read: " + file.getError().message());
  DiagnosticCollector diagnostics(&ctx, {});
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(*file), llvm::SMLoc());
  Block ops;
  AsmParserState names;
  bool isText = !isBytecode(sources.getMemoryBuffer(1)->getMemBufferRef());
  if (failed(isText ? parseAsmSourceFile(sources, &ops, &ctx, &names)
                    : parseSourceFile(sources, &ops, &ctx)))
    return diagnostics.take(path);
  OwningOpRef<ModuleOp> module = mlir::detail::constructContainerOpForParserIfNecessary<ModuleOp>(
      &ops, &ctx, FileLineColLoc::get(&ctx, path, 0, 0));
  if (!module)
    return diagnostics.take(path);
  nameArguments(*module, names);
  return std::move(module);
}

//===----------------------------------------------------------------------===//
// One compilation
//===----------------------------------------------------------------------===//

namespace {

struct HostObject {
  std::unique_ptr<llvm::MemoryBuffer> code;
  std::vector<HostConstant> constants;
  std::vector<std::string> symbols; ///< of the functions, in order
};

class Compilation {
public:
  Compilation(ModuleOp module, const CompileOptions &options)
      : module(module), options(options), diagnostics(module.getContext(), options.onRemark) {}

  /// Reads the options.
  llvm::Error configure() {
    if (options.level > 1)
      return invalidInput("expected -O0 or -O1, got -O" + llvm::Twine(options.level));
    if (llvm::none_of(module.getOps<func::FuncOp>(),
                      [](func::FuncOp func) { return func.isPublic(); }))
      return invalidInput("expected a model with a public function, found none");
    settings.device = options.device != DeviceKind::CPU;
    std::string text;
    FailureOr<CpuTarget> target =
        CpuTarget::parse(options.cpu, [&](const llvm::Twine &t) { text = t.str(); });
    if (failed(target)) {
      StringRef(text).consume_front("invalid: ");
      return invalidInput(StringRef(text).substr(StringRef(text).find(": ") + 2));
    }
    settings.target = *target;
    settings.machine = MachineModel::get(*target);
    settings.schedule.reference = options.level == 0;
    settings.schedule.strict = options.strict || options.level == 0;
    settings.codegen.level = options.level == 0 ? 0 : 1;
    return llvm::Error::success();
  }

  /// From quern ops to a host function with its memory planned, and named kernels.
  llvm::Error plan() {
    MLIRContext *ctx = module.getContext();
    ctx->getOrLoadDialect<kernel::KernelDialect>()->reporting = options.report;
    PassManager pm(ctx);
    PipelineOptions pipeline;
    pipeline.fuse = options.level > 0;
    pipeline.inplace = options.inplace;
    buildHostPipeline(pm, pipeline);
    if (llvm::Error error = checkDump(pm))
      return error;
    if (!options.dumpAfter.empty())
      pm.enableIRPrinting([](Pass *, Operation *) { return false; },
                          [&](Pass *pass, Operation *) {
                            return options.dumpAfter == "all" ||
                                   pass->getArgument() == options.dumpAfter;
                          },
                          /*printModuleScope=*/true, /*printAfterOnlyOnChange=*/false);
    if (!isPlanned() && failed(pm.run(module)))
      return diagnostics.take("the pipeline");
    if (options.level > 0 && !settings.device && failed(packConstants(module, settings.machine)))
      return diagnostics.take("packing constants");
    units = nameKernels(module, settings.key());
    return llvm::Error::success();
  }

  /// The objects of the kernels. On a device: of what the host needs to launch them.
  llvm::Expected<std::vector<std::unique_ptr<llvm::MemoryBuffer>>> kernels() {
    if (!settings.device)
      return compileKernels(*module.getContext(), units, settings, options);
    llvm::Expected<DeviceKernels> compiled = compileDeviceKernels(module, units, settings, options);
    if (!compiled)
      return compiled.takeError();
    texts = std::move(compiled->texts);
    images = std::move(compiled->images);
    return std::move(compiled->objects);
  }

  /// Renames the functions to C symbols: `prefix` alone for a single function.
  void nameFunctions(StringRef prefix) {
    SmallVector<func::FuncOp> functions;
    for (auto func : module.getOps<func::FuncOp>())
      if (func.isPublic())
        functions.push_back(func);
    llvm::StringSet<> taken;
    for (func::FuncOp func : functions) {
      if (!func->hasAttr(nameAttrName))
        func->setAttr(nameAttrName, func.getSymNameAttr());
      std::string symbol = functions.size() == 1
                               ? prefix.str()
                               : (prefix + "_" + cIdentifier(func.getSymName())).str();
      while (!taken.insert(symbol).second)
        symbol += "_";
      func.setSymName(symbol);
      symbols.push_back(symbol);
    }
  }

  /// Signatures of the functions, for a header.
  llvm::Expected<std::vector<std::pair<std::string, Signature>>> signatures() {
    std::vector<std::pair<std::string, Signature>> result;
    for (const std::string &symbol : symbols) {
      FailureOr<Signature> signature = Signature::get(module.lookupSymbol<func::FuncOp>(symbol));
      if (failed(signature))
        return diagnostics.take("the signature");
      result.emplace_back(symbol, std::move(*signature));
    }
    return result;
  }

  /// The code of the host functions; after it the module is LLVM's.
  llvm::Expected<HostObject> host(CodegenOptions::Emit emit = CodegenOptions::Emit::Object) {
    HostToLLVMOptions hostOptions;
    hostOptions.device = settings.device;
    hostOptions.cpuFeatures = settings.target.featureBits();
    hostOptions.images = std::move(images);
    FailureOr<std::vector<HostConstant>> constants = convertHostToLLVM(module, hostOptions);
    if (failed(constants))
      return diagnostics.take("the host function");
    HostObject result;
    result.constants = std::move(*constants);
    result.symbols = symbols;
    CodegenOptions codegen;
    codegen.kernels = false;
    codegen.emit = emit;
    std::string text;
    llvm::raw_string_ostream os(text);
    module->print(os, OpPrintingFlags().useLocalScope());
    std::string key =
        DiskCache::key({"host", text, settings.target.str(), std::to_string(int(codegen.emit))});
    if ((result.code = options.cache.read(key)))
      return result;
    FailureOr<ObjectCode> code = compileToObject(module, settings.target, codegen);
    if (failed(code))
      return diagnostics.take("the host function");
    options.cache.write(key, code->ref());
    result.code = llvm::MemoryBuffer::getMemBufferCopy(code->ref(), "host");
    return result;
  }

  ModuleOp module;
  const CompileOptions &options;
  DiagnosticCollector diagnostics;
  KernelSettings settings;
  std::vector<KernelUnit> units;
  std::vector<std::string> symbols;
  std::vector<std::string> texts; ///< CUDA C++ of the kernels
  std::vector<DeviceImage> images;

private:
  /// Whether the pass to dump after is one of the pipeline's.
  llvm::Error checkDump(PassManager &pm) {
    if (options.dumpAfter.empty() || options.dumpAfter == "all")
      return llvm::Error::success();
    // `any(a,func.func(b),c{option=x})`: each word in front of `,`, `{` or `)` is a pass.
    std::string text, names;
    llvm::raw_string_ostream os(text);
    pm.printAsTextualPipeline(os);
    for (StringRef rest = text; !rest.empty();) {
      size_t end = rest.find_first_of("(),{");
      StringRef word = rest.take_front(end);
      char next = end < rest.size() ? rest[end] : ')';
      rest = rest.drop_front(std::min(rest.size(), end)).drop_front(1);
      if (next == '{')
        rest = rest.split('}').second;
      if (word.empty() || next == '(')
        continue;
      if (word == options.dumpAfter)
        return llvm::Error::success();
      names += ", " + word.str();
    }
    return invalidInput("no pass '" + options.dumpAfter + "' to dump after (there are all" + names +
                        ")");
  }

  /// A module may come with its memory planned: what `Stage::Planned` prints.
  bool isPlanned() {
    bool tensors = false;
    for (auto func : module.getOps<func::FuncOp>())
      tensors |= func.getNumResults() > 0 ||
                 llvm::any_of(func.getArgumentTypes(), llvm::IsaPred<TensorType>);
    return !tensors;
  }
};

} // namespace

//===----------------------------------------------------------------------===//
// JIT
//===----------------------------------------------------------------------===//

struct CompiledModel::Impl {
  ~Impl() {
    jit.reset();
    for (void *block : constants)
      std::free(block);
  }
  std::unique_ptr<JitLibrary> jit;
  std::vector<void *> constants;
  llvm::StringMap<MemoryPlan> plans;
};

CompiledModel::CompiledModel(std::unique_ptr<Impl> impl, std::vector<const quern_function *> table)
    : impl(std::move(impl)), table(std::move(table)) {}
CompiledModel::~CompiledModel() = default;

const quern_function *CompiledModel::lookup(StringRef name) const {
  for (const quern_function *fn : table)
    if (name == fn->name)
      return fn;
  return nullptr;
}

const MemoryPlan &CompiledModel::memoryPlan(StringRef name) const { return impl->plans[name]; }

static llvm::StringMap<MemoryPlan> memoryPlans(ModuleOp module) {
  llvm::StringMap<MemoryPlan> plans;
  for (auto func : module.getOps<func::FuncOp>()) {
    auto bytes = [&](StringRef attr) {
      auto dim = func->getAttrOfType<DimAttr>(attr);
      return dim ? Dim(dim).str() : std::string();
    };
    auto name = func->getAttrOfType<StringAttr>(nameAttrName);
    plans[name ? name.getValue() : func.getSymName()] = {
        bytes(functionalBytesAttrName), bytes(unplannedBytesAttrName), bytes(arenaBytesAttrName)};
  }
  return plans;
}

llvm::Expected<std::unique_ptr<CompiledModel>> compileModel(ModuleOp module,
                                                            const CompileOptions &options) {
  Compilation c(module, options);
  if (llvm::Error error = c.configure())
    return std::move(error);
  if (c.settings.target.str() != CpuTarget::native().str())
    return invalidInput("--cpu=" + options.cpu + " cannot run here: expected native");
  if (llvm::Error error = c.plan())
    return std::move(error);
  auto kernels = c.kernels();
  if (!kernels)
    return kernels.takeError();
  c.nameFunctions("model");
  auto impl = std::make_unique<CompiledModel::Impl>();
  impl->plans = memoryPlans(module);
  llvm::Expected<HostObject> host = c.host();
  if (!host)
    return host.takeError();

  auto jit = JitLibrary::create();
  if (!jit)
    return jit.takeError();
  impl->jit = std::move(*jit);
  for (HostConstant &constant : host->constants) {
    std::vector<char> bytes = elementBytes(constant.value);
    void *block = std::aligned_alloc(64, llvm::alignTo(std::max<size_t>(bytes.size(), 1), 64));
    if (!block)
      return runtimeError("not enough memory for a constant of " + llvm::Twine(bytes.size()) +
                          " bytes");
    memcpy(block, bytes.data(), bytes.size());
    impl->constants.push_back(block);
    if (llvm::Error error = impl->jit->define(constant.symbol, block))
      return std::move(error);
  }
  for (auto &object : *kernels)
    if (llvm::Error error = impl->jit->add(std::move(object)))
      return std::move(error);
  if (llvm::Error error = impl->jit->add(std::move(host->code)))
    return std::move(error);
  std::vector<const quern_function *> table;
  for (const std::string &symbol : host->symbols) {
    llvm::Expected<void *> address = impl->jit->lookup(symbol);
    if (!address)
      return address.takeError();
    table.push_back(static_cast<const quern_function *>(*address));
  }
  return std::make_unique<CompiledModel>(std::move(impl), std::move(table));
}

//===----------------------------------------------------------------------===//
// Artefacts
//===----------------------------------------------------------------------===//

llvm::Error compileArtefact(ModuleOp module, const CompileOptions &options, StringRef outputPath,
                            StringRef headerPath) {
  // Copies: linking resets LLVM's command-line options, which the paths may be.
  std::string outputText = outputPath.str(), headerText = headerPath.str(), headerCode;
  StringRef output = outputText, header = headerText;
  StringRef ending = llvm::sys::path::extension(output);
  if (ending != ".o" && ending != ".so")
    return invalidInput(output + ": expected a name that ends in .o or .so");
  // Before the work, so that nothing is written when one of the two cannot be.
  for (StringRef path : {output, header})
    if (llvm::Error error = path.empty() ? llvm::Error::success() : checkOutputPath(path))
      return error;
  Compilation c(module, options);
  if (llvm::Error error = c.configure())
    return error;
  if (llvm::Error error = c.plan())
    return error;
  auto kernels = c.kernels();
  if (!kernels)
    return kernels.takeError();
  StringRef stem = llvm::sys::path::stem(output);
  c.nameFunctions(cIdentifier(stem));
  if (!header.empty()) {
    auto signatures = c.signatures();
    if (!signatures)
      return signatures.takeError();
    headerCode = cHeader(stem, *signatures);
  }
  llvm::Expected<HostObject> host = c.host();
  if (!host)
    return host.takeError();

  std::vector<std::pair<std::string, std::vector<char>>> constants;
  for (HostConstant &constant : host->constants)
    constants.emplace_back(constant.symbol, elementBytes(constant.value));
  llvm::Expected<ObjectCode> data = compileConstants(constants, c.settings.target);
  if (!data)
    return data.takeError();
  std::vector<StringRef> objects{host->code->getBuffer(), data->ref()};
  for (auto &object : *kernels)
    objects.push_back(object->getBuffer());
  objects.push_back(getRuntimeObject("QuernRuntime"));
  if (options.device == DeviceKind::CUDA)
    objects.push_back(getRuntimeObject("QuernRuntimeCuda"));
  if (llvm::Error error = linkArtefact(
          ending == ".so" ? ArtefactKind::Shared : ArtefactKind::Object, objects, output))
    return error;
  if (header.empty())
    return llvm::Error::success();
  llvm::Error error = writeOutput(header, [&](llvm::raw_ostream &os) { os << headerCode; });
  if (error)
    llvm::sys::fs::remove(output); // all or nothing
  return error;
}

//===----------------------------------------------------------------------===//
// Images and text
//===----------------------------------------------------------------------===//

llvm::Expected<std::vector<KernelImage>> compileImages(ModuleOp module,
                                                       const CompileOptions &options) {
  CompileOptions cuda = options;
  cuda.device = DeviceKind::CUDA;
  Compilation c(module, cuda);
  if (llvm::Error error = c.configure())
    return std::move(error);
  if (llvm::Error error = c.plan())
    return std::move(error);
  if (auto kernels = c.kernels(); !kernels)
    return kernels.takeError();
  std::vector<KernelImage> images;
  for (auto [i, image] : llvm::enumerate(c.images))
    images.push_back({c.units[i / cuda.chips.size()].display, image.target, image.bytes});
  return images;
}

llvm::Expected<std::string> compileText(ModuleOp module, const CompileOptions &options,
                                        Stage stage) {
  std::string text;
  llvm::raw_string_ostream os(text);
  OpPrintingFlags flags;
  flags.elideLargeElementsAttrs(32).elideLargeResourceString(32);
  if (stage == Stage::Import) {
    module->print(os, flags);
    return text;
  }
  Compilation c(module, options);
  if (llvm::Error error = c.configure())
    return std::move(error);
  if (stage == Stage::Cuda)
    c.settings.device = true; // without NVRTC, whatever the target is
  if (llvm::Error error = c.plan())
    return std::move(error);
  if (stage == Stage::Planned) {
    module->print(os, flags);
    return text;
  }
  if (stage == Stage::Cuda) {
    if (auto kernels = c.kernels(); !kernels)
      return kernels.takeError();
    for (auto [unit, code] : llvm::zip_equal(c.units, c.texts))
      os << "// " << unit.display << "\n" << code << "\n";
    return text;
  }
  if (stage == Stage::Scheduled) {
    MLIRContext *ctx = module.getContext();
    for (const KernelUnit &unit : c.units) {
      DiagnosticCollector diagnostics(ctx, options.onRemark);
      FailureOr<OwningOpRef<ModuleOp>> loops = scheduleUnit(*ctx, unit, c.settings);
      if (failed(loops))
        return withContext(diagnostics.take("scheduling"), "kernel '" + unit.display + "': ");
      os << "// " << unit.display << "\n" << **loops << "\n";
    }
    return text;
  }
  auto emit = stage == Stage::LLVM ? CodegenOptions::Emit::LLVM : CodegenOptions::Emit::Assembly;
  c.settings.codegen.emit = emit;
  auto kernels = c.kernels();
  if (!kernels)
    return kernels.takeError();
  c.nameFunctions("model");
  llvm::Expected<HostObject> host = c.host(emit);
  if (!host)
    return host.takeError();
  for (auto [unit, kernel] : llvm::zip_equal(c.units, *kernels))
    os << (stage == Stage::LLVM ? "; " : "# ") << unit.display << "\n"
       << kernel->getBuffer() << "\n";
  os << host->code->getBuffer();
  return text;
}

} // namespace quern
