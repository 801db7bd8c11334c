// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Uses up the static thread-local storage that libc keeps for libraries that are loaded later.

#ifndef TCMALLOC_TESTS_INTEGRATION_LIFECYCLE_STATIC_TLS_H_
#define TCMALLOC_TESTS_INTEGRATION_LIFECYCLE_STATIC_TLS_H_

#include <cstddef>

namespace tcmalloc::testing {

// Storage that the allocator promises not to exceed, and that each filler takes.
inline constexpr size_t kFillerBytes = 64;

// Loads copies of the filler library at `path` until there is room for just one more library of
// kFillerBytes. Returns how many were loaded, which stay. Not thread-safe.
int FillStaticTls(const char* path);

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_INTEGRATION_LIFECYCLE_STATIC_TLS_H_
