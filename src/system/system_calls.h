// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The one table of calls that the allocator makes to the kernel and to libc.

#ifndef TCMALLOC_SYSTEM_SYSTEM_CALLS_H_
#define TCMALLOC_SYSTEM_SYSTEM_CALLS_H_

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

#include <cstddef>
#include <cstdint>

struct stat;
struct statfs;

namespace tcmalloc {

// The argument of rt_sigaction, as the kernel lays it out.
struct SignalAction {
  void (*handler)(int signal, siginfo_t* info, void* context) = nullptr;
  unsigned long flags = 0;
  void (*restorer)() = nullptr;
  uint64_t mask = 0;
};

// Every call fails as the libc function of its name does (-1 or MAP_FAILED and errno; the pthread
// functions return the error), except that sched_getaffinity returns the number of bytes that it
// wrote, as the kernel does. clone lets the child call `body` on the stack that ends at `stack_end`
// and then exit. The masks of signals are the kernel's 64 bits.
struct SystemCalls {
  void* (*mmap)(void* address, size_t bytes, int protection, int flags, int fd, off_t offset);
  int (*munmap)(void* start, size_t bytes);
  int (*madvise)(void* start, size_t bytes, int advice);
  ssize_t (*process_madvise)(int process, const iovec* ranges, size_t n, int advice,
                             unsigned flags);
  int (*mprotect)(void* start, size_t bytes, int protection);
  void* (*mremap)(void* start, size_t old_bytes, size_t new_bytes, int flags, void* new_start);
  void* (*sbrk)(intptr_t increment);
  int (*prctl)(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);
  int (*open)(const char* path, int flags, mode_t mode);
  ssize_t (*read)(int fd, void* buffer, size_t bytes);
  ssize_t (*pread)(int fd, void* buffer, size_t bytes, off_t offset);
  ssize_t (*getdents64)(int fd, void* buffer, size_t bytes);
  int (*close)(int fd);
  ssize_t (*write)(int fd, const void* bytes, size_t count);
  int (*unlink)(const char* path);
  int (*rename)(const char* from, const char* to);
  int (*lstat)(const char* path, struct stat* information);
  int (*ftruncate)(int fd, off_t bytes);
  int (*fstatfs)(int fd, struct statfs* information);
  int (*sched_getaffinity)(pid_t thread, size_t bytes, void* mask);
  int (*getrlimit)(int resource, rlimit* limit);
  long (*futex)(uint32_t* word, int operation, uint32_t value, const timespec* timeout);
  int (*clock_gettime)(clockid_t clock, timespec* time);
  int (*rseq)(void* area, uint32_t bytes, int flags, uint32_t signature);
  int (*membarrier)(int command, unsigned flags, int cpu);
  int (*rt_sigaction)(int signal, const SignalAction* action, SignalAction* old_action);
  int (*rt_sigprocmask)(int how, const uint64_t* mask, uint64_t* old_mask);
  int (*tgkill)(pid_t process, pid_t thread, int signal);
  int (*get_robust_list)(pid_t thread, void** head, size_t* bytes);
  pid_t (*clone)(unsigned long flags, void* stack_end, void (*body)(void*), void* argument);
  pid_t (*wait4)(pid_t child, int* status, int options);
  void (*exit)(int status);
  pid_t (*gettid)();
  unsigned long (*getauxval)(unsigned long type);
  int (*pthread_key_create)(pthread_key_t* key, void (*destructor)(void*));
  int (*pthread_setspecific)(pthread_key_t key, const void* value);
  int (*pthread_create)(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*),
                        void* argument);
  int (*pthread_atfork)(void (*prepare)(), void (*parent)(), void (*child)());
};

// The kernel's calls are made directly: libc's wrappers can be interposed by a library that
// allocates.
extern const SystemCalls real_system_calls;

// The system calls of everything in src/. Tests, and a library built for fault injection, replace
// them while no other thread is inside the allocator.
extern constinit SystemCalls system_calls;

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_SYSTEM_CALLS_H_
