// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

//go:build cgo

package limits

/*
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

// Room for what Go reserves, the stacks of its threads, and the heap.
static const rlim_t kLeastBytes = 2ull << 30;

// A file, and with the first one those for epoll and for events.
enum { kLeastDescriptors = 3 };

#define TCM_INSTEAD \
  "; a program runs under such a limit with LD_PRELOAD=libtcmalloc_minimal.so.4 instead of tcm\n"

_Noreturn static void End(const char* message) {
  enum { kExitUsage = 125 };
  if (write(STDERR_FILENO, message, strlen(message)) < 0) _exit(kExitUsage);
  _exit(kExitUsage);
}

__attribute__((constructor)) static void CheckAddressSpace(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur >= kLeastBytes) return;
  End("tcm: the address space is limited to less than 2 GiB (ulimit -v), too little for tcm" TCM_INSTEAD);
}

// Go raises the limit as far as it may go.
__attribute__((constructor)) static void CheckDescriptors(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  int unused = 0;
  for (rlim_t number = 0; number < limit.rlim_max; ++number) {
    if (fcntl((int)number, F_GETFD) < 0 && ++unused == kLeastDescriptors) return;
  }
  End("tcm: fewer than 3 more files can be open (ulimit -n), too few for tcm" TCM_INSTEAD);
}
*/
import "C"
