// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The scope of everything that is not a fast path.

#ifndef TCMALLOC_ALLOCATOR_SLOW_PATH_H_
#define TCMALLOC_ALLOCATOR_SLOW_PATH_H_

#include <cstddef>
#include <cstdint>

#include "heap/heap.h"

namespace tcmalloc {

// Enters the slow path, keeps errno over it, and before leaving frees what signal handlers left.
class SlowPath {
 public:
  SlowPath();
  // For what is no allocation; see EnterSlowPathPatiently.
  struct Patient {};
  explicit SlowPath(Patient);
  ~SlowPath();
  SlowPath(const SlowPath&) = delete;
  SlowPath& operator=(const SlowPath&) = delete;

  // No lock may be taken: only the emergency arena and the deferred frees may be used.
  bool reentrant() const { return entry_ == Entry::kReentrant; }

  // For an entry that is not reentrant, by the thread's front end or, where it has none, by the
  // lists that all threads share: an object of class `c` for `size` bytes, or null.
  void* AllocateObject(uint8_t c, size_t size) const;
  // Takes back an object of class `c`.
  void DeallocateObject(void* object, uint8_t c) const;
  // Frees a block, which is not null, and checks it.
  void FreeBlock(void* block) const;
  // Returns what the thread's own cache holds, if it has one, to the lists that all threads share.
  void FlushOwnCache() const {
    if (Cache* own = OwnCache()) own->Flush();
  }
  // How much that is.
  size_t OwnCachedBytes() const;
  // Gives up what the thread's own cache holds and the caches that it shares, and gives back to
  // the system at least `least` of what is free then. Returns what that freed.
  ShedBytes Shed(Length least, ReleaseCause cause) const;

  // For a request that failed, as Heap::ShedFor.
  bool ShedFor(Length n) const { return heap.ShedFor(OwnCache(), n); }

  // After memory was fetched: notes a peak, and gives some back if the heap holds more than it
  // should.
  void FollowLimits() const {
    const PageHeap& pages = heap.page_heap();
    if (TCMALLOC_UNLIKELY(heap.peak().IsDue(pages.committed()))) heap.UpdatePeak();
    if (TCMALLOC_LIKELY(!heap.limits().IsDue(pages.committed(), pages.spans_served()))) return;
    heap.FollowLimits(OwnCache());
  }

 private:
  // Null if there is none.
  Cache* OwnCache() const { return Threads<SizeClassLists>::CacheOf(entry_); }
  ThreadHeader* OwnThread() const {
    return entry_ == Entry::kThreadCache ? current_thread.header() : nullptr;
  }

  int saved_errno_;
  Entry entry_;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_ALLOCATOR_SLOW_PATH_H_
