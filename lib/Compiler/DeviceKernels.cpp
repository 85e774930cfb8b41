//===- DeviceKernels.cpp - Kernels as CUDA text, cubins, PTX --------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Kernels.h"

#include "quern/Codegen/CUDA/Emitter.h"
#include "quern/Codegen/CUDA/NVRTC.h"
#include "quern/Schedule/CUDA.h"
#include "quern/Support/Error.h"

using namespace mlir;

namespace quern {

//===----------------------------------------------------------------------===//
// One kernel: text, and the object with its number of blocks
//===----------------------------------------------------------------------===//

// As one piece of bytes, for the cache: "<block threads> <size of the text>\n", the
// text, the object.
FailureOr<std::string> compileDeviceUnit(MLIRContext &ctx, const KernelUnit &unit,
                                         const KernelSettings &settings) {
  FailureOr<OwningOpRef<ModuleOp>> device = scheduleUnit(ctx, unit, settings);
  if (failed(device))
    return failure();
  gpu::GPUFuncOp function = getDeviceFunction(**device);
  FailureOr<std::string> text = emitCuda(function);
  if (failed(text))
    return failure();
  int64_t threads = 1;
  if (std::optional<ArrayRef<int32_t>> block = function.getKnownBlockSize())
    for (int32_t size : *block)
      threads *= size;
  function->getParentOfType<gpu::GPUModuleOp>().erase();
  FailureOr<ObjectCode> object = compileToObject(**device, settings.target, settings.codegen);
  if (failed(object))
    return failure();
  return (llvm::Twine(threads) + " " + llvm::Twine(text->size()) + "\n" + *text + object->ref())
      .str();
}

static bool split(StringRef bytes, int64_t &threads, StringRef &text, StringRef &object) {
  auto [line, rest] = bytes.split('\n');
  size_t size;
  if (line.consumeInteger(10, threads) || !line.consume_front(" ") || line.getAsInteger(10, size) ||
      size > rest.size())
    return false;
  text = rest.take_front(size);
  object = rest.drop_front(size);
  return true;
}

//===----------------------------------------------------------------------===//
// All kernels of a module
//===----------------------------------------------------------------------===//

llvm::Expected<DeviceKernels> compileDeviceKernels(ModuleOp module, ArrayRef<KernelUnit> units,
                                                   const KernelSettings &settings,
                                                   const CompileOptions &options) {
  auto compiled = compileKernels(*module.getContext(), units, settings, options);
  if (!compiled)
    return compiled.takeError();
  DeviceKernels result;
  bool emulated = options.device != DeviceKind::CUDA; // the text is the image
  std::vector<std::string> targets;
  const Nvrtc *nvrtc = nullptr;
  if (!emulated) {
    llvm::Expected<const Nvrtc &> found = Nvrtc::get();
    if (!found)
      return found.takeError();
    nvrtc = &*found;
    for (const std::string &chip : options.chips) {
      llvm::Expected<std::string> target = nvrtc->targetFor(chip);
      if (!target)
        return target.takeError();
      targets.push_back(*target);
    }
  }
  SymbolTable symbols(module);
  OpBuilder b(module.getContext());
  for (auto [unit, bytes] : llvm::zip_equal(units, *compiled)) {
    int64_t threads;
    StringRef text, object;
    if (!split(bytes->getBuffer(), threads, text, object))
      return llvm::make_error<StatusError>(QUERN_INTERNAL, "a damaged entry of the cache");
    result.texts.push_back(text.str());
    result.objects.push_back(llvm::MemoryBuffer::getMemBufferCopy(object, unit.symbol));
    auto k = symbols.lookup<kernel::FuncOp>(unit.symbol);
    k->setAttr("quern.image", b.getI32IntegerAttr(result.images.size()));
    k->setAttr("quern.image_count", b.getI32IntegerAttr(emulated ? 1 : targets.size()));
    k->setAttr("quern.block_threads", b.getI32IntegerAttr(threads));
    if (emulated)
      result.images.push_back({"cuda-emulated", text.str()});
    for (const std::string &target : targets) {
      std::string key = DiskCache::key({"nvrtc", text, target, nvrtc->version()});
      if (auto cached = options.cache.read(key)) {
        result.images.push_back({target, cached->getBuffer().str()});
        continue;
      }
      llvm::Expected<CudaBinary> binary = nvrtc->compile(text, unit.symbol, target);
      if (!binary)
        return withContext(binary.takeError(), "kernel '" + unit.display + "': ");
      options.cache.write(key, binary->data);
      result.images.push_back({binary->target, std::move(binary->data)});
    }
  }
  return result;
}

} // namespace quern
