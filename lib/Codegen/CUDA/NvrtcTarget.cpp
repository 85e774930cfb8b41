//===- NvrtcTarget.cpp - Device modules to cubins -------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Codegen/CUDA/Emitter.h"
#include "quern/Codegen/CUDA/NVRTC.h"
#include "quern/Dialect/Quern/IR/NvrtcAttr.h"
#include "quern/Dialect/Quern/IR/Quern.h"
#include "quern/Support/Error.h"

using namespace mlir;

namespace quern {

namespace {
struct NvrtcTarget : gpu::TargetAttrInterface::FallbackModel<NvrtcTarget> {
  std::optional<SmallVector<char, 0>> serializeToObject(Attribute attribute, Operation *op,
                                                        const gpu::TargetOptions &options) const {
    auto bytes = [](StringRef text) { return SmallVector<char, 0>(text.begin(), text.end()); };
    auto fail = [&](llvm::Error error) {
      std::string message;
      takeError(std::move(error), message);
      op->emitError(message);
      return std::nullopt;
    };
    auto module = cast<gpu::GPUModuleOp>(op);
    FailureOr<std::string> text = emitCuda(module);
    if (failed(text))
      return std::nullopt;
    switch (options.getCompilationTarget()) {
    case gpu::CompilationTarget::Assembly:
      return bytes(*text);
    case gpu::CompilationTarget::Offload:
      return fail(unsupported("#quern.nvrtc makes no LLVM IR: expected format=isa, bin or fatbin"));
    default:
      break;
    }
    llvm::Expected<const Nvrtc &> nvrtc = Nvrtc::get();
    if (!nvrtc)
      return fail(nvrtc.takeError());
    llvm::Expected<CudaBinary> binary =
        nvrtc->compile(*text, module.getName(), cast<NvrtcAttr>(attribute).getChip());
    if (!binary)
      return fail(binary.takeError());
    if (!binary->log.empty())
      module.emitWarning("NVRTC: ") << binary->log;
    return bytes(binary->data);
  }

  Attribute createObject(Attribute attribute, Operation *, const SmallVector<char, 0> &object,
                         const gpu::TargetOptions &options) const {
    Builder builder(attribute.getContext());
    return gpu::ObjectAttr::get(attribute, options.getCompilationTarget(),
                                builder.getStringAttr(StringRef(object.data(), object.size())));
  }
};
} // namespace

void registerNvrtcTarget(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, QuernDialect *) {
    NvrtcAttr::attachInterface<NvrtcTarget>(*context);
  });
}

} // namespace quern
