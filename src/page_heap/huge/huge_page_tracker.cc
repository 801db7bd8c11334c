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
  const size_t returned = returned_bits_.Count(first, n);
  const Claimed claimed{Length(returned), ReadsAsZero(first, n)};
  const size_t run = used_bits_.NextSet(first) - used_bits_.EndOfSetBefore(first);
  used_bits_.Set(first, n);
  returned_bits_.Clear(first, n);
  zero_bits_.Clear(first, n);
  used_ += static_cast<uint32_t>(n);
  returned_ -= static_cast<uint32_t>(returned);
  if (new_allocation) ++allocations_;
  if (run == longest_) FindLongest();
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
  const size_t run = used_bits_.NextSet(first) - used_bits_.EndOfSetBefore(first);
  longest_ = std::max(longest_, static_cast<uint32_t>(run));
}

Length HugePageTracker::AssumeResident() {
  const Length were_returned = returned();
  returned_bits_ = {};
  returned_ = 0;
  return were_returned;
}

size_t HugePageTracker::BestFit(size_t n, size_t alignment) const {
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

void HugePageTracker::FindLongest() {
  size_t longest = 0;
  used_bits_.ForEachClearRun([&](size_t, size_t length) { longest = std::max(longest, length); });
  longest_ = static_cast<uint32_t>(longest);
}

void HugePageTracker::CheckInvariants() const {
  TCMALLOC_CHECK_EQ(used_bits_.Count(0, kPages), size_t{used_});
  TCMALLOC_CHECK_EQ(returned_bits_.Count(0, kPages), size_t{returned_});
  size_t longest = 0;
  size_t run = 0;
  for (size_t i = 0; i < kPages; ++i) {
    TCMALLOC_CHECK(!IsUsed(i) || (!IsReturned(i) && !zero_bits_.Get(i)));
    run = IsUsed(i) ? 0 : run + 1;
    longest = std::max(longest, run);
  }
  TCMALLOC_CHECK_EQ(size_t{longest_}, longest);
  TCMALLOC_CHECK_EQ(allocations_ == 0, used_ == 0);
  TCMALLOC_CHECK_LE(allocations_, used_);
}

}  // namespace tcmalloc
