// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// In hardened mode under a limit of the heap, memory that waits in the quarantine is there for
// whoever needs it: a program gets as many blocks again as it has freed. No mistakes.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <initializer_list>
#include <new>

namespace {

constexpr int kRounds = 8;

// Allocates blocks of `size` bytes until there is no memory, and frees them. Returns how many.
int FillAndFree(size_t size) {
  struct Block {
    Block* next;
  };
  Block* blocks = nullptr;
  int count = 0;
  while (void* memory = malloc(size)) {
    memset(memory, 1, size);
    blocks = new (memory) Block{blocks};
    ++count;
  }
  while (blocks != nullptr) {
    Block* block = blocks;
    blocks = block->next;
    free(block);
  }
  return count;
}

}  // namespace

int main() {
  int bad = 0;
  for (const size_t size : {size_t{5'000}, size_t{200'000}, size_t{1} << 20, size_t{30} << 20}) {
    int first = 0;
    for (int round = 0; round < kRounds; ++round) {
      const int count = FillAndFree(size);
      if (round == 0) first = count;
      // Fragments may take a fiftieth.
      if (count > 0 && count >= first - first / 50) continue;
      printf("%d blocks of %zu bytes in round %d, %d at first\n", count, size, round, first);
      ++bad;
    }
  }
  return bad == 0 ? 0 : 1;
}
