// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The record of one hugepage that several spans may share.

#ifndef TCMALLOC_PAGE_HEAP_HUGE_HUGE_PAGE_TRACKER_H_
#define TCMALLOC_PAGE_HEAP_HUGE_HUGE_PAGE_TRACKER_H_

#include <cstddef>
#include <cstdint>

#include "base/intrusive_list.h"
#include "page_heap/huge/huge_page.h"
#include "page_heap/huge/page_bits.h"
#include "pages/page_types.h"

namespace tcmalloc {

// A page of the hugepage is used (by a span, or on its way to the system), free (maybe resident) or
// returned (not resident):
//
//     used + free + returned = kPagesPerHugePage
//
// Pages are counted from the beginning of the hugepage. A record is made when its hugepage is first
// shared. It is kept for ever, because it remembers what the kernel was told. While the hugepage is
// wholly free or wholly inside one span, its place is kNone and its bits mean nothing. Not thread
// safe.
class HugePageTracker : public ListNode {
 public:
  static constexpr size_t kPages = PageBits::kBits;

  enum class Place : uint8_t { kNone, kFiller, kRegion };
  // The last advice to the kernel.
  enum class Advice : uint8_t { kNone, kHuge, kSmall };
  // The first use for which the hugepage was shared: spans of small objects, or large blocks.
  enum class Contents : uint8_t { kObjects, kBlocks };
  // Longer spans hold one object each.
  static constexpr Length kLongestOfObjects = Length::FromBytesCeil(size_t{128} << 10);
  static Contents ContentsOf(Length n) {
    return n > kLongestOfObjects ? Contents::kBlocks : Contents::kObjects;
  }
  struct Run {
    size_t first = kPages;
    size_t length = 0;
  };
  struct Claimed {
    Length returned;  // how many of the pages were
    bool zeroed;      // whether all of them read as zero
  };

  HugePageTracker() = default;
  HugePageTracker(const HugePageTracker&) = delete;
  HugePageTracker& operator=(const HugePageTracker&) = delete;

  // Begins anew: no page is used, and all are returned or all are free.
  void Reset(bool returned, bool zeroed);
  // Begins anew: one span uses all pages.
  void ResetUsed();

  // Takes pages into use, for a new allocation or as more of one that is here already. Requires
  // that none of them is used.
  Claimed Claim(size_t first, size_t n, bool new_allocation);
  // Takes used pages back and ends one allocation.
  void Unclaim(size_t first, size_t n, bool returned, bool zeroed);
  // Notes that one of the allocations was split in two.
  void SplitAllocation() { ++allocations_; }
  // Notes that the kernel backs the whole hugepage, so that no page counts as returned. Returns the
  // number of pages that did.
  Length AssumeResident();

  // Returns the best place for n aligned pages, which is in the shortest run that has room for
  // them; kPages if they fit nowhere.
  size_t BestFit(size_t n, size_t alignment) const;
  // Returns the longest run of free pages; of length 0 if there is none.
  Run LongestFree() const;
  // Returns the number of returned pages in [first, first + n).
  size_t CountReturned(size_t first, size_t n) const { return returned_bits_.Count(first, n); }
  // Returns the run of pages of one kind that begins at `first`: used, or free, or returned.
  Run UnusedRun(size_t first) const;
  // Calls f(first, n) for every run of unused pages. Free and returned ones count as one run.
  template <typename F>
  void ForEachUnusedRun(F f) const {
    used_bits_.ForEachClearRun(f);
  }
  // Returns the first unused page at or after `page`; kPages if there is none.
  size_t NextUnused(size_t page) const { return used_bits_.NextClear(page); }
  size_t NextUsed(size_t page) const { return used_bits_.NextSet(page); }
  bool IsUsed(size_t page) const { return used_bits_.Get(page); }
  bool IsReturned(size_t page) const { return returned_bits_.Get(page); }
  bool ReadsAsZero(size_t first, size_t n) const { return zero_bits_.Count(first, n) == n; }

  // The length of the longest run of unused pages.
  size_t longest() const { return longest_; }
  size_t allocations() const { return allocations_; }
  Length used() const { return Length(used_); }
  Length returned() const { return Length(returned_); }
  Length free() const { return Length(kPages - used_ - returned_); }

  void CheckInvariants() const;

  HugePage hugepage;
  Place place = Place::kNone;
  Advice advice = Advice::kNone;
  Contents contents = Contents::kObjects;
  bool backed = false;          // the kernel is believed to back it by one page
  bool collapse_tried = false;  // since Reset
  bool tail = false;            // holds the end of a span that is longer than a hugepage
  bool newly_broken = false;    // in the list of HugeSpans::NextBroken
  HugePageTracker* next_broken = nullptr;

 private:
  // Returns true if looking at each run is faster than comparing all bits at once.
  bool HasFewRuns() const { return allocations_ < 8; }
  // Finds the longest run. If `known` is not 0, there is a run of that many pages.
  void FindLongest(size_t known);
  PageBits::Longest LongestOfFew() const;
  size_t BestFitOfMany(size_t n) const;

  PageBits used_bits_;
  PageBits returned_bits_;  // never used
  PageBits zero_bits_;      // never used; free or returned, and known to read as zero
  uint32_t used_ = 0;
  uint32_t returned_ = 0;
  uint16_t longest_ = 0;       // pages of a longest run
  uint16_t longest_runs_ = 0;  // runs that are so long; if there are none, both are 0
  uint32_t allocations_ = 0;
};

// The metadata budget: a thousandth of a percent for each bitmap.
static_assert(kPageShift < 13 || sizeof(HugePageTracker) <= 160);

}  // namespace tcmalloc

#endif  // TCMALLOC_PAGE_HEAP_HUGE_HUGE_PAGE_TRACKER_H_
