// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "thread/current_thread.h"

namespace tcmalloc {

// Declared weak here alone, so that every other reference still makes a linker look for it.
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
