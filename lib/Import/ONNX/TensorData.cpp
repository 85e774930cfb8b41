//===- TensorData.cpp - TensorProto to Tensor -----------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "TensorData.h"
#include "WireCheck.h"
#include "onnx_subset.pb.h"
#include "quern/Import/ONNX/Reader.h"
#include "quern/Support/Output.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace quern::onnx {

Error checkUTF8(StringRef text, const Twine &what) {
  const UTF8 *start = text.bytes_begin();
  if (isLegalUTF8String(&start, text.bytes_end()))
    return Error::success();
  return invalidInput(what + " is not UTF-8: " + quoted(text));
}

//===----------------------------------------------------------------------===//
// External data
//===----------------------------------------------------------------------===//

ExternalData::ExternalData(StringRef modelPath) : folder(sys::path::parent_path(modelPath)) {
  if (folder.empty())
    folder = ".";
}

Expected<StringRef> ExternalData::map(StringRef location) {
  auto [it, isNew] = mapped->try_emplace(location);
  if (!isNew && it->second)
    return StringRef(it->second->const_data(), it->second->size());

  auto bad = [&](const Twine &reason) {
    return invalidInput("external data " + quoted(location) + " " + reason);
  };
  if (location.empty() || location.contains('\0'))
    return bad("is no file name");
  if (sys::path::is_absolute(location))
    return bad("is an absolute path; it must be relative to the model's folder");
  if (is_contained(make_range(sys::path::begin(location), sys::path::end(location)), ".."))
    return bad("leaves the model's folder");
  SmallString<256> path(folder), real, realFolder;
  sys::path::append(path, location);
  if (std::error_code ec = sys::fs::real_path(path, real))
    return bad("cannot be opened: " + ec.message());
  if (std::error_code ec = sys::fs::real_path(folder, realFolder))
    return bad("cannot be opened: " + ec.message());
  StringRef inside = StringRef(real);
  if (!inside.consume_front(realFolder) ||
      (realFolder != "/" && !inside.empty() && !sys::path::is_separator(inside.front())))
    return bad("is a link that leaves the model's folder");
  if (!sys::fs::is_regular_file(real))
    return bad("is not a file");
  Expected<sys::fs::file_t> file = sys::fs::openNativeFileForRead(real);
  if (!file)
    return bad("cannot be opened: " + toString(file.takeError()));
  scope_exit close([&] { sys::fs::closeFile(*file); });
  sys::fs::file_status status;
  if (std::error_code ec = sys::fs::status(*file, status))
    return bad("cannot be opened: " + ec.message());
  if (status.getSize() == 0)
    return StringRef();
  std::error_code ec;
  auto region = std::make_unique<sys::fs::mapped_file_region>(
      *file, sys::fs::mapped_file_region::readonly, status.getSize(), 0, ec);
  if (ec)
    return bad("cannot be mapped: " + ec.message());
  it->second = std::move(region);
  return StringRef(it->second->const_data(), it->second->size());
}

Expected<const char *> ExternalData::get(StringRef location, uint64_t offset, int64_t length,
                                         uint64_t needed) {
  Expected<StringRef> bytes = map(location);
  if (!bytes)
    return bytes.takeError();
  if (length >= 0 && uint64_t(length) != needed)
    return invalidInput("needs " + Twine(needed) + " bytes, but its external data in " +
                        quoted(location) + " has length " + Twine(length));
  if (offset > bytes->size() || needed > bytes->size() - offset)
    return invalidInput("needs " + Twine(needed) + " bytes at offset " + Twine(offset) +
                        " of external data " + quoted(location) + ", which has " +
                        Twine(bytes->size()) + " bytes");
  return bytes->data() + offset;
}

/// The entries of external_data.
static Expected<const char *> readExternal(const proto::TensorProto &proto, uint64_t needed,
                                           ExternalData &external) {
  std::optional<StringRef> location;
  uint64_t offset = 0;
  int64_t length = -1;
  for (const proto::StringStringEntryProto &entry : proto.external_data()) {
    if (entry.key() == "location")
      location = entry.value();
    else if (entry.key() == "offset" || entry.key() == "length") {
      int64_t number;
      if (StringRef(entry.value()).getAsInteger(10, number) || number < 0)
        return invalidInput("external data has " + entry.key() + " " + quoted(entry.value()) +
                            ", expected a number of bytes");
      if (entry.key() == "offset")
        offset = number;
      else
        length = number;
    }
  }
  if (!location)
    return invalidInput("external data without a location");
  return external.get(*location, offset, length, needed);
}

//===----------------------------------------------------------------------===//
// TensorProto
//===----------------------------------------------------------------------===//

