// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The per-CPU front end: the slow paths around the fast paths that are written in assembly.

#ifndef TCMALLOC_CACHE_PER_CPU_CPU_CACHE_H_
#define TCMALLOC_CACHE_PER_CPU_CPU_CACHE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "base/intrusive_list.h"
#include "cache/idle_bytes.h"
#include "cache/per_cpu/cpu_slabs.h"
#include "cache/per_cpu/free_mark.h"
#include "cache/per_cpu/sections.h"
#include "cache/per_cpu/slab_budget.h"
#include "cache/reuse_watch.h"
#include "cache/scatter.h"
#include "cache/thread_header.h"
#include "cache/thread_registry.h"
#include "central/free_objects.h"
#include "pages/free_link.h"
#include "system/random.h"
#include "system/rseq.h"
#include "transfer/batch_source.h"
#include "transfer/source_turns.h"

namespace tcmalloc {

// A thread that the caches of CPUs serve. It owns a header and no lists.
struct CpuThread : ThreadHeader, ListNode {
  // Returns the record that contains `header`, which must say that CPUs serve the thread.
  static CpuThread* Of(ThreadHeader* header) {
    TCMALLOC_DCHECK(header->is_served_by_cpus());
    return static_cast<CpuThread*>(header);
  }

  const EventClock& clock() const { return ThreadHeader::clock; }
  // The pointer by which the sections know this record.
  FastThread name() { return FastThread(this); }

  ReuseWatch watch;
};

template <SourceTable Sources>
struct CpuCacheContext {
  Sources* sources = nullptr;
  const LinkCodec* codec = nullptr;
  const PageMap* page_map = nullptr;  // for CheckFreeObjects alone
  ChainArrays* arrays = nullptr;
  uintptr_t classes = 0;  // as ThreadHeader::classes
  SlowPaths slow = {};
  const SamplePeriod* sample_period = &kNoSamples;
};

struct CpuCacheStats {
  size_t threads = 0;
  size_t slabs = 0;  // that were ever used
  size_t cached_bytes = 0;
  AllocationTotals allocated;
};

// Objects lie in slabs, one for each CPU or concurrency id. A miss takes an array out of the slab's
// depot, or fetches a chain or an array from the source, and puts its objects into the slab of the
// CPU that the thread runs on by then. An overflow takes the batches out that were freed first, as
// arrays, in which the objects keep their marks; the depot keeps them, or they go to the source.
// The slab of a thread can change at any moment, so nothing here relies on two operations meeting
// the same slab: objects that do not fit go back to the source, and missing ones are fetched from
// it.
//
// SlabBudget decides how much a slab and its depot may hold.
//
// The clock of a thread is never negative while the thread is open, because malloc's section reads
// it as unsigned. Only the sections advance it then. Each does so in one step with counting the
// bytes, so that a signal handler that runs the clock down aborts them. All other changes are made
// while the thread is closed, when a handler has no section to run.
//
// Arrays are not on the stack, of which threads may have little.
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
  [[nodiscard]] TCMALLOC_COLD bool Initialize(const Context& context, const RseqSupport& support,
                                              SectionFence fence, size_t bytes_per_cpu);
  // Acquire pairs with the release in Initialize.
  bool initialized() const { return initialized_.load(std::memory_order_acquire); }

  // Changes what a CPU may hold. Slabs that hold more shrink as they are used.
  void SetBytesPerCpu(size_t bytes) {
    if (initialized()) budgets_.SetBytesPerSlab(bytes);
  }

  // Returns a closed record for the running thread. Null if it has no rseq area or no memory can be
  // had.
  TCMALLOC_COLD CpuThread* Join();
  // Takes back a record.
  void Leave(CpuThread* thread) { threads_.Delete(thread); }

  // Lets the fast paths serve the thread, or leaves it to the slow paths alone.
  void Open(CpuThread* thread) const {
    TCMALLOC_DCHECK(!thread->ThreadHeader::clock.WouldExpire(0));
    // Pairs with TryAllocate in a signal handler, which must not find an open thread whose slow
    // path is still at the clock.
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
    // Pairs with TryAllocate in a signal handler: the slow path begins once the thread is closed.
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }

