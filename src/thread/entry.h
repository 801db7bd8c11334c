// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The ways in which a thread enters the slow path.

#ifndef TCMALLOC_THREAD_ENTRY_H_
#define TCMALLOC_THREAD_ENTRY_H_

#include <cstdint>

#include "cache/thread_header.h"

namespace tcmalloc {

enum class Entry : uint8_t {
  kThreadCache,  // with a cache of its own, closed now
  kCpuCache,     // served by the caches of CPUs, closed to them now
  kUncached,     // without a cache: it could not be made yet, or the thread's destructors have run
  kReentrant,    // from a signal handler or library call that interrupted the slow path, or while a
                 // fork is under way; no lock may be taken
};

// Returns the entry of a thread with a front end.
inline Entry EntryOf(const ThreadHeader* thread) {
  return thread->is_served_by_cpus() ? Entry::kCpuCache : Entry::kThreadCache;
}

}  // namespace tcmalloc

#endif  // TCMALLOC_THREAD_ENTRY_H_
