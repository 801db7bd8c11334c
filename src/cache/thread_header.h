// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The header of a thread with any front end. Malloc and free read it first.

#ifndef TCMALLOC_CACHE_THREAD_HEADER_H_
#define TCMALLOC_CACHE_THREAD_HEADER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/attributes.h"
#include "cache/event_clock.h"
#include "cache/sample_countdown.h"
#include "pages/free_link.h"
#include "pages/page_types.h"
#include "size_class/size_classes.h"

namespace tcmalloc {

struct FastLists;
struct GateSeat;
struct RseqArea;
struct SectionDescriptor;
struct ThreadHeader;

// Names the header of a thread to the fast paths. The name is the address at which the lists before
// the header begin or, if the thread has none, would begin. Malloc and free index lists from there,
// which takes an instruction less than from the header. It is one pointer, passed in a register.
class FastThread {
 public:
  constexpr FastThread() = default;  // names no thread
  // Names a thread with lists.
  constexpr FastThread(FastLists* lists) : base_(lists) {}
  inline explicit FastThread(ThreadHeader* header);

  TCMALLOC_ALWAYS_INLINE ThreadHeader* header() const;
  TCMALLOC_ALWAYS_INLINE ThreadHeader* operator->() const { return header(); }
  // Requires that the thread has lists. A thread has lists if its header admits a size or an
  // address.
  FastLists* lists() const { return static_cast<FastLists*>(base_); }

 private:
  void* base_ = nullptr;
};

// The slow paths to which an entry point goes when the fast paths cannot serve it.
using AllocateSlowPath = void* (*)(size_t size);
using DeallocateSlowPath = void (*)(void* object);

// The fast paths for sizes and addresses that the fast paths of lists refuse: of threads without
// lists, and of sizes that are not in kClassBySize.
using AllocateElsewhere = void* (*)(size_t size, FastThread thread, AllocateSlowPath slow);
using MallocElsewhere = void* (*)(size_t size, FastThread thread);
// `size` is what the program says, where the entry point is one of those that take it; otherwise it
// has no value.
using DeallocateElsewhere = void (*)(void* object, FastThread thread, ObjectReference reference,
                                     size_t size);

// The slow paths that need not be named with each call: that of malloc, which has more calls than
// all other ways to allocate, and that of everything that frees.
struct SlowPaths {
  AllocateSlowPath malloc = nullptr;
  DeallocateSlowPath free = nullptr;
};

// The fast paths of a thread that only slow paths may serve.
inline void* AllocateClosed(size_t size, FastThread, AllocateSlowPath slow) { return slow(size); }
inline void* MallocClosed(size_t size, FastThread thread);
inline void DeallocateClosed(void* object, FastThread thread, ObjectReference, size_t);

// Returns `function`, read after `argument` is ready. Gcc then jumps through memory, which takes an
// instruction less than loading the address first.
template <typename Argument, typename Function>
TCMALLOC_ALWAYS_INLINE Function LoadAfter(Argument& argument, Function& function) {
  asm volatile("" : "+r"(argument), "+m"(function));
  return function;
}

// The object to which the running thread's pointer points; each front end owns one for each thread.
// It has one cache line that every operation reads, one for code and data elsewhere, and then
// fields that are rarely needed. The assembly of cache/per_cpu relies on the offsets.
struct alignas(64) ThreadHeader {
  // The lists serve sizes below `size_limit` and references below `address_limit`; a thread without
  // lists, or with closed ones, has limits that admit nothing.
  size_t size_limit = 0;
  int64_t address_limit = INT64_MIN;
  // LinkCodec::limit at the time when the thread was opened. The value is stored twice, because a
  // comparison with memory is one instruction less than a load and two comparisons.
  int64_t link_limit = INT64_MIN;
  uint64_t codec_inverse = 1;
  union {
    uint64_t codec_key = 1;                 // of a thread with lists
    const SectionDescriptor* free_section;  // of one that slabs serve: see FreeMark
  };
  uintptr_t classes = 0;  // of the page map's window, moved so that references index it
  EventClock clock;