namespace {

/// The field of TensorProto that stores an element type, other than raw_data.
enum class TypedField { None, Float, Int32, Int64, Double, UInt64, String };

TypedField typedFieldOf(const ElementType &type) {
  if (type.name == "f32" || type.name == "c64")
    return TypedField::Float;
  if (type.name == "f64" || type.name == "c128")
    return TypedField::Double;
  if (type.name == "i64")
    return TypedField::Int64;
  if (type.name == "u64" || type.name == "u32")
    return TypedField::UInt64;
  if (type.name == "string")
    return TypedField::String;
  return TypedField::Int32;
}

struct FieldCount {
  TypedField field;
  StringLiteral name;
  int count;
};

/// One read of a TensorProto; errors do not name the tensor yet.
class TensorReader {
public:
  TensorReader(const proto::TensorProto &proto, std::shared_ptr<void> owner, ExternalData *external)
      : proto(proto), owner(std::move(owner)), external(external) {}

  Expected<Tensor> read() {
    tensor.name = proto.name();
    if (Error e = readType())
      return std::move(e);
    if (Error e = readData())
      return std::move(e);
    return std::move(tensor);
  }

private:
  Error readType() {
    int32_t number = proto.data_type();
    if (number == 0)
      return invalidInput("has no data_type");
    tensor.type = getElementType(number);
    if (!tensor.type)
      return number < 0 ? invalidInput("has data_type " + Twine(number))
                        : unsupported("has data_type " + Twine(number) +
                                      ", which is not one of ONNX's types 1 to 26");
    if (proto.dims_size() > QUERN_MAX_RANK)
      return unsupported("has rank " + Twine(proto.dims_size()) + "; at most " +
                         Twine(QUERN_MAX_RANK) + " dimensions are handled");
    tensor.dims.assign(proto.dims().begin(), proto.dims().end());
    for (int64_t d : tensor.dims)
      if (d < 0)
        return invalidInput("has dims " + dimsString(tensor.dims) + ": a size cannot be " +
                            Twine(d));
    count = 1;
    bool tooLarge = false;
    for (int64_t d : tensor.dims)
      tooLarge |= MulOverflow(count, d, count);
    if (is_contained(tensor.dims, 0)) {
      count = 0;
      tooLarge = false;
    }
    int64_t bits = 0;
    if (tooLarge || MulOverflow(count, int64_t(tensor.type->bits), bits) || bits > INT64_MAX - 7)
      return invalidInput("has dims " + dimsString(tensor.dims) +
                          ": too many elements to count in 63 bits");
    numBytes = uint64_t(bits + 7) / 8;
    return Error::success();
  }

  Error readData() {
    FieldCount counts[] = {{TypedField::Float, "float_data", proto.float_data_size()},
                           {TypedField::Int32, "int32_data", proto.int32_data_size()},
                           {TypedField::Int64, "int64_data", proto.int64_data_size()},
                           {TypedField::Double, "double_data", proto.double_data_size()},
                           {TypedField::UInt64, "uint64_data", proto.uint64_data_size()},
                           {TypedField::String, "string_data", proto.string_data_size()}};
    TypedField expected = typedFieldOf(*tensor.type);
    const FieldCount *typed = nullptr, *right = nullptr;
    for (const FieldCount &c : counts) {
      if (c.field == expected)
        right = &c;
      if (c.count == 0)
        continue;
      if (c.field != expected)
        return invalidInput("is of type " + tensor.type->name + ", but has its values in " +
                            c.name);
      typed = &c;
    }
    bool isExternal = proto.data_location() == 1;
    if (proto.data_location() != 0 && !isExternal)
      return invalidInput("has data_location " + Twine(proto.data_location()));
    bool hasRaw = !proto.raw_data().empty();
    if (int(isExternal) + int(hasRaw) + int(typed != nullptr) > 1)
      return invalidInput("has its values twice, in " +
                          (isExternal ? StringRef("external data") : StringRef("raw_data")) +
                          " and in " + (typed ? StringRef(typed->name) : StringRef("raw_data")));
    if (isExternal) {
      if (!external)
        return invalidInput("has external data, which is not allowed here");
      if (expected == TypedField::String)
        return invalidInput("is of strings, which cannot be external data");
      Expected<const char *> bytes = readExternal(proto, numBytes, *external);
      if (!bytes)
        return bytes.takeError();
      owner = external->files();
      return setBytes(*bytes);
    }
    if (typed || expected == TypedField::String) {
      if (hasRaw)
        return invalidInput("is of strings, but has raw_data");
      return readTyped(*right);
    }
    if (proto.raw_data().size() != numBytes)
      return invalidInput("of type " + tensor.type->name + dimsString(tensor.dims) + " needs " +
                          Twine(numBytes) + " bytes, raw_data has " +
                          Twine(proto.raw_data().size()));
    return setBytes(proto.raw_data().data());
  }

