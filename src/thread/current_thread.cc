// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "thread/current_thread.h"

namespace tcmalloc {

// Declared weak only here, so that a linker searches for it because of every other reference.
__attribute__((weak)) void* MallocSlow(size_t size);
__attribute__((weak)) void DeallocateSlow(void* block);
__attribute__((weak)) void FreeSlow(void* block);
__attribute__((weak)) void DeleteClosed(void* block, FastThread, ObjectReference, size_t size);

namespace {

constinit FastLists no_lists{SlowPaths{MallocSlow, DeallocateSlow}};

// The headers that the entry points find in a thread without a front end.
constinit FastLists plain_entry{SlowPaths{MallocSlow, FreeSlow}};
constinit FastLists delete_entry{DeleteClosed};

constinit bool entries_are_checked = false;

void CloseEntries() { entry_threads = {&plain_entry, &delete_entry}; }

}  // namespace

constinit bool program_has_operators = false;
constinit thread_local FastThread current_thread = &no_lists;
constinit thread_local EntryThreads entry_threads = {&plain_entry, &delete_entry};

void InitializeCurrentThread() {
  current_thread = NoThread();
  CloseEntries();
}

// The writes are volatile, so that each word is written at once: a thread that allocates for the
// first time reads the old or the new one.
__attribute__((no_sanitize("thread"))) void CheckEntries(MallocElsewhere malloc,
                                                         DeallocateElsewhere free,
                                                         DeallocateElsewhere deletes) {
  entries_are_checked = true;
  const_cast<MallocElsewhere volatile&>(plain_entry.header.malloc) = malloc;
  const_cast<DeallocateElsewhere volatile&>(plain_entry.header.deallocate) = free;
  if (deletes == nullptr) return;
  const_cast<DeallocateElsewhere volatile&>(delete_entry.header.deallocate) = deletes;
}

void LeadToProgramsOperators() { program_has_operators = true; }

void SetCurrentThread(FastThread thread) {
  current_thread = thread;
  if (entries_are_checked) return;
  if (thread.header() == NoThread().header()) return CloseEntries();
  entry_threads = {thread, thread};
  if (TCMALLOC_UNLIKELY(program_has_operators)) entry_threads.deletes = &delete_entry;
}

FastThread NoThread() { return &no_lists; }

SlowPaths SlowPathsOfEntryPoints() { return {MallocSlow, DeallocateSlow}; }

}  // namespace tcmalloc
