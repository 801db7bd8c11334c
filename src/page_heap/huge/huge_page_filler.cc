// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "page_heap/huge/huge_page_filler.h"

#include <bit>

#include "base/bits.h"
#include "base/check.h"

namespace tcmalloc {

bool TrackerLists::Reserve(MetadataArena& arena) {
  // The arena's zero bytes are empty lists, and cost nothing until they are used.
  if (lists_ == nullptr) {
    lists_ = static_cast<Lists*>(arena.Allocate(sizeof(Lists), alignof(Lists)));
  }
  return lists_ != nullptr;
}

void TrackerLists::Insert(HugePageTracker* tracker, Key key) {
  lists_->of[key.run][key.bucket].PushFront(tracker);
  nonempty_buckets_[key.run] |= static_cast<uint8_t>(1u << key.bucket);
  nonempty_runs_[key.run / kWord] |= uint64_t{1} << (key.run % kWord);
  nonempty_words_ |= uint32_t{1} << (key.run / kWord);
}

void TrackerLists::Remove(HugePageTracker* tracker, Key key) {
  IntrusiveList<HugePageTracker>& list = lists_->of[key.run][key.bucket];
  list.Remove(tracker);
  if (!list.empty()) return;
  nonempty_buckets_[key.run] &= static_cast<uint8_t>(~(1u << key.bucket));
  if (nonempty_buckets_[key.run] != 0) return;
  nonempty_runs_[key.run / kWord] &= ~(uint64_t{1} << (key.run % kWord));
  if (nonempty_runs_[key.run / kWord] == 0) {
    nonempty_words_ &= ~(uint32_t{1} << (key.run / kWord));
  }
}

size_t TrackerLists::NextRun(size_t least) const {
  size_t word = least / kWord;
  uint64_t bits = nonempty_runs_[word] & (~uint64_t{0} << (least % kWord));
  if (bits == 0) {
    const uint32_t later = nonempty_words_ & (~uint32_t{1} << word);
    if (later == 0) return kRuns;
    word = static_cast<size_t>(std::countr_zero(later));
    bits = nonempty_runs_[word];
  }
  return word * kWord + static_cast<size_t>(std::countr_zero(bits));
}

HugePageTracker* TrackerLists::BestFitOfAny(Length n) const {
  const size_t run = NextRun(n.pages());
  if (run == kRuns) return nullptr;
  return lists_->of[run][Log2Floor(nonempty_buckets_[run])].front();
}

size_t TrackerLists::CheckInvariants() const {
  size_t count = 0;
  for (size_t run = 0; run < kRuns; ++run) {
    TCMALLOC_CHECK_EQ((nonempty_runs_[run / kWord] >> (run % kWord) & 1) != 0,
                      nonempty_buckets_[run] != 0);
    if (nonempty_buckets_[run] == 0) continue;
    for (size_t bucket = 0; bucket < kBuckets; ++bucket) {
      const IntrusiveList<HugePageTracker>& list = lists_->of[run][bucket];
      TCMALLOC_CHECK_EQ((nonempty_buckets_[run] >> bucket & 1) != 0, !list.empty());
      count += list.size();
      for (auto* tracker = list.front(); tracker != nullptr; tracker = list.next(tracker)) {
        TCMALLOC_CHECK(KeyOf(tracker) == (Key{run, bucket}));
        TCMALLOC_CHECK(tracker->place == HugePageTracker::Place::kFiller);
        tracker->CheckInvariants();
      }
    }
  }
  for (size_t word = 0; word < kWords; ++word) {
    TCMALLOC_CHECK_EQ((nonempty_words_ >> word & 1) != 0, nonempty_runs_[word] != 0);
  }
  return count;
}

bool HugePageFiller::Reserve(MetadataArena& arena) {
  return whole_.Reserve(arena) && broken_.Reserve(arena) && returned_.Reserve(arena);
}

void HugePageFiller::Insert(HugePageTracker* tracker) {
  tracker->place = HugePageTracker::Place::kFiller;
  ListsOf(tracker).Insert(tracker, TrackerLists::KeyOf(tracker));
  ++hugepages_;
  AddToSums(tracker);
}

void HugePageFiller::Remove(HugePageTracker* tracker) {
  ListsOf(tracker).Remove(tracker, TrackerLists::KeyOf(tracker));
  --hugepages_;
  SubtractFromSums(tracker);
  tracker->place = HugePageTracker::Place::kNone;
}

HugePageTracker* HugePageFiller::BestFit(Length n) const {
  HugePageTracker* whole = whole_.BestFit(n);
  if (whole != nullptr && whole->used() > Length(0)) return whole;
  // An empty hugepage is the last choice.
  HugePageTracker* broken = broken_.BestFit(n);
  HugePageTracker* returned = returned_.BestFit(n);
  if (broken == nullptr || (returned != nullptr && returned->longest() < broken->longest())) {
    broken = returned;
  }
  if (broken != nullptr && (whole == nullptr || broken->used() > Length(0))) return broken;
  return whole;
}

HugePageTracker* HugePageFiller::Find(Length n, Length alignment) const {
  HugePageTracker* tracker = BestFit(n);
  if (tracker == nullptr || alignment == Length(1)) return tracker;
  if (tracker->BestFit(n.pages(), alignment.pages()) < HugePageTracker::kPages) return tracker;
  // A run of this length has room wherever it begins.
  const Length roomy = n + alignment - Length(1);
  return roomy <= kPagesPerHugePage ? BestFit(roomy) : nullptr;
}

HugePageTracker* HugePageFiller::FindCollapsible() const {
  if (collapsible_ == 0) return nullptr;
  HugePageTracker* found = nullptr;
  for (const TrackerLists* lists : {&whole_, &broken_, &returned_}) {
    lists->ForEach([&](HugePageTracker* tracker) {
      if (IsCollapsible(tracker)) found = tracker;
    });
  }
  return found;
}

void HugePageFiller::CheckInvariants() const {
  size_t collapsible = 0;
  size_t empty = 0;
  Length backed_used;
  size_t backed = 0;
  Length tail_slack;
  size_t count = 0;
  for (const TrackerLists* lists : {&whole_, &broken_, &returned_}) {
    count += lists->CheckInvariants();
    lists->ForEach([&](const HugePageTracker* tracker) {
      TCMALLOC_CHECK(&ListsOf(tracker) == lists);
      if (IsCollapsible(tracker)) ++collapsible;
      if (tracker->used() == Length(0)) ++empty;
      if (tracker->backed) ++backed;
      if (tracker->backed) backed_used += tracker->used();
      if (tracker->tail) tail_slack += kPagesPerHugePage - tracker->used();
    });
  }
  TCMALLOC_CHECK_EQ(collapsible, collapsible_);
  TCMALLOC_CHECK_EQ(empty, empty_);
  TCMALLOC_CHECK_EQ(backed, backed_);
  TCMALLOC_CHECK_EQ(backed_used, backed_used_);
  TCMALLOC_CHECK_EQ(tail_slack, tail_slack_);
  TCMALLOC_CHECK_EQ(count, hugepages_);
}

}  // namespace tcmalloc