  /// A view, or a copy where the bytes lie unaligned.
  Error setBytes(const void *bytes) {
    if (!tensor.type->dtype)
      return Error::success();
    DType dtype = *tensor.type->dtype;
    if (numBytes && reinterpret_cast<uintptr_t>(bytes) % sizeOf(dtype)) {
      tensor.data = HostTensor(dtype, tensor.dims);
      std::memcpy(tensor.data.data(), bytes, numBytes);
    } else {
      tensor.data = HostTensor::view(dtype, tensor.dims, const_cast<void *>(bytes), owner);
    }
    if (dtype == DType::Bool)
      for (int64_t i = 0; i < count; ++i)
        if (uint8_t value = tensor.data.as<uint8_t>()[i]; value > 1)
          return invalidInput("of type bool has the value " + Twine(unsigned(value)));
    return Error::success();
  }

  Error readTyped(const FieldCount &field) {
    // Complex numbers are pairs; types under 8 bits are packed, a byte a number.
    const ElementType &type = *tensor.type;
    int64_t perElement = type.name == "c64" || type.name == "c128" ? 2 : 1;
    int64_t needed = type.bits && type.bits < 8 ? int64_t(numBytes) : 0;
    if (needed == 0 && MulOverflow(count, perElement, needed))
      needed = INT64_MAX;
    if (field.count != needed)
      return invalidInput("of type " + type.name + dimsString(tensor.dims) + " needs " +
                          Twine(needed) + " values, " + field.name + " has " + Twine(field.count));
    if (!type.dtype)
      return Error::success();
    switch (field.field) {
    case TypedField::Float:
      return setBytes(proto.float_data().data());
    case TypedField::Double:
      return setBytes(proto.double_data().data());
    case TypedField::Int64:
      return setBytes(proto.int64_data().data());
    case TypedField::UInt64:
      if (type.bits == 64)
        return setBytes(proto.uint64_data().data());
      return narrow(proto.uint64_data());
    default:
      return narrow(proto.int32_data());
    }
  }

  /// Stores numbers in the type's own width; those of f16 and bf16 are bits.
  template <typename Numbers> Error narrow(const Numbers &numbers) {
    DType dtype = *tensor.type->dtype;
    bool isSignedType = isInteger(dtype) && isSigned(dtype);
    unsigned bits = dtype == DType::Bool ? 1 : tensor.type->bits;
    tensor.data = HostTensor(dtype, tensor.dims);
    auto *bytes = tensor.data.as<uint8_t>();
    unsigned size = sizeOf(dtype);
    for (auto [i, number] : enumerate(numbers)) {
      int64_t value = number;
      if (isSignedType ? !isIntN(bits, value) : !isUIntN(bits, value))
        return invalidInput("of type " + tensor.type->name + " has the value " + Twine(value));
      std::memcpy(bytes + i * size, &value, size);
    }
    return Error::success();
  }

  const proto::TensorProto &proto;
  std::shared_ptr<void> owner;
  ExternalData *external;
  Tensor tensor;
  int64_t count = 0;
  uint64_t numBytes = 0;
};

} // namespace

Expected<Tensor> readTensorProto(const proto::TensorProto &proto, const Twine &what,
                                 std::shared_ptr<void> owner, ExternalData *external) {
  Expected<Tensor> tensor = TensorReader(proto, std::move(owner), external).read();
  if (tensor)
    return tensor;
  return withContext(tensor.takeError(), what + " ");
}

//===----------------------------------------------------------------------===//
// Tensor files
//===----------------------------------------------------------------------===//

Expected<HostTensor> readTensor(StringRef path) {
  auto addPath = [&](Error error) { return withContext(std::move(error), path + ": "); };
  auto buffer = MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return invalidInput(path + ": cannot be read: " + buffer.getError().message());
  auto proto = std::make_shared<proto::TensorProto>();
  if (Error e = parseMessage((*buffer)->getBuffer(), *proto::TensorProto::descriptor(), *proto))
    return addPath(std::move(e));
  Expected<Tensor> tensor = readTensorProto(*proto, "the tensor", proto, nullptr);
  if (!tensor)
    return addPath(tensor.takeError());
  if (!tensor->type->dtype)
    return unsupported(path + ": a tensor of type " + tensor->type->name);
  return tensor->data;
}

Error writeTensor(StringRef path, const HostTensor &tensor, StringRef name) {
  proto::TensorProto proto;
  for (int64_t d : tensor.dims())
    proto.add_dims(d);
  proto.set_data_type(getElementType(tensor.dtype()).number);
  proto.set_name(name.str());
  proto.set_raw_data(tensor.data(), tensor.numBytes());
  std::string bytes = proto.SerializeAsString();
  return writeOutput(path, [&](raw_ostream &os) { os << bytes; });
}

} // namespace quern::onnx
