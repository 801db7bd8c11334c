// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The one table of calls that the allocator makes to the kernel and to libc.

#ifndef TCMALLOC_SYSTEM_SYSTEM_CALLS_H_
#define TCMALLOC_SYSTEM_SYSTEM_CALLS_H_

#include <pthread.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <time.h>

#include <cstddef>
#include <cstdint>

namespace tcmalloc {

// Every call fails as the libc function of its name does (-1 or MAP_FAILED and errno; the pthread
// functions return the error), except that sched_getaffinity returns the number of bytes that it
// wrote, as the kernel does.
struct SystemCalls {
  void* (*mmap)(void* address, size_t bytes, int protection, int flags, int fd, off_t offset);
  int (*munmap)(void* start, size_t bytes);
  int (*madvise)(void* start, size_t bytes, int advice);
  int (*mprotect)(void* start, size_t bytes, int protection);
  void* (*mremap)(void* start, size_t old_bytes, size_t new_bytes, int flags, void* new_start);
  void* (*sbrk)(intptr_t increment);
  int (*prctl)(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);
  int (*open)(const char* path, int flags, mode_t mode);
  ssize_t (*read)(int fd, void* buffer, size_t bytes);
  int (*close)(int fd);
  int (*sched_getaffinity)(pid_t thread, size_t bytes, void* mask);
  int (*getrlimit)(int resource, rlimit* limit);
  int (*clock_gettime)(clockid_t clock, timespec* time);
  unsigned long (*getauxval)(unsigned long type);
  int (*pthread_key_create)(pthread_key_t* key, void (*destructor)(void*));
  int (*pthread_setspecific)(pthread_key_t key, const void* value);
  int (*pthread_atfork)(void (*prepare)(), void (*parent)(), void (*child)());
};

// The kernel's calls are made directly: libc's wrappers can be interposed by a library that
// allocates.
extern const SystemCalls real_system_calls;

// What everything below src/ calls through. Tests, and a library built for fault injection, put
// other functions here while no other thread is inside the allocator.
extern constinit SystemCalls system_calls;

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_SYSTEM_CALLS_H_
