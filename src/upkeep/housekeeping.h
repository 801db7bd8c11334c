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

namespace tcmalloc {

struct ThreadHeader;

// The page heap, caches and limits for which Housekeeping says when something is done. `own`: the
// running thread, if it has a cache of its own, closed now; null otherwise.
class HousekeepingHost {
 public:
  virtual PageHeap& Pages() = 0;

  virtual size_t CountThreadCaches() = 0;
  // Returns to the spans what `count` caches of threads, the next in turn, held while they were
  // idle.
  virtual void ReturnIdleOfThreads(size_t count, ThreadHeader* own) = 0;
  // Returns what the caches of all CPUs held while they were idle.
  virtual void ReturnIdleOfCpus() = 0;
  // Returns what the transfer caches of the next `count` classes did not need.
  virtual void ReturnUnused(SourceTurns& turns, uint32_t count) = 0;

  // Bytes of full chains, in the cache of `own`.
  virtual size_t FullBytes(ThreadHeader* own) = 0;
  // Gives up the objects of a page and more that the cache of `own` and the transfer caches hold.
  virtual void ReturnLargeObjects(ThreadHeader* own) = 0;

  // Follows the limits of control groups at `now`, in nanoseconds of a monotonic clock. False, at
  // once, where there is nothing to read yet. May change errno.
  virtual bool RefreshLimits(int64_t now, Limits::Reader reader) = 0;
  virtual bool FollowsCgroup() = 0;
  // A fork waits for the running thread, which should leave.
  virtual bool IsAwaited() = 0;

 protected:
  constexpr HousekeepingHost() = default;
  ~HousekeepingHost() = default;
};

struct HousekeepingStats {
  uint64_t steps = 0;
  uint64_t longest_pause_ns = 0;  // that a step ever took from an allocating thread
};

// Time is divided into steps, so many to a half-life as ReleaseDecay has. In each, a part of the
// caches of idle threads and CPUs and of the transfer caches is returned to the spans, every one of
// them once in a half-life, and the page heap releases what has become due. Memory that is cached
// thus passes through a few half-lives on its way to the system.
//
// The work is done by the background thread if there is one, and else by allocating threads in
// their slow paths: one of them at a time, and little enough at once that none waits long.
//
// Thread safe. Takes locks of the heap, so that its caller holds none and is inside the slow path,
// or blocks all signals.
class Housekeeping {
 public:
  constexpr explicit Housekeeping(HousekeepingHost& host) : host_(host) {}
  Housekeeping(const Housekeeping&) = delete;
  Housekeeping& operator=(const Housekeeping&) = delete;

  // Of unused memory, in nanoseconds; 0 for never.
  void set_half_life(uint64_t ns);

  // How much RunAll gives back in any case, used again soon or not, in bytes per second on average:
  // spans go as wholes. Time counts from the call.
  void set_release_speed(uint64_t speed);
  uint64_t release_speed() const { return speed_.load(std::memory_order_relaxed); }

  // Called at the end of each slow path that was not entered from within another: whether to call
  // Poll, which is so only now and then.
  TCMALLOC_ALWAYS_INLINE bool PollIsDue() const {
    return TCMALLOC_UNLIKELY(--polls_left_ <= 0 || backlog_.load(std::memory_order_relaxed));
  }
  // Does some of what is due. `own` as in HousekeepingHost. Returns whether this thread should call
  // it again soon, because more is due than it has done.
  TCMALLOC_NOINLINE bool Poll(ThreadHeader* own);

  // Does all that is due, for as long as it takes. Returns after how many nanoseconds to do so
  // again; 0 if there is nothing to be done, ever.
  uint64_t RunAll();

  // While somebody calls RunAll regularly, Poll need not do anything.
  void AddDelegate() { delegates_.fetch_add(1, std::memory_order_relaxed); }
  void RemoveDelegate() { delegates_.fetch_sub(1, std::memory_order_relaxed); }

  // In the child of fork, where whoever was at it is gone.
  void ResetAfterFork();

  HousekeepingStats stats() const;

 private:
  // In an allocating thread: pieces of work of about a fifth of a millisecond, one after the other,
  // until this time has passed. Less than a hugepage would let none go.
  static constexpr Length kMostAtOnce = kPagesPerHugePage;
  static constexpr uint64_t kPauseNs = 250'000;
  // In the background: bounded for the sake of threads that ask for this very memory.
  static constexpr Length kMostInBackground = Length::FromBytesCeil(size_t{64} << 20);
  static constexpr uint64_t kMostWaitSteps = 8;
  // After so many half-lives next to nothing is left in caches that were idle.
  static constexpr uint64_t kMostOwedSteps = 8 * ReleaseDecay::kSteps;
  static constexpr size_t kMostCachesAtOnce = 64;
  static constexpr int8_t kPollsPerLook = 32;
  // The longest time between two rounds while something is given back at a speed, or limits of
  // cgroups are followed.
  static constexpr uint64_t kRoundNs = 1'000'000'000;

  void NotePause(uint64_t now, uint64_t step_ns);
  void CountSteps(uint64_t now, uint64_t step_ns);
  void Step(ThreadHeader* own);
  void ReturnIdleObjects(ThreadHeader* own);
  // The load keeps threads that come by while another is at it from writing to its cache line.
  bool TryBegin() {
    // Acquire pairs with the release in End.
    return !busy_.load(std::memory_order_relaxed) &&
           !busy_.exchange(true, std::memory_order_acquire);
  }
  // Release pairs with the acquire in TryBegin.
  void End() { busy_.store(false, std::memory_order_release); }
  void ReleaseExcess(ThreadHeader* own);
  void WorkForAWhile(uint64_t began, ThreadHeader* own);
  Length ReleaseByTime(uint64_t now, uint64_t step_ns);
  Length ReleaseAtSpeed(uint64_t now);
  uint64_t WaitAfter(Length released, uint64_t step_ns);

  // Slow paths of this thread before it looks at the clock.
  static constinit thread_local int8_t polls_left_ __attribute__((tls_model("initial-exec")));

  HousekeepingHost& host_;
  // Set at any time; 0 while nothing goes back by time. Whoever divides by it reads it once and
  // hands it on.
  std::atomic<uint64_t> step_ns_{0};
  std::atomic<bool> busy_{false};  // held by whoever is at it
  std::atomic<uint64_t> speed_{0};
  std::atomic<uint64_t> speed_since_{0};  // when it was set
  std::atomic<int> delegates_{0};
  std::atomic<bool> backlog_{false};  // more is due than was released at once
  std::atomic<uint64_t> longest_pause_ns_{0};
  std::atomic<uint64_t> steps_{0};
  // Guarded by busy_.
  uint64_t looked_ = 0;      // when a thread looked at the clock in passing
  uint64_t spans_then_ = 0;  // that the page heap had served
  uint64_t next_step_ = 0;   // when it begins
  uint64_t owed_steps_ = 0;  // begun and not done
  uint64_t wait_steps_ = 1;
  uint64_t speed_time_ = 0;  // of the last round that gave back at a speed
  double speed_rest_ = 0;    // bytes that were due then and did not go, or too many that did
  SourceTurns turns_;        // of transfer caches
  ExcessWatch excess_;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_UPKEEP_HOUSEKEEPING_H_
