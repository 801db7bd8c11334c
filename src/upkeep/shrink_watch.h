// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Decides when free memory should go back because the program frees nearly all that it had.

#ifndef TCMALLOC_UPKEEP_SHRINK_WATCH_H_
#define TCMALLOC_UPKEEP_SHRINK_WATCH_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "page_heap/stats.h"
#include "pages/page_types.h"

namespace tcmalloc {

// A program that frees nearly all of a large heap may fall idle. Nobody looks at the clock then,
// and all that is free would stay resident. So it goes back while the heap shrinks, and caches are
// emptied, because few objects in them keep many pages in use.
//
// At that moment a program that goes on looks the same, and pays page faults when it fills the heap
// again. Each shrinking is therefore paid for by time: the next one begins so late that page faults
// of what went take no more than one in kTimeShare of it.
//
// The memory in use is counted only when its pages have become fewer, because a count visits every
// cache. A heap of which much is used again and again is not counted more than a few dozen times
// before it has grown by a quarter. Not thread safe.
class ShrinkWatch {
 public:
  // A heap of this size, in resident memory, shrinks if no more than one byte in kUsedShare of it
  // is in use.
  static constexpr Length kLeastHeap = Length::FromBytesCeil(size_t{96} << 20);
  static constexpr uintptr_t kUsedShare = 8;
  // The fall of the pages in use before a count.
  static constexpr uintptr_t kFallShare = 32;
  static constexpr Length kLeastFall = Length::FromBytesCeil(size_t{1} << 20);
  // A count also awaits that so much has become free for each cache that the last one visited, but
  // no more than this share of what was used then.
  static constexpr Length kFallPerCache = Length::FromBytesCeil(size_t{32} << 10);
  static constexpr uintptr_t kMostFallShare = 4;
  // Counts begin anew when the pages in use have grown by this share of the heap.
  static constexpr uintptr_t kRearmShare = 4;
  // The heap has ceased to shrink if this much more is in use than there was, or after so many
  // looks in which it became no less by kStep.
  static constexpr Length kRegrowth = Length::FromBytesCeil(size_t{1} << 20);
  static constexpr int kMostLooks = 256;
  // It also ends after so many looks, one after the other, in which the system took nothing.
  static constexpr int kMostRefusals = 8;
  static constexpr Length kStep = Length::FromBytesCeil(size_t{64} << 10);
  // Free memory goes as soon as it is so much.
  static constexpr Length kLeastDue = Length::FromBytesCeil(size_t{1} << 20);
  static constexpr uint32_t kLooksPerTurn = 16;
  static constexpr uint64_t kTimeShare = 64;
  static constexpr uint64_t kFaultNanoseconds = 2000;
  static constexpr size_t kFaultBytes = 4096;

  constexpr ShrinkWatch() = default;

  // Looks at a heap of `committed` pages, of which `used` are not free, at `now`, in nanoseconds.
  // Returns true if there is something to do: see the functions below.
  bool Look(uint64_t now, Length used, Length committed) {
    const bool was_shrinking = shrinking_;
    if (was_shrinking) NoteUsed(used);
    if (used > top_ + Length(committed.pages() / kRearmShare)) is_falling_ = false;
    if (!is_falling_) SetTop(std::max(top_, used), kLeastFall);
    is_watched_ = !was_shrinking && now >= next_ && committed >= kLeastHeap;
    is_count_due_ = is_watched_ && used <= mark_;
    return was_shrinking || is_count_due_;
  }

  // Returns the number of used pages below which a look comes in time: where it would want a count,
  // or all if the heap shrinks; 0 if it would be of no use.
  Length mark() const {
    if (shrinking_) return Length(UINTPTR_MAX >> 1);
    return is_watched_ ? mark_ : Length(0);
  }

  // Returns true if the memory in use should be counted: objects in caches are free, too.
  bool is_count_due() const { return is_count_due_; }
  // Called then, when `used` pages are not free. The count visits so many caches.
  void NoteCount(Length used, size_t caches) {
    is_falling_ = true;
    const Length paying(std::min(kFallPerCache.pages() * caches, used.pages() / kMostFallShare));
    SetTop(used, std::max(paying, Length(kLeastFall)));
  }
  // Returns true if so few bytes are in use that the heap should shrink.
  static bool IsNearlyEmpty(uint64_t in_use, Length committed) {
    return in_use <= committed.bytes() / kUsedShare;
  }
  // Begins to shrink at `now`, if so many bytes are resident that it is worth the trouble.
  void Begin(uint64_t now, uint64_t resident, const PageHeapStats& stats) {
    shrinking_ = resident >= kLeastHeap.bytes();
    least_ = top_;
    looks_ = refusals_ = 0;
    released_ = stats.released(ReleaseCause::kAllocator);
    next_ = now + (shrinking_ ? 0 : TimeFor(resident));
  }
  // Called in each look while the heap shrinks, and in the one in which it has ceased to.
  void NoteReleases(const PageHeapStats& stats) {
    const Length released = stats.released(ReleaseCause::kAllocator);
    const Length went = released - std::exchange(released_, released);
    const uint64_t refused =
        stats.release_failures - std::exchange(refused_, stats.release_failures);
    next_ += TimeFor(went.bytes());
    if (went > Length(0)) refusals_ = 0;
    if (went > Length(0) || refused == 0) return;
    if (++refusals_ == kMostRefusals) next_ += TimeFor(stats.free.bytes());
  }

  bool shrinking() const { return shrinking_; }

  // Returns true in every kLooksPerTurn-th call: the lists that threads use should be emptied, too.
  bool TakeTurn() { return ++turn_ % kLooksPerTurn == 0; }

  // Returns how many of the free pages should go back.
  static Length PagesDue(Length free) { return free >= kLeastDue ? free : Length(0); }

 private:
  // Returns the time that pays for the page faults of so much memory.
  static uint64_t TimeFor(uint64_t bytes) {
    return bytes / kFaultBytes * kFaultNanoseconds * kTimeShare;
  }
  void SetTop(Length used, Length least_fall) {
    top_ = used;
    const Length fall = std::max(Length(used.pages() / kFallShare), least_fall);
    mark_ = used > fall ? used - fall : Length(0);
  }
  void NoteUsed(Length used) {
    const bool falls = used + kStep <= least_;
    looks_ = falls ? 0 : looks_ + 1;
    if (falls) least_ = used;
    const bool is_over = looks_ > kMostLooks || refusals_ >= kMostRefusals;
    if (is_over || used > least_ + kRegrowth) shrinking_ = false;
  }

  bool shrinking_ = false;
  bool is_falling_ = false;
  bool is_watched_ = false;
  bool is_count_due_ = false;
  int looks_ = 0;     // since least_ became less
  int refusals_ = 0;  // looks since the system took something
  uint32_t turn_ = 0;
  Length least_;  // used since the heap shrinks
  Length top_;    // used at the last count or, unless used pages are falling, the most since
  Length mark_;
  Length released_;       // by the page heap, at the last look
  uint64_t refused_ = 0;  // runs that the system had not taken then
  uint64_t next_ = 0;     // when the heap may shrink again
};

}  // namespace tcmalloc

#endif  // TCMALLOC_UPKEEP_SHRINK_WATCH_H_
