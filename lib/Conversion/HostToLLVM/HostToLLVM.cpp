//===- HostToLLVM.cpp - The host function as C ABI code -------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Conversion/HostToLLVM/HostToLLVM.h"

#include "HostEmitter.h"
#include "mlir/Pass/Pass.h"
#include "quern/Dialect/Quern/IR/FunctionAttrs.h"
#include "quern/Dialect/Quern/IR/Quern.h"

using namespace mlir;

namespace quern {

//===----------------------------------------------------------------------===//
// The tables
//===----------------------------------------------------------------------===//

static Init tensorInfo(Tables &tables, const SignatureTensor &t) {
  std::vector<Init> dims, names;
  for (auto [size, dim] : llvm::zip_equal(t.type.getShape(), t.dims)) {
    bool isFree = ShapedType::isDynamic(size);
    dims.push_back(tables.i64(isFree ? -1 : size));
    names.push_back(tables.string(!isFree ? "" : dim.isUnknown() ? "_" : dim.str()));
  }
  return tables.structure({tables.string(t.name),
                           tables.structure({tables.i8(t.dtype.code), tables.i8(t.dtype.bits),
                                             tables.i16(t.dtype.lanes)}),
                           tables.i32(t.type.getRank()), tables.array(dims), tables.array(names)});
}

static int32_t numFree(ArrayRef<SignatureTensor> tensors) {
  int32_t count = 0;
  for (const SignatureTensor &t : tensors)
    count += t.type.getNumDynamicDims();
  return count;
}

/// The kernels that `func` launches, in order of first use.
static SmallVector<kernel::FuncOp> kernelsOf(func::FuncOp func) {
  llvm::SetVector<kernel::FuncOp> kernels;
  func.walk([&](kernel::LaunchOp launch) {
    if (auto k =
            SymbolTable::lookupNearestSymbolFrom<kernel::FuncOp>(launch, launch.getKernelAttr()))
      kernels.insert(k);
  });
  return kernels.takeVector();
}

namespace {

class Converter {
public:
  Converter(ModuleOp module, const HostToLLVMOptions &options) : module(module), options(options) {}

  LogicalResult convert(func::FuncOp func) {
    FailureOr<Signature> signature = Signature::get(func);
    if (failed(signature))
      return failure();
    std::string symbol = func.getSymName().str();
    Tables tables(module, symbol);

    std::vector<Init> inputs, outputs, donated, aliases, constantTable;
    for (const SignatureTensor &t : signature->inputs)
      inputs.push_back(tensorInfo(tables, t));
    for (const SignatureTensor &t : signature->outputs) {
      outputs.push_back(tensorInfo(tables, t));
      aliases.push_back(tables.i32(t.alias));
    }
    for (bool d : signature->donated)
      donated.push_back(tables.i8(d));
    for (auto [i, constant] : llvm::enumerate(signature->constants)) {
      ShapedType type = constant.second.getShapedType();
      unsigned width = type.getElementType().getIntOrFloatBitWidth();
      int64_t bytes = type.getNumElements() * std::max(width / 8, 1u);
      std::string name = symbol + "_constant_" + std::to_string(i);
      tables.declareGlobal(
          name, LLVM::LLVMArrayType::get(IntegerType::get(module.getContext(), 8), bytes));
      constantTable.push_back(tables.structure({tables.address(name), tables.i64(bytes)}));
      constants.push_back({name, constant.second});
    }

    SmallVector<kernel::FuncOp> kernels = kernelsOf(func);
    std::vector<Init> kernelTable, images;
    for (kernel::FuncOp k : kernels)
      kernelTable.push_back(kernelInit(tables, k));
    std::string kernelArray = symbol + ".kernels";
    if (!kernels.empty())
      tables.global(kernelArray,
                    {LLVM::LLVMArrayType::get(kernelTable.front().type, kernelTable.size()), 0, "",
                     kernelTable},
                    LLVM::Linkage::Private);
    for (const DeviceImage &image : options.images)
      images.push_back(tables.structure({tables.string(image.target), tables.bytes(image.bytes, 16),
                                         tables.i64(image.bytes.size())}));

    HostEmitter emitter(tables, *signature, kernels, kernelArray,
                        kernels.empty() ? Type() : kernelTable.front().type);
    if (failed(emitter.emit(func, symbol + "_prepare", HostEmitter::Prepare)) ||
        failed(emitter.emit(func, symbol + "_run", HostEmitter::Run)))
      return failure();

    Init function = tables.structure(
        {tables.i32(QUERN_ABI_VERSION), tables.string(signature->name), tables.i32(inputs.size()),
         tables.i32(outputs.size()), tables.i32(constantTable.size()), tables.i32(kernels.size()),
         tables.i32(images.size()), tables.array(inputs), tables.array(outputs),
         tables.array(constantTable), kernels.empty() ? tables.null() : tables.address(kernelArray),
         tables.array(images), tables.i64(options.cpuFeatures), tables.array(donated),
         tables.array(aliases), tables.i32(numFree(signature->inputs)),
         tables.i32(numFree(signature->outputs)), tables.address(symbol + "_prepare"),
         tables.address(symbol + "_run")});
    func.erase();
    tables.global(symbol, function, LLVM::Linkage::External);
    functions.push_back(symbol);
    return success();
  }