  // Closes every thread until it opens itself again.
  void CloseAll() {
    threads_.ForEach([](CpuThread& thread) { thread.CloseElsewhereByOther(); });
  }

  // The fast path of malloc for sizes that it does not look up. On null nothing has changed.
  void* TryAllocate(CpuThread* thread, uint8_t c, size_t size) {
    void* object = sections_->pop_counted(c, thread->name(), size);
    if (TCMALLOC_LIKELY(object != nullptr) || !thread->ThreadHeader::clock.GiveOut(kMostOnClock))
      return object;
    return sections_->pop_counted(c, thread->name(), size);
  }

  // Allocates in every case; the thread is closed. Null if no memory can be had.
  void* Allocate(CpuThread* thread, uint8_t c, size_t size);
  // Deallocates in every case; the thread is closed.
  void Deallocate(CpuThread* thread, void* object, uint8_t c);

  // Returns what all slabs hold.
  void Flush();
  // Returns the objects of one slab to the source. Returns their bytes; 0 if there is no such slab.
  size_t Release(int id) { return initialized() && HasSlab(id) ? DrainSlab(id) : 0; }
  // Drains the slabs that were idle since the last call, and returns of the others what they did
  // not need. The heap has so many bytes.
  TCMALLOC_ALWAYS_INLINE void ReleaseIdle(size_t heap_bytes) {
    if (initialized()) ReleaseIdleSlabs(heap_bytes);
  }

  // Returns the objects of classes of which a slab holds many, and needed none since the last call.
  // Called when the heap has grown to so many bytes.
  TCMALLOC_ALWAYS_INLINE void MakeWay(size_t heap_bytes) {
    if (initialized()) ReturnIdle(heap_bytes);
  }

  // Returns true if `object`, which is not null, begins with the mark of the free objects in slabs.
  bool LooksFree(void* object) const { return initialized() && mark_.IsOn(object); }
  // Returns true for each of those and, by chance, for others, also where there are no slabs.
  bool MayLookFree(void* object) const { return mark_.IsOn(object); }
  // Returns true if a slab holds `object`, which nobody allocates meanwhile. May miss one that
  // moves.
  bool Holds(const void* object, uint8_t c);
  TCMALLOC_ALWAYS_INLINE size_t CountObjects(uint8_t c) const {
    return initialized() ? slabs_.CountObjects(c) : 0;
  }
  TCMALLOC_COLD CpuCacheStats stats();

  // Forgets all threads but `mine`, which may be null. Called in the child of fork.
  void KeepOnly(CpuThread* mine) { threads_.KeepOnly(mine); }
  // Forgets the objects in all slabs, because the kernel may have copied one page of a slab before
  // and another after a section of a vanished thread. Called in the child of fork, alone.
  void AbandonObjects() {
    for (int id = 0; id < slabs_.count(); ++id) slabs_.slab(id).AbandonObjects();
  }

  // Checks the objects in all slabs, at most as many as *most, which it counts down. Does nothing
  // while several threads use them.
  TCMALLOC_ALWAYS_INLINE void CheckFreeObjects(size_t* most) {
    if (initialized()) CheckSlabs(most);
  }

  void CheckInvariants();

 private:
  static constexpr uint64_t kMarkSalt = 2;  // Heap::ChooseWindow takes the ones below
  static constexpr uint32_t kSourcesPerSweep = 16;
  // The most bytes that the section of malloc may find on the clock. docs/subsystems/per-cpu.md.
  static constexpr int64_t kMostOnClock = EventClock::kLongestInterval;
  // The most batches that go to the depot, or leave it, at once.
  static constexpr uint32_t kBatchesAtOnce = 8;

  // If it is kCaches, objects go to their spans, and so do those that the source keeps.
  enum class Past : bool { kNothing, kCaches };

  // Why a slab misses: it has no objects, or no room for them.
  enum class Missing : uint8_t { kObjects, kRoom };

