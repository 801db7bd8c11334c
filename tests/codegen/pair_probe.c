/* Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
 *
 * Calls malloc and free in turn: pair_probe COUNT SIZE, or pair_probe COUNT stub for the same loop
 * around two functions that only return. The difference is what the allocator does.
 */

#include <stdlib.h>
#include <string.h>

void* stub_allocate(size_t size);
void stub_deallocate(void* block);

/* One instruction each, whatever the compiler's options. */
__asm__(
    ".text\n"
    ".globl stub_allocate\n.type stub_allocate, %function\n"
    "stub_allocate:\n\tret\n"
    ".globl stub_deallocate\n.type stub_deallocate, %function\n"
    "stub_deallocate:\n\tret\n");

int main(int argc, char** argv) {
  void* (*volatile allocate)(size_t) = malloc;
  void (*volatile deallocate)(void*) = free;
  size_t size = 16;
  long count;
  if (argc != 3) return 2;
  count = atol(argv[1]);
  if (strcmp(argv[2], "stub") == 0) {
    allocate = stub_allocate;
    deallocate = stub_deallocate;
  } else {
    size = (size_t)atol(argv[2]);
  }
  for (; count > 0; --count) deallocate(allocate(size));
  return 0;
}
