// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The per-CPU front end: what its fast paths in assembly do not serve.

#ifndef TCMALLOC_CACHE_PER_CPU_CPU_CACHE_H_
#define TCMALLOC_CACHE_PER_CPU_CPU_CACHE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "base/intrusive_list.h"
#include "cache/per_cpu/cpu_slabs.h"
#include "cache/per_cpu/free_mark.h"
#include "cache/per_cpu/sections.h"
#include "cache/per_cpu/slab_budget.h"
#include "cache/reuse_watch.h"
#include "cache/scatter.h"
#include "cache/thread_header.h"
#include "cache/thread_registry.h"
#include "pages/free_link.h"
#include "system/random.h"
#include "system/rseq.h"
#include "transfer/batch_source.h"
#include "transfer/source_turns.h"

namespace tcmalloc {

// A thread that the caches of CPUs serve: it owns a header and no lists.
struct CpuThread : ThreadHeader, ListNode {
  // The record with `header`, which says that CPUs serve the thread.
  static CpuThread* Of(ThreadHeader* header) {
    TCMALLOC_DCHECK(header->is_served_by_cpus());
    return static_cast<CpuThread*>(header);
  }

  const EventClock& clock() const { return ThreadHeader::clock; }
  // As the sections know it.
  FastThread name() { return FastThread(this); }

  ReuseWatch watch;
};

template <SourceTable Sources>
struct CpuCacheContext {
  Sources* sources = nullptr;
  const LinkCodec* codec = nullptr;
  uintptr_t classes = 0;  // as ThreadHeader::classes
  SlowPaths slow = {};
};

struct CpuCacheStats {
  size_t threads = 0;
  size_t slabs = 0;  // that were ever used
  size_t cached_bytes = 0;
  AllocationTotals allocated;
};

// Objects lie in slabs, one for each CPU or concurrency id. A miss fetches a chain from the source
// and puts its objects into the slab of the CPU that the thread runs on by then; an overflow takes
// a batch out and returns it as a chain. Which slab an operation finds can change at any moment, so
// that nothing here relies on two operations meeting the same one: what does not fit goes back to
// the source, and what is not there is fetched from it.
//
// How much a slab may hold of each class is SlabBudget's affair.
//
// The clock of a thread is never negative while it is open: malloc's section takes it for unsigned.
// The sections alone advance it then, each in one step with what it counts, so that a signal
// handler that runs it down aborts them. The other changes are made while the thread is closed,
// where a handler has no section to run.
//
// Batches move between slab and stack in pieces, each in a function of its own: whatever takes the
// objects in then may need stack itself, and threads may have little.
//
// Thread safe.
template <SourceTable Sources>
class CpuCache {
 public:
  using Source = typename Sources::Source;
  using Context = CpuCacheContext<Sources>;

  constexpr explicit CpuCache(MetadataArena& arena) : threads_(arena) {}
  CpuCache(const CpuCache&) = delete;
  CpuCache& operator=(const CpuCache&) = delete;

  // Makes the slabs; requires support.state == kUsable. False if no memory can be had. Called once,
  // before anything else.
  [[nodiscard]] bool Initialize(const Context& context, const RseqSupport& support,
                                SectionFence fence, size_t bytes_per_cpu);
  bool initialized() const { return initialized_.load(std::memory_order_acquire); }

  // Changes what a CPU may hold. Slabs that hold more shrink as they are used.
  void SetBytesPerCpu(size_t bytes) {
    if (initialized()) budgets_.SetBytesPerSlab(bytes);
  }

  // The record of the running thread, closed; null if it has no rseq area or no memory can be had.
  CpuThread* Join();
  // Takes back a record.
  void Leave(CpuThread* thread) { threads_.Delete(thread); }

