// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The header of a thread, which malloc and free read first, whatever its front end.

#ifndef TCMALLOC_CACHE_THREAD_HEADER_H_
#define TCMALLOC_CACHE_THREAD_HEADER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "cache/event_clock.h"
#include "pages/free_link.h"
#include "pages/page_types.h"
#include "size_class/size_classes.h"

namespace tcmalloc {

struct FastLists;
struct GateSeat;
struct RseqArea;
struct SectionDescriptor;
struct ThreadHeader;

// Names the header of a thread to the fast paths, by the address at which the lists before it begin
// or, if the thread has none, would begin. Malloc and free index lists from there, which takes an
// instruction less than from the header. One pointer, passed in a register.
class FastThread {
 public:
  constexpr FastThread() = default;  // names no thread
  // A thread with lists.
  constexpr FastThread(FastLists* lists) : base_(lists) {}
  inline explicit FastThread(ThreadHeader* header);

  TCMALLOC_ALWAYS_INLINE ThreadHeader* header() const;
  TCMALLOC_ALWAYS_INLINE ThreadHeader* operator->() const { return header(); }
  // Requires that the thread has lists, as a header does that admits a size or an address.
  FastLists* lists() const { return static_cast<FastLists*>(base_); }

 private:
  void* base_ = nullptr;
};

// The slow paths, to which an entry point goes where the fast paths do not serve it.
using AllocateSlowPath = void* (*)(size_t size);
using DeallocateSlowPath = void (*)(void* object);

// The fast paths of sizes and addresses that those of lists refuse: of threads without lists, and
// of sizes that kClassBySize lacks.
using AllocateElsewhere = void* (*)(size_t size, FastThread thread, AllocateSlowPath slow);
using MallocElsewhere = void* (*)(size_t size, FastThread thread);
using DeallocateElsewhere = void (*)(void* object, FastThread thread, ObjectReference reference);

// The slow paths that need not be named with each call: of malloc, which has more calls than all
// other ways to allocate, and of everything that frees.
struct SlowPaths {
  AllocateSlowPath malloc = nullptr;
  DeallocateSlowPath free = nullptr;
};

// The fast paths of a thread that nothing may serve but the slow ones.
inline void* AllocateClosed(size_t size, FastThread, AllocateSlowPath slow) { return slow(size); }
inline void* MallocClosed(size_t size, FastThread thread);
inline void DeallocateClosed(void* object, FastThread thread, ObjectReference);

// `function`, read after `argument` is ready: then gcc jumps to where it lies in memory, which
// takes an instruction less than to load it first.
template <typename Argument, typename Function>
TCMALLOC_ALWAYS_INLINE Function LoadedLast(Argument& argument, Function& function) {
  asm volatile("" : "+r"(argument), "+m"(function));
  return function;
}

// The object that the running thread's pointer names; each front end owns one for each thread. One
// cache line that every operation reads, and one for what lies elsewhere; then what is rarely
// needed. The assembly of cache/per_cpu knows the offsets.
struct alignas(64) ThreadHeader {
  // The lists serve sizes below `size_limit` and references below `address_limit`; a thread without
  // lists, or with closed ones, has limits that admit nothing.
  size_t size_limit = 0;
  int64_t address_limit = INT64_MIN;
  // LinkCodec::limit, as of when the thread was opened. One value twice, for a comparison with
  // memory is one instruction less than a load and two comparisons.
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

  // The record of the front end that the thread had before, and may have again: a fast path that a
  // signal interrupted may still use it.
  ThreadHeader* other = nullptr;

  // Where the thread says that it is inside a slow path; of both its records.
  GateSeat* seat = nullptr;
  // The next record of a thread that has ended, where nobody could release them at once.
  ThreadHeader* next_ended = nullptr;

  // True for the header of a CpuThread, false for that of FastLists.
  bool is_served_by_cpus() const { return rseq_area != nullptr; }
  // True if the caches of CPUs serve the thread at this moment.
  bool is_open_to_cpus() const { return is_served_by_cpus() && allocate != AllocateClosed; }
  // True if the fast paths of lists refuse.
  bool closed() const { return size_limit == 0; }

