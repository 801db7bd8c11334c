// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Searches and checks the contents of a ThreadCache. Included by thread_cache.h alone.

#ifndef TCMALLOC_CACHE_PER_THREAD_THREAD_CACHE_CHECK_INL_H_
#define TCMALLOC_CACHE_PER_THREAD_THREAD_CACHE_CHECK_INL_H_

#include <algorithm>

namespace tcmalloc {

template <SourceTable Sources>
bool ThreadCache<Sources>::Holds(const void* object, uint8_t c, bool by_owner) {
  if (CurrentHolds(object, c)) return true;
  if (by_owner) {
    BiasedLockHolder holder(chains_lock_);
    return FullHolds(object, c);
  }
  // The owner might free the array of chains while it is read here without the lock.
  if (!chains_lock_.TryLockByOther()) return false;
  const bool found = FullHolds(object, c);
  chains_lock_.UnlockByOther();
  return found;
}

// Searches the lists that only their owner changes, by plain writes. May run in other threads.
template <SourceTable Sources>
__attribute__((no_sanitize("thread"))) bool ThreadCache<Sources>::CurrentHolds(const void* object,
                                                                               uint8_t c) const {
  const ClassState& state = states_[c];
  const int length = state.capacity - room[c];
  const Chain current{heads[c], static_cast<uint32_t>(std::max(length, 0))};
  return ChainHolds(current, object, c) || ChainHolds(state.beside, object, c);
}

template <SourceTable Sources>
bool ThreadCache<Sources>::FullHolds(const void* object, uint8_t c) const {
  const ClassState& state = states_[c];
  if (state.binned > 0 && state.bins->Has(object)) return true;
  const ChainStack& full = state.full;
  for (uint32_t i = 0; i < full.size(); ++i) {
    if (ChainHolds(full.at(i), object, c)) return true;
  }
  return false;
}

// Follows only links that lead to an object of class `c`, because the owner may change the list
// meanwhile.
template <SourceTable Sources>
__attribute__((no_sanitize("thread"))) bool ThreadCache<Sources>::ChainHolds(Chain chain,
                                                                             const void* object,
                                                                             uint8_t c) const {
  for (; chain.count > 0; --chain.count) {
    void* element = ObjectAt(chain.head);
    if (element == object) return true;
    const Span* span = context_->page_map->FindInUse(element);
    if (span == nullptr || span->size_class != c) return false;
    chain.head = context_->codec->Decode(const_cast<const volatile uint64_t&>(LinkWord(element)));
  }
  return false;
}

// A list that an interrupted fast path is using is whole up to its end, too.
template <SourceTable Sources>
void ThreadCache<Sources>::CheckFreeObjects(size_t* most) {
  ForEachUsedClass([&](uint8_t c) {
    const ClassState& state = states_[c];
    FreeObjectCheck check(*context_->page_map, *context_->codec, c, most);
    check.CheckList(heads[c]);
    if (!state.beside.empty()) check.CheckList(state.beside.head);
    BiasedLockHolder holder(chains_lock_);
    for (uint32_t i = 0; i < state.full.size(); ++i) check.CheckList(state.full.at(i).head);
    if (state.binned == 0) return;
    state.bins->ForEach([&check](const void* object) {
      if (!check.done()) check.CheckFree(object);
    });
  });
}

template <SourceTable Sources>
void ThreadCache<Sources>::CheckBeside(uint8_t c) const {
  Chain chain = states_[c].beside;
  if (chain.empty()) return;
  TCMALLOC_CHECK_LE(chain.count + states_[c].drain.active(), Batch(c));
  for (; chain.count > 0; --chain.count) chain.head = context_->codec->Next(ObjectAt(chain.head));
  TCMALLOC_CHECK_EQ(chain.head, context_->codec->end);
}

// Returns the number of objects in the bins of class `c`.
template <SourceTable Sources>
int64_t ThreadCache<Sources>::CheckBins(uint8_t c) const {
  const PageBins* bins = states_[c].bins;
  if (bins == nullptr) return 0;
  uint32_t objects = 0;
  bins->ForEach([&](const void* object) {
    TCMALLOC_CHECK(bins->Has(object));
    ++objects;
  });
  TCMALLOC_CHECK_EQ(bins->objects(), objects);
  TCMALLOC_CHECK_EQ(uint32_t{states_[c].binned}, objects);
  return objects;
}

template <SourceTable Sources>
void ThreadCache<Sources>::CheckInvariants() const {
  TCMALLOC_CHECK_EQ(room[0], 0);
  int64_t bytes = 0;
  int64_t list_bytes = 0;
  int64_t long_bytes = 0;
  for (size_t i = 1; i < kSizeClassCount; ++i) {
    const auto c = static_cast<uint8_t>(i);
    const ClassState& state = states_[c];
    list_bytes += ListBytes(c);
    TCMALLOC_CHECK_LE(LeastRoom(c), room[c]);
    TCMALLOC_CHECK_LE(room[c], state.capacity);
    const Source* source = context_->sources->Find(c);
    const uint32_t batch = source != nullptr ? source->batch() : 0;
    const uint32_t most = state.drain.active() ? batch : std::max(2 * batch, kListObjects);
    TCMALLOC_CHECK_LE(state.capacity, LeastRoom(c) + static_cast<int>(most));
    if (batch > 0) long_bytes += int64_t{ObjectsBeyondTwo(c, state.capacity)} * SizeOf(c);
    TCMALLOC_CHECK_LE(state.low_water, state.kept);
    ObjectReference reference = heads[c];
    for (int length = state.capacity - room[c]; length > 0; --length) {
      reference = context_->codec->Next(ObjectAt(reference));
    }
    TCMALLOC_CHECK_EQ(reference, context_->codec->end);
    CheckBeside(c);
    int64_t kept = CheckBins(c);
    for (uint32_t j = 0; j < state.full.size(); ++j) {
      TCMALLOC_CHECK_LE(Batch(c), state.full.at(j).count);
      kept += state.full.at(j).count;
    }
    TCMALLOC_CHECK_EQ(int64_t{state.kept}, kept);
    bytes += kept * SizeOf(c);
  }
  TCMALLOC_CHECK_EQ(share_.full_bytes, bytes);
  TCMALLOC_CHECK_EQ(list_bytes_, list_bytes);
  TCMALLOC_CHECK_EQ(share_.long_bytes, long_bytes);
}

}  // namespace tcmalloc

#endif  // TCMALLOC_CACHE_PER_THREAD_THREAD_CACHE_CHECK_INL_H_
