//===- Npy.cpp - NumPy's .npy files ---------------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Support/Npy.h"
#include "quern/Support/Error.h"
#include "quern/Support/Output.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <cstring>

using namespace llvm;

namespace quern {

static constexpr char magic[] = "\x93NUMPY";
static constexpr size_t magicSize = 6;

namespace {
struct Header {
  std::string descr;
  bool fortranOrder = false;
  SmallVector<int64_t> dims;
};

/// The header is a Python dict literal of three known keys; this reads just that.
class HeaderParser {
public:
  explicit HeaderParser(StringRef text) : rest(text) {}

  bool parse(Header &header) {
    if (!consume("{"))
      return false;
    bool seen[3] = {};
    while (!consume("}")) {
      std::string key;
      if (!parseString(key) || !consume(":"))
        return false;
      if (key == "descr") {
        seen[0] = true;
        if (!parseString(header.descr)) {
          // A list: a structured type, which has no single descr.
          header.descr = "structured";
          return rest.starts_with("[");
        }
      } else if (key == "fortran_order") {
        seen[1] = true;
        header.fortranOrder = rest.starts_with("True");
        if (!consume("True") && !consume("False"))
          return false;
      } else if (key == "shape") {
        seen[2] = true;
        if (!parseDims(header.dims))
          return false;
      } else {
        return false;
      }
      if (!consume(",") && !rest.starts_with("}"))
        return false;
    }
    return seen[0] && seen[1] && seen[2] && rest.trim().empty();
  }

private:
  bool consume(StringRef token) {
    rest = rest.ltrim();
    if (!rest.consume_front(token))
      return false;
    rest = rest.ltrim();
    return true;
  }
  bool parseString(std::string &value) {
    if (rest.empty() || (rest[0] != '\'' && rest[0] != '"'))
      return false;
    size_t end = rest.find(rest[0], 1);
    if (end == StringRef::npos)
      return false;
    value = rest.slice(1, end).str();
    rest = rest.drop_front(end + 1).ltrim();
    return true;
  }
  bool parseDims(SmallVectorImpl<int64_t> &dims) {
    if (!consume("("))
      return false;
    while (!consume(")")) {
      int64_t dim;
      if (rest.consumeInteger(10, dim))
        return false;
      rest.consume_front("L"); // Python 2 wrote 3L
      dims.push_back(dim);
      if (!consume(",") && !rest.ltrim().starts_with(")"))
        return false;
    }
    return true;
  }

  StringRef rest;
};
} // namespace

Expected<HostTensor> parseNpy(StringRef bytes, StringRef name) {
  if (bytes.size() < magicSize + 4 || std::memcmp(bytes.data(), magic, magicSize) != 0)
    return invalidInput(name + ": not a .npy file");
  unsigned version = uint8_t(bytes[magicSize]);
  if (version < 1 || version > 3)
    return unsupported(name + ": .npy version " + Twine(version) + ", expected 1 to 3");
  size_t lengthSize = version == 1 ? 2 : 4;
  size_t start = magicSize + 2 + lengthSize;
  if (bytes.size() < start)
    return invalidInput(name + ": truncated header");
  const char *lengthBytes = bytes.data() + magicSize + 2;
  size_t length = version == 1 ? support::endian::read16le(lengthBytes)
                               : support::endian::read32le(lengthBytes);
  if (length > bytes.size() - start)
    return invalidInput(name + ": truncated header");

  Header header;
  if (!HeaderParser(bytes.substr(start, length)).parse(header))
    return invalidInput(name + ": malformed header");
  std::optional<DType> dtype = parseNumpyDType(header.descr);
  if (!dtype)
    return unsupported(name + ": element type '" + header.descr + "'");
  std::optional<int64_t> count = HostTensor::countElements(*dtype, header.dims);
  if (!count || header.dims.size() > QUERN_MAX_RANK)
    return invalidInput(name + ": bad shape in the header");
  StringRef data = bytes.drop_front(start + length);
  uint64_t size = uint64_t(*count) * sizeOf(*dtype);
  if (data.size() != size)
    return invalidInput(name + ": expected " + Twine(size) + " bytes of data, got " +
                        Twine(data.size()));

  HostTensor tensor(*dtype, header.dims);
  if (size == 0)
    return tensor;
  if (!header.fortranOrder) {
    std::memcpy(tensor.data(), data.data(), size);
    return tensor;
  }
  unsigned width = sizeOf(*dtype);
  SmallVector<int64_t> index(header.dims.size(), 0);
  for (int64_t i = 0; i < *count; ++i) {
    // `index` runs with the first dim fastest, as the file does.
    int64_t offset = 0;
    for (auto [x, dim] : zip(index, header.dims))
      offset = offset * dim + x;
    std::memcpy(tensor.as<char>() + offset * width, data.data() + i * width, width);
    for (auto [x, dim] : zip(index, header.dims)) {
      if (++x < dim)
        break;
      x = 0;
    }
  }
  return tensor;
}

Expected<HostTensor> readNpy(StringRef path) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer =
      MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return invalidInput(path + ": " + buffer.getError().message());
  return parseNpy((*buffer)->getBuffer(), path);
}

Error writeNpy(StringRef path, const HostTensor &tensor) {
  const DTypeInfo &info = getInfo(tensor.dtype());
  if (info.numpy.empty())
    return unsupported(path + ": .npy has no element type " + info.name);
  std::string header;
  raw_string_ostream os(header);
  os << "{'descr': '" << info.numpy << "', 'fortran_order': False, 'shape': (";
  interleaveComma(tensor.dims(), os);
  os << (tensor.rank() == 1 ? ",), }" : "), }");
  // The data starts at a multiple of 64 bytes; the header ends in a newline.
  size_t total = alignTo(magicSize + 4 + header.size() + 1, 64);
  header.append(total - (magicSize + 4) - header.size() - 1, ' ');
  header += '\n';
  return writeOutput(path, [&](raw_ostream &out) {
    out.write(magic, magicSize);
    out << char(1) << char(0) << char(header.size() & 0xff) << char(header.size() >> 8);
    out << header;
    out.write(tensor.as<char>(), tensor.numBytes());
  });
}

} // namespace quern
