//===- Compile.cpp - MLIR to object code ----------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Codegen/CPU/Compile.h"

#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Transforms/DialectConversion.h"
#include "llvm/Analysis/CGSCCPassManager.h"
#include "llvm/Analysis/LoopAnalysisManager.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;

namespace quern {

void registerCodegenDialects(DialectRegistry &registry) {
  registry.insert<affine::AffineDialect, arith::ArithDialect, cf::ControlFlowDialect,
                  func::FuncDialect, LLVM::LLVMDialect, math::MathDialect, memref::MemRefDialect,
                  scf::SCFDialect, ub::UBDialect, vector::VectorDialect>();
  arith::registerConvertArithToLLVMInterface(registry);
  cf::registerConvertControlFlowToLLVMInterface(registry);
  registerConvertFuncToLLVMInterface(registry);
  index::registerConvertIndexToLLVMInterface(registry);
  registerConvertMathToLLVMInterface(registry);
  registerConvertMemRefToLLVMInterface(registry);
  ub::registerConvertUBToLLVMInterface(registry);
  vector::registerConvertVectorToLLVMInterface(registry);
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
}

namespace {

/// What the LLVM dialect lacks: the functions without an intrinsic become calls of
/// libm, and bf16 is converted by integer operations.
struct ExpandPass : PassWrapper<ExpandPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ExpandPass)
  StringRef getName() const override { return "quern-expand-for-llvm"; }
  void runOnOperation() override {
    MLIRContext *ctx = &getContext();
    RewritePatternSet patterns(ctx);
    ConversionTarget target(*ctx);
    target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    target.addIllegalOp<math::ErfOp, math::ErfcOp, math::CbrtOp, math::Atan2Op, math::AtanhOp,
                        math::AcoshOp, math::AsinhOp>();
    populateMathToLibmConversionPatterns(patterns);
    auto narrow = [](Type type) { return getElementTypeOrSelf(type).isBF16(); };
    target.addDynamicallyLegalOp<arith::ExtFOp>(
        [&](arith::ExtFOp op) { return !narrow(op.getIn().getType()); });
    target.addDynamicallyLegalOp<arith::TruncFOp>([&](arith::TruncFOp op) {
      // From f64 LLVM asks the runtime for one rounding; the pattern would round twice.
      return !narrow(op.getType()) || !getElementTypeOrSelf(op.getIn().getType()).isF32();
    });
    arith::populateExpandBFloat16Patterns(patterns);
    if (failed(applyPartialConversion(getOperation(), target, std::move(patterns))))
      signalPassFailure();
  }
};