  // Lets the fast paths serve the thread, or leaves it to the slow paths alone.
  void Open(CpuThread* thread) const {
    TCMALLOC_DCHECK(!thread->ThreadHeader::clock.WouldExpire(0));
    std::atomic_signal_fence(std::memory_order_seq_cst);
    // The address window may have grown.
    thread->link_limit = context_.codec->limit();
    thread->allocate = sections_->allocate;
    thread->malloc = sections_->malloc;
    thread->deallocate = sections_->deallocate;
  }
  static void Close(CpuThread* thread) {
    TCMALLOC_DCHECK(!thread->ThreadHeader::clock.WouldExpire(0));
    thread->allocate = AllocateClosed;
    thread->malloc = MallocClosed;
    thread->deallocate = DeallocateClosed;
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }

  // Closes every thread until it opens itself again.
  void CloseAll() {
    threads_.ForEach([](CpuThread& thread) { thread.CloseElsewhereByOther(); });
  }

  // The fast path of malloc for sizes that it does not look up: null leaves everything as it was.
  void* TryAllocate(CpuThread* thread, uint8_t c, size_t size) {
    return sections_->pop_counted(c, thread->name(), size);
  }

  // Any case of allocation, by a closed thread. Null if no memory can be had.
  void* Allocate(CpuThread* thread, uint8_t c, size_t size);
  // Any case of deallocation, by a closed thread.
  void Deallocate(CpuThread* thread, void* object, uint8_t c);

  // Returns what all slabs hold.
  void Flush();
  // Returns what one slab holds, and how many bytes that were: 0 where there is no such slab.
  size_t Release(int id) { return initialized() && HasSlab(id) ? DrainSlab(id) : 0; }
  // Returns what those slabs hold that were idle since the last call.
  void ReleaseIdle();

  // Whether `object`, which is not null, begins as those in slabs do.
  bool LooksFree(void* object) const { return initialized() && mark_.IsOn(object); }
  // Whether a slab holds `object`, which nobody allocates meanwhile. May miss one that moves. The
  // fence makes sure that a slot is not older than the index that says it counts.
  bool Holds(const void* object, uint8_t c) const {
    return initialized() && slabs_.Holds(object, c) && fence_(-1) && slabs_.Holds(object, c);
  }
  size_t CountObjects(uint8_t c) const { return initialized() ? slabs_.CountObjects(c) : 0; }
  CpuCacheStats stats();

  // In the child of fork: forgets all threads but `mine`, which may be null.
  void KeepOnly(CpuThread* mine) { threads_.KeepOnly(mine); }
  // In the child of fork, alone: forgets the objects in all slabs. The kernel may have copied one
  // page of a slab before and another after a section of a vanished thread.
  void AbandonObjects() {
    for (int id = 0; id < slabs_.count(); ++id) slabs_.slab(id).AbandonObjects();
  }

  void CheckInvariants();

 private:
  static constexpr uint32_t kPieceObjects = 64;
  static constexpr uint64_t kMarkSalt = 2;  // Heap::ChooseWindow takes the ones below
  static constexpr uint32_t kSourcesPerSweep = 16;

  bool HasSlab(int id) const { return id >= 0 && id < slabs_.count(); }
  // Of a class of which there are objects, or were.
  Source& source(uint8_t c) { return (*context_.sources)[c]; }
  // The slab that the running thread would use now.
  int CurrentSlab(const CpuThread* thread) const {
    const RseqArea* area = thread->rseq_area;
    const uint32_t& id = ids_ == CpuIds::kMmCid ? area->mm_cid : area->cpu_id;
    const auto slab = static_cast<int>(__atomic_load_n(&id, __ATOMIC_RELAXED));
    return HasSlab(slab) ? slab : 0;
  }

