// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "upkeep/housekeeping.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "page_heap/release/release_decay.h"
#include "size_class/size_classes.h"
#include "system/clock.h"
#include "system/resident.h"

namespace tcmalloc {
namespace {

constexpr size_t kSteps = ReleaseDecay::kSteps;

// Returns how many things to look at in one step so that all steps of a half-life look at `count`.
constexpr size_t ShareOfStep(size_t count) { return (count + kSteps - 1) / kSteps; }

uint64_t Now() { return static_cast<uint64_t>(MonotonicNanoseconds()); }

}  // namespace

constinit thread_local int8_t Housekeeping::polls_left_ TCMALLOC_INITIALIZED_TLS = kPollsPerLook;

void Housekeeping::set_half_life(uint64_t ns) {
  host_.Pages().set_release_half_life(ns);
  step_ns_.store(ns == 0 ? 0 : std::max<uint64_t>(ns / kSteps, 1), std::memory_order_relaxed);
}

void Housekeeping::set_release_speed(uint64_t speed) {
  speed_since_.store(Now(), std::memory_order_relaxed);
  speed_.store(speed, std::memory_order_relaxed);
}

void Housekeeping::ReturnIdleObjects(ThreadHeader* own) {
  const size_t caches = ShareOfStep(host_.CountThreadCaches());
  host_.ReturnIdleOfThreads(std::min(caches, kMostCachesAtOnce), own);
  constexpr auto kClasses = static_cast<uint32_t>(ShareOfStep(kSizeClassCount - 1));
  host_.ReturnUnused(turns_, kClasses);
}

// Threads look at the clock far more often than once in a step. If none did for long, the program
// fell idle at a known time, however busy it was in the step in which that happened.
void Housekeeping::NotePause(uint64_t now, uint64_t step_ns) {
  const uint64_t spans = host_.Pages().spans_served();
  if (now > looked_ + step_ns && spans - spans_then_ <= ReleaseDecay::kFewTakes) {
    host_.Pages().NoteIdleSince(looked_);
  }
  looked_ = now;
  spans_then_ = spans;
}

void Housekeeping::CountSteps(uint64_t now, uint64_t step_ns) {
  if (now < next_step_) return;
  const uint64_t passed = next_step_ == 0 ? 1 : (now - next_step_) / step_ns + 1;
  owed_steps_ = std::min(owed_steps_ + passed, kMostOwedSteps);
  next_step_ = now + step_ns;
}

void Housekeeping::Step(ThreadHeader* own) {
  steps_.store(steps_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  ReturnIdleObjects(own);
  if (steps_.load(std::memory_order_relaxed) % kSteps == 0) host_.ReturnIdleOfCpus();
  --owed_steps_;
}

void Housekeeping::NoteBlockFreed() const {
  const PageHeap& pages = host_.Pages();
  const Length mark(shrink_mark_.load(std::memory_order_relaxed));
  if (TCMALLOC_UNLIKELY(pages.committed() < mark + pages.free_now())) LookSoon();
}

void Housekeeping::ReturnOverdrafts(ThreadHeader* own) {
  if (!TryBegin()) return;
  const uint64_t now = Now();
  if (now >= next_overdraft_look_ && host_.ReturnOverdrafts(now, own)) {
    next_overdraft_look_ = now + kOverdraftLookNs;
  }
  End();
}

// One thread does the work that is left over, again and again; the others look in passing.
bool Housekeeping::Poll(ThreadHeader* own) {
  const bool early = polls_left_ < -1;
  polls_left_ = early ? static_cast<int8_t>(-polls_left_ - 1) : kPollsPerLook;
  if (host_.MayBeOverdrawn()) ReturnOverdrafts(own);
  if (delegates_.load(std::memory_order_relaxed) > 0) return false;
  const uint64_t step_ns = step_ns_.load(std::memory_order_relaxed);
  if (step_ns == 0) {
    // Work left over when release by time was turned off will not be done.
    if (backlog_.load(std::memory_order_relaxed)) backlog_.store(false, std::memory_order_relaxed);
    return false;
  }
  if (!TryBegin(early)) return false;
  const int saved_errno = errno;
  bool is_asked = false;
  do {
    const uint64_t now = Now();
    NotePause(now, step_ns);
    CountSteps(now, step_ns);
    // Reading the limits of cgroups takes a thread long enough; it does nothing else in this call,
    // unless that may be the last one of a heap that shrinks.
    const bool read = host_.RefreshLimits(static_cast<int64_t>(now), Limits::Reader::kAllocating);
    const Length paid = FollowShrinking(now, early, own);
    if (!early) ReleaseExcess(own);
    const bool due = owed_steps_ > 0 || backlog_.load(std::memory_order_relaxed);
    if (due && (!read || shrink_.shrinking())) WorkForLimitedTime(now, paid, own);
    // Once more at most, so that no thread works for others without end.
  } while (End() && !std::exchange(is_asked, true) && TryBegin());
  errno = saved_errno;
  return backlog_.load(std::memory_order_relaxed);
}

// Memory that a thread keeps for itself counts as free, because it may be most of the heap.
void Housekeeping::ReleaseExcess(ThreadHeader* own) {
  Length free = host_.Pages().free_now();
  if (own != nullptr) free += Length(host_.FullBytes(own) >> kPageShift);
  const Length committed = host_.Pages().committed();
  if (TCMALLOC_LIKELY(!excess_.CycleBegins(free, committed, host_.Pages().freed()))) return;
  BeginCycle(free, own);
}

void Housekeeping::BeginCycle(Length free, ThreadHeader* own) {
  const std::optional<uint64_t> resident = ResidentBytes();
  if (!resident.has_value() || !excess_.IsExcessive(*resident, free)) return;
  host_.ReturnLargeObjects(own);
  host_.Pages().MakeDue(Length::Max(), PageHeap::Demand::kMayReturn);
  backlog_.store(true, std::memory_order_relaxed);
}

// Returns how many pages the running thread may give back without regard to time, because so many
// were freed since the last look: by itself, if it `freed_block`.
Length Housekeeping::FollowShrinking(uint64_t now, bool freed_block, ThreadHeader* own) {
  const PageHeap& pages = host_.Pages();
  const Length freed = pages.freed() - std::exchange(freed_then_, pages.freed());
  const Length committed = pages.committed();
  const Length used = committed - std::min(pages.free_now(), committed);
  const bool is_idle = !shrink_.Look(now, used, committed);
  Length paid(freed.pages() * kPaidShare);
  if (!freed_block) paid = std::min(paid, kMostPaid);
  if (!is_idle) Shrink(now, used, paid, own);
  shrink_mark_.store(shrink_.mark().pages(), std::memory_order_relaxed);
  return shrink_.shrinking() ? paid : Length(0);
}

void Housekeeping::Shrink(uint64_t now, Length used, Length paid, ThreadHeader* own) {
  PageHeap& pages = host_.Pages();
  if (shrink_.is_count_due()) {
    shrink_.NoteCount(used, host_.CountThreadCaches());
    if (!ShrinkWatch::IsNearlyEmpty(host_.CountInUse().in_use, pages.committed())) return;
    shrink_.Begin(now, ResidentBytes().value_or(pages.committed().bytes()), pages.stats());
    if (!shrink_.shrinking()) return;
    excess_.NoteShrinking();
  }
  shrink_.NoteReleases(pages.stats());
  if (!shrink_.shrinking()) return pages.MakeDue(Length(0), PageHeap::Demand::kMayReturn);
  host_.ReturnSomeCached(own, std::max(paid.bytes(), kCachedAtOnce));
  if (shrink_.TakeTurn()) {
    host_.ReturnLists(own);
    host_.ReturnIdleOfCpus();
  }
  ReturnIdleObjects(own);
  pages.MakeDue(ShrinkWatch::PagesDue(pages.free_now()), PageHeap::Demand::kIsOver);
  backlog_.store(true, std::memory_order_relaxed);
}

// Asks the page heap last: memory that idle caches give it then counts as free for as long as they
// were idle.
void Housekeeping::WorkForLimitedTime(uint64_t began, Length paid, ThreadHeader* own) {
  bool done = false;
  uint64_t pause = 0;
  Length released;
  do {
    if (owed_steps_ > 0 && pause < kPauseNs) {
      Step(own);
    } else {
      const Length last = host_.Pages().ReleaseUnused(began, kMostAtOnce);
      done = last == Length(0);
      released += last;
    }
    const uint64_t now = Now();
    pause = now > began ? now - began : kPauseNs;
  } while (!done && (pause < kPauseNs || (released < paid && !host_.IsAwaited())));
  backlog_.store(!done || owed_steps_ > 0 || shrink_.shrinking(), std::memory_order_relaxed);
  if (pause > longest_pause_ns_.load(std::memory_order_relaxed)) {
    longest_pause_ns_.store(pause, std::memory_order_relaxed);
  }
}

uint64_t Housekeeping::RunAll() {
  const uint64_t step_ns = step_ns_.load(std::memory_order_relaxed);
  const bool every_round = release_speed() != 0 || host_.FollowsCgroup();
  const uint64_t wait_ns = step_ns != 0 ? step_ns : every_round ? kRoundNs : 0;
  // If TryBegin fails, another thread is at its last poll, or at its round.
  if (wait_ns == 0 || !TryBegin()) return wait_ns;
  const uint64_t now = Now();
  host_.RefreshLimits(static_cast<int64_t>(now), Limits::Reader::kRegular);
  Length released = ReleaseAtSpeed(now);
  uint64_t wait = wait_ns;
  if (step_ns != 0) {
    released += ReleaseByTime(now, step_ns);
    wait = WaitAfter(released, step_ns);
    if (every_round) wait = std::min(wait, kRoundNs);
  }
  End();
  return wait;
}

// Leaves the rest to the next round if a fork waits for this thread.
Length Housekeeping::ReleaseByTime(uint64_t now, uint64_t step_ns) {
  CountSteps(now, step_ns);
  while (owed_steps_ > 0 && !host_.IsAwaited()) Step(nullptr);
  Length released;
  Length last;
  do {
    last = host_.Pages().ReleaseUnused(now, kMostInBackground, ReleaseCause::kBackground);
    released += last;
  } while (last > Length(0) && !host_.IsAwaited());
  backlog_.store(false, std::memory_order_relaxed);
  return released;
}

// Memory that was due but not there is not owed later.
Length Housekeeping::ReleaseAtSpeed(uint64_t now) {
  const uint64_t since = std::max(speed_time_, speed_since_.load(std::memory_order_relaxed));
  const uint64_t passed = now - std::min(since, now);
  speed_time_ = now;
  // Computed in floating point, because the product of two large numbers could overflow.
  const double bytes = static_cast<double>(release_speed()) * static_cast<double>(passed) / 1e9;
  const double most = static_cast<double>(Length::Max().bytes()) / 2;
  speed_rest_ = std::min(speed_rest_ + bytes, most);
  if (speed_rest_ < static_cast<double>(kPageSize)) return Length(0);
  const Length due(static_cast<uint64_t>(speed_rest_) >> kPageShift);
  const Length released = host_.Pages().ReleaseAtLeast(due, ReleaseCause::kBackground);
  speed_rest_ -= static_cast<double>(std::max(due, released).bytes());
  return released;
}

// A process with nothing to give back is woken more and more rarely.
uint64_t Housekeeping::WaitAfter(Length released, uint64_t step_ns) {
  const bool quiet = released == Length(0) && host_.Pages().stats().free == Length(0);
  wait_steps_ = quiet ? std::min(2 * wait_steps_, kMostWaitSteps) : 1;
  return wait_steps_ * step_ns;
}

void Housekeeping::ResetAfterFork() {
  busy_.store(0, std::memory_order_relaxed);
  delegates_.store(0, std::memory_order_relaxed);
}

HousekeepingStats Housekeeping::stats() const {
  return {steps_.load(std::memory_order_relaxed),
          longest_pause_ns_.load(std::memory_order_relaxed)};
}

}  // namespace tcmalloc
