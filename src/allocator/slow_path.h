// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The scope of everything that is not a fast path.

#ifndef TCMALLOC_ALLOCATOR_SLOW_PATH_H_
#define TCMALLOC_ALLOCATOR_SLOW_PATH_H_

#include "heap/current_thread.h"

namespace tcmalloc {

// Enters the slow path, keeps errno over it, and before leaving frees what signal handlers left.
class SlowPath {
 public:
  SlowPath();
  ~SlowPath();
  SlowPath(const SlowPath&) = delete;
  SlowPath& operator=(const SlowPath&) = delete;

  // No lock may be taken: only the emergency arena and the deferred frees may be used.
  bool reentrant() const { return entry_ == Entry::kReentrant; }
  // The thread's cache, closed; null if it has none.
  Cache* cache() const { return entry_ == Entry::kCached ? current_cache : nullptr; }

 private:
  int saved_errno_;
  Entry entry_;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_ALLOCATOR_SLOW_PATH_H_
