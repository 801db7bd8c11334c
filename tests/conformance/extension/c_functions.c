/* Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
 *
 * The functions of MallocExtension for C, and those of tcmalloc.h, in a C program that must not
 * load the C++ library for them.
 */

#include <dlfcn.h>
#include <gperftools/malloc_extension_c.h>
#include <gperftools/nallocx.h>
#include <gperftools/tcmalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/c_check.h"

static void CheckExtension(void) {
  static char text[65536];
  int histogram[kMallocExtensionHistogramSize];
  int blocks = 1;
  size_t number = 1;
  int local = 0;
  char* block = (char*)malloc(1000);

  CHECK(MallocExtension_VerifyAllMemory() == 1);
  CHECK(MallocExtension_VerifyNewMemory(block) == 1);
  CHECK(MallocExtension_VerifyArrayNewMemory(block) == 1);
  CHECK(MallocExtension_VerifyMallocMemory(block) == 1);
  CHECK(MallocExtension_MallocMemoryStats(&blocks, &number, histogram) == 1);
  CHECK(blocks == 0 && number == 0 && histogram[63] == 0);

  MallocExtension_GetStats(text, sizeof(text));
  CHECK(strstr(text, "MALLOC:") != NULL);
  number = MallocExtension_GetStatsJson(text, sizeof(text));
  CHECK(number == strlen(text) && text[0] == '{' && strstr(text, "\"size_classes\":[{") != NULL);
  CHECK(strcmp(text + number - 2, "}\n") == 0);
  CHECK(MallocExtension_GetStatsJson(text, 2) > 2 && strcmp(text, "{") == 0);
  CHECK(MallocExtension_GetStatsJson(NULL, 0) > 2);
  CHECK(MallocExtension_GetNumericProperty("generic.heap_size", &number) == 1 && number > 0);
  CHECK(MallocExtension_GetNumericProperty("nothing", &number) == 0);
  CHECK(MallocExtension_SetNumericProperty("tcmalloc.heap_limit_mb", 1 << 20) == 1);
  CHECK(MallocExtension_GetNumericProperty("tcmalloc.heap_limit_mb", &number) == 1);
  CHECK(number == 1 << 20);
  CHECK(MallocExtension_SetNumericProperty("tcmalloc.heap_limit_mb", 0) == 1);
  CHECK(MallocExtension_SetNumericProperty("generic.heap_size", 1) == 0);

  MallocExtension_MarkThreadIdle();
  CHECK(MallocExtension_GetThreadCacheSize() == 0);
  MallocExtension_MarkThreadBusy();
  MallocExtension_MarkThreadTemporarilyIdle();
  MallocExtension_ReleaseToSystem(1);
  MallocExtension_ReleaseFreeMemory();
  MallocExtension_SetMemoryReleaseRate(2.5);
  CHECK(MallocExtension_GetMemoryReleaseRate() == 2.5);

  CHECK(MallocExtension_GetEstimatedAllocatedSize(1000) == 1056);
  CHECK(MallocExtension_GetAllocatedSize(block) == 1056);
  CHECK(MallocExtension_GetOwnership(block) == MallocExtension_kOwned);
  CHECK(MallocExtension_GetOwnership(&local) == MallocExtension_kNotOwned);
  free(block);
}

static void CheckFunctions(void) {
  int major = 0;
  int minor = 0;
  const char* patch = NULL;
  void* block = tc_malloc(1000);

  CHECK(strcmp(tc_version(&major, &minor, &patch), TC_VERSION_STRING) == 0);
  CHECK(major == TC_VERSION_MAJOR && minor == TC_VERSION_MINOR);
  CHECK(strcmp(patch, TC_VERSION_PATCH) == 0);

  CHECK(tc_malloc_size(block) == nallocx(1000, 0));
  CHECK(nallocx(100, MALLOCX_LG_ALIGN(12)) == 4096 && tc_nallocx(1, 0) == 8);
  CHECK(nallocx((size_t)1 << 48, 0) == (size_t)1 << 48 && nallocx(((size_t)1 << 48) + 1, 0) == 0);
  CHECK(nallocx(100, MALLOCX_LG_ALIGN(63)) == 0);
  block = tc_realloc(block, 5000);
  tc_free_sized(block, 5000);
  CHECK(tc_posix_memalign(&block, 64, 100) == 0);
  free(block);
  block = tc_calloc(10, 10);
  CHECK(((char*)block)[99] == 0);
  tc_cfree(block);
  tc_free_aligned_sized(tc_memalign(64, 100), 64, 100);
  tc_free(tc_valloc(1));
  tc_free(tc_pvalloc(1));
  tc_free(tc_malloc_skip_new_handler(1));
  CHECK(tc_mallopt(0, 0) == 1);
  CHECK(tc_mallinfo().arena > 0);
}

int main(void) {
  CheckExtension();
  CheckFunctions();
  CHECK(dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD) == NULL);
  return 0;
}
