// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The ways in which objects leave a ThreadCache: in collections, taken by other threads, or all at
// once. Included by thread_cache.h alone.

#ifndef TCMALLOC_CACHE_PER_THREAD_THREAD_CACHE_RETURN_INL_H_
#define TCMALLOC_CACHE_PER_THREAD_THREAD_CACHE_RETURN_INL_H_

#include <algorithm>
#include <utility>

namespace tcmalloc {

// Takes up to kChainsAtOnce of the oldest full chains of a class and, if there are no others, those
// of its bins, until they have *objects objects, which it counts down. Returns their number.
template <SourceTable Sources>
uint32_t ThreadCache<Sources>::TakeOldest(uint8_t c, int64_t* objects, Chain* out) {
  ClassState& state = states_[c];
  uint32_t count = 0;
  int64_t taken = 0;
  for (; count < std::min(kChainsAtOnce, state.full.size()) && taken < *objects; ++count) {
    out[count] = state.full.at(count);
    taken += out[count].count;
  }
  state.full.DropOldest(count);
  for (; count < kChainsAtOnce && taken < *objects && state.binned > 0; ++count) {
    out[count] = TakeOfBins(c);
    taken += out[count].count;
  }
  NoteKept(c, -taken);
  *objects -= taken;
  UpdateLowWater(c);
  return count;
}

// Returns the oldest chains that a class keeps to the source, as many as have `count` objects, or
// all if there are fewer. Takes a few at a time, because the source may take long.
template <SourceTable Sources>
void ThreadCache<Sources>::ReturnOldest(uint8_t c, uint32_t count, Past past) {
  if (count == 0) return;
  Chain chains[kChainsAtOnce];
  int64_t objects = count;
  for (uint32_t taken = kChainsAtOnce; objects > 0 && taken > 0;) {
    {
      BiasedLockHolder holder(chains_lock_);
      taken = TakeOldest(c, &objects, chains);
    }
    for (uint32_t i = 0; i < taken; ++i) ReturnChain(c, chains[i], past);
  }
}

// Does the work of ReturnOldest in another thread. Leaves the chains alone while the owner changes
// them.
template <SourceTable Sources>
void ThreadCache<Sources>::ReturnOldestByOther(uint8_t c, uint32_t count) {
  if (count == 0) return;
  Chain chains[kChainsAtOnce];
  int64_t objects = count;
  for (uint32_t taken = kChainsAtOnce; objects > 0 && taken > 0;) {
    if (!chains_lock_.TryLockByOther()) return;
    taken = TakeOldest(c, &objects, chains);
    chains_lock_.UnlockByOther();
    for (uint32_t i = 0; i < taken; ++i) InsertInBatches(c, chains[i]);
  }
}

template <SourceTable Sources>
void ThreadCache<Sources>::ReleaseIdle(bool by_owner) {
  const uint32_t moved = chains_moved_;
  if (std::exchange(moved_at_release_, moved) != moved) return;
  ForEachUsedClass([this, by_owner](uint8_t c) {
    const uint32_t half = (states_[c].kept + 1) / 2;
    by_owner ? ReturnOldest(c, half) : ReturnOldestByOther(c, half);
  });
}

template <SourceTable Sources>
void ThreadCache<Sources>::ReturnOverdraft(OverdraftLook* look) {
  const uint32_t moved = chains_moved_;
  if (std::exchange(moved_at_overdraft_, moved) != moved) active_at_ = look->now;
  const bool idle = look->now - active_at_ >= OverdraftLook::kIdleNs;
  for (uint8_t c = 1; idle && c < kSizeClassCount; ++c) {
    const int64_t held = HeldBytes();
    const int64_t excess = std::min(held - share_.limit(), look->most);
    if (excess <= 0) break;
    if (states_[c].kept == 0) continue;
    ReturnOldestByOther(c, static_cast<uint32_t>((excess + SizeOf(c) - 1) / SizeOf(c)));
    look->most -= held - HeldBytes();
  }
  if (full_bytes() > 0 && !HasRoomFor(0)) look->is_any_overdrawn = true;
}

template <SourceTable Sources>
void ThreadCache<Sources>::ReleaseFull() {
  ForEachUsedClass([this](uint8_t c) { ReturnOldestByOther(c, states_[c].kept); });
}

template <SourceTable Sources>
uint32_t ThreadCache<Sources>::LowWater(uint8_t c) {
  BiasedLockHolder holder(chains_lock_);
  return states_[c].low_water;
}

template <SourceTable Sources>
void ThreadCache<Sources>::NoteCollected(uint8_t c) {
  BiasedLockHolder holder(chains_lock_);
  states_[c].low_water = states_[c].kept;
}

// A class is in use if its list has another head than at the last collection, or a chain was taken.
template <SourceTable Sources>
void ThreadCache<Sources>::CollectClass(uint8_t c) {
  ClassState& state = states_[c];
  if (state.popped || heads[c] != state.head_at_collection) {
    turns_in_use_ += kTurnObjects * SizeOf(c);
  }
  const uint32_t unused = LowWater(c);
  if (unused != 0) {
    ReturnOldest(c, state.popped ? (unused + kKeptOfUnused) / (kKeptOfUnused + 1) : unused,
                 Past::kCachesIfScattered);
    if (state.max_chains > 1) --state.max_chains;
  }
  state.popped = false;
  NoteCollected(c);
  CollectCurrent(c);
  state.head_at_collection = heads[c];
}

// Returns the current list to the source in two cases. If its head is that of the last two
// collections, it was most likely not used, and its class starts slowly again. Once is no sign of
// that, because the head of a list in use comes back whenever the thread frees as much as it
// allocated. A list that was used goes back only if each of its objects may be the last one that
// keeps a span from draining.
template <SourceTable Sources>
void ThreadCache<Sources>::CollectCurrent(uint8_t c) {
  ClassState& state = states_[c];
  const bool same = heads[c] == state.head_at_collection;
  const bool unused = std::exchange(state.idle, same) && same;
  if (!unused && (state.drain.active() || !source(c).IsSparse())) return;
  if (!IsConsistent(c)) return;
  if (state.drain.active()) ResumeKeeping(c);
  if (heads[c] == context_->codec->end && state.beside.empty()) return;
  ReturnCurrent(c, Past::kCachesIfScattered);
  if (!unused) return;
  ResizeEmptyList(c, 0);
}

template <SourceTable Sources>
void ThreadCache<Sources>::Collect() {
  turns_in_use_ = 0;
  ForEachUsedClass([this](uint8_t c) {
    CollectClass(c);
    source(c).ReturnUnused();
  });
  allocated_at_collection_ = header.clock.allocated_bytes();
}

// Leaves the current lists alone: this may be a signal handler that has interrupted a fast path.
template <SourceTable Sources>
void ThreadCache<Sources>::MakeWay() {
  for (uint8_t c = 1; c < kSizeClassCount; ++c) {
    ClassState& state = states_[c];
    if (std::exchange(state.popped_since_growth, false)) continue;
    const uint32_t kept = state.kept;
    if (int64_t{kept} * SizeOf(c) >= kManyIdleBytes) ReturnOldest(c, kept, Past::kCaches);
  }
}

template <SourceTable Sources>
void ThreadCache<Sources>::ReturnSome(int64_t most) {
  int64_t objects = most / kBytesPerObject + 1;
  for (uint8_t c = 1; c < kSizeClassCount; ++c) {
    const int64_t kept = states_[c].kept;
    if (kept == 0) continue;
    const int64_t count = std::min({kept, objects, most / SizeOf(c) + 1});
    ReturnOldest(c, static_cast<uint32_t>(count), Past::kCaches);
    objects -= count;
    most -= count * SizeOf(c);
    if (objects <= 0 || most <= 0) return;
  }
}

template <SourceTable Sources>
void ThreadCache<Sources>::FlushFull(uint8_t c) {
  for (Chain chain = PopKept(c); !chain.empty(); chain = PopKept(c)) InsertInBatches(c, chain);
  BiasedLockHolder holder(chains_lock_);
  PageBins* bins = std::exchange(states_[c].bins, nullptr);
  if (bins != nullptr) PageBins::Delete(bins, *context_->arrays);
  states_[c].full.Clear(*context_->arrays);
  states_[c].low_water = 0;
}

// Requires that FlushFull came before, which gives up the array of the full chains.
template <SourceTable Sources>
void ThreadCache<Sources>::FlushCurrent(uint8_t c) {
  if (states_[c].drain.active()) {
    const Chain leaving = StopDraining(c);
    if (!leaving.empty()) source(c).Insert(leaving);
  }
  ReturnCurrent(c);
  SetCapacity(c, 0);
  BiasedLockHolder holder(chains_lock_);
  states_[c] = {};
  room[c] = 0;
}

template <SourceTable Sources>
void ThreadCache<Sources>::FlushFrom(uint8_t first) {
  ForEachUsedClass([this, first](uint8_t c) {
    if (c < first) return;
    FlushFull(c);
    if (IsConsistent(c)) FlushCurrent(c);
  });
}

template <SourceTable Sources>
void ThreadCache<Sources>::Park() {
  Close();
  Flush();
  context_->budget->Leave(share_);
}

template <SourceTable Sources>
bool ThreadCache<Sources>::SetAside() {
  if (context_->budget->SetAside(share_, HeldBytes())) return true;
  if (share_.full_bytes == 0) return false;
  ForEachUsedClass([this](uint8_t c) { ReturnOldest(c, states_[c].kept); });
  return context_->budget->SetAside(share_, list_bytes_);
}

template <SourceTable Sources>
void ThreadCache<Sources>::TakeUp() {
  header.other = nullptr;
  header.seat = nullptr;
  header.kernel_number = 0;
  watch_ = {};
  context_->budget->TakeUp(share_);
}

template <SourceTable Sources>
void ThreadCache<Sources>::Retire() {
  Close();
  ForEachUsedClass([this](uint8_t c) {
    FlushFull(c);
    FlushCurrent(c);
  });
  context_->budget->Leave(share_);
}

}  // namespace tcmalloc

#endif  // TCMALLOC_CACHE_PER_THREAD_THREAD_CACHE_RETURN_INL_H_
