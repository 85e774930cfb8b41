//===- whatfile.c - What kind of file is this? ----------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
//   whatfile FILE…
//
// Prints `path: label score` for each file. The model (Google's Magika, see model/) was
// compiled ahead of time by quern-compile and is linked in; this program knows nothing of
// compilers. One function serves any number of files at once: its first dim is free.
//
//===----------------------------------------------------------------------===//

#include "labels.h" // from model/config.min.json: labels, thresholds
#include "magika.h" // written by quern-compile

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
  BLOCK = 4096, // read at each end of a file
  HALF = 1024,  // tokens from each end
  TOKENS = 2 * HALF,
  PADDING = 256, // the token of nothing
  SMALLEST = 8,  // shorter contents are not judged
  BATCH = 16     // files in one call
};

typedef struct {
  const char *path;
  const char *label; // known without the model, or null
  int isText;        // valid UTF-8 as far as it was read
  int row;           // of the batch, where the model is asked
} File;

static int isSpace(unsigned char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// Whether the bytes are UTF-8; a character cut at the end counts as whole.
static int isUTF8(const unsigned char *bytes, size_t size) {
  for (size_t i = 0; i < size;) {
    unsigned char c = bytes[i++];
    unsigned more = c < 0x80             ? 0
                    : (c & 0xe0) == 0xc0 ? 1
                    : (c & 0xf0) == 0xe0 ? 2
                    : (c & 0xf8) == 0xf0 ? 3
                                         : 4;
    if (more == 4 || c == 0)
      return 0;
    for (; more && i < size; --more)
      if ((bytes[i++] & 0xc0) != 0x80)
        return 0;
  }
  return 1;
}

/// Reads both ends of a file into tokens. Answers 0, or -1 with errno set.
static int readTokens(File *file, int32_t tokens[TOKENS]) {
  unsigned char first[BLOCK], last[BLOCK];
  FILE *stream = fopen(file->path, "rb");
  if (!stream)
    return -1;
  size_t firstSize = fread(first, 1, BLOCK, stream);
  size_t lastSize = firstSize;
  memcpy(last, first, firstSize);
  if (firstSize == BLOCK && fseek(stream, 0, SEEK_END) == 0) {
    long size = ftell(stream);
    if (size > BLOCK) {
      fseek(stream, size - BLOCK, SEEK_SET);
      lastSize = fread(last, 1, BLOCK, stream);
    }
  }
  int failed = ferror(stream);
  fclose(stream);
  if (failed)
    return -1;

  // White space does not count in front of the beginning and behind the end.
  unsigned char *begin = first, *end = last + lastSize;
  size_t beginSize = firstSize, endSize = lastSize;
  while (beginSize && isSpace(*begin))
    ++begin, --beginSize;
  while (endSize && isSpace(end[-1]))
    --end, --endSize;
  file->isText = isUTF8(first, firstSize);
  if (firstSize == 0)
    file->label = "empty";
  else if (beginSize < SMALLEST)
    file->label = file->isText ? "txt" : "unknown";

  size_t head = beginSize < HALF ? beginSize : HALF, tail = endSize < HALF ? endSize : HALF;
  for (size_t i = 0; i < HALF; ++i)
    tokens[i] = i < head ? begin[i] : PADDING;
  for (size_t i = 0; i < HALF; ++i)
    tokens[HALF + i] = i < HALF - tail ? PADDING : (end - tail)[i - (HALF - tail)];
  return 0;
}

/// Asks the model about `rows` files at once.
static int classify(quern_context *context, int32_t *tokens, int64_t rows, float *scores) {
  int64_t inDims[2] = {rows, TOKENS}, outDims[2] = {rows, NUM_LABELS};
  DLTensor in = {
      .data = tokens, .device = {kDLCPU, 0}, .ndim = 2, .dtype = {kDLInt, 32, 1}, .shape = inDims};
  DLTensor out = {.data = scores,
                  .device = {kDLCPU, 0},
                  .ndim = 2,
                  .dtype = {kDLFloat, 32, 1},
                  .shape = outDims};
  const DLTensor *inputs[] = {&in};
  DLTensor *outputs[] = {&out};
  return quern_call(context, &magika, inputs, outputs);
}

/// A doubtful answer is only text or not.
static void print(const File *file, const float *scores) {
  if (file->label) {
    printf("%s: %s 1.000\n", file->path, file->label);
    return;
  }
  int best = 0;
  for (int i = 1; i < NUM_LABELS; ++i)
    if (scores[i] > scores[best])
      best = i;
  const char *label = labels[best];
  if (scores[best] < thresholds[best])
    label = file->isText ? "txt" : "unknown";
  printf("%s: %s %.3f\n", file->path, label, scores[best]);
}

int main(int argc, char **argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: whatfile FILE...\n");
    return 3;
  }
  static int32_t tokens[BATCH * TOKENS];
  static float scores[BATCH * NUM_LABELS];
  quern_context *context = quern_context_create(0);
  if (!context) {
    fprintf(stderr, "error: out of memory\n");
    return 1;
  }
  int status = 0;
  for (int next = 1; next < argc;) {
    File files[BATCH];
    int count = 0, rows = 0;
    for (; next < argc && count < BATCH; ++next) {
      File file = {.path = argv[next]};
      struct stat info;
      if (stat(file.path, &info) == 0 && S_ISDIR(info.st_mode)) {
        file.label = "directory";
      } else if (readTokens(&file, tokens + rows * TOKENS) != 0) {
        fprintf(stderr, "error: ");
        perror(file.path);
        status = 1;
        continue;
      }
      file.row = file.label ? -1 : rows++;
      files[count++] = file;
    }
    if (rows && classify(context, tokens, rows, scores) != QUERN_OK) {
      fprintf(stderr, "error: %s\n", quern_context_error(context));
      status = 1;
      break;
    }
    for (int i = 0; i < count; ++i)
      print(&files[i], scores + (files[i].row < 0 ? 0 : files[i].row) * NUM_LABELS);
  }
  quern_context_destroy(context);
  return status;
}
