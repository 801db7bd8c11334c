// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The scope of everything outside the fast paths.

#ifndef TCMALLOC_ALLOCATOR_SLOW_PATH_H_
#define TCMALLOC_ALLOCATOR_SLOW_PATH_H_

#include <cstddef>
#include <cstdint>

#include "heap/heap.h"
#include "heap/observer.h"

namespace tcmalloc {

// Enters the slow path and keeps errno over it. Before leaving, frees the blocks that signal
// handlers left; afterwards runs errands.
class SlowPath {
 public:
  SlowPath();
  // Enters for an operation that is no allocation; see EnterSlowPathPatiently.
  struct Patient {};
  explicit SlowPath(Patient);
  ~SlowPath();
  SlowPath(const SlowPath&) = delete;
  SlowPath& operator=(const SlowPath&) = delete;

  // Returns true if no lock may be taken: only the emergency arena and the deferred frees may be
  // used.
  bool reentrant() const { return entry_ == Entry::kReentrant; }

  // Returns an object of class `c` for `size` bytes, or null. It comes from the thread's front end
  // or, without one, from the lists that all threads share. Requires an entry that is not
  // reentrant.
  void* AllocateObject(uint8_t c, size_t size) const;
  // Returns the period if the last AllocateObject, for `size` bytes, counted a sample, else 0.
  DrawnPeriod TakeSample(size_t size) const {
    if (TCMALLOC_LIKELY(entry_ != Entry::kUncached)) return current_thread->TakeSample();
    const SampleDraw draw = heap.CountShared(size);
    return draw.is_sample ? draw.period : 0;
  }
  // Records a sample: returns the block that the program gets in place of the object, which may be
  // null and may be that block, and frees the object if it is not needed. Returns the object, which
  // is no sample then, if there is no memory for the block.
  TCMALLOC_COLD void* MoveSample(void* object, uint8_t c, const SampledRequest& request) const;
  // Takes back an object of class `c`.
  void DeallocateObject(void* object, uint8_t c) const { DeallocateTo(entry_, object, c); }
  // Frees a block, which is not null, and checks it.
  void FreeBlock(void* block) const { FreeTo(entry_, block); }
  // Returns the objects in the thread's own cache, if it has one, to the lists that all threads
  // share.
  void FlushOwnCache() const {
    if (Cache* own = OwnCache()) own->Flush();
  }
  // Returns the bytes in that cache.
  size_t OwnCachedBytes() const;
  // Empties the thread's own cache and the caches that it shares, and then gives at least `least`
  // of the free memory back to the system. Returns the bytes freed.
  ShedBytes Shed(Length least, ReleaseCause cause) const;

  // Calls Heap::ShedFor for a request that failed.
  bool ShedFor(Length n) const { return heap.ShedFor(OwnCache(), n); }

  // Called after memory was fetched. Notes growth and a peak, lets caches make way for the former,
  // and gives some memory back if the heap holds more than it should.
  void FollowLimits() const {
    const PageHeap& pages = heap.page_heap();
    if (TCMALLOC_UNLIKELY(heap.HasGrown())) {
      NoteHeapGrowth(heap.TakeGrowth());
      Housekeeping::LookSoon();
    }
    if (TCMALLOC_UNLIKELY(heap.growth_steps().IsDue(pages.committed()))) heap.MakeWay(OwnCache());
    if (TCMALLOC_UNLIKELY(heap.peak().IsDue(pages.committed()))) heap.UpdatePeak();
    if (TCMALLOC_LIKELY(!heap.limits().IsDue(pages.committed(), pages.spans_served()))) return;
    heap.FollowLimits(OwnCache());
  }

 private:
  // Returns null if the thread has no cache of its own.
  Cache* OwnCache() const { return Threads<SizeClassLists>::CacheOf(entry_); }
  ThreadHeader* OwnThread() const {
    return entry_ == Entry::kThreadCache ? current_thread.header() : nullptr;
  }

  TCMALLOC_COLD static void RunErrands();
  // Work as DeallocateObject and FreeBlock for a thread that entered so.
  static void DeallocateTo(Entry entry, void* object, uint8_t c);
  static void FreeTo(Entry entry, void* block);
  static void FreeOtherTo(Entry entry, Span* span, const void* block);

  int saved_errno_;
  Entry entry_;
};

// Enters the slow path for a moment without the front end, and without what SlowPath does when it
// is left: see Threads::TryEnterBriefly. Changes no errno.
class BriefPath {
 public:
  TCMALLOC_ALWAYS_INLINE BriefPath() : seat_(heap.threads().TryEnterBriefly()) {}
  TCMALLOC_ALWAYS_INLINE ~BriefPath() {
    if (TCMALLOC_LIKELY(entered())) heap.threads().LeaveBriefly(seat_);
  }
  BriefPath(const BriefPath&) = delete;
  BriefPath& operator=(const BriefPath&) = delete;

  // Returns false if only SlowPath may enter.
  bool entered() const { return seat_ != nullptr; }
  // Returns the number of the thread's seat at the gate. Requires entered().
  uint32_t seat_number() const { return seat_->number; }
  // Returns true, now and then, if the thread should enter by SlowPath after this.
  static bool NeedsSlowPath() { return heap.housekeeping().PollIsDue(); }

 private:
  GateSeat* const seat_;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_ALLOCATOR_SLOW_PATH_H_
