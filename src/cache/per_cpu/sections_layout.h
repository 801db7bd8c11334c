// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The offsets, sizes and names that the sections in assembly use. They are macros because the
// assembler reads this file too. slab_layout.h and sections.h check them against the C++ types.

#ifndef TCMALLOC_CACHE_PER_CPU_SECTIONS_LAYOUT_H_
#define TCMALLOC_CACHE_PER_CPU_SECTIONS_LAYOUT_H_

// Fields of the thread's header (cache/thread_header.h), as offsets from the pointer that each
// routine takes.
#define TCM_HEADER 1024
#define TCM_LINK_LIMIT (TCM_HEADER + 16)   /* int64_t: references below it, signed, have a class */
#define TCM_FREE_SECTION (TCM_HEADER + 32) /* the descriptor of free's section: see FreeMark */
#define TCM_CLASSES (TCM_HEADER + 40)      /* uintptr_t: of the class window, for references */
#define TCM_CLOCK (TCM_HEADER + 48)        /* int64_t: bytes until the event clock expires */
#define TCM_RSEQ_AREA (TCM_HEADER + 104)   /* RseqArea* */
#define TCM_SLABS (TCM_HEADER + 112)       /* char*: slab 0 */
#define TCM_ABORTS (TCM_HEADER + 128)      /* uint32_t: how often a section was aborted */
#define TCM_MALLOC_SLOW (TCM_HEADER + 136) /* AllocateSlowPath */
#define TCM_FREE_SLOW (TCM_HEADER + 144)   /* DeallocateSlowPath */

// An operation gives up after this many aborts, not necessarily of one call. A power of two.
#define TCM_ABORTS_PER_RETREAT 16

// Fields of the kernel's struct rseq.
#define TCM_AREA_CPU_ID 4
#define TCM_AREA_SECTION 8
#define TCM_AREA_MM_CID 24

// A slab has a word and a record of as many bytes for each size class.
#define TCM_SLAB_SHIFT 19
#define TCM_SLAB_BYTES (1 << TCM_SLAB_SHIFT)
#define TCM_CLASS_SHIFT 3
#define TCM_TOP 0
#define TCM_LIMITS 1024
#define TCM_BEGIN (TCM_LIMITS + 0)
#define TCM_END (TCM_LIMITS + 2)

// The lowest bits of a slot's word are an index; the others are an address.
#define TCM_INDEX_BITS 16

// The offset of a table of classes by size in each open slab. It begins with a copy of
// tcmalloc::kClassBySize. A slab that is not open has zeros there, meaning class 0, which never has
// an object. Malloc thus needs no other test.
#define TCM_SLAB_CLASSES 2048

// The offset of the slots. What is not in the table is zero up to here, and never written, so
// malloc finds class 0 for a size that is not listed. A size beyond the slots is more than the
// clock ever has left.
#define TCM_SLOTS (1 << 18)

// The signature that the kernel demands before each abort handler: an instruction that traps.
#define TCM_SIGNATURE_X86_64 0x53053053
#define TCM_SIGNATURE_AARCH64 0xd428bc00

#endif  // TCMALLOC_CACHE_PER_CPU_SECTIONS_LAYOUT_H_
