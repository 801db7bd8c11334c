/* Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
 *
 * A program that is linked with gperftools. Says if statistics and malloc are of one heap, and
 * calls what gperftools' own heap would have to be set up for.
 */

#include <gperftools/malloc_extension_c.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { kMiB = 1 << 20, kBlock = 100 * kMiB };

static void* idle(void* argument) {
  MallocExtension_MarkThreadIdle();
  MallocExtension_MarkThreadBusy();
  return argument;
}

int main(void) {
  size_t bytes = 0;
  pthread_t thread;
  void* volatile block = malloc(kBlock);
  if (!MallocExtension_GetNumericProperty("generic.current_allocated_bytes", &bytes)) abort();
  if (pthread_create(&thread, NULL, idle, NULL) != 0) abort();
  if (pthread_join(thread, NULL) != 0) abort();
  MallocExtension_ReleaseFreeMemory();
  free(block);
  printf("%s\n", bytes >= kBlock ? "one heap" : "two heaps");
  return 0;
}
