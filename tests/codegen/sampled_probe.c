// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A small program from which some samples are taken, of which some live until it ends: objects that
// move to a span of samples, objects that stay where they are, blocks in spans of their own, and
// blocks that realloc has moved or grown.

#include <stdlib.h>
#include <sys/mman.h>

enum { kBlocks = 8, kRounds = 1024 };

static int Exchange(char** block, size_t bytes) {
  free(*block);
  *block = malloc(bytes);
  if (*block == NULL) return 0;
  **block = 1;
  return 1;
}

static int Grow(char** block, size_t bytes) {
  char* grown = realloc(*block, bytes);
  if (grown == NULL) return 0;
  *block = grown;
  return 1;
}

int main(void) {
  static const size_t kSizes[] = {1024, 16 << 10, 300 << 10};
  enum { kSizeCount = sizeof(kSizes) / sizeof(kSizes[0]) };
  static char* blocks[kSizeCount][kBlocks];
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kSizeCount * kBlocks; ++i) {
      char** block = &blocks[i % kSizeCount][i / kSizeCount];
      const size_t bytes = kSizes[i % kSizeCount];
      if (!Exchange(block, bytes)) return 1;
      if (round % 2 == 1 && !Grow(block, bytes + bytes / 2)) return 1;
    }
  }
  void* mapped = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return mapped == MAP_FAILED || munmap(mapped, 4096) != 0;
}
