// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A program in strict seccomp, where reads of the clock are faults. With the settings that
// docs/limits-and-containers.md names, the heap serves it from the memory that it has.

#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kBlocks = 64, kRounds = 2000, kSkipped = 77 };

static void AllocateAndFree(void) {
  void* volatile blocks[kBlocks];
  for (int i = 0; i < kBlocks; ++i) {
    const size_t bytes = 16 + (size_t)i * 8;
    blocks[i] = malloc(bytes);
    if (blocks[i] != NULL) memset(blocks[i], 1, bytes);
  }
  for (int i = 0; i < kBlocks; ++i) free(blocks[i]);
}

int main(void) {
  for (int i = 0; i < kRounds; ++i) AllocateAndFree();
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) return kSkipped;
  for (int i = 0; i < kRounds; ++i) AllocateAndFree();
  // exit_group, which libc calls, is forbidden.
  syscall(SYS_exit, 0);
}
