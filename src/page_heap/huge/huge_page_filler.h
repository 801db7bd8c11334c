// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Chooses the hugepage, among those that several spans share, that serves the next span.

#ifndef TCMALLOC_PAGE_HEAP_HUGE_HUGE_PAGE_FILLER_H_
#define TCMALLOC_PAGE_HEAP_HUGE_HUGE_PAGE_FILLER_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/intrusive_list.h"
#include "page_heap/huge/huge_page_tracker.h"
#include "pages/metadata_arena.h"
#include "pages/page_types.h"

namespace tcmalloc {

// Hugepages of one kind, ordered by their longest run of unused pages, then by the number of their
// allocations. Not thread safe.
class TrackerLists {
 public:
  constexpr TrackerLists() = default;
  TrackerLists(const TrackerLists&) = delete;
  TrackerLists& operator=(const TrackerLists&) = delete;

  // Makes room for the lists. Returns false if no memory can be had. Call before anything is
  // inserted.
  [[nodiscard]] bool Reserve(MetadataArena& arena);

  // The list that holds a hugepage.
  struct Key {
    size_t run;
    size_t bucket;
    friend bool operator==(const Key&, const Key&) = default;
  };
  static Key KeyOf(const HugePageTracker* tracker) {
    return {tracker->longest(),
            std::min(static_cast<size_t>(std::bit_width(tracker->allocations())), kBuckets - 1)};
  }

  void Insert(HugePageTracker* tracker, Key key);
  // `key` is the key with which the hugepage was inserted.
  void Remove(HugePageTracker* tracker, Key key);

  // Returns, of the hugepages whose longest run is the shortest of at least n pages, one with the
  // most allocations, to within a factor of two. Null if there is none.
  HugePageTracker* BestFit(Length n) const {
    return nonempty_words_ == 0 ? nullptr : BestFitOfAny(n);
  }
  // Returns the first hugepage for which accepts(tracker) is true, of the first `most` by longest
  // runs and then by fewest allocations. Null if there is none, or if all hugepages are full.
  template <typename Accepts>
  HugePageTracker* FindEmptiest(int most, Accepts accepts) const;

  template <typename Visitor>
  void ForEach(Visitor&& visit) const {
    for (size_t run = NextRun(0); run < kRuns; run = NextRun(run + 1)) {
      for (const IntrusiveList<HugePageTracker>& list : lists_->of[run]) {
        for (auto* tracker = list.front(); tracker != nullptr; tracker = list.next(tracker)) {
          visit(tracker);
        }
      }
    }
  }

  // Returns the number of hugepages in the lists that the bits name. If there are more, a bit is
  // missing.
  size_t CheckInvariants() const;

 private:
  static constexpr size_t kRuns = HugePageTracker::kPages + 1;
  static constexpr size_t kBuckets = 8;  // by the number of allocations
  static constexpr size_t kWord = 64;
  static constexpr size_t kWords = (kRuns + kWord - 1) / kWord;
  static_assert(kWords < 32);

  struct Lists {
    IntrusiveList<HugePageTracker> of[kRuns][kBuckets];
  };

  HugePageTracker* BestFitOfAny(Length n) const;
  // Returns the smallest run of at least `least` that has hugepages; kRuns if there is none.
  size_t NextRun(size_t least) const;

  Lists* lists_ = nullptr;
  uint32_t nonempty_words_ = 0;  // of nonempty_runs_
  uint64_t nonempty_runs_[kWords] = {};
  uint8_t nonempty_buckets_[kRuns] = {};
};

// The order has these reasons. A hugepage can be given back, or serve a span of its own size, only
// when all of its spans are gone. So spans should gather in few hugepages while the others drain.
// The shortest run that is long enough leaves longer runs to requests that need them. Among equals,
// the hugepage with the most allocations is the least likely to drain soon, so one more costs it
// the least.
//
// Hugepages that are only partly resident come second: filling them costs page faults and resident
// memory, and does not make hugepages of them.
class HugePageFiller {
 public:
  constexpr HugePageFiller() = default;
  HugePageFiller(const HugePageFiller&) = delete;
  HugePageFiller& operator=(const HugePageFiller&) = delete;

  // Makes room for the lists. Returns false if no memory can be had. Call before anything is
  // inserted.
  [[nodiscard]] bool Reserve(MetadataArena& arena);

  void Insert(HugePageTracker* tracker);
  void Remove(HugePageTracker* tracker);
  // Calls change(), the only way to change a tracker while it is in the filler. `change` may not
  // call the filler.
  template <typename Change>
  void Update(HugePageTracker* tracker, Change change);

  // Returns a hugepage in which n aligned pages fit; null if there is none. With alignment, a
  // suitable hugepage may be missed.
  HugePageTracker* Find(Length n, Length alignment) const;
  // Returns a wholly unused hugepage, of which a part may be returned; null if there is none.
  HugePageTracker* FindEmpty() const { return BestFit(kPagesPerHugePage); }
  // Returns the hugepage from which to release memory, preferably an empty one, then one that is
  // broken already. Asks accepts(tracker) for the first `most` of each kind. Null if none of these
  // has free memory.
  template <typename Accepts>
  HugePageTracker* FindEmptiest(int most, Accepts accepts) const;
  HugePageTracker* FindEmptiest() const {
    return FindEmptiest(1, [](const HugePageTracker*) { return true; });
  }
  // Returns a hugepage that a collapse would make whole; null if there is none.
  HugePageTracker* FindCollapsible() const;

