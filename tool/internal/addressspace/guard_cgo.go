// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

//go:build cgo

package addressspace

/*
#include <sys/resource.h>
#include <unistd.h>

// Room for what Go reserves, the stacks of its threads, and the heap.
static const rlim_t kLeastBytes = 2ull << 30;

__attribute__((constructor)) static void CheckAddressSpace(void) {
  static const char message[] =
      "tcm: the address space is limited to less than 2 GiB (ulimit -v), too little for tcm; "
      "a program runs under such a limit with LD_PRELOAD=libtcmalloc_minimal.so.4 instead of tcm\n";
  enum { kExitUsage = 125 };
  struct rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur >= kLeastBytes) return;
  if (write(STDERR_FILENO, message, sizeof message - 1) < 0) _exit(kExitUsage);
  _exit(kExitUsage);
}
*/
import "C"
