//===- Tables.cpp - Constant C structures as LLVM globals -----------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Tables.h"

using namespace mlir;

namespace quern {

Tables::Tables(ModuleOp module, StringRef prefix)
    : pointer(LLVM::LLVMPointerType::get(module.getContext())), module(module),
      b(module.getContext()), prefix(prefix) {}

std::string Tables::fresh() { return prefix + ".table." + std::to_string(count++); }

Init Tables::integer(unsigned bits, int64_t v) { return {b.getIntegerType(bits), v, "", {}}; }

Init Tables::address(StringRef symbol) { return {pointer, 0, symbol.str(), {}}; }

Init Tables::structure(std::vector<Init> fields) {
  SmallVector<Type> types;
  for (const Init &field : fields)
    types.push_back(field.type);
  Type type = LLVM::LLVMStructType::getLiteral(b.getContext(), types);
  return {type, 0, "", std::move(fields)};
}

Init Tables::bytes(StringRef data, unsigned alignment) {
  std::string name = fresh();
  b.setInsertionPointToEnd(module.getBody());
  auto type = LLVM::LLVMArrayType::get(b.getI8Type(), data.size());
  LLVM::GlobalOp::create(b, module.getLoc(), type, /*isConstant=*/true, LLVM::Linkage::Private,
                         name, b.getStringAttr(data), alignment);
  return address(name);
}

Init Tables::string(StringRef text) {
  auto [it, isNew] = strings.try_emplace(text);
  if (isNew)
    it->second = bytes(std::string(text) + '\0', 1);
  return it->second;
}

Init Tables::array(std::vector<Init> elements) {
  if (elements.empty())
    return null();
  Type type = LLVM::LLVMArrayType::get(elements.front().type, elements.size());
  std::string name = fresh();
  global(name, {type, 0, "", std::move(elements)}, LLVM::Linkage::Private);
  return address(name);
}

LLVM::GlobalOp Tables::global(StringRef name, const Init &value, LLVM::Linkage linkage) {
  b.setInsertionPointToEnd(module.getBody());
  auto op = LLVM::GlobalOp::create(b, module.getLoc(), value.type, /*isConstant=*/true, linkage,
                                   name, Attribute());
  b.createBlock(&op.getInitializerRegion());
  LLVM::ReturnOp::create(b, module.getLoc(), emit(value));
  return op;
}

Value Tables::emit(const Init &value) {
  Location loc = module.getLoc();
  if (isa<IntegerType>(value.type))
    return LLVM::ConstantOp::create(b, loc, value.type, b.getIntegerAttr(value.type, value.number));
  if (value.type == pointer)
    return value.symbol.empty()
               ? LLVM::ZeroOp::create(b, loc, pointer).getResult()
               : LLVM::AddressOfOp::create(b, loc, pointer, value.symbol).getResult();
  Value result = LLVM::UndefOp::create(b, loc, value.type);
  for (auto [i, field] : llvm::enumerate(value.fields))
    result = LLVM::InsertValueOp::create(b, loc, result, emit(field), ArrayRef<int64_t>(i));
  return result;
}

void Tables::declareGlobal(StringRef name, Type type) {
  b.setInsertionPointToEnd(module.getBody());
  auto op = LLVM::GlobalOp::create(b, module.getLoc(), type, /*isConstant=*/true,
                                   LLVM::Linkage::External, name, Attribute());
  op.setVisibility_(LLVM::Visibility::Hidden);
}

LLVM::LLVMFuncOp Tables::declare(StringRef name, Type result, ArrayRef<Type> arguments) {
  if (auto found = module.lookupSymbol<LLVM::LLVMFuncOp>(name))
    return found;
  b.setInsertionPointToStart(module.getBody());
  return LLVM::LLVMFuncOp::create(b, module.getLoc(), name,
                                  LLVM::LLVMFunctionType::get(result, arguments));
}

} // namespace quern
