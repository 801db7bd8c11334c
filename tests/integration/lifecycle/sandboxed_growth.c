// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A program that forbids itself to open files, and to ask on which CPUs it may run, before its heap
// grows large. With the settings that docs/limits-and-containers.md names, the allocator does
// neither.

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum { kBlocks = 64 << 10, kBytes = 1000, kSkipped = 77 };

static int ForbidOpening(void) {
  struct sock_filter instructions[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_getaffinity, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
#ifdef SYS_open
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_open, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
#endif
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog filter = {sizeof(instructions) / sizeof(*instructions), instructions};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

int main(void) {
  // The allocator reads files when it begins.
  free(malloc(kBytes));
  if (ForbidOpening() != 0) return kSkipped;
  for (size_t i = 0; i < kBlocks; ++i) {
    void* block = malloc(kBytes);
    if (block == NULL) return 2;
    memset(block, 1, kBytes);
  }
  return 0;
}
