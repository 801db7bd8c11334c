// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "thread/current_thread.h"

namespace tcmalloc {

// Declared weak only here, so that a linker searches for it because of every other reference.
__attribute__((weak)) void* MallocSlow(size_t size);
__attribute__((weak)) void DeallocateSlow(void* block);

namespace {

constinit FastLists no_lists{SlowPaths{MallocSlow, DeallocateSlow}};

}  // namespace

constinit thread_local FastThread current_thread = &no_lists;

void InitializeCurrentThread() { current_thread = NoThread(); }

FastThread NoThread() { return &no_lists; }

SlowPaths SlowPathsOfEntryPoints() { return {MallocSlow, DeallocateSlow}; }

}  // namespace tcmalloc
