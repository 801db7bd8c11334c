// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The slow paths of malloc and free in CpuCache, and its statistics. Included by cpu_cache.h alone.

#ifndef TCMALLOC_CACHE_PER_CPU_CPU_CACHE_INL_H_
#define TCMALLOC_CACHE_PER_CPU_CPU_CACHE_INL_H_

#include <algorithm>

namespace tcmalloc {

template <SourceTable Sources>
bool CpuCache<Sources>::Initialize(const Context& context, const RseqSupport& support,
                                   SectionFence fence, size_t bytes_per_cpu) {
  context_ = context;
  ids_ = support.ids;
  sections_ = &SectionsFor(support.ids);
  fence_ = fence;
  if (!mark_.Initialize(*sections_->free_section, RandomSeed(kMarkSalt))) return false;
  if (!budgets_.Reserve(support.id_count, bytes_per_cpu)) return false;
  if (!slabs_.Reserve(support.id_count, support.ids, fence)) return false;
  // Release pairs with the acquire in initialized and publishes all of the above.
  initialized_.store(true, std::memory_order_release);
  return true;
}

template <SourceTable Sources>
CpuThread* CpuCache<Sources>::Join() {
  RseqArea* area = CurrentRseqArea();
  if (area == nullptr) return nullptr;
  CpuThread* thread = threads_.New();
  if (thread == nullptr) return nullptr;
  thread->link_limit = context_.codec->limit();
  thread->free_section = mark_.section();
  thread->classes = context_.classes;
  thread->rseq_area = area;
  thread->slabs = slabs_.memory();
  thread->slow = context_.slow;
  thread->InitializeClocks(*context_.sample_period);
  threads_.List(thread);
  return thread;
}

template <SourceTable Sources>
void* CpuCache<Sources>::Allocate(CpuThread* thread, uint8_t c, size_t size) {
  void* object = sections_->pop(c, thread->name());
  const bool hit = object != nullptr;
  if (!hit) {
    Source& source = context_.sources->Ensure(c);
    object = Unpack(thread, c, FetchMissing(thread, c));
    // There may be no memory for an array.
    if (TCMALLOC_UNLIKELY(object == nullptr)) object = FetchOne(source, *context_.codec);
  }
  if (object == nullptr) return nullptr;
  const bool expired = thread->CountSlow(size, *context_.sample_period);
  thread->ThreadHeader::clock.HoldBack(kMostOnClock);
  if (!hit || !expired) return object;
  ListSizes(thread, size);
  CountTick(thread);
  return LeaveSharedLine(thread, object, c);
}

// Counts bytes for which there were no misses, so that a slab is swept that has few.
template <SourceTable Sources>
void CpuCache<Sources>::CountTick(CpuThread* thread) {
  const int id = CurrentSlab(thread);
  SlabBudget& budget = budgets_.budget(id);
  if (budget.NoteTick() && budget.SweepIsDue()) Sweep(thread, id);
}

// Lets the fast path look up a size that a thread of this CPU often allocates.
template <SourceTable Sources>
void CpuCache<Sources>::ListSizes(CpuThread* thread, size_t size) {
  if (size >= CpuSlab::kListedSizes) return;
  CpuSlab& slab = slabs_.slab(CurrentSlab(thread));
  if (TCMALLOC_LIKELY(slab.Lists(size))) return;
  SpinLockHolder holder(slab.lock());
  slab.ListSizes(size);
}

// Takes an array out of the depot of the slab; none if there is none.
template <SourceTable Sources>
ObjectArray CpuCache<Sources>::TakeKept(CpuThread* thread, uint8_t c) {
  const int id = CurrentSlab(thread);
  CpuSlab& slab = slabs_.slab(id);
  if (slab.depot().CountKept(c) == 0) return {};
  ObjectArray array;
  bool sweep = false;
  {
    SpinLockHolder holder(slab.lock());
    slab.depot().outgrowth(c).NoteMiss();
    array = slab.depot().Pop(c);
    if (array.count == 0) return {};
    SlabBudget& budget = budgets_.budget(id);
    budget.Unkeep(CpuDepot::BytesOf(c, array.count));
    budget.NoteMiss(c);
    sweep = budget.SweepIsDue();
  }
  if (sweep) Sweep(thread, id);
  return array;
}

// Returns the objects for a slab that has none; none if no memory can be had.
template <SourceTable Sources>
ObjectArray CpuCache<Sources>::FetchMissing(CpuThread* thread, uint8_t c) {
  const ObjectArray array = TakeKept(thread, c);
  if (array.count > 0) return array;
  const uint32_t wanted = Grow(thread, c, 1, Missing::kObjects);
  const PackedChain kept = source(c).FetchKept();
  if (kept.count() == 0) return FetchArray(c, wanted);
  return kept.is_array() ? kept.UnpackArray() : ToArray(c, kept.Unpack());
}

// Fetches objects that nobody keeps, and marks them. Returns no array if no memory can be had.
template <SourceTable Sources>
ObjectArray CpuCache<Sources>::FetchArray(uint8_t c, uint32_t wanted) {
  ObjectArray array{source(c).NewArray(), 0};
  if (TCMALLOC_UNLIKELY(array.objects == nullptr)) return {};
  array.count = source(c).FetchArray(array.objects, wanted);
  for (uint32_t i = 0; i < array.count; ++i) mark_.Put(array.objects[i]);
  return array;
}

// Copies the addresses of a chain, and marks its objects. Objects beyond the chain's count, or
// beyond a batch, go back. Returns no array if no memory can be had.
template <SourceTable Sources>
ObjectArray CpuCache<Sources>::ToArray(uint8_t c, Chain chain) {
  if (chain.empty()) return {};
  ObjectArray array{source(c).NewArray(), 0};
  if (TCMALLOC_UNLIKELY(array.objects == nullptr)) {
    source(c).Insert(chain);
    return {};
  }
  const uint32_t most = std::min(chain.count, source(c).batch());
  for (; array.count < most && chain.head != context_.codec->end; ++array.count) {
    void* object = ObjectAt(chain.head);
    chain.head = context_.codec->Next(object);
    mark_.Put(object);
    array.objects[array.count] = object;
  }
  if (TCMALLOC_UNLIKELY(chain.head != context_.codec->end)) source(c).InsertPast({chain.head, 1});
  return array;
}

// Returns the last object of an array and puts the others into the slab. Objects that find no room
// there go back to the source. Returns null for an empty array.
template <SourceTable Sources>
void* CpuCache<Sources>::Unpack(CpuThread* thread, uint8_t c, ObjectArray array) {
  if (TCMALLOC_UNLIKELY(array.objects == nullptr)) return nullptr;
  void* object = nullptr;
  if (TCMALLOC_LIKELY(array.count > 0)) {
    object = array.objects[--array.count];
    LinkWord(object) = 0;
    if (slabs_.slab(CurrentSlab(thread)).capacity(c) < array.count) {
      Grow(thread, c, array.count, Missing::kRoom);
    }
  }
  PutBack(thread, c, array);
  return object;
}

// Returns the object to allocate in place of `object`. If the thread allocates `object` over and
// over, that is one in a cache line of its own, because other threads may use objects in its
// present line.
template <SourceTable Sources>
void* CpuCache<Sources>::LeaveSharedLine(CpuThread* thread, void* object, uint8_t c) {
  ReuseWatch& watch = thread->watch;
  if (kSizeClasses[c].size >= ReuseWatch::kLineBytes || !watch.IsStuckAt(object)) return object;
  void* own = Unpack(thread, c, ToArray(c, source(c).FetchLine()));
  if (own == nullptr) return object;
  watch.MoveTo(own);
  Return(c, &object, 1);
  return own;
}

template <SourceTable Sources>
void CpuCache<Sources>::Deallocate(CpuThread* thread, void* object, uint8_t c) {
  mark_.Put(object);
  if (sections_->push(c, thread->name(), object)) return;
  Grow(thread, c, 1, Missing::kRoom);
  if (sections_->push(c, thread->name(), object)) return;
  Overflow(thread, c, object);
}

// Notes a miss of class `c` and makes room for more of its objects, at least `least` if the budget
// allows. Returns how many to fetch. The depot may keep one batch more if that is one.
template <SourceTable Sources>
uint32_t CpuCache<Sources>::Grow(CpuThread* thread, uint8_t c, uint32_t least, Missing missing) {
  const int id = CurrentSlab(thread);
  CpuSlab& slab = slabs_.slab(id);
  const uint32_t batch = source(c).batch();
  ClassSet excess;
  uint32_t capacity = 1;
  bool sweep = false;
  {
    SpinLockHolder holder(slab.lock());
    if (slab.state() == SlabState::kUnused && !slab.Initialize()) return 1;
    if (slab.state() == SlabState::kClosed && !slab.Open()) return 1;
    SlabBudget& budget = budgets_.budget(id);
    capacity = budget.Grow(slab, c, batch, least, &excess);
    if (missing == Missing::kObjects) slab.depot().outgrowth(c).NoteMiss();
    if (missing == Missing::kObjects && capacity >= batch) slab.depot().NoteFetch(c);
    sweep = budget.SweepIsDue();
  }
  ReturnExcess(thread, id, excess);
  if (sweep) Sweep(thread, id);
  return capacity < batch ? std::max(capacity, uint32_t{1}) : batch;
}

template <SourceTable Sources>
CpuCacheStats CpuCache<Sources>::stats() {
  CpuCacheStats stats;
  stats.threads = threads_.count();
  stats.allocated = threads_.totals();
  for (size_t c = 1; c < kSizeClassCount; ++c) {
    stats.cached_bytes += CountObjects(static_cast<uint8_t>(c)) * kSizeClasses[c].size;
  }
  for (int id = 0; initialized() && id < slabs_.count(); ++id) {
    if (slabs_.slab(id).state() != SlabState::kUnused) ++stats.slabs;
  }
  return stats;
}

template <SourceTable Sources>
bool CpuCache<Sources>::LooksSound(CpuSlab& slab, size_t* most) {
  bool sound = true;
  slab.ForEachObject([&](uint8_t c, void* object) {
    if (*most == 0) return false;
    --*most;
    FreeObjectCheck check(*context_.page_map, *context_.codec, c, most);
    sound = check.IsSound(object, mark_.IsOn(object));
    return sound;
  });
  return sound;
}

// A slot that names the object may be older than the top that says that it counts: the second look
// tells.
template <SourceTable Sources>
bool CpuCache<Sources>::Holds(const void* object, uint8_t c) {
  if (!initialized()) return false;
  for (int id = 0; id < slabs_.count(); ++id) {
    if (DepotHolds(slabs_.slab(id), object, c)) return true;
  }
  // The fence pairs with the commit in sections_x86_64.S and sections_aarch64.S: a slot that is
  // read after it is not older than the index before it, which says that the slot counts.
  return slabs_.Holds(object, c) && fence_(-1) && slabs_.Holds(object, c);
}

template <SourceTable Sources>
bool CpuCache<Sources>::DepotHolds(CpuSlab& slab, const void* object, uint8_t c) {
  if (slab.state() == SlabState::kUnused || slab.depot().CountObjects(c) == 0) return false;
  bool found = false;
  SpinLockHolder holder(slab.lock());
  slab.depot().ForEach(c, [&](ObjectArray array) {
    found = std::find(array.objects, array.objects + array.count, object) !=
            array.objects + array.count;
    return !found;
  });
  return found;
}

// Lets an object in the depot that cannot be one end the process.
template <SourceTable Sources>
void CpuCache<Sources>::CheckDepot(CpuSlab& slab, size_t* most) {
  for (size_t i = 1; i < kSizeClassCount && *most > 0; ++i) {
    const auto c = static_cast<uint8_t>(i);
    FreeObjectCheck check(*context_.page_map, *context_.codec, c, most);
    slab.depot().ForEach(c, [&](ObjectArray array) {
      for (uint32_t j = array.count; j > 0; --j) {
        check.CheckNamed(array.objects[j - 1], mark_.IsOn(array.objects[j - 1]));
      }
      return !check.done();
    });
  }
}

// Closes the slab only where something looks wrong, so that nobody uses an object that it names.
// That calls the kernel, which a correct program may have forbidden.
template <SourceTable Sources>
void CpuCache<Sources>::CheckSlab(CpuSlab& slab, size_t* most) {
  if (!slab.lock().TryLock()) return;
  if (slab.state() == SlabState::kOpen && !LooksSound(slab, most) && slab.Close()) {
    size_t all = SIZE_MAX;
    slab.ForEachObject([&](uint8_t c, void* object) {
      FreeObjectCheck(*context_.page_map, *context_.codec, c, &all)
          .CheckNamed(object, mark_.IsOn(object));
      return true;
    });
    // If the fence fails, the slab stays closed and the next drain tries again.
    static_cast<void>(slab.Open());
  }
  if (slab.state() != SlabState::kUnused) CheckDepot(slab, most);
  slab.lock().Unlock();
}

// Other threads may hand the memory of an object that they take out to the program, which may
// protect it.
template <SourceTable Sources>
void CpuCache<Sources>::CheckSlabs(size_t* most) {
  if (threads_.count() > 1) return;
  for (int id = 0; id < slabs_.count() && *most > 0; ++id) CheckSlab(slabs_.slab(id), most);
}

template <SourceTable Sources>
void CpuCache<Sources>::CheckInvariants() {
  for (int id = 0; initialized() && id < slabs_.count(); ++id) {
    SpinLockHolder holder(slabs_.slab(id).lock());
    slabs_.slab(id).CheckInvariants();
    budgets_.budget(id).CheckInvariants(slabs_.slab(id));
  }
}

}  // namespace tcmalloc

#endif  // TCMALLOC_CACHE_PER_CPU_CPU_CACHE_INL_H_
