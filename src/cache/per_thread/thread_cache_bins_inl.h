// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The part of ThreadCache for scattered objects that it sorts by pages. Included by thread_cache.h
// alone.

#ifndef TCMALLOC_CACHE_PER_THREAD_THREAD_CACHE_BINS_INL_H_
#define TCMALLOC_CACHE_PER_THREAD_THREAD_CACHE_BINS_INL_H_

namespace tcmalloc {

// Answers what PageBins asks about objects of class `c`.
template <SourceTable Sources>
struct ThreadCache<Sources>::OwnerOfBins {
  ObjectReference CheckedNext(void* object) const { return cache.CheckedNext(object, c); }
  bool IsObject(const void* object) const {
    const PageMap::Entry entry = cache.context_->page_map->EntryOf(PageId::Containing(object));
    return entry.size_class() == c && IsObjectStart(entry.OffsetOf(object), c);
  }
  [[noreturn]] void CrashOnTwice(const void* object) const { CrashOnDoubleFree(object, SizeOf(c)); }

  const ThreadCache& cache;
  uint8_t c;
};

// Returns true if bins may take `count` more objects of class `c`. Makes the bins. Once some went
// home the others do as well until the next miss: as a large class is freed its spans get fewer,
// and what is kept at last would be parts of pages.
template <SourceTable Sources>
TCMALLOC_NOINLINE bool ThreadCache<Sources>::HasRoomInBins(uint8_t c, uint32_t count) {
  ClassState& state = states_[c];
  if (state.sent_home > 0 || state.kept + Batch(c) > state.max_chains * Batch(c)) return false;
  if (full_bytes() >= kBinnedBytes || source(c).SpanBytes() > kBinnedBytes) return false;
  if (Batch(c) < kSizeClasses[c].batch) return false;
  if (!FitsBudget(int64_t{count} * SizeOf(c))) return false;
  if (state.bins == nullptr) state.bins = PageBins::New(c, *context_->arrays);
  return state.bins != nullptr;
}

// Sorts the objects of a chain into bins, which exist. What they do not take goes home.
template <SourceTable Sources>
TCMALLOC_NOINLINE void ThreadCache<Sources>::SortIntoBins(uint8_t c, Chain chain) {
  ClassState& state = states_[c];
  Chain strays;
  {
    BiasedLockHolder holder(chains_lock_);
    const int64_t before = state.binned;
    strays = state.bins->Put(chain, *context_->codec, OwnerOfBins{*this, c});
    state.binned = state.bins->objects();
    NoteKept(c, state.binned - before);
    chains_moved_ += 1;
  }
  if (!strays.empty()) source(c).InsertPast(strays);
}

// Sorts the objects of a chain into bins. Returns false if they may take none.
template <SourceTable Sources>
bool ThreadCache<Sources>::PutInBins(uint8_t c, Chain chain) {
  if (!HasRoomInBins(c, chain.count)) return false;
  SortIntoBins(c, chain);
  return true;
}

// Sorts a full list of short batches, where bins are in use and its older half would probably be
// sorted anyway: to find that half takes as long. Returns false if it stays.
template <SourceTable Sources>
TCMALLOC_NOINLINE bool ThreadCache<Sources>::PutListInBins(uint8_t c) {
  const ClassState& state = states_[c];
  if (state.binned == 0 || Batch(c) >= kLongBatch) return false;
  const auto count = static_cast<uint32_t>(state.capacity - std::max<int>(room[c], 0));
  if (ScatterOf(c, {heads[c], count}) != Scatter::kFarApart) return false;
  if (!HasRoomInBins(c, count)) return false;
  SortIntoBins(c, TakeCurrent(c));
  return true;
}

// Takes some objects out of the bins, which have some.
template <SourceTable Sources>
TCMALLOC_NOINLINE Chain ThreadCache<Sources>::TakeOfBins(uint8_t c) {
  ClassState& state = states_[c];
  const Chain chain = state.bins->Take(*context_->codec, [this, c](const void* object) {
    CrashOnBadLink(*context_->page_map, object, c);
  });
  state.binned = state.bins->objects();
  return chain;
}

}  // namespace tcmalloc

#endif  // TCMALLOC_CACHE_PER_THREAD_THREAD_CACHE_BINS_INL_H_
