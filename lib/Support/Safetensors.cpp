//===- Safetensors.cpp - .safetensors files -------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "quern/Support/Safetensors.h"
#include "quern/Support/Error.h"
#include "quern/Support/Output.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <cstring>

using namespace llvm;

namespace quern {

static constexpr uint64_t maxHeader = 100'000'000; // the format's own limit

namespace {
struct Entry {
  DType dtype;
  SmallVector<int64_t> dims;
  uint64_t begin = 0, end = 0;
};
} // namespace

/// Reads one header entry, or says what is wrong with it.
static std::optional<std::string> parseEntry(const json::Value &value, uint64_t dataSize,
                                             Entry &entry) {
  const json::Object *object = value.getAsObject();
  if (!object)
    return "is no object";
  std::optional<StringRef> dtypeName = object->getString("dtype");
  const json::Array *shape = object->getArray("shape");
  const json::Array *offsets = object->getArray("data_offsets");
  if (!dtypeName || !shape || !offsets || offsets->size() != 2)
    return "lacks dtype, shape or data_offsets";
  std::optional<DType> dtype = parseSafetensorsDType(*dtypeName);
  if (!dtype)
    return ("has the unknown dtype '" + *dtypeName + "'").str();
  entry.dtype = *dtype;
  for (const json::Value &dim : *shape) {
    std::optional<int64_t> number = dim.getAsInteger();
    if (!number)
      return "has a dim that is no integer";
    entry.dims.push_back(*number);
  }
  std::optional<int64_t> count = HostTensor::countElements(entry.dtype, entry.dims);
  if (!count || entry.dims.size() > QUERN_MAX_RANK)
    return "has a bad shape";
  std::optional<int64_t> begin = (*offsets)[0].getAsInteger();
  std::optional<int64_t> end = (*offsets)[1].getAsInteger();
  if (!begin || !end || *begin < 0 || *end < *begin || uint64_t(*end) > dataSize)
    return "has data_offsets outside of the file";
  entry.begin = *begin;
  entry.end = *end;
  uint64_t size = uint64_t(*count) * sizeOf(entry.dtype);
  if (entry.end - entry.begin != size)
    return ("has " + Twine(entry.end - entry.begin) + " bytes, expected " + Twine(size)).str();
  return std::nullopt;
}

Expected<Safetensors> Safetensors::open(StringRef path) {
  auto fail = [&](const Twine &text) { return invalidInput(path + ": " + text); };
  Expected<sys::fs::file_t> handle = sys::fs::openNativeFileForRead(path);
  if (!handle)
    return fail(toString(handle.takeError()));
  sys::fs::file_status status;
  std::error_code error = sys::fs::status(*handle, status);
  uint64_t size = status.getSize();
  if (!error && (status.type() != sys::fs::file_type::regular_file || size < 8)) {
    sys::fs::closeFile(*handle);
    return fail("not a safetensors file");
  }
  std::shared_ptr<sys::fs::mapped_file_region> map;
  if (!error)
    map = std::make_shared<sys::fs::mapped_file_region>(*handle, sys::fs::mapped_file_region::priv,
                                                        size, 0, error);
  sys::fs::closeFile(*handle);
  if (error)
    return fail(error.message());

  uint64_t headerSize = support::endian::read64le(map->const_data());
  if (headerSize > size - 8 || headerSize > maxHeader)
    return fail("a header of " + Twine(headerSize) + " bytes in a file of " + Twine(size));
  uint64_t dataSize = size - 8 - headerSize;
  Expected<json::Value> header = json::parse(StringRef(map->const_data() + 8, headerSize));
  if (!header)
    return fail("header: " + toString(header.takeError()));
  const json::Object *object = header->getAsObject();
  if (!object)
    return fail("the header is no object");

  Safetensors result;
  result.file = path.str();
  std::vector<std::pair<std::string, Entry>> entries;
  for (const auto &[key, value] : *object) {
    if (StringRef(key) == "__metadata__")
      continue;
    Entry entry;
    if (std::optional<std::string> why = parseEntry(value, dataSize, entry))
      return fail("tensor '" + StringRef(key) + "' " + *why);
    entries.emplace_back(StringRef(key).str(), std::move(entry));
  }
  sort(entries, [](const auto &a, const auto &b) {
    return std::tie(a.second.begin, a.second.end, a.first) <
           std::tie(b.second.begin, b.second.end, b.first);
  });
  uint64_t last = 0;
  char *data = map->data() + 8 + headerSize;
  for (auto &[name, entry] : entries) {
    if (entry.begin < last)
      return fail("tensor '" + name + "' overlaps another one");
    last = entry.end;
    char *start = data + entry.begin;
    HostTensor tensor = HostTensor::view(entry.dtype, entry.dims, start, map);
    // The format does not align tensors; the CPU's typed loads want it.
    if (reinterpret_cast<uintptr_t>(start) % sizeOf(entry.dtype) != 0)
      tensor = tensor.clone();
    result.tensors[name] = std::move(tensor);
    result.order.push_back(std::move(name));
  }
  return result;
}

Expected<HostTensor> Safetensors::get(StringRef name) const {
  auto it = tensors.find(name);
  if (it == tensors.end())
    return invalidInput(file + ": no tensor '" + name + "'");
  return it->second;
}

Error writeSafetensors(StringRef path, ArrayRef<std::pair<std::string, HostTensor>> tensors) {
  // Widest elements first, so that every tensor is aligned to its element.
  std::vector<const std::pair<std::string, HostTensor> *> order;
  for (unsigned width : {8, 4, 2, 1})
    for (const auto &tensor : tensors)
      if (sizeOf(tensor.second.dtype()) == width)
        order.push_back(&tensor);
  json::Object header;
  uint64_t offset = 0;
  for (const auto *entry : order) {
    const HostTensor &tensor = entry->second;
    uint64_t end = offset + tensor.numBytes();
    bool isNew =
        header
            .try_emplace(entry->first, json::Object{{"dtype", getInfo(tensor.dtype()).safetensors},
                                                    {"shape", json::Array(tensor.dims())},
                                                    {"data_offsets", json::Array{offset, end}}})
            .second;
    if (!isNew)
      return invalidInput(path + ": two tensors named '" + entry->first + "'");
    offset = end;
  }
  std::string text;
  raw_string_ostream(text) << json::Value(std::move(header));
  text.append(alignTo(text.size(), 64) + 56 - text.size(), ' '); // data at a multiple of 64
  return writeOutput(path, [&](raw_ostream &out) {
    char length[8];
    support::endian::write64le(length, text.size());
    out.write(length, 8);
    out << text;
    for (const auto *entry : order)
      out.write(entry->second.as<char>(), entry->second.numBytes());
  });
}

} // namespace quern
