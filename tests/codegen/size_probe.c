/* Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
 *
 * Asks for the usable size of a block: size_probe COUNT SIZE.
 */

#include <malloc.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  size_t (*volatile usable_size)(void*) = malloc_usable_size;
  size_t sum = 0;
  long count;
  char* block;
  if (argc != 3) return 2;
  count = atol(argv[1]);
  block = malloc((size_t)atol(argv[2]));
  if (block == NULL) return 1;
  for (block[0] = 'x'; count > 0; --count) sum += usable_size(block);
  free(block);
  return sum == 0;
}
