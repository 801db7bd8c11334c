// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A program that allows itself no system call but the one that exits, after it freed blocks of all
// kinds. The allocator must leave it at that: any other call is the end of the process.

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum { kBlocks = 200, kSkipped = 77 };

static void* UseHeap(void* unused) {
  void* blocks[kBlocks];
  for (size_t i = 0; i < kBlocks; ++i) {
    blocks[i] = malloc(i * i * 8);
    if (blocks[i] == NULL) abort();
    memset(blocks[i], 1, i * i * 8);
  }
  for (size_t i = 0; i < kBlocks; i += 2) free(blocks[i]);
  return unused;
}

// Frees a block that cannot be read any more.
static void FreeProtected(void) {
  const size_t bytes = 4 << 20;
  void* block = aligned_alloc(1 << 16, bytes);
  if (block == NULL || mprotect(block, bytes, PROT_NONE) != 0) abort();
  free(block);
}

static int ForbidCalls(void) {
  struct sock_filter instructions[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  };
  const struct sock_fprog filter = {sizeof(instructions) / sizeof(*instructions), instructions};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

int main(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, UseHeap, NULL) != 0) return 2;
  if (pthread_join(thread, NULL) != 0) return 2;
  UseHeap(NULL);
  FreeProtected();
  return ForbidCalls() == 0 ? 0 : kSkipped;
}
