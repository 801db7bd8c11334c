/* Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
 *
 * Requests are rounded up to size classes. nallocx tells the size of the block beforehand, so that
 * a growing buffer can ask for all of the bytes that it would get anyway.
 */

#include <gperftools/malloc_extension_c.h>
#include <gperftools/nallocx.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
  printf("%10s %10s %10s\n", "request", "nallocx", "block");
  for (size_t request = 10; request < 1000 * 1000; request = request * 5 / 2) {
    void* block = malloc(request);
    if (block == NULL) {
      perror("malloc");
      return 1;
    }
    printf("%10zu %10zu %10zu\n", request, nallocx(request, 0),
           MallocExtension_GetAllocatedSize(block));
    free(block);
  }
  return 0;
}
