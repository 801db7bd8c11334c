// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The operations on the slab of the calling thread's CPU or concurrency id. They are written in the
// assembly files beside this one, which also explain how they work.
//
// The operations use only the header of `thread`. Its rseq area is that of the calling thread,
// registered with the kernel, and the id in it is below the number of slabs. No routine takes a
// lock, makes a call or enters the kernel. All may run in a signal handler; the handler finds an
// operation that it interrupted either done or not begun.
//
// Every routine may give up without need, as if the slab were empty or full: after many aborts, or
// because the slab is closed.

#ifndef TCMALLOC_CACHE_PER_CPU_SECTIONS_H_
#define TCMALLOC_CACHE_PER_CPU_SECTIONS_H_

#include <cstddef>
#include <cstdint>

#include "cache/per_cpu/free_mark.h"
#include "cache/per_cpu/sections_layout.h"
#include "cache/thread_header.h"
#include "pages/free_link.h"
#include "system/rseq.h"

namespace tcmalloc {

static_assert(offsetof(FastLists, header) == TCM_HEADER);
static_assert(TCM_HEADER + offsetof(ThreadHeader, link_limit) == TCM_LINK_LIMIT);
static_assert(TCM_HEADER + offsetof(ThreadHeader, free_section) == TCM_FREE_SECTION);
static_assert(TCM_HEADER + offsetof(ThreadHeader, classes) == TCM_CLASSES);
static_assert(TCM_HEADER + offsetof(ThreadHeader, clock) == TCM_CLOCK);
static_assert(TCM_HEADER + offsetof(ThreadHeader, rseq_area) == TCM_RSEQ_AREA);
static_assert(TCM_HEADER + offsetof(ThreadHeader, slabs) == TCM_SLABS);
static_assert(TCM_HEADER + offsetof(ThreadHeader, aborts) == TCM_ABORTS);
static_assert(TCM_HEADER + offsetof(ThreadHeader, slow.malloc) == TCM_MALLOC_SLOW);
static_assert(TCM_HEADER + offsetof(ThreadHeader, slow.free) == TCM_FREE_SLOW);

static_assert(offsetof(RseqArea, cpu_id) == TCM_AREA_CPU_ID);
static_assert(offsetof(RseqArea, rseq_cs) == TCM_AREA_SECTION);
static_assert(offsetof(RseqArea, mm_cid) == TCM_AREA_MM_CID);
#if defined(__x86_64__)
static_assert(kRseqSignature == TCM_SIGNATURE_X86_64);
#elif defined(__aarch64__)
static_assert(kRseqSignature == TCM_SIGNATURE_AARCH64);
#endif

// One set of routines, for one field of the rseq area.
struct Sections {
  // Allocates at least `size` bytes and counts them on the thread's clock. Goes to `slow` with
  // nothing changed if the clock expires, if there is no object, or if the slab does not list
  // the size.
  void* (*allocate)(size_t size, FastThread thread, AllocateSlowPath slow);
  // Works as `allocate`, with the slow path of malloc that is in the thread's header.
  void* (*malloc)(size_t size, FastThread thread);

  // Puts `object` into the slab. Goes to the slow path in the thread's header instead if
  // `reference`, which is ReferenceTo(object), has no size class, if there is no room, or if the
  // object bears the mark of a free one. The mark proves nothing: an aborted try leaves it behind,
  // and the object's owner may have written it.
  DeallocateElsewhere deallocate;

  // Takes out an object of the class and clears its first word. Null if there is none.
  void* (*pop)(uint8_t size_class, FastThread thread);

  // Works as `pop` and counts `size` bytes on the thread's clock. If that would expire the clock,
  // returns null with nothing changed.
  void* (*pop_counted)(uint8_t size_class, FastThread thread, size_t size);

  // Puts in `object`, which bears the mark. Returns false if there is no room.
  bool (*push)(uint8_t size_class, FastThread thread, void* object);

  // Moves up to n objects to `out` without touching them, in the order of their slots: the one
  // freed last comes last. Returns the number of objects moved.
  uint32_t (*pop_batch)(uint8_t size_class, FastThread thread, void** out, uint32_t n);

  // Moves up to n objects from the front of `in`, as many as there is room for, without touching
  // them. The caller has marked them. Returns the number of objects moved.
  uint32_t (*push_batch)(uint8_t size_class, FastThread thread, void* const* in, uint32_t n);

