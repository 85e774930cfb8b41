//===- Digits.cpp - The handwritten digits --------------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Digits.h"
#include "quern/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/FileSystem.h"
#include <zlib.h>

using namespace llvm;

namespace quern::conformance {

static constexpr unsigned numPixels = 64;

static Expected<std::string> readGzip(StringRef path) {
  gzFile file = gzopen(path.str().c_str(), "rb");
  if (!file)
    return invalidInput(path + ": cannot be opened");
  std::string text;
  char bytes[65536];
  int count;
  while ((count = gzread(file, bytes, sizeof(bytes))) > 0)
    text.append(bytes, count);
  // A truncated file ends without an error of gzread; gzclose tells.
  if (gzclose(file) != Z_OK || count < 0)
    return invalidInput(path + ": not a whole gzip file");
  return text;
}

static Expected<Digits> parseDigits(StringRef text, StringRef path) {
  Digits digits;
  SmallVector<StringRef> lines;
  text.split(lines, '\n', -1, /*KeepEmpty=*/false);
  for (auto [row, line] : enumerate(lines)) {
    SmallVector<StringRef> fields;
    line.trim().split(fields, ',');
    bool bad = fields.size() != numPixels + 1;
    for (auto [i, field] : enumerate(fields)) {
      double number = 0;
      bad |= field.getAsDouble(number);
      if (i < numPixels)
        digits.pixels.push_back(number / 16);
      else
        digits.labels.push_back(int64_t(number));
    }
    if (bad)
      return invalidInput(path + ":" + Twine(row + 1) + ": expected 64 pixels and a label");
  }
  return digits;
}

static constexpr struct {
  const char *name, *text;
} embedded[] = {
#include "EmbeddedDigits.inc"
};

Expected<Digits> readDigits(StringRef path) {
  if (!sys::fs::exists(path))
    return parseDigits(embedded[0].text, embedded[0].name);
  Expected<std::string> text = readGzip(path);
  if (!text)
    return text.takeError();
  return parseDigits(*text, path);
}

} // namespace quern::conformance