  AllocateElsewhere allocate = AllocateClosed;
  DeallocateElsewhere deallocate = DeallocateClosed;
  RseqArea* rseq_area = nullptr;  // null of a thread with lists
  char* slabs = nullptr;
  MallocElsewhere malloc = MallocClosed;

  uint32_t aborts = 0;  // of sections of this thread
  SlowPaths slow;

  // The record of the front end that the thread had before and may have again. A fast path that a
  // signal interrupted may still use it.
  ThreadHeader* other = nullptr;

  // The seat in which the thread says that it is inside a slow path. Both records of a thread share
  // it.
  GateSeat* seat = nullptr;
  // The next record of a thread that has ended, if nobody could release it at once.
  ThreadHeader* next_ended = nullptr;

  SampleCountdown samples;
  // Not 0 if the allocation under way is a sample.
  DrawnPeriod sample_due = 0;
  // The kernel's number of the thread, or 0 if nobody has asked for it yet.
  uint32_t kernel_number = 0;

  // Threads whose headers lie where others have lain draw other samples than those. The clock may
  // tick as theirs did, and then counts of instructions are always the same.
  void InitializeClocks(const SamplePeriod& period) {
    kernel_number = 0;
    clock.Initialize(reinterpret_cast<uintptr_t>(this));
    samples.Initialize(NewThreadSeed(), period);
    clock.ExpireWithin(samples.distance());
  }

  // Lets the thread draw other samples from here on than its copy in the parent does. Called by the
  // owner in the child of a fork.
  void RedrawSamples() {
    samples.Redraw(NewThreadSeed(), clock.passed());
    clock.ExpireWithin(samples.distance() - clock.passed());
  }

  // Counts an allocation of `size` bytes; see EventClock::AdvanceSlow. Returns true if the clock
  // expired.
  TCMALLOC_ALWAYS_INLINE bool CountSlow(size_t size, const SamplePeriod& period) {
    const uint64_t passed = clock.AdvanceSlow(size, EventClock::kLongestMean);
    if (passed == 0) return false;
    if (TCMALLOC_UNLIKELY(samples.IsOn(period))) CountSamples(passed, size, period);
    return true;
  }

  TCMALLOC_NOINLINE void CountSamples(uint64_t passed, size_t size, const SamplePeriod& period) {
    if (const DrawnPeriod drawn = samples.Pass(passed, size, period)) sample_due = drawn;
    clock.ExpireWithin(samples.distance());
  }

  // Returns the period, once, if the last allocation is a sample, else 0.
  DrawnPeriod TakeSample() {
    if (TCMALLOC_LIKELY(sample_due == 0)) return 0;
    return std::exchange(sample_due, 0);
  }

  // True for the header of a CpuThread, false for that of FastLists.
  bool is_served_by_cpus() const { return rseq_area != nullptr; }
  // True if the caches of CPUs serve the thread at this moment.
  bool is_open_to_cpus() const { return is_served_by_cpus() && allocate != AllocateClosed; }
  // True if the fast paths of lists refuse.
  bool closed() const { return size_limit == 0; }

  // Make the fast paths refuse, called by another thread than the header's owner: the first those
  // of lists, the second those to which `allocate`, `malloc` and `deallocate` lead. The owner may
  // open the header again at any moment, and completes an operation that is under way. The writes
  // are volatile, so that each word is written at once. The sanitizer would report the fast paths'
  // plain reads as races.
  __attribute__((no_sanitize("thread"))) void CloseListsByOther() {
    const_cast<volatile size_t&>(size_limit) = 0;
    const_cast<volatile int64_t&>(address_limit) = INT64_MIN;
  }
  __attribute__((no_sanitize("thread"))) void CloseElsewhereByOther() {
    const_cast<AllocateElsewhere volatile&>(allocate) = AllocateClosed;
    const_cast<MallocElsewhere volatile&>(malloc) = MallocClosed;
    const_cast<DeallocateElsewhere volatile&>(deallocate) = DeallocateClosed;
  }
};

// The lists of a thread, before its header, with the fast paths of malloc and free; ThreadCache,
// the owner, has everything else. The heads come first because gcc spends an instruction more on
// each access to an array that does not begin where its object does.
struct FastLists {
  ObjectReference heads[kSizeClassCount] = {};
  int16_t room[kSizeClassCount] = {};
  ThreadHeader header;

