//===- Model.cpp - An ONNX model in memory --------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Import/ONNX/Model.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace quern::onnx {

// By number, from 1.
static constexpr ElementType elementTypes[] = {
    {1, "f32", 32, DType::F32},        {2, "u8", 8, DType::U8},
    {3, "i8", 8, DType::I8},           {4, "u16", 16, DType::U16},
    {5, "i16", 16, DType::I16},        {6, "i32", 32, DType::I32},
    {7, "i64", 64, DType::I64},        {8, "string", 0, std::nullopt},
    {9, "bool", 8, DType::Bool},       {10, "f16", 16, DType::F16},
    {11, "f64", 64, DType::F64},       {12, "u32", 32, DType::U32},
    {13, "u64", 64, DType::U64},       {14, "c64", 64, std::nullopt},
    {15, "c128", 128, std::nullopt},   {16, "bf16", 16, DType::BF16},
    {17, "f8e4m3fn", 8, std::nullopt}, {18, "f8e4m3fnuz", 8, std::nullopt},
    {19, "f8e5m2", 8, std::nullopt},   {20, "f8e5m2fnuz", 8, std::nullopt},
    {21, "u4", 4, std::nullopt},       {22, "i4", 4, std::nullopt},
    {23, "f4e2m1", 4, std::nullopt},   {24, "f8e8m0", 8, std::nullopt},
    {25, "u2", 2, std::nullopt},       {26, "i2", 2, std::nullopt},
};

const ElementType *getElementType(int32_t number) {
  if (number < 1 || number > int32_t(std::size(elementTypes)))
    return nullptr;
  return &elementTypes[number - 1];
}

const ElementType &getElementType(DType dtype) {
  return *find_if(elementTypes, [&](const ElementType &type) { return type.dtype == dtype; });
}

StringRef name(AttributeType type) {
  static constexpr StringLiteral names[numAttributeTypes] = {
      "undefined",      "float", "int",     "string",  "tensor", "graph",
      "floats",         "ints",  "strings", "tensors", "graphs", "sparse_tensor",
      "sparse_tensors", "type",  "types"};
  return names[unsigned(type)];
}

const Attribute *Node::getAttribute(StringRef attribute) const {
  auto it = find_if(attributes, [&](const Attribute &a) { return a.name == attribute; });
  return it == attributes.end() ? nullptr : &*it;
}

/// A word as it stands when it is one, else quoted.
static std::string word(StringRef text) {
  bool plain =
      !text.empty() && all_of(text, [](char c) { return isAlnum(c) || c == '_' || c == '.'; });
  return plain && text.size() < 100 ? text.str() : quoted(text);
}

std::string Node::opName() const {
  return domain.empty() ? word(op) : word(domain) + "." + word(op);
}

std::string Node::str() const {
  if (!name.empty())
    return "node " + quoted(name) + " (" + opName() + ")";
  for (StringRef output : outputs)
    if (!output.empty())
      return "the node of " + quoted(output) + " (" + opName() + ")";
  return "a node without a name (" + opName() + ")";
}

std::string quoted(StringRef text) {
  constexpr size_t longest = 160;
  std::string out = "'";
  raw_string_ostream os(out);
  for (size_t i = 0; i < text.size();) {
    if (text.size() > longest && i >= longest / 2 && i + longest / 2 < text.size()) {
      os << "…";
      i = text.size() - longest / 2;
    }
    unsigned char c = text[i];
    unsigned length = c < 0x80 ? 1 : getNumBytesForUTF8(c);
    const UTF8 *start = text.bytes_begin() + i;
    if (c < 0x20 || c == 0x7f || length > text.size() - i ||
        !isLegalUTF8Sequence(start, start + length)) {
      if (c == '\n')
        os << "\\n";
      else if (c == '\t')
        os << "\\t";
      else
        os << "\\x" << hexdigit(c >> 4, true) << hexdigit(c & 15, true);
      ++i;
      continue;
    }
    os << text.substr(i, length);
    i += length;
  }
  os << "'";
  return out;
}

std::string dimsString(ArrayRef<int64_t> dims) {
  std::string out;
  raw_string_ostream os(out);
  os << '[';
  interleaveComma(dims, os);
  os << ']';
  return out;
}

} // namespace quern::onnx
