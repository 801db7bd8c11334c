// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Decides when free memory should go back because the program's next cycle will not use it.

#ifndef TCMALLOC_UPKEEP_EXCESS_WATCH_H_
#define TCMALLOC_UPKEEP_EXCESS_WATCH_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "pages/page_types.h"

namespace tcmalloc {

// Many programs work in cycles, between which most of the heap is free. Memory that is kept then
// serves the next cycle without page faults, if the cycle touches the same pages. But blocks of
// other sizes lie elsewhere, and large ones are seldom touched as a whole. Each cycle then leaves
// pages resident that earlier ones did not touch, though none has more in use.
//
// The resident memory at the beginning of a cycle is therefore compared with the need of a cycle,
// which is the memory that was resident after the first cycle that began with nothing free. If it
// is more by a quarter, all free memory should go back. The next cycle then shows the need anew.
//
// If cycles do grow, or differ, page faults are the price. All memory that goes back for this
// reason therefore stays below a share of all memory ever freed. Not thread safe.
class ExcessWatch {
 public:
  // The least sizes that are worth the trouble: of a heap, of a cycle by the memory that it frees,
  // and of an excess in bytes.
  static constexpr Length kLeastHeap = Length::FromBytesCeil(size_t{4} << 20);
  static constexpr Length kLeastFreed = Length::FromBytesCeil(size_t{16} << 20);
  static constexpr uint64_t kLeastExcess = uint64_t{4} << 20;
  // The heap is between two cycles if at most one page in this many is in use.
  static constexpr uintptr_t kMostUsedShare = 8;
  // A cycle has begun when this much more is in use.
  static constexpr Length kLeastGrowth = Length::FromBytesCeil(size_t{256} << 10);
  // One page goes back for this many that are freed.
  static constexpr uint64_t kFreedShare = 32;

  constexpr ExcessWatch() = default;

  // Returns true if a cycle has begun since the last call. `freed` is the number of pages ever
  // freed.
  bool CycleBegins(Length free, Length committed, Length freed) {
    const Length in_use = committed - std::min(free, committed);
    if (freed - freed_then_ < kLeastFreed || committed < kLeastHeap) {
      least_in_use_ = Length::Max();
      return false;
    }
    least_in_use_ = std::min(least_in_use_, in_use);
    if (least_in_use_.pages() > committed.pages() / kMostUsedShare) return false;
    if (in_use - least_in_use_ < kLeastGrowth) return false;
    freed_then_ = freed;
    return true;
  }

  // Returns true if all `free` pages should go back. Called when a cycle begins, with `resident`
  // bytes resident.
  bool IsExcessive(uint64_t resident, Length free) {
    if (std::exchange(has_shrunk_, false)) {
      measuring_ = true;
      return false;
    }
    if (measuring_) {
      measuring_ = false;
      needed_ = resident;
    }
    needed_ = std::min(needed_, resident);
    if (resident - needed_ < std::max(needed_ / 4, kLeastExcess)) return false;
    if ((given_back_ + free).pages() > freed_then_.pages() / kFreedShare) return false;
    given_back_ += free;
    measuring_ = true;
    return true;
  }

  // Notes that free memory goes back for another reason. The cycle that begins next has to become
  // resident before one can tell what it needs.
  void NoteShrinking() { has_shrunk_ = true; }

 private:
  bool has_shrunk_ = false;
  bool measuring_ = true;                // the cycle that runs shows what one needs
  uint64_t needed_ = 0;                  // bytes
  Length least_in_use_ = Length::Max();  // since enough was freed
  Length freed_then_;                    // when the last cycle began
  Length given_back_;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_UPKEEP_EXCESS_WATCH_H_