  constexpr FastLists() = default;
  // Makes lists that are closed for good but through which malloc and free find their slow paths.
  constexpr explicit FastLists(const SlowPaths& slow) { header.slow = slow; }
  // Makes closed lists of which only frees, with a size, find their way.
  constexpr explicit FastLists(DeallocateElsewhere deallocate) { header.deallocate = deallocate; }

  // The fast path of malloc. Returns an object of class `c` for `size` bytes, or null; then the
  // caller calls ThreadCache::UndoTryAllocate. An empty list and an overwritten next object both
  // show as a link that is not valid.
  TCMALLOC_ALWAYS_INLINE void* TryAllocate(uint8_t c, size_t size) {
    ++room[c];
    // Pairs with IsConsistent in a signal handler, which tells by the room that this fast path is
    // using the list.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    // Reads the link by its reference, not by the address, which would take one more instruction to
    // compute. Successive allocations from one list wait for each other through these reads.
    const ObjectReference reference = heads[c];
    const ObjectReference next_object = LinkWord(ObjectAt(reference)) * header.codec_inverse;
    void* object = OpaqueToOptimizer(ObjectAt(OpaqueToOptimizer(reference)));
    if (TCMALLOC_UNLIKELY(!IsBelow(next_object, header.link_limit))) return nullptr;
    if (TCMALLOC_UNLIKELY(header.clock.Advance(size))) return nullptr;
    heads[c] = next_object;
    // The next malloc reads the link there, and its caller writes to the object, which may have
    // been free for long.
    __builtin_prefetch(ObjectAt(next_object), 1);
    // Pairs with TryAllocate in a signal handler: the link is cleared once the object is off the
    // list.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    // An object in use must not look like a free one.
    LinkWord(object) = 0;
    return object;
  }

  // Takes an object of class `c` as TryAllocate does, but counts no bytes. Where it returns null,
  // the caller calls ThreadCache::UndoTryAllocate.
  TCMALLOC_ALWAYS_INLINE void* TryTake(uint8_t c) {
    ++room[c];
    // Pairs with IsConsistent in a signal handler, as in TryAllocate.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    void* object = ObjectAt(heads[c]);
    const ObjectReference next_object = LinkWord(object) * header.codec_inverse;
    if (TCMALLOC_UNLIKELY(!IsBelow(next_object, header.link_limit))) return nullptr;
    heads[c] = next_object;
    __builtin_prefetch(ObjectAt(next_object), 1);
    // Pairs with IsConsistent in a signal handler, as in TryAllocate.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    LinkWord(object) = 0;
    return object;
  }

  // The fast path of free. False leaves the object in use; the caller then calls
  // ThreadCache::UndoTryFree, unless the address is not below the limit.
  TCMALLOC_ALWAYS_INLINE bool TryFree(void* object) {
    const ObjectReference reference = ReferenceTo(object);
    return TCMALLOC_LIKELY(IsBelow(reference, header.address_limit)) &&
           TryFreeBelowLimit(object, reference);
  }
  // The rest of it. The limit is read once, because another thread may close the lists meanwhile,
  // and then nobody could tell whether there is something to undo.
  TCMALLOC_ALWAYS_INLINE bool TryFreeBelowLimit(void* object, ObjectReference reference) {
    const uint8_t c = ClassInWindow(reference);
    if (TCMALLOC_UNLIKELY(--room[c] < 0)) return false;
    // Pairs with IsConsistent in a signal handler, as in TryAllocate.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (TCMALLOC_UNLIKELY(IsBelow(LinkWord(object) * header.codec_inverse, header.link_limit))) {
      return false;
    }
    LinkWord(object) = heads[c] * header.codec_key;
    // Pairs with TryAllocate in a signal handler: the object has its link once it is on the list.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    heads[c] = reference;
    return true;
  }

