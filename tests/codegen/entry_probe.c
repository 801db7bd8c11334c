/* Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
 *
 * Calls an entry point that is not malloc's own again and again: entry_probe COUNT ENTRY.
 */

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

static void* volatile no_block;

static void free_null(void) { free(no_block); }

static void align(size_t alignment, size_t size) {
  void* block = NULL;
  if (posix_memalign(&block, alignment, size) != 0) abort();
  free(block);
}
static void align_16(void) { align(16, 100); }
static void align_64(void) { align(64, 100); }
static void align_64_medium(void) { align(64, 2000); }

static void zeroed(void) { free(calloc(1, 100)); }

static void move(void) { free(realloc(malloc(50), 100)); }

static const struct {
  const char* name;
  void (*call)(void);
} kEntries[] = {
    {"free(NULL)", free_null},
    {"posix_memalign(16, 100)", align_16},
    {"posix_memalign(64, 100)", align_64},
    {"posix_memalign(64, 2000)", align_64_medium},
    {"calloc(1, 100)", zeroed},
    {"realloc(malloc(50), 100)", move},
};

int main(int argc, char** argv) {
  size_t entry = 0;
  long count;
  if (argc != 3) return 2;
  while (entry < sizeof(kEntries) / sizeof(kEntries[0]) &&
         strcmp(kEntries[entry].name, argv[2]) != 0) {
    ++entry;
  }
  if (entry == sizeof(kEntries) / sizeof(kEntries[0])) return 2;
  free(malloc(1)); /* makes the heap */
  for (count = atol(argv[1]); count > 0; --count) kEntries[entry].call();
  return 0;
}
