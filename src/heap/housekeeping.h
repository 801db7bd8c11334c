// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// What makes unused memory go back to the system as time passes.

#ifndef TCMALLOC_HEAP_HOUSEKEEPING_H_
#define TCMALLOC_HEAP_HOUSEKEEPING_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "page_heap/release_decay.h"
#include "pages/page_types.h"

namespace tcmalloc {

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
  constexpr Housekeeping() = default;
  Housekeeping(const Housekeeping&) = delete;
  Housekeeping& operator=(const Housekeeping&) = delete;

  // Of unused memory, in nanoseconds; 0 for never.
  void set_half_life(uint64_t ns);

  // Called at the end of each slow path; does something only now and then. Returns whether it
  // should be called again soon, for more is due than was done.
  TCMALLOC_ALWAYS_INLINE bool Poll() {
    if (TCMALLOC_UNLIKELY(--polls_left_ <= 0 || backlog_.load(std::memory_order_relaxed))) {
      PollNow();
    }
    return backlog_.load(std::memory_order_relaxed);
  }

  // Does all that is due, for as long as it takes. Returns after how many nanoseconds to do so
  // again; 0 if there is nothing to be done, ever.
  uint64_t RunAll();

  // Whether somebody calls RunAll regularly, so that Poll need not do anything.
  void set_delegated(bool delegated) { delegated_.store(delegated, std::memory_order_relaxed); }

  // In the child of fork, where whoever was at it is gone.
  void ResetAfterFork();

  HousekeepingStats stats() const;

 private:
  // In an allocating thread: pieces of work of about a tenth of a millisecond, one after the other,
  // until this time has passed.
  static constexpr Length kMostAtOnce = Length::FromBytesCeil(size_t{1} << 20);
  static constexpr uint64_t kPauseNs = 250'000;
  // In the background: bounded for the sake of threads that ask for this very memory.
  static constexpr Length kMostInBackground = Length::FromBytesCeil(size_t{64} << 20);
  static constexpr uint64_t kMostWaitSteps = 8;
  // After so many half-lives next to nothing is left in caches that were idle.
  static constexpr uint64_t kMostOwedSteps = 8 * ReleaseDecay::kSteps;
  static constexpr size_t kMostCachesAtOnce = 64;
  static constexpr int8_t kPollsPerLook = 32;

  TCMALLOC_NOINLINE void PollNow();
  void CountSteps(uint64_t now);
  void Step();
  void ReturnIdleObjects();
  bool TryBegin() { return !busy_.exchange(true, std::memory_order_acquire); }
  void End() { busy_.store(false, std::memory_order_release); }
  void WorkForAWhile(uint64_t began);

  // Slow paths of this thread before it looks at the clock.
  static constinit thread_local int8_t polls_left_ __attribute__((tls_model("initial-exec")));

  std::atomic<uint64_t> step_ns_{0};
  std::atomic<bool> busy_{false};  // held by whoever is at it
  std::atomic<bool> delegated_{false};
  std::atomic<bool> backlog_{false};  // more is due than was released at once
  std::atomic<uint64_t> longest_pause_ns_{0};
  std::atomic<uint64_t> steps_{0};
  // Guarded by busy_.
  uint64_t next_step_ = 0;   // when it begins
  uint64_t owed_steps_ = 0;  // begun and not done
  uint64_t wait_steps_ = 1;
  size_t next_class_ = 1;  // whose transfer cache is looked at next
};

}  // namespace tcmalloc

#endif  // TCMALLOC_HEAP_HOUSEKEEPING_H_
