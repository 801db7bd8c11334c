// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Backs the memory by which a large heap grows with hugepages.

#ifndef TCMALLOC_PAGE_HEAP_CLASSIC_GROWING_HUGEPAGE_H_
#define TCMALLOC_PAGE_HEAP_CLASSIC_GROWING_HUGEPAGE_H_

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "base/bits.h"
#include "page_heap/huge/huge_page.h"
#include "pages/page_types.h"
#include "system/memory.h"
#include "system/transparent_hugepages.h"

namespace tcmalloc {

// A large heap that grows by short spans touches its pages one behind the other, so the hugepage
// that it begins with one of them will soon be full. If the kernel backs it as a whole, one page
// fault takes the place of hundreds.
//
// Asks for one hugepage at a time, and withdraws that when the next one begins. The earlier one
// stays what it is, but the kernel does not fill it up again after a part of it was given back. A
// heap uses all of its hugepages but the last, which is at most an eighth of it.
//
// A hugepage may be dear: the kernel has to move pages to make room for it, or the host of a
// virtual machine has to find the memory. So the heap touches each one first, and after one that
// took long leaves out those of the time that pays for it.
// docs/decisions/0163-hugepages-that-cost-more-than-their-pages.md. Not thread safe.
template <typename System>
class GrowingHugepage {
 public:
  static constexpr Length kLeastHeap = kPagesPerHugePage * 8;
  // Spans that are no longer have objects of at most 5 KiB, of which a program touches nearly every
  // page. Of larger objects it may touch the first page alone. 0 where a page is longer.
  static constexpr Length kLongestSpan = Length((size_t{40} << 10) >> kPageShift);
  // A hugepage that does not follow the one before it may cost two of the mappings that a process
  // may have, 65530 by default. After this many of them the heap asks for no other.
  static constexpr uint32_t kMostApart = 8192;
  // A hugepage that takes longer is dear. Page faults of all of its small pages take 0.1 to 1.3 ms,
  // and a hugepage that is at hand 0.2 to 0.5.
  static constexpr int64_t kMostNanoseconds = 1'000'000;
  // Dear ones take at most this share of the time that passes.
  static constexpr int64_t kTimeShare = 64;

  constexpr GrowingHugepage() = default;

  // Long spans may lie in a hugepage that short ones have begun, and be touched at their beginning
  // alone. So the heap must have grown by kLeastShort of short spans, of which each long one uses
  // up kShortForLong times its length. More than kMostShort does not count.
  static constexpr Length kLeastShort = kPagesPerHugePage * 3;
  static constexpr Length kMostShort = kPagesPerHugePage * 4;
  static constexpr uintptr_t kShortForLong = 16;

  // Returns true if a span of n pages shall not lie in a hugepage.
  static bool IsLong(Length n) { return n > kLongestSpan; }
  // Returns true if a heap that has committed so much may grow by a hugepage for a span of n pages.
  bool Suits(Length n, Length committed) const {
    return !IsLong(n) && short_ >= kLeastShort && committed >= kLeastHeap;
  }

  // Returns true if the kernel gives hugepages to those who ask and to nobody else. Where everybody
  // gets them there is nothing to ask for.
  bool IsWanted(System& system) {
    if (!setting_known_) {
      const int saved_errno = errno;
      const TransparentHugepages setting = system.ReadHugepageSetting();
      wanted_ = setting.mode == HugepageMode::kMadvise &&
                setting.hugepage_bytes == kPagesPerHugePage.bytes();
      setting_known_ = true;
      errno = saved_errno;
    }
    return wanted_;
  }
  // Returns true if a hugepage would begin where `taken` ends, but for the end of `unused`, from
  // which `taken` is about to be cut.
  static bool IsCutShort(PageRange taken, PageRange unused) {
    const PageId first = HugepageOf(taken);
    return unused.first <= first && unused.end() < first + kPagesPerHugePage;
  }

  // Returns true if a hugepage may begin where `taken` ends: all of it must lie in `unused`, which
  // `taken` was cut from and of which nothing is resident.
  bool Begins(PageRange taken, PageRange unused) const {
    const PageId first = HugepageOf(taken);
    const bool is_unused = unused.first <= first && first + kPagesPerHugePage <= unused.end();
    return is_unused && (apart_ < kMostApart || !IsApart(first));
  }
  // Asks for that hugepage, or leaves it out and returns false. None must be begun. Keeps errno. If
  // it `was_used`, small pages may have been there before they went back; the kernel gives a
  // hugepage only where it has forgotten them.
  bool Begin(System& system, PageRange taken, bool was_used) {
    if (next_ != 0 && system.Now() < next_) return false;
    const PageId first = HugepageOf(taken);
    if (!Advise(system, first, HugeAdvice::kHugepage)) return false;
    if (was_used) ForgetSmallPages(system, first);
    if (IsApart(first)) ++apart_;
    begun_ = used_to_ = last_ = first;
    return true;
  }

  // Notes when the first touch of a hugepage began and ended.
  void NoteTouched(int64_t begin, int64_t end) {
    const int64_t nanoseconds = end - begin;
    next_ = nanoseconds > kMostNanoseconds ? end + nanoseconds * kTimeShare : 0;
  }

  // Notes that a span got these pages, of which `grown` were not resident.
  TCMALLOC_ALWAYS_INLINE void NoteGrown(PageRange taken, Length grown) {
    if (!IsLong(taken.length)) {
      short_ = ShorterOf(short_ + grown, kMostShort);
    } else {
      short_ -= std::min(short_, grown * kShortForLong);
    }
    const PageId end = std::min(taken.end(), begun_ + kPagesPerHugePage);
    if (taken.first < end) used_to_ = std::max(used_to_, end);
  }

  // Returns true if there is a hugepage that was asked for last.
  bool is_begun() const { return begun_ != PageId(); }

  // Forgets the hugepage, which must be begun. Returns those of its pages behind all that were
  // taken, which are resident though no span may have them. Keeps errno.
  PageRange End(System& system) {
    Advise(system, begun_, HugeAdvice::kNoHugepage);
    const PageRange rest{used_to_, begun_ + kPagesPerHugePage - used_to_};
    begun_ = used_to_ = PageId();
    return rest;
  }

 private:
  static PageId HugepageOf(PageRange taken) {
    return PageId(AlignDown(taken.end().index() - 1, kPagesPerHugePage.pages()));
  }
  // Returns true if a hugepage there would cost mappings.
  bool IsApart(PageId first) const { return first != last_ && first != last_ + kPagesPerHugePage; }
  // Since Linux 6.14 the page table of a hugepage goes if all of it is given back at once.
  static void ForgetSmallPages(System& system, PageId first) {
    ReleaseRequest request{first.start(), kPagesPerHugePage.bytes()};
    const int saved_errno = errno;
    system.Release(&request, 1);
    errno = saved_errno;
  }
  static bool Advise(System& system, PageId first, HugeAdvice advice) {
    const int saved_errno = errno;
    const bool taken = system.AdviseHuge(first.start(), kPagesPerHugePage.bytes(), advice);
    errno = saved_errno;
    return taken;
  }

  Length short_;        // growth by short spans that long ones did not use up
  PageId begun_;        // its first page; 0 if there is none
  PageId used_to_;      // behind the last of its pages that were taken
  PageId last_;         // the first page of the last one that was asked for
  int64_t next_ = 0;    // after a dear one, the time before which no other is asked for
  uint32_t apart_ = 0;  // hugepages that did not follow the one before
  bool setting_known_ = false;
  bool wanted_ = false;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_PAGE_HEAP_CLASSIC_GROWING_HUGEPAGE_H_
