// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The ways in which objects leave the slabs of a CpuCache. Included by cpu_cache.h alone.

#ifndef TCMALLOC_CACHE_PER_CPU_CPU_CACHE_RETURN_INL_H_
#define TCMALLOC_CACHE_PER_CPU_CPU_CACHE_RETURN_INL_H_

#include <algorithm>

namespace tcmalloc {

// Lets the central list end the process if one of the addresses in `chain` cannot be the beginning
// of an object of class `c`. The bitwise or of the addresses shows it, and the central list knows
// where objects begin.
template <SourceTable Sources>
void CpuCache<Sources>::CheckPlaces(uint8_t c, uintptr_t addresses, const Chain& chain) {
  if (TCMALLOC_UNLIKELY((addresses & MisplacedBits(c)) != 0)) source(c).InsertPast(chain);
}

// Links objects in front of a chain, in their order.
template <SourceTable Sources>
void CpuCache<Sources>::Prepend(uint8_t c, void* const* objects, uint32_t count, Chain* chain) {
  uintptr_t addresses = 0;
  for (; count > 0; --count) {
    void* object = objects[count - 1];
    addresses |= reinterpret_cast<uintptr_t>(object);
    context_.codec->Prepend(object, chain);
  }
  CheckPlaces(c, addresses, *chain);
}

// Takes up to `most` objects, at most a batch, out of the slab. Returns no array if there are none,
// or if no memory can be had for the array.
template <SourceTable Sources>
ObjectArray CpuCache<Sources>::TakeOut(CpuThread* thread, uint8_t c, uint32_t most) {
  void** objects = most > 0 ? source(c).NewArray() : nullptr;
  if (TCMALLOC_UNLIKELY(objects == nullptr)) return {};
  const uint32_t count = sections_->pop_batch(c, thread->name(), objects, most);
  if (TCMALLOC_LIKELY(count > 0)) return {objects, count};
  source(c).DeleteArray(objects);
  return {};
}

// Puts the objects of an array, which may be none, into the slab. Those that find no room there go
// back to the source.
template <SourceTable Sources>
void CpuCache<Sources>::PutBack(CpuThread* thread, uint8_t c, ObjectArray array) {
  if (array.objects == nullptr) return;
  const uint32_t put = sections_->push_batch(c, thread->name(), array.objects, array.count);
  if (TCMALLOC_LIKELY(put == array.count)) return source(c).DeleteArray(array.objects);
  std::copy(array.objects + put, array.objects + array.count, array.objects);
  ReturnArray(c, {array.objects, array.count - put});
}

// Finds a place for an object that found no slot. The batches that were freed first leave the slab,
// so that the objects come back in the reverse order of the frees. One batch and what is no batch
// stay, or only that where the depot has batches and gives them back for little. Where there are
// few batches, or very many of few objects, the objects that were freed last go with this one.
template <SourceTable Sources>
void CpuCache<Sources>::Overflow(CpuThread* thread, uint8_t c, void* object) {
  const uint32_t batch = source(c).batch();
  const CpuSlab& slab = slabs_.slab(CurrentSlab(thread));
  const uint32_t held = slab.CountObjects(c);
  const uint32_t batches = held / batch;
  if (batches < 2 || batches > kBatchesAtOnce) return ReturnNewest(thread, c, object);
  const uint32_t older = slab.depot().CountKept(c) > 0 ? batches : batches - 1;
  const uint32_t newer = held - older * batch;
  const ObjectArray newest = TakeOut(thread, c, std::min(newer, batch));
  const ObjectArray next = TakeOut(thread, c, std::min(newer - newest.count, batch));
  KeepOlder(thread, c, older);
  PutBack(thread, c, next);
  PutBack(thread, c, newest);
  if (!sections_->push(c, thread->name(), object)) Return(c, &object, 1);
}

// Takes the objects that were freed last out of the slab, and finds another place for them and for
// `object`.
template <SourceTable Sources>
void CpuCache<Sources>::ReturnNewest(CpuThread* thread, uint8_t c, void* object) {
  ObjectArray array = TakeOut(thread, c, source(c).batch() - 1);
  if (array.count == 0) return Return(c, &object, 1);
  array.objects[array.count++] = object;
  KeepOrReturn(thread, c, array);
}

// Takes `count` batches out of the slab, at most kBatchesAtOnce, and keeps them outside, the oldest
// first.
template <SourceTable Sources>
void CpuCache<Sources>::KeepOlder(CpuThread* thread, uint8_t c, uint32_t count) {
  ObjectArray arrays[kBatchesAtOnce];
  uint32_t taken = 0;
  for (; taken < count; ++taken) {
    arrays[taken] = TakeOut(thread, c, source(c).batch());
    if (arrays[taken].objects == nullptr) break;
  }
  while (taken > 0) KeepOrReturn(thread, c, arrays[--taken]);
}

// Judges objects that lie in the order in which they were freed.
template <SourceTable Sources>
Scatter CpuCache<Sources>::ScatterOf(uint8_t c, void* const* objects, uint32_t count) {
  void* const* last = objects + count - 1;
  const auto before = [&last](const void*) { return *--last; };
  return JudgeScatter(kSizeClasses[c].size, *last, count, before);
}

// Returns the number of objects of class `c` that the source may have for it to keep these as well.
template <SourceTable Sources>
size_t CpuCache<Sources>::MostKept(uint8_t c, bool scattered) {
  return scattered ? kScatterSharedBytes / kSizeClasses[c].size : SIZE_MAX;
}

// Returns the same for these objects.
template <SourceTable Sources>
size_t CpuCache<Sources>::MostKept(uint8_t c, void* const* objects, uint32_t count, Past past) {
  if (past == Past::kCaches) return 0;
  return MostKept(c, ScatterOf(c, objects, count) == Scatter::kFarApart);
}

// Returns true if objects in this order are worth more in their spans than beside the slab.
template <SourceTable Sources>
bool CpuCache<Sources>::GoesHome(int id, uint8_t c, Scatter scatter) {
  if (scatter == Scatter::kInRows) return false;
  if (scatter == Scatter::kFarApart) return true;
  return slabs_.slab(id).depot().outgrowth(c).active() ||
         (scatter == Scatter::kNear && budgets_.budget(id).claimed() >= kNearKeptBytes);
}

// Returns false if one of the addresses cannot be the beginning of an object of the class.
template <SourceTable Sources>
bool CpuCache<Sources>::ArePlaced(uint8_t c, ObjectArray array) {
  uintptr_t addresses = 0;
  for (uint32_t i = 0; i < array.count; ++i) {
    addresses |= reinterpret_cast<uintptr_t>(array.objects[i]);
  }
  return TCMALLOC_LIKELY((addresses & MisplacedBits(c)) == 0);
}

// Returns an array to the source, which keeps few objects of a scattered one.
template <SourceTable Sources>
void CpuCache<Sources>::ReturnArray(uint8_t c, ObjectArray array, Past past) {
  if (!ArePlaced(c, array)) return Return(c, array.objects, array.count);
  const size_t most_kept = MostKept(c, array.objects, array.count, past);
  source(c).InsertWhileFew(PackedChain(array), most_kept);
}

// Puts a batch into the depot of slab `id`. Returns false if it may not keep it. Where the budget
// leaves no room, the oldest batches of the class go, so that the order of the others stays.
template <SourceTable Sources>
bool CpuCache<Sources>::Keep(int id, uint8_t c, ObjectArray array, Scatter scatter) {
  if (!HasFewBytesInSlots(c) || array.count != source(c).batch()) return false;
  CpuSlab& slab = slabs_.slab(id);
  bool kept = false;
  {
    SpinLockHolder holder(slab.lock());
    if (slab.state() != SlabState::kOpen || !slab.depot().Admits(c)) return false;
    kept = budgets_.budget(id).Keep(slab, c, array, scatter, *context_.arrays);
  }
  if (slab.depot().CountLeaving(c) > 0) ReturnLeaving(id, c);
  return kept;
}

// Does as ReturnArray does, but leaves a batch that is not scattered in the depot if it can.
template <SourceTable Sources>
void CpuCache<Sources>::KeepOrReturn(CpuThread* thread, uint8_t c, ObjectArray array) {
  if (!ArePlaced(c, array)) return Return(c, array.objects, array.count);
  const int id = CurrentSlab(thread);
  const Scatter scatter = ScatterOf(c, array.objects, array.count);
  const bool goes_home = GoesHome(id, c, scatter);
  if (!goes_home && Keep(id, c, array, scatter)) return;
  if (goes_home && scatter != Scatter::kFarApart) {
    SpinLockHolder holder(slabs_.slab(id).lock());
    slabs_.slab(id).depot().outgrowth(c).NoteSentHome(array.count * kSizeClasses[c].size);
  }
  source(c).InsertWhileFew(PackedChain(array), MostKept(c, goes_home));
}

// Returns objects to the source, in chains of at most one batch.
template <SourceTable Sources>
void CpuCache<Sources>::Return(uint8_t c, void* const* objects, uint32_t count, Past past) {
  while (count > 0) {
    Chain chain{context_.codec->end, 0};
    const uint32_t taken = std::min(count, source(c).batch());
    count -= taken;
    const size_t most_kept = MostKept(c, objects + count, taken, past);
    Prepend(c, objects + count, taken, &chain);
    source(c).InsertWhileFew(PackedChain(chain), most_kept);
  }
}

// Returns the batches that have to go from the depot of slab `id`, a few at a time, because the
// source may take long. Returns their bytes.
template <SourceTable Sources>
size_t CpuCache<Sources>::ReturnLeaving(int id, uint8_t c, Past past) {
  ObjectArray arrays[kBatchesAtOnce];
  CpuSlab& slab = slabs_.slab(id);
  size_t bytes = 0;
  while (slab.depot().CountLeaving(c) > 0) {
    uint32_t taken = 0;
    {
      SpinLockHolder holder(slab.lock());
      taken = slab.depot().TakeLeaving(c, arrays, kBatchesAtOnce);
    }
    for (uint32_t i = 0; i < taken; ++i) {
      bytes += size_t{arrays[i].count} * kSizeClasses[c].size;
      ReturnArray(c, arrays[i], past);
    }
  }
  return bytes;
}

// Takes objects beyond their class's capacity out of slab `id`, after other classes took that
// capacity, and batches that have to go. The slab is most likely the running thread's own.
template <SourceTable Sources>
void CpuCache<Sources>::ReturnExcess(CpuThread* thread, int id, const ClassSet& excess) {
  excess.ForEach([this, thread, id](uint8_t c) {
    ReturnLeaving(id, c);
    for (uint32_t left = SlabBudget::CountExcess(slabs_.slab(id), c); left > 0;) {
      const ObjectArray array = TakeOut(thread, c, std::min(left, source(c).batch()));
      if (array.count == 0) return;
      ReturnArray(c, array);
      left -= array.count;
    }
  });
}

// Shrinks the capacities that slab `id`, most likely the running thread's own, did not use since
// the last time, and the stocks that some of the sources did not need. Then looks at one other
// slab: if its CPU was idle, drains it and takes budget from it.
template <SourceTable Sources>
void CpuCache<Sources>::Sweep(CpuThread* thread, int id) {
  ClassSet excess;
  {
    SpinLockHolder holder(slabs_.slab(id).lock());
    budgets_.budget(id).ShrinkUnused(slabs_.slab(id), &excess);
  }
  ReturnExcess(thread, id, excess);
  const int other =
      budgets_.VisitOther(id, [this](int i) -> const CpuSlab& { return slabs_.slab(i); });
  if (other >= 0) DrainSlab(other);
  turns_.ReturnUnused(*context_.sources, kSourcesPerSweep);
}

// Drains the slab. Returns the number of bytes it held.
template <SourceTable Sources>
size_t CpuCache<Sources>::DrainSlab(int id) {
  CpuSlab& slab = slabs_.slab(id);
  if (slab.state() == SlabState::kUnused) return 0;
  size_t bytes = ReturnBatches(id, &SlabBudget::LetGoAll);
  SpinLockHolder holder(slab.lock());
  if (slab.state() == SlabState::kOpen && !slab.Close()) return bytes;
  slab.Drain([&](uint8_t c, void* const* objects, uint32_t count) {
    bytes += size_t{count} * kSizeClasses[c].size;
    Return(c, objects, count);
  });
  budgets_.budget(id).Reset(slab);
  // If the fence fails, the slab stays closed and the next drain tries again.
  static_cast<void>(slab.Open());
  return bytes;
}

// Lets batches of the depot go, as `let_go` does, and returns them, which needs no fence. Returns
// their bytes.
template <SourceTable Sources>
size_t CpuCache<Sources>::ReturnBatches(int id, void (SlabBudget::*let_go)(CpuSlab&, ClassSet*),
                                        Past past) {
  ClassSet excess;
  {
    SpinLockHolder holder(slabs_.slab(id).lock());
    (budgets_.budget(id).*let_go)(slabs_.slab(id), &excess);
  }
  size_t bytes = 0;
  excess.ForEach([&](uint8_t c) { bytes += ReturnLeaving(id, c, past); });
  return bytes;
}

// Tells the slabs in use how large the heap is. Others may begin to use one meanwhile.
template <SourceTable Sources>
void CpuCache<Sources>::NoteHeap(size_t bytes) {
  int in_use = 0;
  for (int id = 0; id < slabs_.count(); ++id) in_use += budgets_.budget(id).claimed() > 0 ? 1 : 0;
  const auto share = static_cast<int64_t>(bytes) / std::max(in_use, 1);
  for (int id = 0; id < slabs_.count(); ++id) {
    if (budgets_.budget(id).claimed() > 0) budgets_.budget(id).NoteHeap(share);
  }
}

template <SourceTable Sources>
void CpuCache<Sources>::ReturnIdle(size_t heap_bytes) {
  NoteHeap(heap_bytes);
  for (int id = 0; id < slabs_.count(); ++id) {
    if (budgets_.budget(id).claimed() <= kManyIdleBytes) continue;
    ReturnBatches(id, &SlabBudget::LetGoIdle, Past::kCaches);
    ReturnIdleObjects(id, SlabBudget::Search::kForGrowth);
  }
}

// Returns the objects in slots of slab `id` whose classes were idle since the last search, past the
// source's own.
template <SourceTable Sources>
void CpuCache<Sources>::ReturnIdleObjects(int id, SlabBudget::Search search) {
  CpuSlab& slab = slabs_.slab(id);
  SlabBudget& budget = budgets_.budget(id);
  SpinLockHolder holder(slab.lock());
  if (slab.state() != SlabState::kOpen) return;
  const ClassSet idle = budget.FindIdle(slab, search);
  if (idle.empty() || !slab.Close()) return;
  idle.ForEach([&](uint8_t c) TCMALLOC_NO_THREAD_SAFETY_ANALYSIS {
    slab.Drain(c, [&](uint8_t, void* const* objects, uint32_t count) {
      Return(c, objects, count, Past::kCaches);
    });
    budget.Reset(slab, c);
  });
  // If the fence fails, the slab stays closed and the next drain tries again.
  static_cast<void>(slab.Open());
}

template <SourceTable Sources>
void CpuCache<Sources>::Flush() {
  if (!initialized()) return;
  for (int id = 0; id < slabs_.count(); ++id) DrainSlab(id);
}

template <SourceTable Sources>
void CpuCache<Sources>::ReleaseIdleSlabs(size_t heap_bytes) {
  NoteHeap(heap_bytes);
  for (int id = 0; id < slabs_.count(); ++id) {
    SlabBudget& budget = budgets_.budget(id);
    if (budget.claimed() == 0) continue;
    if (budget.WasIdle(slabs_.slab(id))) {
      DrainSlab(id);
    } else {
      ReturnBatches(id, &SlabBudget::LetGoUnneeded);
      ReturnIdleObjects(id, SlabBudget::Search::kByTime);
    }
  }
}

}  // namespace tcmalloc

#endif  // TCMALLOC_CACHE_PER_CPU_CPU_CACHE_RETURN_INL_H_
