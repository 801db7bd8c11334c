// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Gives unused memory back to the system as time passes.

#ifndef TCMALLOC_UPKEEP_HOUSEKEEPING_H_
#define TCMALLOC_UPKEEP_HOUSEKEEPING_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "page_heap/huge/huge_page.h"
#include "page_heap/page_heap.h"
#include "page_heap/release/release_decay.h"
#include "pages/page_types.h"
#include "transfer/source_turns.h"
#include "upkeep/excess_watch.h"
#include "upkeep/limits.h"
#include "upkeep/peak.h"
#include "upkeep/shrink_watch.h"

namespace tcmalloc {

struct ThreadHeader;

// The page heap, caches and limits that Housekeeping calls at the right times. `own` is the running
// thread if it has a cache of its own, which is closed now; null otherwise.
class HousekeepingHost {
 public:
  virtual PageHeap& Pages() = 0;

  virtual size_t CountThreadCaches() = 0;
  // Returns to the spans the objects that the next `count` caches of threads held while they were
  // idle.
  virtual void ReturnIdleOfThreads(size_t count, ThreadHeader* own) = 0;
  // Returns true if threads have grown their caches at the cost of others lately.
  virtual bool MayBeOverdrawn() = 0;
  // Returns, at `now`, in nanoseconds of a monotonic clock, what the caches of idle threads hold
  // beyond their shares. Returns false if it stopped because it would have taken long.
  virtual bool ReturnOverdrafts(uint64_t now, ThreadHeader* own) = 0;
  // Returns the objects that the caches of all CPUs held while they were idle.
  virtual void ReturnIdleOfCpus() = 0;
  // Returns the objects that the transfer caches of the next `count` classes did not need.
  virtual void ReturnUnused(SourceTurns& turns, uint32_t count) = 0;

  // Returns the bytes of full chains in the cache of `own`.
  virtual size_t FullBytes(ThreadHeader* own) = 0;
  // Returns the objects of a page and more in the cache of `own` and in the transfer caches.
  virtual void ReturnLargeObjects(ThreadHeader* own) = 0;

  // Returns what is in use now. Visits every cache.
  virtual PeakStats CountInUse() = 0;
  // Returns about `most` bytes of objects that the cache of `own` keeps to the spans; without one,
  // what the caches of CPUs did not need.
  virtual void ReturnSomeCached(ThreadHeader* own, size_t most) = 0;
  // Returns the objects in the lists that `own` uses, if that is no long work, and in the transfer
  // caches.
  virtual void ReturnLists(ThreadHeader* own) = 0;

  // Follows the limits of control groups at `now`, in nanoseconds of a monotonic clock. Returns
  // false, at once, if there is nothing to read yet. May change errno.
  virtual bool RefreshLimits(int64_t now, Limits::Reader reader) = 0;
  virtual bool FollowsCgroup() = 0;
  // Returns true if a fork waits for the running thread, which should leave.
  virtual bool IsAwaited() = 0;

 protected:
  constexpr HousekeepingHost() = default;
  ~HousekeepingHost() = default;
};

struct HousekeepingStats {
  uint64_t steps = 0;
  uint64_t longest_pause_ns = 0;  // the longest step in an allocating thread
};

// Time is divided into steps, as many to a half-life as ReleaseDecay has. In each step, parts of
// the caches of idle threads and CPUs and of the transfer caches return to the spans, every cache
// once in a half-life. The page heap then releases the memory that has become due. Cached memory
// thus passes through a few half-lives on its way to the system.
//
// The background thread does the work if there is one. Otherwise allocating threads do it in their
// slow paths, one of them at a time, and little enough at once that none waits long.
//
// Thread safe. Takes locks of the heap, so the caller must hold none, and must be inside the slow
// path or block all signals.
class Housekeeping {
 public:
  constexpr explicit Housekeeping(HousekeepingHost& host) : host_(host) {}
  Housekeeping(const Housekeeping&) = delete;
  Housekeeping& operator=(const Housekeeping&) = delete;

  // Sets the half-life of unused memory, in nanoseconds; 0 for never.
  void set_half_life(uint64_t ns);

  // Sets the bytes per second, on average, that RunAll gives back even if they are used again soon.
  // Spans go as wholes. Time counts from the call.
  void set_release_speed(uint64_t speed);
  uint64_t release_speed() const { return speed_.load(std::memory_order_relaxed); }

  // Called at the end of each slow path that was not entered from within another. Returns true, now
  // and then, if the thread should call Poll.
  TCMALLOC_ALWAYS_INLINE bool PollIsDue() const {
    return TCMALLOC_UNLIKELY(--polls_left_ <= 0 || backlog_.load(std::memory_order_relaxed));
  }
  // Called after a span was freed that was a block. Few such frees empty a heap, so if it may
  // shrink the next look comes at once. A thread that is working meanwhile looks once more instead.
  void NoteBlockFreed() const;
  // Lets the next look come at the end of this slow path. Called when the heap has grown.
  static void LookSoon() {
    if (polls_left_ > 0) polls_left_ = static_cast<int8_t>(-polls_left_);
  }
  // Keeps the caches of threads within their total, and does some of the work that is due by time.
  // `own` is as in HousekeepingHost. Returns true if this thread should call it again soon, because
  // more is due than it has done.
  TCMALLOC_NOINLINE bool Poll(ThreadHeader* own);

  // Does all the work that is due, however long it takes. Returns the nanoseconds until the next
  // call; 0 if there is nothing to be done, ever.
  TCMALLOC_COLD uint64_t RunAll();

