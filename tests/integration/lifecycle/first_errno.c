// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// errno is zero when main begins, whatever the allocator was told to start before, and the first
// call of a process keeps it, too, where it succeeds.

#include <errno.h>
#include <malloc.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kKept = 77 };

static void* Malloc(void) { return malloc(10); }
static void* MallocLarge(void) { return malloc(1 << 20); }
static void* Calloc(void) { return calloc(10, 10); }
static void* Realloc(void) { return realloc(NULL, 10); }
static void* Memalign(void) { return memalign(64, 10); }
static void* Valloc(void) { return valloc(10); }
static void* PosixMemalign(void) {
  void* block = NULL;
  return posix_memalign(&block, 64, 10) == 0 ? block : NULL;
}

static const struct {
  const char* name;
  void* (*call)(void);
} kFirstCalls[] = {
    {"malloc", Malloc},     {"malloc of a large block", MallocLarge},
    {"calloc", Calloc},     {"realloc", Realloc},
    {"memalign", Memalign}, {"posix_memalign", PosixMemalign},
    {"valloc", Valloc},
};

enum { kCalls = sizeof(kFirstCalls) / sizeof(kFirstCalls[0]) };

// Returns errno after the first call of a process of its own, which is the parent's copy.
static int ErrnoAfter(void* (*call)(void)) {
  const pid_t child = fork();
  if (child == 0) {
    errno = kKept;
    const void* block = call();
    _exit(block != NULL ? errno : 0);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

int main(void) {
  const int at_start = errno;
  // Nothing is printed before the last first call, because that may allocate.
  int after[kCalls];
  for (size_t i = 0; i < kCalls; ++i) after[i] = ErrnoAfter(kFirstCalls[i].call);
  int failures = 0;
  for (size_t i = 0; i < kCalls; ++i) {
    if (after[i] == kKept) continue;
    dprintf(STDERR_FILENO, "first call of %s: errno is %d\n", kFirstCalls[i].name, after[i]);
    ++failures;
  }
  if (at_start != 0) {
    dprintf(STDERR_FILENO, "main begins with errno %d\n", at_start);
    ++failures;
  }
  return failures == 0 ? 0 : 1;
}
