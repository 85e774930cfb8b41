//===- LinkTest.cpp - Artefacts -------------------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Codegen/CPU/Link.h"
#include "quern-c/Runtime.h"
#include "quern/Codegen/CPU/Compile.h"
#include "quern/Codegen/CPU/Jit.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "gtest/gtest.h"
#include <dlfcn.h>

using namespace mlir;
using namespace quern;

namespace {

class Link : public testing::Test {
protected:
  llvm::SmallString<64> folder;
  ObjectCode code;
  Link() {
    EXPECT_FALSE(llvm::sys::fs::createUniqueDirectory("quern-link", folder));
    DialectRegistry registry;
    registerCodegenDialects(registry);
    MLIRContext ctx(registry);
    ctx.loadAllAvailableDialects();
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(R"(
      llvm.func @quern_context_create(i32) -> !llvm.ptr
      llvm.func @expf(f32) -> f32
      llvm.mlir.global external constant @answer(42 : i64) : i64
      llvm.func @new_context() -> !llvm.ptr {
        %c = llvm.mlir.constant(1 : i32) : i32
        %r = llvm.call @quern_context_create(%c) : (i32) -> !llvm.ptr
        llvm.return %r : !llvm.ptr
      }
      llvm.func @e(%x: f32) -> f32 {
        %r = llvm.call @expf(%x) : (f32) -> f32
        llvm.return %r : f32
      })",
                                                               &ctx);
    CodegenOptions options;
    options.kernels = false;
    code = std::move(*compileToObject(*module, CpuTarget::native(), options));
  }
  ~Link() override { llvm::sys::fs::remove_directories(folder); }
  std::string path(StringRef name) { return (folder + "/" + name).str(); }
  int filesLeft() {
    std::error_code error;
    int count = 0;
    for (llvm::sys::fs::directory_iterator it(folder, error), end; it != end; it.increment(error))
      ++count;
    return count;
  }
};

TEST_F(Link, SharedLibraryHoldsTheRuntime) {
  std::string file = path("m.so");
  StringRef objects[] = {code.ref(), getRuntimeObject("QuernRuntime")};
  ASSERT_FALSE(objects[1].empty());
  llvm::Error error = linkArtefact(ArtefactKind::Shared, objects, file);
  ASSERT_FALSE(error) << llvm::toString(std::move(error));
  EXPECT_EQ(filesLeft(), 1);

  auto binary = llvm::object::ObjectFile::createObjectFile(file);
  ASSERT_TRUE(bool(binary));
  auto *elf = llvm::cast<llvm::object::ELF64LEObjectFile>(binary->getBinary());
  std::vector<std::string> needed, exported;
  llvm::StringRef strings;
  for (auto &entry : llvm::cantFail(elf->getELFFile().dynamicEntries()))
    if (entry.d_tag == llvm::ELF::DT_STRTAB)
      strings = reinterpret_cast<const char *>(
          llvm::cantFail(elf->getELFFile().toMappedAddr(entry.d_un.d_ptr)));
  for (auto &entry : llvm::cantFail(elf->getELFFile().dynamicEntries()))
    if (entry.d_tag == llvm::ELF::DT_NEEDED)
      needed.push_back(strings.data() + entry.d_un.d_val);
  EXPECT_EQ(needed, (std::vector<std::string>{"libm.so.6", "libc.so.6"}));
  for (auto symbol : elf->getDynamicSymbolIterators())
    if (!(llvm::cantFail(symbol.getFlags()) & llvm::object::SymbolRef::SF_Undefined))
      exported.push_back(llvm::cantFail(symbol.getName()).str());
  EXPECT_EQ(llvm::count(exported, "answer"), 1);
  for (std::string &name : exported)
    EXPECT_EQ(name.find("__"), std::string::npos) << name;

  void *library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_TRUE(library) << dlerror();
  EXPECT_EQ(*static_cast<int64_t *>(dlsym(library, "answer")), 42);
  EXPECT_FLOAT_EQ(reinterpret_cast<float (*)(float)>(dlsym(library, "e"))(1), 2.7182817f);
  // Its runtime is its own, and works.
  auto create = reinterpret_cast<quern_context *(*)()>(dlsym(library, "new_context"));
  auto destroy =
      reinterpret_cast<decltype(&quern_context_destroy)>(dlsym(library, "quern_context_destroy"));
  ASSERT_NE(destroy, &quern_context_destroy);
  destroy(create());
  dlclose(library);
}

TEST_F(Link, ObjectCanBeLinkedAgain) {
  StringRef objects[] = {code.ref(), getRuntimeObject("QuernRuntime")};
  llvm::Error error = linkArtefact(ArtefactKind::Object, objects, path("m.o"));
  ASSERT_FALSE(error) << llvm::toString(std::move(error));
  EXPECT_EQ(filesLeft(), 1);
  auto object = llvm::MemoryBuffer::getFile(path("m.o"));
  StringRef again[] = {(*object)->getBuffer()};
  error = linkArtefact(ArtefactKind::Shared, again, path("m.so"));
  EXPECT_FALSE(error) << llvm::toString(std::move(error));
}

TEST_F(Link, ErrorsLeaveNothingBehind) {
  StringRef missing[] = {code.ref()}; // without the runtime
  std::string text = llvm::toString(linkArtefact(ArtefactKind::Shared, missing, path("m.so")));
  EXPECT_NE(text.find("m.so: cannot be linked: "), std::string::npos) << text;
  EXPECT_NE(text.find("quern_context_create"), std::string::npos) << text;
  EXPECT_EQ(filesLeft(), 0);
  StringRef broken[] = {"not an object"};
  text = llvm::toString(linkArtefact(ArtefactKind::Shared, broken, path("m.so")));
  EXPECT_NE(text.find("cannot be linked"), std::string::npos) << text;
  EXPECT_EQ(filesLeft(), 0);
  // And the linker still works.
  StringRef objects[] = {code.ref(), getRuntimeObject("QuernRuntime")};
  EXPECT_FALSE(linkArtefact(ArtefactKind::Shared, objects, path("m.so")));
  text = llvm::toString(linkArtefact(ArtefactKind::Shared, objects, path("no/such/m.so")));
  EXPECT_NE(text.find("no such folder"), std::string::npos) << text;
}

TEST_F(Link, JitReportsMissingSymbols) {
  auto jit = llvm::cantFail(JitLibrary::create());
  auto address = jit->lookup("nobody");
  ASSERT_FALSE(address);
  EXPECT_NE(llvm::toString(address.takeError()).find("nobody"), std::string::npos);
}

} // namespace
