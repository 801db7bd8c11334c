// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// When free memory should go back because the program's next cycle will not use it.

#ifndef TCMALLOC_UPKEEP_EXCESS_WATCH_H_
#define TCMALLOC_UPKEEP_EXCESS_WATCH_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "pages/page_types.h"

namespace tcmalloc {

// Many programs work in cycles, between which most of the heap is free. What is kept then serves
// the next cycle without page faults, if it touches the same pages. But blocks of other sizes lie
// elsewhere, and large ones are seldom touched as a whole: then each cycle leaves pages resident
// that those before it did not touch, though none has more in use.
//
// So what is resident when a cycle begins is compared with what a cycle needs: what was resident
// after the first one that began with nothing free. Where it is more by a quarter, all that is free
// should go back, and the next cycle shows anew what one needs.
//
// Where cycles do grow, or differ, page faults are the price. So all that goes back for this reason
// stays below a share of what was ever freed. Not thread safe.
class ExcessWatch {
 public:
  // What is smaller is not worth the trouble: a heap, a cycle by what it frees, an excess in bytes.
  static constexpr Length kLeastHeap = Length::FromBytesCeil(size_t{4} << 20);
  static constexpr Length kLeastFreed = Length::FromBytesCeil(size_t{16} << 20);
  static constexpr uint64_t kLeastExcess = uint64_t{4} << 20;
  // Between two cycles no more than one page in so many is in use, and one has begun when this much
  // more is.
  static constexpr uintptr_t kMostUsedShare = 8;
  static constexpr Length kLeastGrowth = Length::FromBytesCeil(size_t{256} << 10);
  // One page goes back for so many that are freed.
  static constexpr uint64_t kFreedShare = 32;

  constexpr ExcessWatch() = default;

  // Whether a cycle has begun since the last call. `freed` is what was ever freed.
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

  // Whether all that is free should go back: `free` pages, when a cycle begins and `resident` bytes
  // are resident.
  bool IsExcessive(uint64_t resident, Length free) {
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

 private:
  bool measuring_ = true;                // the cycle that runs shows what one needs
  uint64_t needed_ = 0;                  // bytes
  Length least_in_use_ = Length::Max();  // since enough was freed
  Length freed_then_;                    // when the last cycle began
  Length given_back_;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_UPKEEP_EXCESS_WATCH_H_
