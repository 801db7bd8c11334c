// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "page_heap/huge/huge_page_tracker.h"

#include <algorithm>

#include "base/bits.h"
#include "base/check.h"

namespace tcmalloc {

void HugePageTracker::Reset(bool returned, bool zeroed) {
  used_bits_ = {};
  returned_bits_ = {};
  zero_bits_ = {};
  if (returned) returned_bits_.Set(0, kPages);
  if (zeroed) zero_bits_.Set(0, kPages);
  used_ = 0;
  returned_ = returned ? kPages : 0;
  longest_ = kPages;
  longest_runs_ = 1;
  allocations_ = 0;
  collapse_tried = false;
  tail = false;
}

void HugePageTracker::ResetUsed() {
  Reset(false, false);
  Claim(0, kPages, true);
}

HugePageTracker::Claimed HugePageTracker::Claim(size_t first, size_t n, bool new_allocation) {
  TCMALLOC_DCHECK_EQ(used_bits_.Count(first, n), size_t{0});
  const size_t begin = used_bits_.EndOfSetBefore(first);
  const size_t end = used_bits_.NextSet(first + n);
  const size_t returned = returned_ > 0 ? returned_bits_.CountAndClear(first, n) : 0;
  const Claimed claimed{Length(returned), zero_bits_.TestAndClear(first, n)};
  used_bits_.Set(first, n);
  used_ += static_cast<uint32_t>(n);
  returned_ -= static_cast<uint32_t>(returned);
  if (new_allocation) ++allocations_;
  // The rest of a longest run is not longest any more, unless there was no other longest run.
  if (end - begin == longest_ && --longest_runs_ == 0) {
    FindLongest(std::max(first - begin, end - first - n));
  }
  return claimed;
}

void HugePageTracker::Unclaim(size_t first, size_t n, bool returned, bool zeroed) {
  TCMALLOC_DCHECK_EQ(used_bits_.Count(first, n), n);
  used_bits_.Clear(first, n);
  if (returned) returned_bits_.Set(first, n);
  if (returned && zeroed) zero_bits_.Set(first, n);
  used_ -= static_cast<uint32_t>(n);
  if (returned) returned_ += static_cast<uint32_t>(n);
  --allocations_;
  // The merged run is longer than each of its parts.
  const size_t run = used_bits_.NextSet(first + n) - used_bits_.EndOfSetBefore(first);
  if (run > longest_) {
    longest_ = static_cast<uint16_t>(run);
    longest_runs_ = 0;
  }
  if (run == longest_) ++longest_runs_;
}

Length HugePageTracker::AssumeResident() {
  const Length were_returned = returned();
  returned_bits_ = {};
  returned_ = 0;
  return were_returned;
}

size_t HugePageTracker::BestFit(size_t n, size_t alignment) const {
  if (alignment == 1) {
    if (longest_ == kPages - used_) return n <= longest_ ? used_bits_.NextClear(0) : kPages;
    if (!HasFewRuns()) return BestFitOfMany(n);
  }
  size_t best = kPages;
  size_t best_length = kPages + 1;
  used_bits_.ForEachClearRun([&](size_t begin, size_t length) {
    const size_t start = AlignUp(begin, alignment);
    if (start + n <= begin + length && length < best_length) {
      best = start;
      best_length = length;
    }
  });
  return best;
}

// Skips the runs that are too short.
size_t HugePageTracker::BestFitOfMany(size_t n) const {
  const PageBits beginnings = (~used_bits_).BeginningsOf(n);
  if (n == longest_) return beginnings.NextSet(0);
  size_t best = kPages;
  size_t best_length = kPages + 1;
  (~beginnings).ForEachClearRun([&](size_t begin, size_t length) {
    if (length >= best_length) return;
    best = begin;
    best_length = length;
  });
  return best;
}

HugePageTracker::Run HugePageTracker::UnusedRun(size_t first) const {
  const size_t end = used_bits_.NextSet(first);
  const size_t border =
      IsReturned(first) ? returned_bits_.NextClear(first) : returned_bits_.NextSet(first);
  return {first, std::min(end, border) - first};
}

HugePageTracker::Run HugePageTracker::LongestFree() const {
  Run longest;
  for (size_t page = used_bits_.NextClear(0); page < kPages;) {
    const Run run = UnusedRun(page);
    if (!IsReturned(page) && run.length > longest.length) longest = run;
    page = used_bits_.NextClear(page + run.length);
  }
  return longest;
}

void HugePageTracker::FindLongest(size_t known) {
  PageBits::Longest longest{known, 1};
  const size_t others = kPages - used_ - known;
  if (others >= known) longest = HasFewRuns() ? LongestOfFew() : (~used_bits_).LongestRun();
  longest_ = static_cast<uint16_t>(longest.length);
  longest_runs_ = static_cast<uint16_t>(longest.runs);
}

PageBits::Longest HugePageTracker::LongestOfFew() const {
  PageBits::Longest longest;
  used_bits_.ForEachClearRun([&](size_t, size_t length) {
    if (length > longest.length) longest = {length, 0};
    if (length == longest.length) ++longest.runs;
  });
  return longest;
}

void HugePageTracker::CheckInvariants() const {
  TCMALLOC_CHECK_EQ(used_bits_.Count(0, kPages), size_t{used_});
  TCMALLOC_CHECK_EQ(returned_bits_.Count(0, kPages), size_t{returned_});
  TCMALLOC_CHECK(!used_bits_.HasCommon(returned_bits_) && !used_bits_.HasCommon(zero_bits_));
  const PageBits::Longest longest = LongestOfFew();
  TCMALLOC_CHECK_EQ(size_t{longest_}, longest.length);
  TCMALLOC_CHECK_EQ(size_t{longest_runs_}, longest.runs);
  TCMALLOC_CHECK_EQ(allocations_ == 0, used_ == 0);
  TCMALLOC_CHECK_LE(allocations_, used_);
}

}  // namespace tcmalloc
