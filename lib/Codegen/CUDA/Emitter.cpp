//===- Emitter.cpp - Device functions as CUDA C++ -------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Statements; EmitterOps.cpp has the expressions. The rules that the text keeps, so
// that NVRTC and a host compiler both take it and mean the same: no includes but
// quern.cuh, fixed-width types by name, constants without macros, contraction only
// as fmaf, wrapping integers through unsigned, shared arrays at the top with their
// full shape.
//
//===----------------------------------------------------------------------===//

#include "quern/Codegen/CUDA/Emitter.h"
#include "EmitterImpl.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/Pass.h"
#include "quern/Dialect/Quern/IR/Quern.h"
#include "quern/Schedule/CUDA.h"

using namespace mlir;

namespace quern {
namespace cuda {

LogicalResult Printer::refuse(Operation &op, const Twine &why) {
  failed = true;
  return op.emitError("unsupported: CUDA code for '")
         << op.getName().getStringRef() << "'" << (why.isTriviallyEmpty() ? "" : ": ") << why;
}

std::string Printer::freshName(Location loc, StringRef fallback) {
  StringRef hint = fallback;
  if (auto named = dyn_cast<NameLoc>(loc))
    hint = named.getName();
  std::string base;
  for (char c : hint)
    base += llvm::isAlnum(c) ? c : '_';
  if (base.empty() || llvm::isDigit(base.front()))
    base = "v" + base;
  unsigned &count = names[base];
  std::string name = count ? base + std::to_string(count) : base;
  ++count;
  // A name with a number may be taken by a hint that ends so.
  if (count > 1)
    names.try_emplace(name, 1);
  return name;
}

std::string Printer::nameOf(Value value) {
  Expression &known = expressions[value];
  if (known.text.empty())
    known.text = freshName(value.getLoc(), "v");
  return known.text;
}

/// An upper bound of an index that is small whatever the sizes, for 32-bit arithmetic.
static std::optional<int64_t> boundOf(Value value, unsigned limit = 16) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    return loop && argument == loop.getInductionVar() ? boundOf(loop.getUpperBound(), limit - 1)
                                                      : std::nullopt;
  }
  Operation *op = value.getDefiningOp();
  if (!limit || !op || !value.getType().isIndex())
    return std::nullopt;
  if (auto constant = dyn_cast<arith::ConstantIndexOp>(op))
    return constant.value() >= 0 && constant.value() < 1 << 20
               ? std::optional<int64_t>(constant.value())
               : std::nullopt;
  if (isa<gpu::ThreadIdOp>(op))
    return 1024;
  auto both = [&](auto combine) -> std::optional<int64_t> {
    auto a = boundOf(op->getOperand(0), limit - 1), b = boundOf(op->getOperand(1), limit - 1);
    if (!a || !b || combine(*a, *b) > 1 << 24)
      return std::nullopt;
    return combine(*a, *b);
  };
  if (isa<arith::AddIOp>(op))
    return both([](int64_t a, int64_t b) { return a + b; });
  if (isa<arith::MulIOp>(op))
    return both([](int64_t a, int64_t b) { return a * b; });
  if (isa<arith::DivUIOp, arith::RemUIOp>(op))
    return both([](int64_t a, int64_t) { return a; });
  return std::nullopt;
}

bool Printer::isInlined(Operation &op) {
  if (op.getNumResults() != 1)
    return false;
  if (isa<arith::ConstantOp, vector::ExtractOp>(op))
    return true;
  if (auto load = dyn_cast<vector::LoadOp>(op)) // a local vector that is stored next
    return load.getBase().getDefiningOp<memref::AllocaOp>() != nullptr;
  if (!isPure(&op) || isa<gpu::ThreadIdOp, gpu::BlockIdOp>(op) || isa<NameLoc>(op.getLoc()))
    return false;
  Value result = op.getResult(0);
  if (!result.hasOneUse())
    return false;
  Operation *user = *result.getUsers().begin();
  if (user->getBlock() != op.getBlock())
    return false;
  // Carried values are assigned one after the other: each must not need another's old value.
  return !isa<scf::YieldOp>(user) || user->getNumOperands() == 1;
}

void Printer::define(Value value, const Expression &expression) {
  std::string name = nameOf(value);
  bool small = value.getType().isIndex() && wideIndex && boundOf(value);
  line() << "const " << (small ? "int" : typeName(value.getType())) << " " << name << " = "
         << expression.text << ";\n";
}

void Printer::assign(Value to, StringRef name, Value from) {
  std::string value = text(from);
  if (value != name)
    line() << name << " = " << value << ";\n";
}

