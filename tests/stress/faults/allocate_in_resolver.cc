// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Makes a program allocate while the dynamic linker still relocates it. libc does not know the
// environment yet, so that the allocator opens a file to read it.

#include <cstdlib>

namespace {

using Nothing = void (*)();

void DoNothing() {}

}  // namespace

extern "C" {

__attribute__((visibility("hidden"))) Nothing tcmalloc_test_resolve() {
  free(malloc(100));
  return DoNothing;
}

__attribute__((visibility("hidden"), ifunc("tcmalloc_test_resolve"))) void tcmalloc_test_resolved();

// The reference that makes the linker emit the relocation.
__attribute__((visibility("hidden"), used)) Nothing tcmalloc_test_resolved_reference =
    tcmalloc_test_resolved;

}  // extern "C"