  // The descriptor of free's section; deallocate expects a copy of it in the thread's header. See
  // FreeMark.
  const SectionDescriptor* free_section;
};

// Hidden by an attribute, because the compiler's option hides only symbols that it sees defined.
#define TCM_SECTION extern "C" __attribute__((visibility("hidden")))

TCM_SECTION void* tcmalloc_allocate_by_mm_cid(size_t size, FastThread thread,
                                              AllocateSlowPath slow);
TCM_SECTION void* tcmalloc_malloc_by_mm_cid(size_t size, FastThread thread);
TCM_SECTION void tcmalloc_deallocate_by_mm_cid(void* object, FastThread thread,
                                               ObjectReference reference, size_t size);
TCM_SECTION void* tcmalloc_pop_by_mm_cid(uint8_t size_class, FastThread thread);
TCM_SECTION void* tcmalloc_pop_counted_by_mm_cid(uint8_t size_class, FastThread thread,
                                                 size_t size);
TCM_SECTION bool tcmalloc_push_by_mm_cid(uint8_t size_class, FastThread thread, void* object);
TCM_SECTION uint32_t tcmalloc_pop_batch_by_mm_cid(uint8_t size_class, FastThread thread, void** out,
                                                  uint32_t n);
TCM_SECTION uint32_t tcmalloc_push_batch_by_mm_cid(uint8_t size_class, FastThread thread,
                                                   void* const* in, uint32_t n);
TCM_SECTION const SectionDescriptor tcmalloc_deallocate_by_mm_cid_section;

TCM_SECTION void* tcmalloc_allocate_by_cpu_id(size_t size, FastThread thread,
                                              AllocateSlowPath slow);
TCM_SECTION void* tcmalloc_malloc_by_cpu_id(size_t size, FastThread thread);
TCM_SECTION void tcmalloc_deallocate_by_cpu_id(void* object, FastThread thread,
                                               ObjectReference reference, size_t size);
TCM_SECTION void* tcmalloc_pop_by_cpu_id(uint8_t size_class, FastThread thread);
TCM_SECTION void* tcmalloc_pop_counted_by_cpu_id(uint8_t size_class, FastThread thread,
                                                 size_t size);
TCM_SECTION bool tcmalloc_push_by_cpu_id(uint8_t size_class, FastThread thread, void* object);
TCM_SECTION uint32_t tcmalloc_pop_batch_by_cpu_id(uint8_t size_class, FastThread thread, void** out,
                                                  uint32_t n);
TCM_SECTION uint32_t tcmalloc_push_batch_by_cpu_id(uint8_t size_class, FastThread thread,
                                                   void* const* in, uint32_t n);
TCM_SECTION const SectionDescriptor tcmalloc_deallocate_by_cpu_id_section;

#undef TCM_SECTION

inline constexpr Sections kSectionsByMmCid = {
    tcmalloc_allocate_by_mm_cid,           tcmalloc_malloc_by_mm_cid,
    tcmalloc_deallocate_by_mm_cid,         tcmalloc_pop_by_mm_cid,
    tcmalloc_pop_counted_by_mm_cid,        tcmalloc_push_by_mm_cid,
    tcmalloc_pop_batch_by_mm_cid,          tcmalloc_push_batch_by_mm_cid,
    &tcmalloc_deallocate_by_mm_cid_section};
inline constexpr Sections kSectionsByCpuId = {
    tcmalloc_allocate_by_cpu_id,           tcmalloc_malloc_by_cpu_id,
    tcmalloc_deallocate_by_cpu_id,         tcmalloc_pop_by_cpu_id,
    tcmalloc_pop_counted_by_cpu_id,        tcmalloc_push_by_cpu_id,
    tcmalloc_pop_batch_by_cpu_id,          tcmalloc_push_batch_by_cpu_id,
    &tcmalloc_deallocate_by_cpu_id_section};

constexpr const Sections& SectionsFor(CpuIds ids) {
  return ids == CpuIds::kMmCid ? kSectionsByMmCid : kSectionsByCpuId;
}

}  // namespace tcmalloc

#endif  // TCMALLOC_CACHE_PER_CPU_SECTIONS_H_