  // While somebody calls RunAll regularly, Poll need not do anything.
  void AddDelegate() { delegates_.fetch_add(1, std::memory_order_relaxed); }
  void RemoveDelegate() { delegates_.fetch_sub(1, std::memory_order_relaxed); }

  // Called in the child of fork, where a thread that was working is gone.
  void ResetAfterFork();

  HousekeepingStats stats() const;

 private:
  // The bound of one piece of work in an allocating thread, about a fifth of a millisecond. It is
  // not less than a hugepage, because no hugepage would ever go.
  static constexpr Length kMostAtOnce = kPagesPerHugePage;
  // Pieces follow each other until this time has passed.
  static constexpr uint64_t kPauseNs = 250'000;
  // The bound in the background. Threads that ask for this very memory meanwhile wait for it.
  static constexpr Length kMostInBackground = Length::FromBytesCeil(size_t{64} << 20);
  static constexpr uint64_t kMostWaitSteps = 8;
  // The time in which caches that are idle become all but empty.
  static constexpr uint64_t kMostOwedSteps = 8 * ReleaseDecay::kSteps;
  static constexpr size_t kMostCachesAtOnce = 64;
  static constexpr int8_t kPollsPerLook = 32;
  // Who frees a page in a heap that shrinks may have to give so many back, but no more than
  // kMostPaid for what others may have freed.
  static constexpr uintptr_t kPaidShare = 8;
  static constexpr Length kMostPaid = Length::FromBytesCeil(size_t{16} << 20);
  // Returning so many bytes of objects takes a fifth of a millisecond.
  static constexpr size_t kCachedAtOnce = size_t{1} << 20;
  // The time between two looks for caches that hold more than their shares.
  static constexpr uint64_t kOverdraftLookNs = 10'000'000;
  // The longest time between two rounds while memory is given back at a speed, or while limits of
  // cgroups are followed.
  static constexpr uint64_t kRoundNs = 1'000'000'000;

  void NotePause(uint64_t now, uint64_t step_ns);
  void CountSteps(uint64_t now, uint64_t step_ns);
  void Step(ThreadHeader* own);
  void ReturnIdleObjects(ThreadHeader* own);
  // Returns true if no other thread is working. One that is looks once more if this thread `asks`.
  // The load keeps the others from writing to the cache line.
  bool TryBegin(bool asks = false) {
    // Acquire pairs with the release in End. Release pairs with the acquire in End, so that who
    // looks once more sees what this thread freed.
    return (asks || busy_.load(std::memory_order_relaxed) == 0) &&
           busy_.fetch_add(1, std::memory_order_acq_rel) == 0;
  }
  // Returns true if another thread asked for one more look.
  TCMALLOC_ALWAYS_INLINE bool End() {
    // Release pairs with the acquire in TryBegin, acquire with the release in TryBegin.
    return busy_.exchange(0, std::memory_order_acq_rel) > 1;
  }
  TCMALLOC_COLD void ReturnOverdrafts(ThreadHeader* own);
  TCMALLOC_ALWAYS_INLINE void ReleaseExcess(ThreadHeader* own);
  TCMALLOC_COLD void BeginCycle(Length free, ThreadHeader* own);
  TCMALLOC_ALWAYS_INLINE Length FollowShrinking(uint64_t now, bool freed_block, ThreadHeader* own);
  TCMALLOC_COLD void Shrink(uint64_t now, Length used, Length paid, ThreadHeader* own);
  // Goes on until `paid` pages have gone back, or a bounded time has passed, whichever is later;
  // not beyond that time for a fork that waits.
  void WorkForLimitedTime(uint64_t began, Length paid, ThreadHeader* own);
  TCMALLOC_COLD Length ReleaseByTime(uint64_t now, uint64_t step_ns);
  TCMALLOC_COLD Length ReleaseAtSpeed(uint64_t now);
  TCMALLOC_COLD uint64_t WaitAfter(Length released, uint64_t step_ns);

  // Slow paths of this thread before it looks at the clock; negative if it should look before.
  static constinit thread_local int8_t polls_left_ __attribute__((tls_model("initial-exec")));

  HousekeepingHost& host_;
  // Set at any time; 0 while nothing goes back by time. Code that divides by it reads it once and
  // passes it on.
  std::atomic<uint64_t> step_ns_{0};
  // Not 0 while a thread works, which holds it; more than 1 if it shall look once more.
  std::atomic<uint32_t> busy_{0};
  std::atomic<uint64_t> speed_{0};
  std::atomic<uint64_t> speed_since_{0};  // when it was set
  std::atomic<int> delegates_{0};
  std::atomic<bool> backlog_{false};       // more is due than was released at once
  std::atomic<uintptr_t> shrink_mark_{0};  // pages, as shrink_ had it at the last look
  std::atomic<uint64_t> longest_pause_ns_{0};
  std::atomic<uint64_t> steps_{0};
  // Guarded by busy_.
  uint64_t looked_ = 0;      // when a thread looked at the clock in passing
  uint64_t spans_then_ = 0;  // served by the page heap when a thread last looked
  uint64_t next_step_ = 0;   // when it begins
  uint64_t owed_steps_ = 0;  // begun and not done
  uint64_t wait_steps_ = 1;
  uint64_t next_overdraft_look_ = 0;
  uint64_t speed_time_ = 0;  // of the last round that gave back at a speed
  double speed_rest_ = 0;    // bytes that were due then and did not go, or too many that did
  SourceTurns turns_;        // of transfer caches
  ExcessWatch excess_;
  ShrinkWatch shrink_;
  Length freed_then_;  // when a thread last looked
};

}  // namespace tcmalloc

#endif  // TCMALLOC_UPKEEP_HOUSEKEEPING_H_
