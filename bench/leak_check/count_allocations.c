// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Counts a program's allocations, preloaded: writes their number to the descriptor that
// TCM_COUNT_FD names when its destructors run.

#define _GNU_SOURCE
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* block, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

static atomic_ulong allocations;

static void Count(void) { atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed); }

void* malloc(size_t bytes) {
  Count();
  return __libc_malloc(bytes);
}

void* calloc(size_t count, size_t bytes) {
  Count();
  return __libc_calloc(count, bytes);
}

void* realloc(void* block, size_t bytes) {
  Count();
  return __libc_realloc(block, bytes);
}

void* aligned_alloc(size_t alignment, size_t bytes) {
  Count();
  return __libc_memalign(alignment, bytes);
}

__attribute__((destructor)) static void Write(void) {
  const char* stream = getenv("TCM_COUNT_FD");
  char line[32];
  if (stream == NULL) return;
  const int length = snprintf(line, sizeof(line), "%lu\n", (unsigned long)allocations);
  if (write(atoi(stream), line, (size_t)length) < 0) return;
}