  bool HasSlab(int id) const { return id >= 0 && id < slabs_.count(); }
  // The source of a class of which there are objects, or were.
  Source& source(uint8_t c) { return (*context_.sources)[c]; }
  // Returns the slab that the running thread would use now.
  int CurrentSlab(const CpuThread* thread) const {
    const RseqArea* area = thread->rseq_area;
    const uint32_t& id = ids_ == CpuIds::kMmCid ? area->mm_cid : area->cpu_id;
    const auto slab = static_cast<int>(__atomic_load_n(&id, __ATOMIC_RELAXED));
    return HasSlab(slab) ? slab : 0;
  }

  ObjectArray TakeKept(CpuThread* thread, uint8_t c);
  ObjectArray FetchMissing(CpuThread* thread, uint8_t c);
  ObjectArray FetchArray(uint8_t c, uint32_t wanted);
  ObjectArray ToArray(uint8_t c, Chain chain);
  void* Unpack(CpuThread* thread, uint8_t c, ObjectArray array);
  void ListSizes(CpuThread* thread, size_t size);
  void CountTick(CpuThread* thread);
  void* LeaveSharedLine(CpuThread* thread, void* object, uint8_t c);
  uint32_t Grow(CpuThread* thread, uint8_t c, uint32_t least, Missing missing);
  void Prepend(uint8_t c, void* const* objects, uint32_t count, Chain* chain);
  ObjectArray TakeOut(CpuThread* thread, uint8_t c, uint32_t most);
  void PutBack(CpuThread* thread, uint8_t c, ObjectArray array);
  void Overflow(CpuThread* thread, uint8_t c, void* object);
  void ReturnNewest(CpuThread* thread, uint8_t c, void* object);
  void KeepOlder(CpuThread* thread, uint8_t c, uint32_t count);
  bool Keep(int id, uint8_t c, ObjectArray array, Scatter scatter);
  void KeepOrReturn(CpuThread* thread, uint8_t c, ObjectArray array);
  void CheckPlaces(uint8_t c, uintptr_t addresses, const Chain& chain);
  static Scatter ScatterOf(uint8_t c, void* const* objects, uint32_t count);
  static size_t MostKept(uint8_t c, bool scattered);
  static size_t MostKept(uint8_t c, void* const* objects, uint32_t count, Past past);
  bool GoesHome(int id, uint8_t c, Scatter scatter);
  static bool ArePlaced(uint8_t c, ObjectArray array);
  void ReturnArray(uint8_t c, ObjectArray array, Past past = Past::kNothing);
  void Return(uint8_t c, void* const* objects, uint32_t count, Past past = Past::kNothing);
  void ReturnExcess(CpuThread* thread, int id, const ClassSet& excess);
  size_t ReturnLeaving(int id, uint8_t c, Past past = Past::kNothing);
  size_t ReturnBatches(int id, void (SlabBudget::*let_go)(CpuSlab&, ClassSet*),
                       Past past = Past::kNothing);
  void Sweep(CpuThread* thread, int id);
  TCMALLOC_COLD size_t DrainSlab(int id);
  TCMALLOC_COLD void NoteHeap(size_t bytes);
  TCMALLOC_COLD void ReleaseIdleSlabs(size_t heap_bytes);
  TCMALLOC_COLD void ReturnIdle(size_t heap_bytes);
  TCMALLOC_COLD void ReturnIdleObjects(int id, SlabBudget::Search search);
  // Returns false if an object, of at most *most, looks as if the program had written to it.
  bool LooksSound(CpuSlab& slab, size_t* most);
  TCMALLOC_COLD void CheckSlabs(size_t* most);
  TCMALLOC_COLD void CheckSlab(CpuSlab& slab, size_t* most);
  TCMALLOC_COLD bool DepotHolds(CpuSlab& slab, const void* object, uint8_t c);
  void CheckDepot(CpuSlab& slab, size_t* most) TCMALLOC_REQUIRES(slab.lock());

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

}  // namespace tcmalloc

#include "cache/per_cpu/cpu_cache_inl.h"
#include "cache/per_cpu/cpu_cache_return_inl.h"

#endif  // TCMALLOC_CACHE_PER_CPU_CPU_CACHE_H_
