// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Hugepages: the units in which the processor's translation cache covers memory best.

#ifndef TCMALLOC_PAGE_HEAP_HUGE_HUGE_PAGE_H_
#define TCMALLOC_PAGE_HEAP_HUGE_HUGE_PAGE_H_

#include <compare>
#include <cstddef>
#include <cstdint>

#include "base/bits.h"
#include "pages/page_types.h"
#include "system/transparent_hugepages.h"

namespace tcmalloc {

inline constexpr Length kPagesPerHugePage(kHugePageSize >> kPageShift);
static_assert(kPagesPerHugePage > Length(1));

// The number of a hugepage: its address divided by kHugePageSize.
class HugePage {
 public:
  constexpr HugePage() = default;
  explicit constexpr HugePage(uintptr_t index) : index_(index) {}

  static constexpr HugePage Containing(PageId page) {
    return HugePage(page.index() / kPagesPerHugePage.pages());
  }

  constexpr uintptr_t index() const { return index_; }
  constexpr PageId first_page() const { return PageId(index_ * kPagesPerHugePage.pages()); }
  constexpr PageId end_page() const { return first_page() + kPagesPerHugePage; }

  constexpr HugePage& operator++() {
    ++index_;
    return *this;
  }
  friend constexpr HugePage operator+(HugePage page, size_t n) { return HugePage(page.index_ + n); }
  friend constexpr auto operator<=>(const HugePage&, const HugePage&) = default;

 private:
  uintptr_t index_ = 0;
};

constexpr bool IsHugeAligned(PageId page) {
  return IsAligned(page.index(), kPagesPerHugePage.pages());
}
constexpr Length RoundUpToHugePages(Length n) {
  return Length(AlignUp(n.pages(), kPagesPerHugePage.pages()));
}
constexpr Length RoundDownToHugePages(Length n) {
  return Length(AlignDown(n.pages(), kPagesPerHugePage.pages()));
}

}  // namespace tcmalloc

#endif  // TCMALLOC_PAGE_HEAP_HUGE_HUGE_PAGE_H_