  TCMALLOC_ALWAYS_INLINE uint8_t ClassInWindow(ObjectReference reference) const {
    return *reinterpret_cast<const uint8_t*>(header.classes + (reference >> (kPageShift - 3)));
  }
};
static_assert(offsetof(FastLists, header) == 1024, "the assembly of cache/per_cpu counts on it");

inline FastThread::FastThread(ThreadHeader* header)
    : base_(reinterpret_cast<char*>(header) - offsetof(FastLists, header)) {}

TCMALLOC_ALWAYS_INLINE ThreadHeader* FastThread::header() const {
  return reinterpret_cast<ThreadHeader*>(static_cast<char*>(base_) + offsetof(FastLists, header));
}

inline void* MallocClosed(size_t size, FastThread thread) { return thread->slow.malloc(size); }
inline void DeallocateClosed(void* object, FastThread thread, ObjectReference, size_t) {
  thread->slow.free(object);
}

// Allocates for malloc a size that the thread's size_limit does not admit.
TCMALLOC_ALWAYS_INLINE void* MallocBy(FastThread thread, size_t size) {
  return LoadAfter(size, thread->malloc)(size, thread);
}
// Allocates such a size for other entry points.
TCMALLOC_ALWAYS_INLINE void* AllocateBy(FastThread thread, size_t size, AllocateSlowPath slow) {
  return LoadAfter(slow, thread->allocate)(size, thread, slow);
}

// Performs all of free, except the work of the slow path in the header and of `after_try`, which is
// called when a TryFree returned false. Only `after_try` has something to undo. The limits cannot
// tell the two apart, because other threads may close the lists at any moment. `size` is as in
// DeallocateElsewhere.
TCMALLOC_ALWAYS_INLINE void DeallocateBy(FastThread thread, void* object,
                                         void (*after_try)(void* object, FastLists* lists),
                                         size_t size) {
  const ObjectReference reference = ReferenceTo(object);
  if (TCMALLOC_UNLIKELY(!IsBelow(reference, thread->address_limit))) {
    return LoadAfter(object, thread->deallocate)(object, thread, reference, size);
  }
  if (TCMALLOC_UNLIKELY(!thread.lists()->TryFreeBelowLimit(object, reference))) {
    after_try(object, thread.lists());
  }
}

// Works as DeallocateBy for an entry point that got `size` as its second argument. Keeps it in its
// register up to the branch, which spares the fast path of lists an instruction. Passes on
// `size + tag`, and to `after_try` the size.
TCMALLOC_ALWAYS_INLINE void DeallocateSizedBy(FastThread thread, void* object,
                                              void (*after_try)(void* object, FastLists* lists,
                                                                size_t size),
                                              size_t size, size_t tag) {
  const ObjectReference reference = ReferenceTo(object);
  if (TCMALLOC_UNLIKELY(!IsBelow(reference, thread->address_limit))) {
    FastThread same = thread;
    asm("" : "+r"(same), "+r"(size));
    return LoadAfter(object, same->deallocate)(object, same, reference, size + tag);
  }
  if (TCMALLOC_UNLIKELY(!thread.lists()->TryFreeBelowLimit(object, reference))) {
    after_try(object, thread.lists(), size);
  }
}

// Returns a size without a value, which takes no instruction.
TCMALLOC_ALWAYS_INLINE size_t NoSize() {
  size_t size;
  asm("" : "=r"(size));
  return size;
}

}  // namespace tcmalloc

#endif  // TCMALLOC_CACHE_THREAD_HEADER_H_