void Printer::printFor(scf::ForOp op) {
  for (auto [argument, init, result] :
       llvm::zip(op.getRegionIterArgs(), op.getInitArgs(), op.getResults())) {
    std::string hint = "partial";
    // Its result's only use may say what it is.
    if (result.hasOneUse() && isa<NameLoc>((*result.getUsers().begin())->getLoc()))
      hint =
          (cast<NameLoc>((*result.getUsers().begin())->getLoc()).getName().getValue() + "Partial")
              .str();
    std::string name = freshName(UnknownLoc::get(op.getContext()), hint);
    line() << typeName(argument.getType()) << " " << name << " = " << text(init) << ";\n";
    // One after the other: the first may move the second.
    expressions[argument] = {name, Primary};
    expressions[result] = {name, Primary};
  }
  std::string iv = freshName(op.getLoc(), "i");
  expressions[op.getInductionVar()] = {iv, Primary};
  if (op->hasAttr(unrollAttrName))
    os << "#pragma unroll\n";
  line() << "for ("
         << (boundOf(op.getUpperBound()) ? "int" : typeName(op.getInductionVar().getType())) << " "
         << iv << " = " << text(op.getLowerBound()) << "; " << iv << " < "
         << text(op.getUpperBound(), Shift) << "; ";
  std::string step = text(op.getStep());
  if (step == "1")
    os << "++" << iv;
  else
    os << iv << " += " << step;
  os << ") {\n";
  ++depth;
  printBlock(*op.getBody());
  auto yield = cast<scf::YieldOp>(op.getBody()->getTerminator());
  // A carried value that another one becomes is read before it is overwritten.
  llvm::DenseMap<Value, std::string> saved;
  for (auto [argument, from] : llvm::zip(op.getRegionIterArgs(), yield.getOperands()))
    if (from != argument && llvm::is_contained(op.getRegionIterArgs(), from) &&
        !saved.count(from)) {
      std::string name = freshName(UnknownLoc::get(op.getContext()), "old");
      line() << "const " << typeName(from.getType()) << " " << name << " = " << text(from) << ";\n";
      saved[from] = name;
    }
  for (auto [argument, from] : llvm::zip(op.getRegionIterArgs(), yield.getOperands())) {
    if (auto old = saved.find(from); old != saved.end() && from != argument)
      line() << text(argument) << " = " << old->second << ";\n";
    else
      assign(argument, text(argument), from);
  }
  --depth;
  line() << "}\n";
}

void Printer::printIf(scf::IfOp op) {
  // An else branch that computes nothing gives the initial values.
  bool plainElse = op.elseBlock() && op.elseBlock()->without_terminator().empty();
  for (auto [i, result] : llvm::enumerate(op.getResults())) {
    std::string name = freshName(op.getLoc(), "value");
    line() << typeName(result.getType()) << " " << name;
    if (plainElse)
      os << " = " << text(op.elseYield().getOperand(i));
    os << ";\n";
    expressions[result] = {name, Primary};
  }
  line() << "if (" << text(op.getCondition()) << ") {\n";
  auto branch = [&](Block &block) {
    ++depth;
    printBlock(block);
    for (auto [result, from] : llvm::zip(op.getResults(), block.getTerminator()->getOperands()))
      assign(result, text(result), from);
    --depth;
  };
  branch(*op.thenBlock());
  if (op.elseBlock() && !plainElse) {
    line() << "} else {\n";
    branch(*op.elseBlock());
  }
  line() << "}\n";
}

void Printer::printOp(Operation &op) {
  llvm::TypeSwitch<Operation *>(&op)
      .Case([&](scf::ForOp loop) { printFor(loop); })
      .Case([&](scf::IfOp condition) { printIf(condition); })
      .Case<scf::YieldOp, gpu::ReturnOp>([&](auto) {})
      .Case([&](gpu::BarrierOp barrier) {
        if (auto team = barrier->getAttrOfType<IntegerAttr>(teamAttrName))
          line() << "__syncwarp(quern::teamMask<" << team.getInt() << ">());\n";
        else
          line() << "__syncthreads();\n";
      })
      .Case([&](memref::AllocaOp alloca) {
        MemRefType type = alloca.getType();
        if (type.getRank() == 1) {
          auto vector = VectorType::get(type.getShape(), type.getElementType());
          line() << typeName(vector) << " " << nameOf(alloca) << ";\n";
          return;
        }
        line() << typeName(type.getElementType()) << " " << nameOf(alloca);
        for (int64_t size : type.getShape())
          os << "[" << size << "]";
        os << ";\n";
      })
      .Case([&](memref::StoreOp store) {
        line() << element(store.getMemRef(), store.getIndices()) << " = "
               << text(store.getValueToStore()) << ";\n";
      })
      .Case([&](vector::MaskedStoreOp store) {
        line() << "quern::store(" << addressOf(store.getBase(), store.getIndices()) << ", "
               << text(store.getValueToStore()) << ", " << lefts.lookup(store.getMask()) << ");\n";
      })
      .Case([&](vector::StoreOp store) { // a whole local array
        line() << nameOf(store.getBase()) << " = " << text(store.getValueToStore()) << ";\n";
      })
      .Case([&](vector::CreateMaskOp mask) { lefts[mask] = text(mask.getOperand(0)); })
      .Default([&](Operation *) {
        FailureOr<Expression> expression = expressionOf(op);
        if (mlir::failed(expression)) {
          failed = true;
          return;
        }
        Value result = op.getResult(0);
        // Long expressions are hard to read.
        bool isShort = expression->text.size() < 60 || isa<arith::ConstantOp>(op);
        if (isInlined(op) && isShort)
          expressions[result] = *expression;
        else
          define(result, *expression);
      });
}

