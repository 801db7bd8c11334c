// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "page_heap/huge/advice.h"

namespace tcmalloc {

void HugePageAdvice::Configure(const TransparentHugepages& setting) {
  setting_ = setting;
  // Trackers support one size of hugepages only.
  if (setting.hugepage_bytes != kHugePageSize) setting_.mode = HugepageMode::kNever;
}

HugePageAdvice::Advice HugePageAdvice::ForShared(Advice told, HugePageTracker::Contents contents,
                                                 size_t shared, bool scarce) const {
  Advice wanted = Advice::kNone;
  const bool unasked =
      setting_.mode == HugepageMode::kMadvise && contents == HugePageTracker::Contents::kBlocks;
  const bool small = scarce || unasked || IsSmallHeap(shared);
  if (on() && !small) {
    const bool by_default = setting_.mode == HugepageMode::kAlways && told == Advice::kNone;
    wanted = by_default ? Advice::kNone : Advice::kHuge;
  } else if (BacksWhole(told)) {
    wanted = Advice::kSmall;
  }
  return wanted == told ? Advice::kNone : wanted;
}

}  // namespace tcmalloc
