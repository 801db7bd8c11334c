// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Decides the advice that the kernel gets about hugepages.

#ifndef TCMALLOC_PAGE_HEAP_HUGE_ADVICE_H_
#define TCMALLOC_PAGE_HEAP_HUGE_ADVICE_H_

#include <cstddef>

#include "page_heap/huge/huge_page.h"
#include "page_heap/huge/huge_page_tracker.h"
#include "system/transparent_hugepages.h"

namespace tcmalloc {

// Follows the machine's setting:
//
//   never     Gives no advice and assumes nothing.
//   madvise   Asks for hugepages that short spans share, once the heap has some of them: one
//             hugepage costs a small program more memory than it has.
//   always    The kernel backs everything by hugepages on first touch. Keeps a small heap from that
//             until it has grown: a hundred idle threads have so many spans with few touched pages
//             that hugepages would make the heap half as large again.
//
// Large blocks are left to the setting, because only the program knows how densely it uses them.
class HugePageAdvice {
 public:
  using Advice = HugePageTracker::Advice;

  // A heap with fewer shared hugepages is small. The first bound holds where hugepages are asked
  // for, the second where they come unasked.
  static constexpr size_t kSmallHeap = 8;
  static constexpr size_t kSmallHeapUnasked = 32;

  constexpr HugePageAdvice() = default;

  void Configure(const TransparentHugepages& setting);
  const TransparentHugepages& setting() const { return setting_; }

  // Returns the advice for a hugepage that spans begin to share, of which nothing is resident, or
  // kNone. `told` is the last advice for it, and `shared` the number of hugepages that are shared
  // already. Where memory is `scarce`, a whole hugepage is too much.
  Advice ForShared(Advice told, HugePageTracker::Contents contents, size_t shared,
                   bool scarce) const;

  // Returns true if the kernel backs all of a hugepage by one page when it is first touched.
  bool BacksWhole(Advice told) const {
    return setting_.mode == HugepageMode::kAlways ? told != Advice::kSmall
                                                  : on() && told == Advice::kHuge;
  }
  // Returns true if the kernel, unless advised not to, makes a hugepage whole again after a part of
  // it was given back.
  bool RefillsBroken(Advice told) const { return BacksWhole(told) && setting_.max_ptes_none > 0; }
  // Returns true if the heap may ask for hugepages in place of pages that are in use.
  bool MayCollapse(size_t shared) const {
    return on() && setting_.may_stall && !IsSmallHeap(shared);
  }

 private:
  bool IsSmallHeap(size_t shared) const {
    return shared < (setting_.mode == HugepageMode::kAlways ? kSmallHeapUnasked : kSmallHeap);
  }
  bool on() const { return setting_.mode != HugepageMode::kNever; }

  TransparentHugepages setting_;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_PAGE_HEAP_HUGE_ADVICE_H_