  void* Unpack(CpuThread* thread, uint8_t c, Chain chain);
  void* LeaveSharedLine(CpuThread* thread, void* object, uint8_t c);
  void NoteOverflow(CpuThread* thread, uint8_t c);
  uint32_t Grow(CpuThread* thread, uint8_t c, uint32_t least);
  void Put(CpuThread* thread, uint8_t c, Chain chain);
  bool PutPiece(CpuThread* thread, uint8_t c, Chain* chain);
  Chain Mark(Chain chain, void** out, uint32_t* count);
  void Prepend(uint8_t c, void* const* objects, uint32_t count, Chain* chain);
  uint32_t TakePiece(CpuThread* thread, uint8_t c, uint32_t most, Chain* chain);
  Chain TakeOut(CpuThread* thread, uint8_t c, uint32_t most);
  void CheckPlaces(uint8_t c, uintptr_t addresses, const Chain& chain);
  void ReturnChain(uint8_t c, Chain chain);
  void Return(uint8_t c, void* const* objects, uint32_t count);
  void ReturnExcess(CpuThread* thread, int id, const SlabExcess& excess);
  void Sweep(CpuThread* thread, int id);
  size_t DrainSlab(int id);

  Context context_;
  FreeMark mark_;
  CpuSlabs slabs_;
  SlabBudgets budgets_;
  const Sections* sections_ = nullptr;
  SectionFence fence_ = nullptr;
  CpuIds ids_ = CpuIds::kCpuId;
  std::atomic<bool> initialized_{false};
  SourceTurns turns_;
  ThreadRegistry<CpuThread> threads_;
};

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
  thread->ThreadHeader::clock.Initialize(reinterpret_cast<uintptr_t>(thread));
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
  const bool expired = thread->ThreadHeader::clock.AdvanceSlow(size);
  return hit && expired ? LeaveSharedLine(thread, object, c) : object;
}

// The first object of a chain, of which the others go into the slab; null if there is none.
template <SourceTable Sources>
void* CpuCache<Sources>::Unpack(CpuThread* thread, uint8_t c, Chain chain) {
  if (chain.empty()) return nullptr;
  void* object = ObjectAt(chain.head);
  const Chain rest{context_.codec->Next(object), chain.count - 1};
  LinkWord(object) = 0;
  if (!rest.empty()) Put(thread, c, rest);
  return object;
}

// What to allocate in place of `object`: one in a line of the thread's own if the thread uses this
// one over and over. Other threads may use others of its line.
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
  NoteOverflow(thread, c);
  Grow(thread, c, 1);
  if (sections_->push(c, thread->name(), object)) return;
  Chain chain = TakeOut(thread, c, source(c).batch() - 1);
  Prepend(c, &object, 1, &chain);
  ReturnChain(c, chain);
}

// Lets the slab keep less of a class whose objects are scattered.
template <SourceTable Sources>
void CpuCache<Sources>::NoteOverflow(CpuThread* thread, uint8_t c) {
  const int id = CurrentSlab(thread);
  CpuSlab& slab = slabs_.slab(id);
  if (slab.capacity(c) < source(c).batch()) return;
  void* newest[kScatterProbes];
  const uint32_t count = slab.CopyNewest(c, newest, kScatterProbes);
  const bool scattered = AreScattered(kSizeClasses[c].size, newest, count);
  SlabExcess excess;
  {
    SpinLockHolder holder(slab.lock());
    budgets_.budget(id).NoteOverflow(slab, c, source(c).batch(), scattered, &excess);
  }
  ReturnExcess(thread, id, excess);
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

// Puts the objects of a chain into the slab, and what finds no room there back into the source.
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

// Has the central list, which knows where objects begin, end the process if the bitwise or of the
// addresses of the objects in `chain` shows that no object of class `c` can begin at one of them.
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
    context_.codec->Link(object, chain->head);
    *chain = {ReferenceTo(object), chain->count + 1};
  }
  CheckPlaces(c, addresses, *chain);
}