  void finish() {
    Tables tables(module, "quern_artefact");
    // The kernels' functions take the names of the kernels, which have served.
    Type i64 = IntegerType::get(module.getContext(), 64), ptr = tables.pointer;
    std::vector<std::string> names;
    for (kernel::FuncOp k : used)
      names.push_back(k.getSymName().str());
    for (auto k : llvm::make_early_inc_range(module.getOps<kernel::FuncOp>()))
      k.erase();
    for (const std::string &name : names) {
      tables.declare(name + "_range", i64, {ptr});
      if (options.device)
        continue;
      tables.declare(name, LLVM::LLVMVoidType::get(module.getContext()), {ptr, ptr, i64, i64});
      tables.declare(name + "_unit_cost", i64, {ptr});
    }
    std::vector<Init> addresses;
    for (const std::string &name : functions)
      addresses.push_back(tables.address(name));
    tables.global("quern_artefact_table",
                  tables.structure({tables.i32(QUERN_ABI_VERSION), tables.i32(functions.size()),
                                    tables.array(addresses)}),
                  LLVM::Linkage::WeakODR);
  }

  std::vector<HostConstant> constants;

private:
  Init kernelInit(Tables &tables, kernel::FuncOp k) {
    std::string name = k.getSymName().str();
    auto number = [&](StringRef attr) {
      auto value = k->getAttrOfType<IntegerAttr>(attr);
      return tables.i32(value ? value.getInt() : 0);
    };
    used.insert(k);
    auto display = k->getAttrOfType<StringAttr>(nameAttrName);
    Block &body = k.getBody().front();
    int32_t dims = k.getSymbols().size();
    for (int64_t arg : k.getStrided())
      dims += cast<ShapedType>(body.getArgument(arg).getType()).getRank();
    return tables.structure(
        {tables.string(display && !options.device ? display.getValue() : StringRef(name)),
         options.device ? tables.null() : tables.address(name), tables.address(name + "_range"),
         options.device ? tables.null() : tables.address(name + "_unit_cost"),
         tables.i32(body.getNumArguments()), tables.i32(dims), number("quern.image"),
         number("quern.image_count"), number("quern.block_threads"), number("quern.shared_bytes")});
  }

  ModuleOp module;
  const HostToLLVMOptions &options;
  std::vector<std::string> functions;
  llvm::SetVector<kernel::FuncOp> used;
};

} // namespace

FailureOr<std::vector<HostConstant>> convertHostToLLVM(ModuleOp module,
                                                       const HostToLLVMOptions &options) {
  Converter converter(module, options);
  for (auto func : llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
    if (func.isExternal())
      return func.emitError("unsupported: function '") << func.getSymName() << "' has no body",
             failure();
    if (func.isPublic() && failed(converter.convert(func)))
      return failure();
  }
  converter.finish();
  return std::move(converter.constants);
}

namespace {

struct HostToLLVMPass : PassWrapper<HostToLLVMPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(HostToLLVMPass)
  StringRef getArgument() const override { return "quern-convert-host-to-llvm"; }
  StringRef getDescription() const override {
    return "the bufferised host function as prepare, run and the tables of the C ABI";
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<QuernDialect, LLVM::LLVMDialect, arith::ArithDialect>();
  }
  void runOnOperation() override {
    if (failed(convertHostToLLVM(getOperation())))
      signalPassFailure();
  }
};

} // namespace

void registerHostToLLVMPass() { PassRegistration<HostToLLVMPass>(); }

} // namespace quern
