// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Part of the library for fault injection.

#include "base/attributes.h"
#include "heap/heap.h"

// From now on the heap asks the system for no more than each request needs, so that a small program
// makes many calls.
extern "C" TCMALLOC_EXPORT void tcmalloc_test_grow_in_small_steps() {
  tcmalloc::heap.EnsureInitialized();
  tcmalloc::heap.page_heap().set_growth(tcmalloc::Length(1), tcmalloc::Length(1));
}
