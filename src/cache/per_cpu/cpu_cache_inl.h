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
    object = Unpack(thread, c, source.Fetch(Grow(thread, c, 1)));
  }
  if (object == nullptr) return nullptr;
  const bool expired = thread->CountSlow(size, *context_.sample_period);
  return hit && expired ? LeaveSharedLine(thread, object, c) : object;
}

// Returns the first object of a chain and puts the others into the slab. Null for an empty chain.
template <SourceTable Sources>
void* CpuCache<Sources>::Unpack(CpuThread* thread, uint8_t c, Chain chain) {
  if (chain.empty()) return nullptr;
  void* object = ObjectAt(chain.head);
  const Chain rest{context_.codec->Next(object), chain.count - 1};
  LinkWord(object) = 0;
  if (!rest.empty()) Put(thread, c, rest);
  return object;
}

// Returns the object to allocate in place of `object`. If the thread allocates `object` over and
// over, that is one in a cache line of its own, because other threads may use objects in its
// present line.
template <SourceTable Sources>
void* CpuCache<Sources>::LeaveSharedLine(CpuThread* thread, void* object, uint8_t c) {
  ReuseWatch& watch = thread->watch;
  if (kSizeClasses[c].size >= ReuseWatch::kLineBytes || !watch.IsStuckAt(object)) return object;
  void* own = Unpack(thread, c, source(c).FetchLine());
  if (own == nullptr) return object;
  watch.MoveTo(own);
  Return(c, &object, 1);
  return own;
}

template <SourceTable Sources>
void CpuCache<Sources>::Deallocate(CpuThread* thread, void* object, uint8_t c) {
  mark_.Put(object);
  if (sections_->push(c, thread->name(), object)) return;
  Grow(thread, c, 1);
  if (sections_->push(c, thread->name(), object)) return;
  Chain chain = TakeOut(thread, c, source(c).batch() - 1);
  Prepend(c, &object, 1, &chain);
  ReturnChain(c, chain);
}

// Notes a miss of class `c` and makes room for more of its objects, at least `least` if the budget
// allows. Returns how many to fetch.
template <SourceTable Sources>
uint32_t CpuCache<Sources>::Grow(CpuThread* thread, uint8_t c, uint32_t least) {
  const int id = CurrentSlab(thread);
  CpuSlab& slab = slabs_.slab(id);
  const uint32_t batch = source(c).batch();
  SlabExcess excess;
  uint32_t capacity = 1;
  bool sweep = false;
  {
    SpinLockHolder holder(slab.lock());
    if (slab.state() == SlabState::kUnused && !slab.Initialize()) return 1;
    if (slab.state() == SlabState::kClosed && !slab.Open()) return 1;
    SlabBudget& budget = budgets_.budget(id);
    capacity = budget.Grow(slab, c, batch, least, &excess);
    sweep = budget.SweepIsDue();
  }
  ReturnExcess(thread, id, excess);
  if (sweep) Sweep(thread, id);
  return capacity < batch ? std::max(capacity, uint32_t{1}) : batch;
}

// Moves up to kPieceObjects objects from the front of `chain` to `out`, marked. Returns what
// remains.
template <SourceTable Sources>
Chain CpuCache<Sources>::Mark(Chain chain, void** out, uint32_t* count) {
  for (*count = 0; *count < kPieceObjects && !chain.empty(); ++*count) {
    void* object = ObjectAt(chain.head);
    chain = {context_.codec->Next(object), chain.count - 1};
    mark_.Put(object);
    out[*count] = object;
  }
  return chain;
}

// Puts the objects of a chain into the slab, and those that find no room there back into the
// source.
template <SourceTable Sources>
void CpuCache<Sources>::Put(CpuThread* thread, uint8_t c, Chain chain) {
  if (slabs_.slab(CurrentSlab(thread)).capacity(c) < chain.count) Grow(thread, c, chain.count);
  while (!chain.empty() && PutPiece(thread, c, &chain)) {
  }
  if (!chain.empty()) source(c).Insert(chain);
}

// Puts a piece from the front of the chain into the slab. False if not all of it found room.
template <SourceTable Sources>
TCMALLOC_NOINLINE bool CpuCache<Sources>::PutPiece(CpuThread* thread, uint8_t c, Chain* chain) {
  void* piece[kPieceObjects];
  uint32_t count = 0;
  *chain = Mark(*chain, piece, &count);
  const uint32_t put = sections_->push_batch(c, thread->name(), piece, count);
  Prepend(c, piece + put, count - put, chain);
  return put == count;
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
void CpuCache<Sources>::CheckInvariants() {
  for (int id = 0; initialized() && id < slabs_.count(); ++id) {
    SpinLockHolder holder(slabs_.slab(id).lock());
    slabs_.slab(id).CheckInvariants();
    budgets_.budget(id).CheckInvariants(slabs_.slab(id));
  }
}

}  // namespace tcmalloc

#endif  // TCMALLOC_CACHE_PER_CPU_CPU_CACHE_INL_H_
