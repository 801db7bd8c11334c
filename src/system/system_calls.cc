// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/system_calls.h"

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tcmalloc {
namespace {

void* ToPointer(long result) { return reinterpret_cast<void*>(result); }

void* Mmap(void* address, size_t bytes, int protection, int flags, int fd, off_t offset) {
  return ToPointer(::syscall(SYS_mmap, address, bytes, protection, flags, fd, offset));
}

int Munmap(void* start, size_t bytes) {
  return static_cast<int>(::syscall(SYS_munmap, start, bytes));
}

int Madvise(void* start, size_t bytes, int advice) {
  return static_cast<int>(::syscall(SYS_madvise, start, bytes, advice));
}

int Mprotect(void* start, size_t bytes, int protection) {
  return static_cast<int>(::syscall(SYS_mprotect, start, bytes, protection));
}

void* Mremap(void* start, size_t old_bytes, size_t new_bytes, int flags, void* new_start) {
  return ToPointer(::syscall(SYS_mremap, start, old_bytes, new_bytes, flags, new_start));
}

int Prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d) {
  return static_cast<int>(::syscall(SYS_prctl, option, a, b, c, d));
}

int Open(const char* path, int flags, mode_t mode) {
  return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

ssize_t Read(int fd, void* buffer, size_t bytes) { return ::syscall(SYS_read, fd, buffer, bytes); }

int Close(int fd) { return static_cast<int>(::syscall(SYS_close, fd)); }

int SchedGetaffinity(pid_t thread, size_t bytes, void* mask) {
  return static_cast<int>(::syscall(SYS_sched_getaffinity, thread, bytes, mask));
}

int Getrlimit(int resource, rlimit* limit) {
  return static_cast<int>(::syscall(SYS_prlimit64, 0, resource, nullptr, limit));
}

int ClockGettime(clockid_t clock, timespec* time) {
  return static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
}

// libc's sbrk, not the kernel's brk: libc remembers the break, and the program may call sbrk too.
constexpr SystemCalls kReal = {
    .mmap = Mmap,
    .munmap = Munmap,
    .madvise = Madvise,
    .mprotect = Mprotect,
    .mremap = Mremap,
    .sbrk = ::sbrk,
    .prctl = Prctl,
    .open = Open,
    .read = Read,
    .close = Close,
    .sched_getaffinity = SchedGetaffinity,
    .getrlimit = Getrlimit,
    .clock_gettime = ClockGettime,
    .getauxval = ::getauxval,
    .pthread_key_create = ::pthread_key_create,
    .pthread_setspecific = ::pthread_setspecific,
    .pthread_atfork = ::pthread_atfork,
};

}  // namespace

constinit const SystemCalls real_system_calls = kReal;

// Weak, so that a library built for fault injection can start with a table of its own.
__attribute__((weak)) constinit SystemCalls system_calls = kReal;

}  // namespace tcmalloc