/// Refuses what the conversion left, naming it: "failed to legalize" helps nobody.
LogicalResult checkConverted(ModuleOp module) {
  WalkResult result = module.walk([](Operation *op) {
    if (isa<ModuleOp>(op) || isa_and_nonnull<LLVM::LLVMDialect>(op->getDialect()))
      return WalkResult::advance();
    op->emitOpError("has no lowering to LLVM for these types");
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

LogicalResult lowerToLLVM(ModuleOp module, const CodegenOptions &options) {
  PassManager pm(module->getContext());
  pm.enableVerifier(false);
  if (options.level > 0) {
    OpPassManager &nested = pm.nest<func::FuncOp>();
    nested.addPass(createCanonicalizerPass());
    nested.addPass(createCSEPass());
    nested.addPass(createLoopInvariantCodeMotionPass());
  }
  pm.addPass(createLowerAffinePass());
  pm.addPass(std::make_unique<ExpandPass>());
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(createConvertToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  if (failed(pm.run(module)))
    return failure();
  return checkConverted(module);
}

/// LLVM's errors (a register that an inline assembly asks for, a stack too large)
/// become diagnostics here; its default handler ends the process.
struct Diagnostics : llvm::DiagnosticHandler {
  explicit Diagnostics(std::string &errors) : errors(errors) {}
  bool handleDiagnostics(const llvm::DiagnosticInfo &info) override {
    if (info.getSeverity() == llvm::DS_Error) {
      llvm::raw_string_ostream os(errors);
      llvm::DiagnosticPrinterRawOStream printer(os);
      os << (errors.empty() ? "" : "; ");
      info.print(printer);
    }
    return true;
  }
  std::string &errors;
};

// The emitted code is in its final form: what is left is folding, addresses,
// invariants and reciprocals. LLVM's unroller and vectorisers would only undo it.
constexpr llvm::StringLiteral lightPipeline =
    "function(sroa,early-cse,simplifycfg,instcombine<no-verify-fixpoint>,loop-mssa(licm),gvn,"
    "instcombine<no-verify-fixpoint>,simplifycfg)";

llvm::Error optimize(llvm::Module &module, llvm::TargetMachine &machine, unsigned level) {
  llvm::PassBuilder builder(&machine);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  llvm::ModulePassManager pipeline;
  if (level >= 2)
    pipeline = builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2);
  else if (llvm::Error error = builder.parsePassPipeline(pipeline, lightPipeline))
    return error;
  pipeline.run(module, modules);
  return llvm::Error::success();
}

/// The machine that this thread generates code with. What it knows of a CPU is made at
/// the first function for it, and takes half a millisecond. One for each level: the choices of
/// level 0 stay with a machine that was used for it.
llvm::TargetMachine &machineFor(const CpuTarget &target, unsigned level) {
  static thread_local std::string key;
  static thread_local std::unique_ptr<llvm::TargetMachine> machine;
  std::string wanted = target.str() + (level == 0 ? " O0" : "");
  if (!machine || key != wanted) {
    key = wanted;
    machine = target.createMachine();
    if (level == 0)
      machine->setOptLevel(llvm::CodeGenOptLevel::None);
  }
  return *machine;
}

} // namespace

FailureOr<ObjectCode> compileToObject(ModuleOp module, const CpuTarget &target,
                                      const CodegenOptions &options) {
  if (failed(lowerToLLVM(module, options)))
    return failure();
  llvm::LLVMContext context;
  std::string errors;
  context.setDiagnosticHandler(std::make_unique<Diagnostics>(errors));
  std::unique_ptr<llvm::Module> code = translateModuleToLLVMIR(module, context);
  if (!code)
    return failure();

  llvm::TargetMachine *machine = &machineFor(target, options.level);
  code->setDataLayout(machine->createDataLayout());
  code->setTargetTriple(machine->getTargetTriple());
  std::string width = std::to_string(target.vectorBits());
  for (llvm::Function &fn : *code) {
    if (fn.isDeclaration())
      continue;
    fn.addFnAttr("target-cpu", target.cpu);
    fn.addFnAttr("target-features", target.features);
    fn.addFnAttr("prefer-vector-width", width);
    fn.addFnAttr(llvm::Attribute::NoUnwind);
    if (options.kernels && !fn.hasLocalLinkage()) {
      fn.setLinkage(llvm::GlobalValue::WeakODRLinkage);
      fn.setVisibility(llvm::GlobalValue::HiddenVisibility);
    }
  }
  std::string broken;
  llvm::raw_string_ostream brokenStream(broken);
  if (llvm::verifyModule(*code, &brokenStream))
    return module.emitError("internal: LLVM refuses the generated code: ") << broken;
  if (options.level > 0)
    if (llvm::Error error = optimize(*code, *machine, options.level))
      return module.emitError("internal: ") << llvm::toString(std::move(error));

  ObjectCode result;
  llvm::raw_svector_ostream os(result.bytes);
  if (options.emit == CodegenOptions::Emit::LLVM) {
    code->print(os, nullptr);
  } else {
    llvm::legacy::PassManager emitter;
    auto type = options.emit == CodegenOptions::Emit::Assembly ? llvm::CodeGenFileType::AssemblyFile
                                                               : llvm::CodeGenFileType::ObjectFile;
    if (machine->addPassesToEmitFile(emitter, os, nullptr, type))
      return module.emitError("internal: no code can be emitted for ") << target.triple;
    emitter.run(*code);
  }
  if (!errors.empty())
    return module.emitError("cannot generate code: ") << errors;
  return result;
}

llvm::Expected<ObjectCode>
compileConstants(ArrayRef<std::pair<std::string, std::vector<char>>> constants,
                 const CpuTarget &target) {
  llvm::LLVMContext context;
  llvm::Module module("constants", context);
  std::unique_ptr<llvm::TargetMachine> machine = target.createMachine();
  module.setDataLayout(machine->createDataLayout());
  module.setTargetTriple(machine->getTargetTriple());
  for (const auto &[name, bytes] : constants) {
    // An array of i8 is written as one string of bytes, which is fast.
    auto *value = llvm::ConstantDataArray::getString(context, StringRef(bytes.data(), bytes.size()),
                                                     /*AddNull=*/false);
    auto *global = new llvm::GlobalVariable(module, value->getType(), /*isConstant=*/true,
                                            llvm::GlobalValue::ExternalLinkage, value, name);
    global->setVisibility(llvm::GlobalValue::HiddenVisibility);
    global->setAlignment(llvm::Align(64));
  }
  ObjectCode result;
  llvm::raw_svector_ostream os(result.bytes);
  llvm::legacy::PassManager emitter;
  if (machine->addPassesToEmitFile(emitter, os, nullptr, llvm::CodeGenFileType::ObjectFile))
    return llvm::createStringError("no code can be emitted for " + target.triple);
  emitter.run(module);
  return result;
}

} // namespace quern
