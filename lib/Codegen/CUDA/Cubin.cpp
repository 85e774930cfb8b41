//===- Cubin.cpp - What a cubin says about its kernels --------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Codegen/CUDA/Cubin.h"
#include "quern/Support/Error.h"
#include "llvm/ADT/SmallVector.h"
#include <cstring>

using namespace llvm;

namespace quern {

void CubinKernel::print(raw_ostream &os) const {
  os << "registers " << registers << " stack " << stackBytes << " shared " << sharedBytes;
  for (const auto &[name, number] : instructions)
    os << ' ' << name << ' ' << number;
}

namespace {
/// Reads of a file that may be cut short: outside of it everything is zero, and `ok` false.
struct Reader {
  StringRef bytes;
  bool ok = true;

  template <class T> T at(uint64_t offset) {
    T value{};
    if (offset > bytes.size() || bytes.size() - offset < sizeof(T))
      ok = false;
    else
      std::memcpy(&value, bytes.data() + offset, sizeof(T));
    return value;
  }
  StringRef string(uint64_t offset) {
    StringRef rest = bytes.substr(std::min<uint64_t>(offset, bytes.size()));
    size_t end = rest.find('\0');
    ok &= end != StringRef::npos;
    return rest.substr(0, end);
  }
};

/// ELF64's section header.
struct Section {
  uint32_t name, type;
  uint64_t flags, address, offset, size;
  uint32_t link, info;
  uint64_t align, entry;
};

struct Instruction {
  unsigned opcode;
  const char *name;
  bool sized; ///< an access whose width matters
};
// Instructions are 16 bytes on sm_75 and later; the opcode is the low 12 bits.
const Instruction known[] = {
    {0x381, "LDG", true},     {0x981, "LDG", true},  {0x386, "STG", true},   {0x986, "STG", true},
    {0x984, "LDS", true},     {0x388, "STS", true},  {0x988, "STS", true},   {0x983, "LDL", false},
    {0x387, "STL", false},    {0x987, "STL", false}, {0x23c, "HMMA", false}, {0x83b, "LDSM", false},
    {0xfae, "LDGSTS", false}, {0xb1d, "BAR", false}, {0xf89, "SHFL", false}, {0x389, "SHFL", false},
    {0x223, "FFMA", false},
};
// Attributes of .nv.info, each a symbol and a number.
constexpr uint8_t frameSize = 0x11, registerCount = 0x2f, withTwoWords = 4;
constexpr uint32_t symbolTable = 2;
} // namespace

static void countInstructions(Reader &file, const Section &text, CubinKernel &kernel) {
  for (uint64_t p = text.offset; file.ok && p < text.offset + text.size; p += 16) {
    unsigned head = file.at<uint16_t>(p), width = file.at<uint32_t>(p + 8) >> 9 & 7;
    if (head >> 12 == 15) // @!PT: a filler that never runs
      continue;
    for (const Instruction &instruction : known)
      if (instruction.opcode == (head & 0xfff)) {
        std::string name = instruction.name;
        if (instruction.sized)
          name += width == 6 ? ".128" : width == 5 ? ".64" : "";
        ++kernel.instructions[name];
      }
  }
}

Expected<std::map<std::string, CubinKernel>> readCubin(StringRef bytes) {
  Reader file{bytes};
  if (!bytes.starts_with("\177ELF\2"))
    return invalidInput("not a cubin: no ELF64 header");
  uint64_t table = file.at<uint64_t>(0x28);
  SmallVector<Section> sections(file.at<uint16_t>(0x3c));
  for (auto [i, section] : enumerate(sections))
    section = file.at<Section>(table + i * sizeof(Section));
  unsigned namesIndex = file.at<uint16_t>(0x3e);
  if (!file.ok || namesIndex >= sections.size())
    return invalidInput("not a cubin: its section table is cut short");

  SmallVector<StringRef> symbols;
  for (const Section &section : sections)
    if (section.type == symbolTable && section.link < sections.size())
      for (uint64_t at = section.offset; file.ok && at + 24 <= section.offset + section.size;
           at += 24)
        symbols.push_back(file.string(sections[section.link].offset + file.at<uint32_t>(at)));

  std::map<std::string, CubinKernel> kernels;
  for (const Section &section : sections) {
    StringRef name = file.string(sections[namesIndex].offset + section.name);
    // `$…`: internal functions such as a division's slow path.
    if (name.consume_front(".text.") && !name.starts_with("$"))
      countInstructions(file, section, kernels[name.str()]);
  }
  for (const Section &section : sections) {
    StringRef name = file.string(sections[namesIndex].offset + section.name);
    if (name.consume_front(".nv.shared."))
      if (auto kernel = kernels.find(name.str()); kernel != kernels.end())
        kernel->second.sharedBytes = section.size;
    if (name != ".nv.info")
      continue;
    for (uint64_t p = section.offset; file.ok && p + 4 <= section.offset + section.size; p += 4) {
      if (file.at<uint8_t>(p) != withTwoWords)
        continue;
      uint8_t attribute = file.at<uint8_t>(p + 1);
      uint32_t symbol = file.at<uint32_t>(p + 4), value = file.at<uint32_t>(p + 8);
      if (symbol < symbols.size())
        if (auto kernel = kernels.find(symbols[symbol].str()); kernel != kernels.end()) {
          if (attribute == frameSize)
            kernel->second.stackBytes = value;
          if (attribute == registerCount)
            kernel->second.registers = value;
        }
      p += file.at<uint16_t>(p + 2);
    }
  }
  if (!file.ok)
    return invalidInput("not a cubin: it is cut short");
  return kernels;
}

} // namespace quern