  // Make the fast paths refuse, the first those of lists and the second those that `allocate`,
  // `malloc` and `deallocate` lead to, by another thread than the one that owns the header. The
  // owner may open it again at any moment, and completes an operation that it has under way.
  // Volatile, so that each word is written at once; the sanitizer would call the fast paths' plain
  // reads a race.
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

// The lists of a thread, before its header. The heads come first: gcc spends an instruction more on
// each access to an array that does not begin where its object does. Has the fast paths of malloc
// and free; ThreadCache, which is the owner, has everything else.
struct FastLists {
  ObjectReference heads[kSizeClassCount] = {};
  int16_t room[kSizeClassCount] = {};
  ThreadHeader header;

  constexpr FastLists() = default;
  // Closed for good, but malloc and free find their way.
  constexpr explicit FastLists(const SlowPaths& slow) { header.slow = slow; }

  // The fast path of malloc: an object of class `c` for `size` bytes, or null; then the caller
  // calls ThreadCache::UndoTryAllocate. An empty list and a list whose next object was overwritten
  // both look like a link that is not valid.
  TCMALLOC_ALWAYS_INLINE void* TryAllocate(uint8_t c, size_t size) {
    ++room[c];
    // Pairs with IsConsistent in a signal handler, which tells by the room that this is at the
    // list.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    // The link is read by its reference, not by the address, which takes an instruction more to
    // compute: one list's allocations wait for each other through these reads.
    const ObjectReference reference = heads[c];
    const ObjectReference next_object = LinkWord(ObjectAt(reference)) * header.codec_inverse;
    void* object = OpaqueToOptimizer(ObjectAt(OpaqueToOptimizer(reference)));
    if (TCMALLOC_UNLIKELY(!IsBelow(next_object, header.link_limit))) return nullptr;
    if (TCMALLOC_UNLIKELY(header.clock.Advance(size))) return nullptr;
    heads[c] = next_object;
    // Pairs with TryAllocate in a signal handler: the link is cleared once the object is off the
    // list.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    // An object in use must not look like a free one.
    LinkWord(object) = 0;
    return object;
  }

  // The fast path of free. False leaves the object in use; the caller calls
  // ThreadCache::UndoTryFree.
  TCMALLOC_ALWAYS_INLINE bool TryFree(void* object) {
    const ObjectReference reference = ReferenceTo(object);
    if (TCMALLOC_UNLIKELY(!IsBelow(reference, header.address_limit))) return false;
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
inline void DeallocateClosed(void* object, FastThread thread, ObjectReference) {
  thread->slow.free(object);
}

// Malloc of a size that the thread's size_limit does not admit.
TCMALLOC_ALWAYS_INLINE void* MallocBy(FastThread thread, size_t size) {
  return LoadedLast(size, thread->malloc)(size, thread);
}
// Other ways to allocate such a size.
TCMALLOC_ALWAYS_INLINE void* AllocateBy(FastThread thread, size_t size, AllocateSlowPath slow) {
  return LoadedLast(slow, thread->allocate)(size, thread, slow);
}

// The whole of free, but for what the slow path in the header does, or `after_try` where a TryFree
// returned false: only it has something to undo. They cannot tell by the limits, for other threads
// may close the lists at any moment.
TCMALLOC_ALWAYS_INLINE void DeallocateBy(FastThread thread, void* object,
                                         void (*after_try)(void* object, FastLists* lists)) {
  const ObjectReference reference = ReferenceTo(object);
  if (TCMALLOC_UNLIKELY(!IsBelow(reference, thread->address_limit))) {
    return LoadedLast(object, thread->deallocate)(object, thread, reference);
  }
  if (TCMALLOC_UNLIKELY(!thread.lists()->TryFree(object))) after_try(object, thread.lists());
}

}  // namespace tcmalloc

#endif  // TCMALLOC_CACHE_THREAD_HEADER_H_
