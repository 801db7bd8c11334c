// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// In hardened and in debug mode, malloc and calloc of a huge block do not touch all of the memory
// that the system has just given: programs ask for more than they use. Memory that was a block
// before is zero again. No mistakes.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <initializer_list>

#include "conformance/resident.h"

namespace {

using tcmalloc::testing::ResidentBytes;

constexpr size_t kMebibyte = size_t{1} << 20;
constexpr size_t kSize = 256 * kMebibyte;

bool IsZero(const char* block, size_t size) {
  return std::all_of(block, block + size, [](char c) { return c == 0; });
}

// Returns 1 and says so if more than `most` bytes are resident than before.
int TellGrowth(const char* call, size_t before, size_t most) {
  const size_t now = ResidentBytes();
  if (now <= before + most) return 0;
  printf("%s made %zu MiB resident\n", call, (now - before) / kMebibyte);
  return 1;
}

}  // namespace

int main() {
  int bad = 0;
  const size_t before = ResidentBytes();
  char* block = static_cast<char*>(calloc(1, kSize));
  if (before == 0 || block == nullptr) abort();
  bad += TellGrowth("calloc", before, 32 * kMebibyte);
  // The debug mode fills 64 MiB of it.
  char* untouched = static_cast<char*>(malloc(4 * kSize));
  bad += TellGrowth("malloc", before, 96 * kMebibyte);
  free(untouched);
  bad += TellGrowth("free", before, 96 * kMebibyte);
  if (!IsZero(block, kSize)) ++bad;
  memset(block, 1, kSize);
  free(block);
  for (const size_t size : {kSize, kSize / 2, kMebibyte, kMebibyte / 2, kMebibyte / 3}) {
    for (int i = 0; i < 20; ++i) {
      block = static_cast<char*>(calloc(1, size));
      if (block == nullptr || !IsZero(block, size)) {
        printf("a block of %zu bytes is not zero\n", size);
        ++bad;
      }
      memset(block, 1, size);
      free(block);
      if (size >= kMebibyte) break;
    }
  }
  return bad == 0 ? 0 : 1;
}
