//===- Text.h - Error texts without a C++ library ---------------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Appends to a fixed buffer; what does not fit is cut off at the end.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_LIB_RUNTIME_CPU_TEXT_H
#define QUERN_LIB_RUNTIME_CPU_TEXT_H

#include "quern-c/Runtime.h"

#include <string.h>

namespace quern::rt {

class Text {
public:
  const char *get() const { return data; }
  bool empty() const { return size == 0; }
  Text &clear() {
    size = 0;
    data[0] = 0;
    return *this;
  }
  Text &add(const char *text, size_t length) {
    size_t room = sizeof(data) - 1 - size;
    if (length > room)
      length = room;
    memcpy(data + size, text, length);
    size += length;
    data[size] = 0;
    return *this;
  }
  Text &operator<<(const char *text) { return add(text, strlen(text)); }
  Text &operator<<(int64_t value) {
    char digits[24];
    char *at = digits + sizeof(digits);
    uint64_t rest = value < 0 ? -uint64_t(value) : uint64_t(value);
    do
      *--at = char('0' + rest % 10);
    while (rest /= 10);
    if (value < 0)
      *--at = '-';
    return add(at, size_t(digits + sizeof(digits) - at));
  }
  /// A model's own name, which can be of any length.
  Text &quoted(const char *name) {
    const size_t longest = 160;
    size_t length = name ? strlen(name) : 0;
    *this << "'";
    add(name, length < longest ? length : longest);
    return *this << (length > longest ? "...'" : "'");
  }
  Text &list(const int64_t *values, int32_t count) {
    *this << "[";
    for (int32_t i = 0; i < count; ++i)
      (*this << (i ? ", " : "")) << values[i];
    return *this << "]";
  }
  Text &dtype(DLDataType type) {
    if (isBool(type))
      return *this << "bool";
    const char *prefix = type.code == kDLInt      ? "i"
                         : type.code == kDLUInt   ? "u"
                         : type.code == kDLFloat  ? "f"
                         : type.code == kDLBfloat ? "bf"
                                                  : nullptr;
    if (prefix)
      (*this << prefix) << int64_t(type.bits);
    else
      (*this << "DLPack code " << int64_t(type.code) << " bits ") << int64_t(type.bits);
    if (type.lanes != 1)
      (*this << "x") << int64_t(type.lanes);
    return *this;
  }

  static bool isBool(DLDataType type) {
    return (type.code == QUERN_DL_BOOL && type.bits == 8) ||
           (type.code == kDLUInt && type.bits == 1);
  }

private:
  size_t size = 0;
  char data[1536] = {0};
};

} // namespace quern::rt

#endif // QUERN_LIB_RUNTIME_CPU_TEXT_H
