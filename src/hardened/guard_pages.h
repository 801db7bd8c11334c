// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Pages of the heap that the program may not touch.

#ifndef TCMALLOC_HARDENED_GUARD_PAGES_H_
#define TCMALLOC_HARDENED_GUARD_PAGES_H_

#include <cstddef>
#include <cstdint>

namespace tcmalloc {

enum class GuardKind : uint8_t {
  kNone,
  kMarker,     // in the page tables, which takes no mapping
  kProtected,  // by mprotect, which takes up to two mappings
};

// Takes the access to whole kernel pages, and what they hold; they read as zero once they are
// accessible again. The second way is limited to kMostProtected runs at a time, because the kernel
// limits the mappings of a process. Keeps errno.
GuardKind ForbidPages(void* start, size_t bytes);
// Undoes ForbidPages, which returned `kind` for the same pages. Returns false if the kernel
// refuses.
bool AllowPages(void* start, size_t bytes, GuardKind kind);

inline constexpr int kMostProtected = 4096;

// Makes pages zero, without their memory if the kernel takes it. Keeps errno.
void ZeroPages(void* start, size_t bytes);

}  // namespace tcmalloc

#endif  // TCMALLOC_HARDENED_GUARD_PAGES_H_
