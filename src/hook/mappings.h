// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The program's calls of mmap and its kin, on their way to the system.

#ifndef TCMALLOC_HOOK_MAPPINGS_H_
#define TCMALLOC_HOOK_MAPPINGS_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace tcmalloc {

// As the libc functions, errno included. Async-signal-safe as far as the hooks are; without hooks
// nothing but the system call happens, and no thread-local variable is touched.
void* HookedMmap(void* start, size_t length, int protection, int flags, int fd, off_t offset);
int HookedMunmap(void* start, size_t length);
void* HookedMremap(void* old_start, size_t old_length, size_t new_length, int flags,
                   void* new_start);
void* HookedSbrk(intptr_t increment);

// With the replacements alone.
void* UnhookedMmap(void* start, size_t length, int protection, int flags, int fd, off_t offset);
int UnhookedMunmap(void* start, size_t length);

// True if the program's replacement made the call.
bool ReplacedMmap(const void* start, size_t length, int protection, int flags, int fd, off_t offset,
                  void** result);
bool ReplacedMunmap(const void* start, size_t length, int* result);

}  // namespace tcmalloc

#endif  // TCMALLOC_HOOK_MAPPINGS_H_
