// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// In hardened mode, a process may end while new objects wait whose memory was inside of longer
// blocks. The check at exit must not take them for freed blocks that were written to. Children end
// at many moments, with different objects waiting.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr size_t kAlignment = 512;
// The map keeps what a block has beyond its size in bytes of seven bits. These are those of the
// state of a freed block.
constexpr size_t kLongSize = kAlignment - 0x7f;
constexpr int kLong = 20'000;
// Take more memory than the long ones had.
constexpr int kShort = 1'000'000;
constexpr int kShortPerChild = 10'007;

void* long_blocks[kLong];
void* short_blocks[kShort];

bool EndsWell() {
  const pid_t child = fork();
  if (child == 0) exit(0);
  int status = 0;
  return waitpid(child, &status, 0) == child && status == 0;
}

}  // namespace

int main() {
  for (void*& block : long_blocks) {
    block = aligned_alloc(kAlignment, kLongSize);
    memset(block, 1, kLongSize);
  }
  for (void* block : long_blocks) free(block);
  int ended = 0;
  for (int i = 0; i < kShort; ++i) {
    short_blocks[i] = malloc(1);
    if (i % kShortPerChild == 0 && !EndsWell()) ++ended;
  }
  printf("children that the check ended: %d\n", ended);
  return ended == 0 ? 0 : 1;
}