void Printer::printBlock(Block &block) {
  for (Operation &op : block) {
    printOp(op);
    if (failed)
      return;
  }
}

void Printer::printSignature() {
  if (auto schedule = function->getAttrOfType<StringAttr>(scheduleAttrName))
    os << "// " << schedule.getValue() << "\n";
  int32_t threads = function.getKnownBlockSizeAttr() ? function.getKnownBlockSizeAttr()[0] : 1024;
  os << "extern \"C\" __global__ void __launch_bounds__(" << threads << ")\n";
  std::string column = "    " + function.getName().str() + "(";
  unsigned indent = column.size(), width = indent;
  os << column;
  // const where nothing is written.
  llvm::DenseSet<Value> written;
  function.walk([&](Operation *op) {
    if (auto store = dyn_cast<memref::StoreOp>(op))
      written.insert(store.getMemRef());
    if (auto store = dyn_cast<vector::MaskedStoreOp>(op))
      written.insert(store.getBase());
  });
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    BlockArgument argument = function.getArgument(i);
    std::string text;
    if (auto memref = dyn_cast<MemRefType>(argument.getType())) {
      text =
          (written.contains(argument) ? "" : "const ") + typeName(memref.getElementType()) + " *";
      if (function.getArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName()))
        text += "__restrict__ ";
    } else {
      text = "long long ";
    }
    text += nameOf(argument) + (i + 1 < function.getNumArguments() ? "," : ") {");
    if (i && width + text.size() + 1 > 100) {
      os << "\n" << std::string(indent, ' ');
      width = indent;
    } else if (i) {
      os << " ";
    }
    width += text.size() + 1;
    os << text;
  }
  os << (function.getNumArguments() ? "\n" : ") {\n");

  for (BlockArgument array : function.getWorkgroupAttributions()) {
    auto type = cast<MemRefType>(array.getType());
    unsigned bytes = std::max(1u, type.getElementTypeBitWidth() / 8);
    line() << "__shared__ __align__(" << std::max(16u, 4 * bytes) << ") "
           << typeName(type.getElementType()) << " " << nameOf(array);
    for (int64_t size : type.getShape())
      os << "[" << size << "]";
    os << ";\n";
  }
  function.walk([&](gpu::AllReduceOp reduce) {
    std::string name = freshName(reduce.getLoc(), "total") + "Scratch";
    line() << "__shared__ " << typeName(reduce.getType()) << " " << name << "[" << threads / 32
           << "];\n";
    scratch[reduce.getResult()] = name;
  });
}

LogicalResult Printer::print() {
  if (auto bits = function->getAttrOfType<IntegerAttr>(indexBitsAttrName))
    wideIndex = bits.getInt() > 32;
  if (function.getNumPrivateAttributions() || !llvm::hasSingleElement(function.getBody()))
    return refuse(*function, "private attributions or several blocks");
  printSignature();
  printBlock(function.getBody().front());
  os << "}\n";
  return success(!failed);
}

} // namespace cuda

static constexpr llvm::StringLiteral includeLine = "#include \"quern.cuh\"\n\n";

FailureOr<std::string> emitCuda(gpu::GPUFuncOp function) {
  std::string text = includeLine.str();
  llvm::raw_string_ostream os(text);
  if (mlir::failed(cuda::Printer(function, os).print()))
    return failure();
  return text;
}

FailureOr<std::string> emitCuda(gpu::GPUModuleOp module) {
  std::string text = includeLine.str();
  llvm::raw_string_ostream os(text);
  for (auto function : module.getOps<gpu::GPUFuncOp>())
    if (mlir::failed(cuda::Printer(function, os).print()))
      return failure();
  return text;
}

namespace {
struct EmitCUDAPass : PassWrapper<EmitCUDAPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(EmitCUDAPass)
  StringRef getArgument() const override { return "quern-emit-cuda"; }
  StringRef getDescription() const override {
    return "schedule each kernel for CUDA and print its text";
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<QuernDialect, gpu::GPUDialect>();
  }
  void runOnOperation() override {
    for (auto kernel : getOperation().getOps<kernel::FuncOp>()) {
      FailureOr<OwningOpRef<ModuleOp>> module = scheduleCudaKernel(kernel);
      if (mlir::failed(module))
        return signalPassFailure();
      FailureOr<std::string> text = emitCuda(getDeviceFunction(**module));
      if (mlir::failed(text))
        return signalPassFailure();
      llvm::outs() << *text << "\n";
    }
    llvm::outs().flush();
  }
};
} // namespace

void registerEmitCUDAPass() { PassRegistration<EmitCUDAPass>(); }

} // namespace quern
