/* Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
 *
 * Calls the extension for C before main, in threads and their destructors, in children of fork and
 * after main, all while other threads allocate. */

#include <gperftools/malloc_extension_c.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance/c_check.h"

enum { kLoaders = 3, kCallers = 4, kChildren = 10, kBlocks = 200, kRounds = 20 };

static atomic_bool stop;
static pthread_t loaders[kLoaders];
static pthread_key_t key;

static void CallEverything(void) {
  char stats[4096];
  char json[4096];
  int blocks = 0;
  int histogram[kMallocExtensionHistogramSize];
  size_t total = 0;
  size_t value = 0;
  void* block = malloc(1000);

  MallocExtension_GetStats(stats, sizeof(stats));
  CHECK(strstr(stats, "Bytes in use by application") != NULL);
  CHECK(MallocExtension_GetStatsJson(json, sizeof(json)) > 100 && json[0] == '{');
  CHECK(MallocExtension_GetNumericProperty("generic.current_allocated_bytes", &value));
  CHECK(value >= 1000);
  CHECK(MallocExtension_SetNumericProperty("tcmalloc.max_total_thread_cache_bytes", 1 << 25));
  CHECK(!MallocExtension_SetNumericProperty("generic.heap_size", 1));
  CHECK(MallocExtension_GetAllocatedSize(block) == MallocExtension_GetEstimatedAllocatedSize(1000));
  CHECK(MallocExtension_GetOwnership(block) == MallocExtension_kOwned);
  CHECK(MallocExtension_GetOwnership(&value) == MallocExtension_kNotOwned);
  CHECK(MallocExtension_VerifyAllMemory() && MallocExtension_VerifyMallocMemory(block));
  CHECK(MallocExtension_MallocMemoryStats(&blocks, &total, histogram));
  MallocExtension_SetMemoryReleaseRate(2);
  CHECK(MallocExtension_GetMemoryReleaseRate() == 2);
  CHECK(MallocExtension_GetThreadCacheSize() < (size_t)1 << 30);
  MallocExtension_ReleaseToSystem(1 << 20);
  MallocExtension_ReleaseFreeMemory();
  MallocExtension_MarkThreadTemporarilyIdle();
  MallocExtension_MarkThreadIdle();
  MallocExtension_MarkThreadBusy();
  free(block);
}

static void* Load(void* argument) {
  void* blocks[kBlocks] = {NULL};
  size_t i;

  while (!atomic_load(&stop)) {
    for (i = 0; i < kBlocks; ++i) {
      free(blocks[i]);
      blocks[i] = malloc(1 + i * i * 20);
    }
  }
  for (i = 0; i < kBlocks; ++i) free(blocks[i]);
  return argument;
}

static void OnThreadExit(void* argument) {
  (void)argument;
  CallEverything();
}

static void* Call(void* argument) {
  int round;

  CHECK(pthread_setspecific(key, &key) == 0);
  for (round = 0; round < kRounds; ++round) CallEverything();
  return argument;
}

static void CallInChild(void) {
  int status = 0;
  const pid_t child = fork();

  if (child == 0) {
    CallEverything();
    _exit(0);
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* The load goes on until the process ends. */
static void StopLoad(void) {
  int i;

  CallEverything();
  CallInChild();
  atomic_store(&stop, 1);
  for (i = 0; i < kLoaders; ++i) CHECK(pthread_join(loaders[i], NULL) == 0);
}

__attribute__((constructor)) static void BeforeMain(void) {
  int i;

  CallEverything();
  for (i = 0; i < kLoaders; ++i) CHECK(pthread_create(&loaders[i], NULL, Load, NULL) == 0);
  CallEverything();
}
__attribute__((destructor)) static void AfterMain(void) { StopLoad(); }

int main(void) {
  pthread_t callers[kCallers];
  int i;

  CHECK(pthread_key_create(&key, OnThreadExit) == 0);
  for (i = 0; i < kCallers; ++i) CHECK(pthread_create(&callers[i], NULL, Call, NULL) == 0);
  for (i = 0; i < kChildren; ++i) CallInChild();
  for (i = 0; i < kCallers; ++i) CHECK(pthread_join(callers[i], NULL) == 0);
  return 0;
}
