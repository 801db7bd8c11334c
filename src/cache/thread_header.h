// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The part of a thread's record that malloc and free look at first, whatever its front end.

#ifndef TCMALLOC_CACHE_THREAD_HEADER_H_
#define TCMALLOC_CACHE_THREAD_HEADER_H_

#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "cache/event_clock.h"
#include "pages/free_link.h"
#include "size_class/size_classes.h"
#include "system/rseq.h"

namespace tcmalloc {

struct FastLists;
struct GateSeat;
struct SectionDescriptor;

// The slow path of an entry point, for what the fast paths do not serve.
using AllocateSlowPath = void* (*)(size_t size);
using DeallocateSlowPath = void (*)(void* object);

// The fast paths of sizes and addresses that those of lists refuse: of threads without lists, and
// of sizes that kClassBySize lacks.
using AllocateElsewhere = void* (*)(size_t size, FastLists* thread, AllocateSlowPath slow);
using MallocElsewhere = void* (*)(size_t size, FastLists* thread);
using DeallocateElsewhere = void (*)(void* object, FastLists* thread, ObjectReference reference);

// The slow paths that need not be named with each call: of malloc, which has more calls than all
// other ways to allocate, and of everything that frees.
struct SlowPaths {
  AllocateSlowPath malloc = nullptr;
  DeallocateSlowPath free = nullptr;
};

// The fast paths of a thread that nothing may serve but the slow ones.
inline void* AllocateClosed(size_t size, FastLists*, AllocateSlowPath slow) { return slow(size); }
inline void* MallocClosed(size_t size, FastLists* thread);
inline void DeallocateClosed(void* object, FastLists* thread, ObjectReference);

// `function`, read after `argument` is ready: then gcc jumps to where it lies in memory, which
// takes an instruction less than to load it first.
template <typename Argument, typename Function>
TCMALLOC_ALWAYS_INLINE Function LoadedLast(Argument& argument, Function& function) {
  asm volatile("" : "+r"(argument), "+m"(function));
  return function;
}

// One cache line that every operation reads, and one for what lies elsewhere; then what is rarely
// needed. The assembly of
// cache/per_cpu knows the offsets.
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
  RseqArea* rseq_area = nullptr;
  char* slabs = nullptr;
  MallocElsewhere malloc = MallocClosed;

  uint32_t aborts = 0;  // of sections of this thread
  SlowPaths slow;

  // The record of the front end that the thread had before, and may have again: a fast path that a
  // signal interrupted may still use it.
  FastLists* other = nullptr;

  // Where the thread says that it is inside a slow path; of both its records.
  GateSeat* seat = nullptr;
  // The next record of a thread that has ended, where nobody could release them at once.
  FastLists* next_ended = nullptr;

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
// each access to an array that does not begin where its object does. A thread without lists has a
// header alone, and is referred to as if the lists were there.
struct FastLists {
  ObjectReference heads[kSizeClassCount] = {};
  int16_t room[kSizeClassCount] = {};
  ThreadHeader header;
};
static_assert(offsetof(FastLists, header) == 1024, "the assembly of cache/per_cpu counts on it");

inline void* MallocClosed(size_t size, FastLists* thread) {
  return thread->header.slow.malloc(size);
}
inline void DeallocateClosed(void* object, FastLists* thread, ObjectReference) {
  thread->header.slow.free(object);
}

// The header of a thread without lists, as it is referred to.
inline FastLists* AsIfWithLists(ThreadHeader* header) {
  return reinterpret_cast<FastLists*>(reinterpret_cast<char*>(header) -
                                      offsetof(FastLists, header));
}

}  // namespace tcmalloc

#endif  // TCMALLOC_CACHE_THREAD_HEADER_H_
