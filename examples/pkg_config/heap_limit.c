/* Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
 *
 * Limits its own heap to 64 MiB and allocates until malloc says no: a program can refuse one
 * request instead of being killed by the system. TCMALLOC_HEAP_LIMIT_MB does the same from outside.
 */

#include <errno.h>
#include <gperftools/malloc_extension_c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kLimitMiB = 64, kBlockKiB = 256, kMostBlocks = 1024 };

static char* blocks[kMostBlocks];

int main(void) {
  if (!MallocExtension_SetNumericProperty("tcmalloc.heap_limit_mb", kLimitMiB)) {
    fprintf(stderr, "this malloc has no limit\n");
    return 1;
  }
  size_t count = 0;
  for (; count < kMostBlocks; ++count) {
    blocks[count] = malloc(kBlockKiB * 1024);
    if (blocks[count] == NULL) break;
    memset(blocks[count], 1, kBlockKiB * 1024);
  }
  const int error = errno;
  for (size_t i = 0; i < count; ++i) free(blocks[i]);
  if (count == kMostBlocks) {
    fprintf(stderr, "the limit was not kept\n");
    return 1;
  }
  printf("limit: %d MiB\n", (int)kLimitMiB);
  printf("allocated: %zu MiB, then: %s\n", count * kBlockKiB / 1024, strerror(error));
  return 0;
}
