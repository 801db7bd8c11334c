// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// mmap and its kin, in front of libc's, so that hooks see the calls. Without a hook each is its
// system call. They are not part of the heap, which calls the system directly.

#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/attributes.h"
#include "hook/mappings.h"

extern "C" {

// The parameter names differ from libc's, which are reserved identifiers.
// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name)

TCMALLOC_EXPORT void* mmap(void* start, size_t length, int protection, int flags, int fd,
                           off_t offset) noexcept {
  return tcmalloc::HookedMmap(start, length, protection, flags, fd, offset);
}

TCMALLOC_EXPORT void* mmap64(void* start, size_t length, int protection, int flags, int fd,
                             off64_t offset) noexcept {
  return tcmalloc::HookedMmap(start, length, protection, flags, fd, offset);
}

TCMALLOC_EXPORT int munmap(void* start, size_t length) noexcept {
  return tcmalloc::HookedMunmap(start, length);
}

TCMALLOC_EXPORT void* mremap(void* old_start, size_t old_length, size_t new_length, int flags,
                             ...) noexcept {
  void* new_start = nullptr;
  // Only calls with these flags have a fifth argument.
  if ((flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) != 0) {
    va_list arguments;
    va_start(arguments, flags);
    new_start = va_arg(arguments, void*);
    va_end(arguments);
  }
  return tcmalloc::HookedMremap(old_start, old_length, new_length, flags, new_start);
}

TCMALLOC_EXPORT void* sbrk(intptr_t increment) noexcept { return tcmalloc::HookedSbrk(increment); }

// NOLINTEND(readability-inconsistent-declaration-parameter-name)

}  // extern "C"
