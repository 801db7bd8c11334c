// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// With TCMALLOC_ZERO_ON_FREE, a freed block has nothing of what the program wrote to it, also not
// behind the size that it had at last, and also if it is too large to wait.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>

namespace {

constexpr char kSecret = 'x';

// Returns true if the address can be read, and has the secret.
bool HasSecret(int (&pipe_ends)[2], const char* address) {
  char found = 0;
  return write(pipe_ends[1], address, 1) == 1 && read(pipe_ends[0], &found, 1) == 1 &&
         found == kSecret;
}

// Frees a block of `first` bytes that became `last` bytes. Returns how many of every `step`th byte
// are as they were.
size_t CountLeft(size_t first, size_t last, size_t step) {
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) abort();
  char* block = static_cast<char*>(malloc(first));
  memset(block, kSecret, first);
  if (last != first) {
    char* moved = static_cast<char*>(realloc(block, last));
    if (moved != block) abort();
  }
  free(block);
  size_t left = 0;
  for (size_t i = 0; i < first; i += step) left += HasSecret(pipe_ends, block + i) ? 1 : 0;
  close(pipe_ends[0]);
  close(pipe_ends[1]);
  return left;
}

}  // namespace

int main() {
  constexpr size_t kPage = 4096;
  const struct {
    size_t first, last, step;
  } kCases[] = {{500, 300, 1},
                {1000, 600, 1},
                {60'000, 40'000, 16},
                {size_t{70} << 20, size_t{70} << 20, kPage}};
  int bad = 0;
  for (const auto& [first, last, step] : kCases) {
    const size_t left = CountLeft(first, last, step);
    if (left == 0) continue;
    printf("%zu of a block of %zu bytes are left\n", left, first);
    ++bad;
  }
  return bad == 0 ? 0 : 1;
}