  // Unused pages of the hugepages that end a longer span.
  Length tail_slack() const { return tail_slack_; }

  size_t hugepages() const { return hugepages_; }
  // The number of hugepages that are wholly unused.
  size_t empty_ones() const { return empty_; }
  // Used pages in the hugepages that are believed to be backed by one page, and the pages that
  // these hugepages cost.
  Length backed_used() const { return backed_used_; }
  Length backed_unused() const {
    return Length(kPagesPerHugePage.pages() * backed_) - backed_used_;
  }

  void CheckInvariants() const;

  // Returns true for a hugepage so full that making it whole costs little: at most an eighth of it
  // becomes resident without need.
  static bool IsDense(const HugePageTracker* tracker) {
    return tracker->used().pages() >= HugePageTracker::kPages - HugePageTracker::kPages / 8;
  }

 private:
  static bool IsCollapsible(const HugePageTracker* tracker) {
    return tracker->contents == HugePageTracker::Contents::kObjects && !tracker->backed &&
           !tracker->collapse_tried && IsDense(tracker);
  }

  // Adds a tracker's part to the sums that are kept, or subtracts it.
  void AddToSums(const HugePageTracker* tracker);
  void SubtractFromSums(const HugePageTracker* tracker);

  const TrackerLists& ListsOf(const HugePageTracker* tracker) const;
  TrackerLists& ListsOf(const HugePageTracker* tracker) {
    return const_cast<TrackerLists&>(std::as_const(*this).ListsOf(tracker));
  }
  HugePageTracker* BestFit(Length n) const;

  TrackerLists whole_;     // nothing is returned
  TrackerLists broken_;    // something is returned, and something free
  TrackerLists returned_;  // all that is not used is returned
  Length tail_slack_;
  size_t collapsible_ = 0;
  size_t empty_ = 0;
  size_t hugepages_ = 0;
  size_t backed_ = 0;
  Length backed_used_;
};

template <typename Accepts>
HugePageTracker* TrackerLists::FindEmptiest(int most, Accepts accepts) const {
  for (size_t run = kRuns; run-- > 1;) {
    for (unsigned buckets = nonempty_buckets_[run]; buckets != 0; buckets &= buckets - 1) {
      const IntrusiveList<HugePageTracker>& list = lists_->of[run][std::countr_zero(buckets)];
      for (auto* tracker = list.front(); tracker != nullptr; tracker = list.next(tracker)) {
        if (most-- == 0) return nullptr;
        if (accepts(tracker)) return tracker;
      }
    }
  }
  return nullptr;
}

template <typename Accepts>
HugePageTracker* HugePageFiller::FindEmptiest(int most, Accepts accepts) const {
  HugePageTracker* whole = whole_.FindEmptiest(most, accepts);
  HugePageTracker* broken = broken_.FindEmptiest(most, accepts);
  if (whole == nullptr || broken == nullptr) return whole != nullptr ? whole : broken;
  // Breaking costs less where a hugepage is broken already, but nothing where one is wholly free.
  return whole->used() == Length(0) ? whole : broken;
}

inline void HugePageFiller::AddToSums(const HugePageTracker* tracker) {
  if (tracker->tail) tail_slack_ += kPagesPerHugePage - tracker->used();
  if (tracker->used() == Length(0)) ++empty_;
  if (IsCollapsible(tracker)) ++collapsible_;
  if (tracker->backed) {
    ++backed_;
    backed_used_ += tracker->used();
  }
}

inline void HugePageFiller::SubtractFromSums(const HugePageTracker* tracker) {
  if (tracker->tail) tail_slack_ -= kPagesPerHugePage - tracker->used();
  if (tracker->used() == Length(0)) --empty_;
  if (IsCollapsible(tracker)) --collapsible_;
  if (tracker->backed) {
    --backed_;
    backed_used_ -= tracker->used();
  }
}

inline const TrackerLists& HugePageFiller::ListsOf(const HugePageTracker* tracker) const {
  if (tracker->returned() == Length(0)) return whole_;
  return tracker->free() > Length(0) ? broken_ : returned_;
}

template <typename Change>
void HugePageFiller::Update(HugePageTracker* tracker, Change change) {
  TrackerLists& lists = ListsOf(tracker);
  const TrackerLists::Key key = TrackerLists::KeyOf(tracker);
  SubtractFromSums(tracker);
  change();
  AddToSums(tracker);
  TrackerLists& new_lists = ListsOf(tracker);
  const TrackerLists::Key new_key = TrackerLists::KeyOf(tracker);
  if (&lists == &new_lists && key == new_key) return;
  lists.Remove(tracker, key);
  new_lists.Insert(tracker, new_key);
}

}  // namespace tcmalloc

#endif  // TCMALLOC_PAGE_HEAP_HUGE_HUGE_PAGE_FILLER_H_
