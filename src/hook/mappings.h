// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The program's calls of mmap and its kin, on their way to the system.

#ifndef TCMALLOC_HOOK_MAPPINGS_H_
#define TCMALLOC_HOOK_MAPPINGS_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace tcmalloc {

// Work as the libc functions, errno included. As async-signal-safe as the hooks are. Without hooks
// they only make the system call, and touch no thread-local variable.
void* HookedMmap(void* start, size_t length, int protection, int flags, int fd, off_t offset);
int HookedMunmap(void* start, size_t length);
void* HookedMremap(void* old_start, size_t old_length, size_t new_length, int flags,
                   void* new_start);
void* HookedSbrk(intptr_t increment);

// Call the replacements, but no other hooks.
void* UnhookedMmap(void* start, size_t length, int protection, int flags, int fd, off_t offset);
int UnhookedMunmap(void* start, size_t length);

// Return true if the program's replacement made the call.
bool ReplacedMmap(const void* start, size_t length, int protection, int flags, int fd, off_t offset,
                  void** result);
bool ReplacedMunmap(const void* start, size_t length, int* result);

}  // namespace tcmalloc

#endif  // TCMALLOC_HOOK_MAPPINGS_H_
