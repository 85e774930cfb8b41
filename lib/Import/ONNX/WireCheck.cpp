//===- WireCheck.cpp - Is this a well-formed protobuf message? ------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "WireCheck.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/message_lite.h>

using namespace llvm;
using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

namespace quern::onnx {
namespace {

enum WireType : unsigned {
  Varint = 0,
  Fixed64 = 1,
  Length = 2,
  StartGroup = 3,
  EndGroup = 4,
  Fixed32 = 5
};

WireType wireTypeOf(const FieldDescriptor &field) {
  switch (field.type()) {
  case FieldDescriptor::TYPE_FLOAT:
    return Fixed32;
  case FieldDescriptor::TYPE_DOUBLE:
    return Fixed64;
  case FieldDescriptor::TYPE_BYTES:
  case FieldDescriptor::TYPE_MESSAGE:
    return Length;
  default:
    return Varint;
  }
}

class WireChecker {
public:
  explicit WireChecker(StringRef bytes) : begin(bytes.data()), pos(begin) {}

  Error checkMessage(const char *end, const Descriptor &type) {
    if (path.size() > maxNesting)
      return error("messages are nested deeper than " + Twine(maxNesting));
    while (pos != end) {
      uint64_t tag;
      if (Error e = readVarint(end, tag))
        return e;
      uint64_t number = tag >> 3;
      unsigned wire = tag & 7;
      if (number == 0 || number > FieldDescriptor::kMaxNumber)
        return error("malformed protobuf: field number " + Twine(number));
      const FieldDescriptor *field = type.FindFieldByNumber(int(number));
      path.push_back(field ? StringRef(field->name()) : StringRef());
      if (Error e = checkField(end, number, wire, field))
        return e;
      path.pop_back();
    }
    return Error::success();
  }

private:
  Error checkField(const char *end, uint64_t number, unsigned wire, const FieldDescriptor *field) {
    if (wire == StartGroup || wire == EndGroup)
      return error("malformed protobuf: group (wire type " + Twine(wire) + ") in field " +
                   Twine(number) + ", which ONNX does not use");
    if (wire > Fixed32)
      return error("malformed protobuf: wire type " + Twine(wire) + " in field " + Twine(number));
    // Numbers that repeat may come packed or not, whatever the schema prefers.
    bool packed = field && field->is_packable() && wire == Length;
    if (field && !packed && wire != wireTypeOf(*field))
      return error("malformed protobuf: field has wire type " + Twine(wire) + ", expected " +
                   Twine(unsigned(wireTypeOf(*field))));
    uint64_t value;
    switch (wire) {
    case Varint:
      return readVarint(end, value);
    case Fixed64:
      return skip(end, 8);
    case Fixed32:
      return skip(end, 4);
    default:
      break;
    }
    if (Error e = readVarint(end, value))
      return e;
    const char *start = pos;
    if (Error e = skip(end, value))
      return e;
    const char *fieldEnd = pos;
    pos = start;
    if (packed)
      return checkPacked(fieldEnd, wireTypeOf(*field));
    if (field && field->message_type())
      return checkMessage(fieldEnd, *field->message_type());
    pos = fieldEnd;
    return Error::success();
  }

  Error checkPacked(const char *end, WireType element) {
    if (element == Varint) {
      uint64_t value;
      while (pos != end)
        if (Error e = readVarint(end, value))
          return e;
      return Error::success();
    }
    unsigned size = element == Fixed64 ? 8 : 4;
    if ((end - pos) % size)
      return error("malformed protobuf: " + Twine(uint64_t(end - pos)) +
                   " bytes of packed numbers of " + Twine(size) + " bytes");
    pos = end;
    return Error::success();
  }

  Error readVarint(const char *end, uint64_t &value) {
    value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
      if (pos == end)
        return error("truncated in a varint");
      uint64_t byte = uint8_t(*pos++);
      if (shift < 64)
        value |= (byte & 127) << shift;
      if (byte < 128)
        return Error::success();
    }
    return error("malformed protobuf: varint of more than 10 bytes");
  }

  Error skip(const char *end, uint64_t count) {
    if (count > uint64_t(end - pos))
      return error("truncated: " + Twine(count) + " bytes are announced, " +
                   Twine(uint64_t(end - pos)) + " are left");
    pos += count;
    return Error::success();
  }

  Error error(const Twine &text) {
    std::string where;
    ArrayRef<StringRef> fields = path;
    // The innermost fields say it; hostile files nest a hundred.
    if (fields.size() > 6)
      where = "…";
    for (StringRef field : fields.take_back(6))
      where += (where.empty() ? "" : ".") + (field.empty() ? "(unknown)" : field.str());
    return invalidInput(text + (where.empty() ? "" : " in '" + where + "'") + " at byte " +
                        Twine(uint64_t(pos - begin)));
  }

  const char *begin, *pos;
  SmallVector<StringRef, 32> path; ///< fields from the root to here
};

} // namespace

Error checkWire(StringRef bytes, const Descriptor &type) {
  return WireChecker(bytes).checkMessage(bytes.end(), type);
}

Error parseMessage(StringRef bytes, const Descriptor &type,
                   google::protobuf::MessageLite &message) {
  if (bytes.size() >= uint64_t(INT_MAX))
    return invalidInput("the file has " + Twine(bytes.size()) +
                        " bytes; a protobuf message has less than 2 GiB (weights can be stored as "
                        "external data)");
  if (Error e = checkWire(bytes, type))
    return e;
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t *>(bytes.data()),
                                                int(bytes.size()));
  stream.SetTotalBytesLimit(INT_MAX);
  stream.SetRecursionLimit(int(maxNesting) + 1);
  if (!message.ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage())
    return invalidInput("malformed protobuf");
  return Error::success();
}

} // namespace quern::onnx
