//===- Kernels.cpp - The kernels of a model, each by itself ---------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Kernels.h"

#include "mlir/IR/DialectResourceBlobManager.h"
#include "quern/Compiler/Diagnostics.h"
#include "quern/Conversion/QuernToLinalg/LoweringBuilder.h"
#include "quern/Dialect/Quern/IR/FunctionAttrs.h"
#include "quern/Schedule/CUDA.h"
#include "quern/Support/Error.h"

#include <atomic>
#include <mutex>
#include <set>
#include <thread>

using namespace mlir;

namespace quern {

std::string KernelSettings::key() const {
  return llvm::formatv("{0}|{1}|{2}{3}|{4}{5}{6}|{7}", target.str(), machine.str(),
                       schedule.reference, schedule.strict, codegen.level, codegen.kernels,
                       int(codegen.emit), device);
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

std::vector<char> elementBytes(ElementsAttr value) {
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(value)) {
    ArrayRef<char> data = resource.getData();
    return {data.begin(), data.end()};
  }
  auto dense = cast<DenseElementsAttr>(value);
  std::vector<char> bytes;
  if (dense.getElementType().isInteger(1)) {
    for (bool b : dense.getValues<bool>())
      bytes.push_back(b);
    return bytes;
  }
  ArrayRef<char> raw = dense.getRawData();
  for (int64_t i = 0, n = dense.isSplat() ? dense.getNumElements() : 1; i < n; ++i)
    bytes.insert(bytes.end(), raw.begin(), raw.end());
  return bytes;
}

LogicalResult packConstants(ModuleOp module, const MachineModel &machine) {
  SymbolTable symbols(module);
  // A kernel and the operands that are packed, as a kernel of its own; a constant in one
  // layout, as an argument of its own.
  llvm::DenseMap<std::pair<Operation *, uint64_t>, kernel::FuncOp> variants;
  llvm::DenseMap<std::pair<Value, Operation *>, Value> packed;
  SmallVector<kernel::LaunchOp> launches;
  module.walk([&](kernel::LaunchOp launch) { launches.push_back(launch); });
  for (kernel::LaunchOp launch : launches) {
    auto k = symbols.lookup<kernel::FuncOp>(launch.getKernel());
    auto func = launch->getParentOfType<func::FuncOp>();
    if (!k || !func)
      continue;
    SmallVector<int64_t> args(k.getPacked());
    uint64_t mask = 0;
    for (auto [i, operand] : llvm::enumerate(launch.getIns())) {
      auto arg = dyn_cast<BlockArgument>(operand);
      if (!arg || arg.getOwner() != &func.getBody().front() || i >= 64 || k.isPacked(i))
        continue;
      auto value = func.getArgAttrOfType<ElementsAttr>(arg.getArgNumber(), constantAttrName);
      std::optional<PackedLayout> layout = value ? getPackedLayout(k, i, machine) : std::nullopt;
      if (!layout)
        continue;
      Value &replacement = packed[{operand, k}];
      if (!replacement) {
        std::vector<char> bytes = packConstant(*layout, elementBytes(value));
        auto blob = HeapAsmResourceBlob::allocateAndCopyWithAlign(bytes, 64);
        auto attr =
            DenseResourceElementsAttr::get(value.getShapedType(), "packed", std::move(blob));
        auto attrs = DictionaryAttr::get(
            module.getContext(),
            {NamedAttribute(StringAttr::get(module.getContext(), constantAttrName), attr)});
        unsigned n = func.getNumArguments();
        if (failed(func.insertArgument(n, arg.getType(), attrs, arg.getLoc())))
          return failure();
        replacement = func.getArgument(n);
      }
      launch.getInsMutable()[i].set(replacement);
      args.push_back(i);
      mask |= uint64_t(1) << i;
    }
    if (!mask)
      continue;
    kernel::FuncOp &variant = variants[{k, mask}];
    if (!variant) {
      variant = k.clone();
      llvm::sort(args);
      variant.setPacked(args);
      symbols.insert(variant, std::next(Block::iterator(k)));
      if (!variant->hasAttr(nameAttrName))
        variant->setAttr(nameAttrName, k.getSymNameAttr());
    }
    launch.setKernel(variant.getSymName());
  }
  // Constants that only packed launches read are gone.
  for (auto func : module.getOps<func::FuncOp>()) {
    llvm::BitVector dead(func.getNumArguments());
    for (BlockArgument arg : func.getArguments())
      if (arg.use_empty() && func.getArgAttr(arg.getArgNumber(), constantAttrName))
        dead.set(arg.getArgNumber());
    if (failed(func.eraseArguments(dead)))
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

// Text does not show the bytes of resources: they become plain constants.
static void inlineResources(kernel::FuncOp k) {
  k.walk([&](Operation *op) {
    for (NamedAttribute attr : op->getAttrs())
      if (auto resource = dyn_cast<DenseResourceElementsAttr>(attr.getValue()))
        op->setAttr(attr.getName(), DenseElementsAttr::getFromRawBuffer(
                                        cast<ShapedType>(resource.getType()), resource.getData()));
  });
}

std::vector<KernelUnit> nameKernels(ModuleOp module, StringRef settingsKey) {
  // What is launched, with the pairs of buffers that any launch lets it share.
  llvm::DenseMap<StringAttr, std::set<std::pair<int64_t, int64_t>>> launched;
  module.walk([&](kernel::LaunchOp launch) {
    auto &pairs = launched[launch.getKernelAttr().getAttr()];
    ArrayRef<int64_t> share = launch.getShare();
    for (size_t i = 0; i + 1 < share.size(); i += 2)
      pairs.insert({share[i], share[i + 1]});
  });
  llvm::DenseMap<StringAttr, StringAttr> names;
  llvm::StringSet<> seen;
  std::vector<KernelUnit> units;
  for (auto k : llvm::make_early_inc_range(module.getOps<kernel::FuncOp>())) {
    StringAttr old = k.getSymNameAttr();
    auto pairs = launched.find(old);
    if (pairs == launched.end()) {
      k.erase();
      continue;
    }
    SmallVector<int64_t> share;
    for (auto [out, in] : pairs->second)
      share.append({out, in});
    k.setShare(share);
    KernelUnit unit;
    auto display = k->getAttrOfType<StringAttr>(nameAttrName);
    unit.display = (display ? display : old).str();
    k->removeAttr(nameAttrName);
    inlineResources(k);
    k.setSymName("kernel");
    llvm::raw_string_ostream os(unit.text);
    k->print(os, OpPrintingFlags().useLocalScope());
    unit.symbol = (k.getKind() + "_" +
                   StringRef(DiskCache::contentHash({unit.text, settingsKey})).take_front(20))
                      .str();
    names[old] = StringAttr::get(module.getContext(), unit.symbol);
    if (!seen.insert(unit.symbol).second) {
      k.erase();
      continue;
    }
    k.setSymName(unit.symbol);
    k->setAttr(nameAttrName, StringAttr::get(module.getContext(), unit.display));
    units.push_back(std::move(unit));
  }
  module.walk([&](kernel::LaunchOp launch) {
    if (StringAttr name = names.lookup(launch.getKernelAttr().getAttr()))
      launch.setKernelAttr(FlatSymbolRefAttr::get(name));
  });
  return units;
}

//===----------------------------------------------------------------------===//
// Compiling
//===----------------------------------------------------------------------===//

FailureOr<OwningOpRef<ModuleOp>> loadUnit(MLIRContext &ctx, const KernelUnit &unit) {
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(unit.text, &ctx);
  if (!module)
    return failure();
  auto k = *module->getOps<kernel::FuncOp>().begin();
  k.setSymName(unit.symbol);
  if (failed(lowerToLinalg(k)))
    return failure();
  return std::move(module);
}

FailureOr<OwningOpRef<ModuleOp>> scheduleUnit(MLIRContext &ctx, const KernelUnit &unit,
                                              const KernelSettings &settings) {
  FailureOr<OwningOpRef<ModuleOp>> module = loadUnit(ctx, unit);
  if (failed(module))
    return failure();
  auto k = *(*module)->getOps<kernel::FuncOp>().begin();
  if (!settings.device)
    return scheduleKernel(k, settings.machine, settings.schedule);
  CudaScheduleOptions options;
  options.strict = settings.schedule.strict;
  return scheduleCudaKernel(k, options);
}

static llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
compileUnit(MLIRContext &ctx, const KernelUnit &unit, const KernelSettings &settings) {
  DiagnosticCollector diagnostics(&ctx, {});
  if (settings.device) {
    if (FailureOr<std::string> bytes = compileDeviceUnit(ctx, unit, settings); succeeded(bytes))
      return llvm::MemoryBuffer::getMemBufferCopy(*bytes, unit.symbol);
  } else if (FailureOr<OwningOpRef<ModuleOp>> loops = scheduleUnit(ctx, unit, settings);
             succeeded(loops))
    if (FailureOr<ObjectCode> code = compileToObject(**loops, settings.target, settings.codegen);
        succeeded(code))
      return llvm::MemoryBuffer::getMemBufferCopy(code->ref(), unit.symbol);
  return withContext(diagnostics.take("compiling"), "kernel '" + unit.display + "': ");
}

llvm::Expected<std::vector<std::unique_ptr<llvm::MemoryBuffer>>>
compileKernels(MLIRContext &ctx, ArrayRef<KernelUnit> units, const KernelSettings &settings,
               const CompileOptions &options) {
  std::vector<std::unique_ptr<llvm::MemoryBuffer>> results(units.size());
  std::vector<size_t> missing;
  // The symbol hashes text and settings; the cache wants the whole key.
  std::string settingsKey = settings.key();
  auto key = [&](const KernelUnit &unit) {
    return DiskCache::key({"kernel", unit.symbol, unit.text, settingsKey});
  };
  for (auto [i, unit] : llvm::enumerate(units))
    if (!(results[i] = options.cache.read(key(unit))))
      missing.push_back(i);

  std::vector<std::optional<llvm::Error>> errors(units.size());
  std::atomic<size_t> next{0};
  std::atomic<bool> stop{false};
  std::mutex progress;
  size_t done = 0;
  auto work = [&](MLIRContext &ctx) {
    for (size_t n; !stop && (n = next++) < missing.size();) {
      size_t i = missing[n];
      auto code = compileUnit(ctx, units[i], settings);
      if (!code) {
        errors[i] = code.takeError();
        stop = true;
        continue;
      }
      options.cache.write(key(units[i]), (*code)->getBuffer());
      results[i] = std::move(*code);
      if (options.onProgress) {
        std::lock_guard<std::mutex> lock(progress);
        options.onProgress(units.size() - missing.size() + ++done, units.size());
      }
    }
  };
  size_t wanted = options.threads ? options.threads : std::thread::hardware_concurrency();
  std::vector<std::thread> threads;
  for (size_t t = 1; t < std::min(wanted, missing.size()); ++t)
    threads.emplace_back([&] { work(*createContext()); });
  work(ctx);
  for (std::thread &thread : threads)
    thread.join();
  std::optional<llvm::Error> first;
  for (std::optional<llvm::Error> &error : errors) {
    if (error && first)
      llvm::consumeError(std::move(*error));
    else if (error)
      first = std::move(error);
  }
  if (first)
    return std::move(*first);
  return std::move(results);
}

} // namespace quern