// Moves up to kPieceObjects objects, and no more than `most`, from the slab to the front of the
// chain: those that were freed last. Returns how many.
template <SourceTable Sources>
TCMALLOC_NOINLINE uint32_t CpuCache<Sources>::TakePiece(CpuThread* thread, uint8_t c, uint32_t most,
                                                        Chain* chain) {
  void* piece[kPieceObjects];
  const uint32_t taken =
      sections_->pop_batch(c, thread->name(), piece, std::min(most, kPieceObjects));
  Prepend(c, piece, taken, chain);
  return taken;
}

// Up to `most` objects out of the slab.
template <SourceTable Sources>
Chain CpuCache<Sources>::TakeOut(CpuThread* thread, uint8_t c, uint32_t most) {
  Chain chain{context_.codec->end, 0};
  while (chain.count < most && TakePiece(thread, c, most - chain.count, &chain) > 0) {
  }
  return chain;
}

// Returns a chain to the source, past all caches where its objects are scattered.
template <SourceTable Sources>
void CpuCache<Sources>::ReturnChain(uint8_t c, Chain chain) {
  const auto next = [this](void* object) { return context_.codec->Next(object); };
  const bool scattered = IsScattered(kSizeClasses[c].size, chain, next);
  scattered ? source(c).InsertPast(chain) : source(c).Insert(chain);
}

// Returns objects to the source, in chains of at most one batch.
template <SourceTable Sources>
void CpuCache<Sources>::Return(uint8_t c, void* const* objects, uint32_t count) {
  while (count > 0) {
    Chain chain{context_.codec->end, 0};
    const uint32_t taken = std::min(count, source(c).batch());
    count -= taken;
    Prepend(c, objects + count, taken, &chain);
    ReturnChain(c, chain);
  }
}

// Takes out what classes of slab `id`, the thread's own most likely, hold beyond a capacity that
// was taken from them.
template <SourceTable Sources>
void CpuCache<Sources>::ReturnExcess(CpuThread* thread, int id, const SlabExcess& excess) {
  excess.ForEach([this, thread, id](uint8_t c) {
    for (uint32_t left = SlabExcess::Of(slabs_.slab(id), c); left > 0;) {
      const Chain chain = TakeOut(thread, c, std::min(left, source(c).batch()));
      if (chain.empty()) return;
      ReturnChain(c, chain);
      left -= chain.count;
    }
  });
}

// Shrinks what slab `id`, the thread's own most likely, did not use since the last time, and what
// some of the sources did not need. Looks at one other slab: if its CPU was idle, it is drained and
// gives up budget.
template <SourceTable Sources>
void CpuCache<Sources>::Sweep(CpuThread* thread, int id) {
  SlabExcess excess;
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

// Returns how many bytes the slab held.
template <SourceTable Sources>
size_t CpuCache<Sources>::DrainSlab(int id) {
  CpuSlab& slab = slabs_.slab(id);
  SpinLockHolder holder(slab.lock());
  if (slab.state() == SlabState::kUnused) return 0;
  if (slab.state() == SlabState::kOpen && !slab.Close()) return 0;
  size_t bytes = 0;
  slab.Drain([&](uint8_t c, void* const* objects, uint32_t count) {
    bytes += size_t{count} * kSizeClasses[c].size;
    Return(c, objects, count);
  });
  budgets_.budget(id).Reset(slab);
  // Where the fence fails the slab stays closed, and the next drain tries again.
  static_cast<void>(slab.Open());
  return bytes;
}

template <SourceTable Sources>
void CpuCache<Sources>::Flush() {
  if (!initialized()) return;
  for (int id = 0; id < slabs_.count(); ++id) DrainSlab(id);
}

template <SourceTable Sources>
void CpuCache<Sources>::ReleaseIdle() {
  for (int id = 0; initialized() && id < slabs_.count(); ++id) {
    SlabBudget& budget = budgets_.budget(id);
    if (budget.claimed() != 0 && budget.WasIdle(slabs_.slab(id))) DrainSlab(id);
  }
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

#endif  // TCMALLOC_CACHE_PER_CPU_CPU_CACHE_H_
