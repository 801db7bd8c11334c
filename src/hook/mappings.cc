// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "hook/mappings.h"

#include <cerrno>

#include "hook/hooks.h"
#include "system/system_calls.h"

namespace tcmalloc {
namespace {

template <typename Function, typename... Arguments>
TCMALLOC_COLD bool IsReplacedBy(Function function, Arguments... arguments) {
  bool replaced = false;
  int its_errno = 0;
  {
    const HookScope scope;
    if (!scope.entered()) return false;
    replaced = function(arguments...) != 0;
    its_errno = errno;
  }
  if (replaced) errno = its_errno;
  return replaced;
}

// Returns true if `replacement` made the call, whose errno stays.
template <typename Function, typename... Arguments>
bool Replaced(const Replacement<Function>& replacement, Arguments... arguments) {
  Function function = replacement.get();
  return TCMALLOC_UNLIKELY(function != nullptr) && IsReplacedBy(function, arguments...);
}

}  // namespace

bool ReplacedMmap(const void* start, size_t length, int protection, int flags, int fd, off_t offset,
                  void** result) {
  return Replaced(hooks.mmap_replacement, start, length, protection, flags, fd, offset, result);
}

bool ReplacedMunmap(const void* start, size_t length, int* result) {
  return Replaced(hooks.munmap_replacement, start, length, result);
}

// Make the real system calls, not those of the allocator's table, which tests cause to fail.

void* UnhookedMmap(void* start, size_t length, int protection, int flags, int fd, off_t offset) {
  void* result = nullptr;
  if (ReplacedMmap(start, length, protection, flags, fd, offset, &result)) return result;
  return real_system_calls.mmap(start, length, protection, flags, fd, offset);
}

int UnhookedMunmap(void* start, size_t length) {
  int result = 0;
  if (ReplacedMunmap(start, length, &result)) return result;
  return real_system_calls.munmap(start, length);
}

void* HookedMmap(void* start, size_t length, int protection, int flags, int fd, off_t offset) {
  Invoke(hooks.pre_mmap, start, length, protection, flags, fd, offset);
  void* result = UnhookedMmap(start, length, protection, flags, fd, offset);
  Invoke(hooks.mmap, result, start, length, protection, flags, fd, offset);
  return result;
}

int HookedMunmap(void* start, size_t length) {
  Invoke(hooks.munmap, start, length);
  return UnhookedMunmap(start, length);
}

void* HookedMremap(void* old_start, size_t old_length, size_t new_length, int flags,
                   void* new_start) {
  void* result = real_system_calls.mremap(old_start, old_length, new_length, flags, new_start);
  Invoke(hooks.mremap, result, old_start, old_length, new_length, flags, new_start);
  return result;
}

void* HookedSbrk(intptr_t increment) {
  if (increment == 0) return real_system_calls.sbrk(0);
  Invoke(hooks.pre_sbrk, increment);
  void* result = real_system_calls.sbrk(increment);
  Invoke(hooks.sbrk, result, increment);
  return result;
}

}  // namespace tcmalloc
