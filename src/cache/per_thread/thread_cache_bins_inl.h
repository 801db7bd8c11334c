// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The part of ThreadCache for scattered objects that it sorts by pages. Included by thread_cache.h
// alone.

#ifndef TCMALLOC_CACHE_PER_THREAD_THREAD_CACHE_BINS_INL_H_
#define TCMALLOC_CACHE_PER_THREAD_THREAD_CACHE_BINS_INL_H_

namespace tcmalloc {

// Returns true if bins may take `count` more objects of class `c`. Makes the bins. Once some went
// home the others do as well until the next miss: as a large class is freed its spans get fewer,
// and what is kept at last would be parts of pages.
template <SourceTable Sources>
TCMALLOC_ALWAYS_INLINE bool ThreadCache<Sources>::HasRoomInBins(uint8_t c, uint32_t count) {
  ClassState& state = states_[c];
  if (state.sent_home > 0 || KeptChains(c) >= state.max_chains) return false;
  if (full_bytes() >= kBinnedBytes || source(c).SpanBytes() > kBinnedBytes) return false;
  if (Batch(c) < kSizeClasses[c].batch) return false;
  if (!FitsBudget(int64_t{count} * SizeOf(c))) return false;
  if (state.bins == nullptr) state.bins = PageBins::New(SizeOf(c), *context_->arrays);
  return state.bins != nullptr;
}

// Sorts the objects of a chain into bins. Returns false if they may take none.
template <SourceTable Sources>
TCMALLOC_NOINLINE bool ThreadCache<Sources>::PutInBins(uint8_t c, Chain chain) {
  if (!HasRoomInBins(c, chain.count)) return false;
  ClassState& state = states_[c];
  Chain strays;
  {
    BiasedLockHolder holder(chains_lock_);
    const int64_t before = state.binned;
    strays = state.bins->Put(chain, *context_->codec, MisplacedBits(c), [this, c](void* object) {
      CheckPlace(object, c);
      return CheckedNext(object, c);
    });
    state.binned = state.bins->objects();
    NoteCached((state.binned - before) * SizeOf(c));
    chains_moved_ += 1;
  }
  if (!strays.empty()) source(c).InsertPast(strays);
  return true;
}

// Returns the objects of a region in ascending order. A chain in which one of them is twice goes to
// the central list, which ends the process.
template <SourceTable Sources>
TCMALLOC_NOINLINE Chain ThreadCache<Sources>::Sorted(uint8_t c, Chain chain) const {
  const ObjectReference end = context_->codec->end;
  RegionSorter sorter(SizeOf(c), states_[c].bins->region_bytes());
  if (SizeOf(c) <= RegionSorter::kMostSizePrefetched) sorter.Prefetch(chain.head);
  ObjectReference reference = chain.head;
  for (; reference != end; reference = NextOf(ObjectAt(reference), c)) {
    if (TCMALLOC_UNLIKELY(!sorter.Add(reference))) break;
  }
  if (TCMALLOC_UNLIKELY(reference != end)) {
    source(c).InsertPast(chain);
    return {};
  }
  return sorter.Link(*context_->codec);
}

// Returns the objects of the next region.
template <SourceTable Sources>
TCMALLOC_NOINLINE Chain ThreadCache<Sources>::NextOfBins(uint8_t c) {
  const Chain chain = PopKept(c);
  const bool any_order =
      chain.count < RegionSorter::kFewest || source(c).SpanBytes() <= kAnyOrderInPagesBytes;
  return any_order ? chain : Sorted(c, chain);
}

}  // namespace tcmalloc

#endif  // TCMALLOC_CACHE_PER_THREAD_THREAD_CACHE_BINS_INL_H_
