/* Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
 *
 * The functions of malloc_hook_c.h in a C program, which must not load the C++ library for them.
 */

#define _GNU_SOURCE /* mremap */

#include <dlfcn.h>
#include <gperftools/malloc_hook_c.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "conformance/c_check.h"

static int calls = 0;

static void HearNew(const void* block, size_t size) {
  CHECK(block != NULL && size == 100);
  ++calls;
}
static void HearDelete(const void* block) {
  CHECK(block != NULL);
  ++calls;
}
static void HearPreMmap(const void* start, size_t size, int protection, int flags, int fd,
                        off_t offset) {
  CHECK(start == NULL && size == 4096 && protection == PROT_READ && flags != 0 && fd == -1 &&
        offset == 0);
  ++calls;
}
static void HearMmap(const void* result, const void* start, size_t size, int protection, int flags,
                     int fd, off_t offset) {
  CHECK(result != NULL);
  HearPreMmap(start, size, protection, flags, fd, offset);
}
static void HearMunmap(const void* start, size_t size) {
  CHECK(start != NULL && size == 4096);
  ++calls;
}
static void HearMremap(const void* result, const void* start, size_t size, size_t new_size,
                       int flags, const void* new_start) {
  CHECK(result == start && size == new_size && flags == 0 && new_start == NULL);
  ++calls;
}
static void HearPreSbrk(ptrdiff_t increment) {
  CHECK(increment == 4096);
  ++calls;
}
static void HearSbrk(const void* result, ptrdiff_t increment) {
  CHECK(result != NULL);
  HearPreSbrk(increment);
}
static int ReplaceMmap(const void* start, size_t size, int protection, int flags, int fd,
                       off_t offset, void** result) {
  HearPreMmap(start, size, protection, flags, fd, offset);
  *result = &calls;
  return 1;
}
static int ReplaceMunmap(const void* start, size_t size, int* result) {
  CHECK(start == &calls);
  *result = 0;
  return size == 4096;
}

/* What every list offers: `act` makes its hook called `count` times. */
#define CHECK_LIST(Name, act, count)                     \
  CHECK(MallocHook_Add##Name##Hook(Hear##Name) == 1);    \
  calls = 0;                                             \
  act;                                                   \
  CHECK(calls == (count));                               \
  CHECK(MallocHook_Remove##Name##Hook(Hear##Name) == 1); \
  CHECK(MallocHook_Remove##Name##Hook(Hear##Name) == 0); \
  CHECK(MallocHook_Set##Name##Hook(Hear##Name) == NULL); \
  calls = 0;                                             \
  act;                                                   \
  CHECK(calls == (count));                               \
  CHECK(MallocHook_Set##Name##Hook(NULL) == Hear##Name); \
  calls = 0;                                             \
  act;                                                   \
  CHECK(calls == 0)

static void MapAndUnmap(void) {
  void* page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(page != MAP_FAILED);
  CHECK(munmap(page, 4096) == 0);
}

int main(void) {
  void* stack[4];
  void* page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK_LIST(New, free(malloc(100)), 1);
  CHECK_LIST(Delete, free(malloc(100)), 1);
  CHECK_LIST(PreMmap, MapAndUnmap(), 1);
  CHECK_LIST(Mmap, MapAndUnmap(), 1);
  CHECK_LIST(Munmap, MapAndUnmap(), 1);
  CHECK_LIST(Mremap, CHECK(mremap(page, 4096, 4096, 0) == page), 1);
  CHECK_LIST(PreSbrk, CHECK(sbrk(4096) != NULL), 1);
  CHECK_LIST(Sbrk, CHECK(sbrk(4096) != NULL), 1);

  CHECK(MallocHook_SetMmapReplacement(ReplaceMmap) == 1);
  CHECK(MallocHook_SetMunmapReplacement(ReplaceMunmap) == 1);
  calls = 0;
  CHECK(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, -1, 0) == (void*)&calls && calls == 1);
  CHECK(munmap(&calls, 4096) == 0);
  CHECK(MallocHook_RemoveMmapReplacement(ReplaceMmap) == 1);
  CHECK(MallocHook_RemoveMunmapReplacement(ReplaceMunmap) == 1);

  CHECK(MallocHook_GetCallerStackTrace(stack, 4, 0) == 0);
  CHECK(dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD) == NULL);
  return 0;
}
