/* Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
 *
 * Grows a block by realloc: growth_probe ROUNDS STEP MOST. In each round a block of no bytes grows
 * by STEP bytes at a time until it has MOST.
 */

#include <stdlib.h>

int main(int argc, char** argv) {
  void* (*volatile grow)(void*, size_t) = realloc;
  void (*volatile deallocate)(void*) = free;
  long rounds;
  size_t step;
  size_t most;
  if (argc != 4) return 2;
  rounds = atol(argv[1]);
  step = (size_t)atol(argv[2]);
  most = (size_t)atol(argv[3]);
  for (; rounds > 0; --rounds) {
    char* block = NULL;
    size_t size;
    for (size = step; size <= most; size += step) block = grow(block, size);
    deallocate(block);
  }
  return 0;
}
