// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The restartable sequences on a slab, for aarch64. The head of sections_x86_64.S tells how they
// work.
//
// No load or store here is ordered. Accesses of one id follow each other on one CPU, or, where the
// kernel moves a concurrency id to another CPU, across a context switch, which is a full barrier;
// whoever closes a slab from elsewhere uses a fence that is one for the CPU that it interrupts.
//
// x0 to x3 are the arguments, x1 always the thread. x4 is the class, x5 the slab,
// x6 what the slab has for the class, x7 to x10 are for anything.

#include "cache/per_cpu/sections_layout.h"

  .macro BEGIN_ROUTINE name
  .text
  .p2align 6
  .globl \name
  .hidden \name
  .type \name, %function
\name:
  .cfi_startproc
  .endm

// Puts the address of a hidden object into `to`.
  .macro ADDRESS to, object
  adrp \to, \object
  add \to, \to, :lo12:\object
  .endm

// Makes what follows the section of `name`, and finds the slab of the id that lies at `id` in the
// rseq area.
  .macro START name, id
  ADDRESS x6, \name\()_section
  START_AT \name, \id, x6
  .endm

// START for a routine whose descriptor is the one at `section`.
  .macro START_AT name, id, section
  ldr x5, [x1, #TCM_RSEQ_AREA]
  str \section, [x5, #TCM_AREA_SECTION]
.L\name\()_start:
  ldr w5, [x5, #\id]
  ldr x6, [x1, #TCM_SLABS]
  add x5, x6, x5, lsl #TCM_SLAB_SHIFT
  .endm

  .macro FIND_CLASS
  add x6, x5, x4, lsl #TCM_CLASS_SHIFT
  .endm

// The word of a slot, given the index of the slot after it.
  .macro LOAD_BELOW to, index, scratch
  add \scratch, x5, \index, lsl #3
  ldur \to, [\scratch, #-8]
  .endm

// The index in a slot's word.
  .macro INDEX_OF to, word
  and \to, \word, #((1 << TCM_INDEX_BITS) - 1)
  .endm

  .macro COMMITTED name
.L\name\()_committed:
  .endm

// The abort handler: goes to `again` or, now and then, to `retreat`.
  .macro ON_ABORT name, again, retreat
  .inst TCM_SIGNATURE_AARCH64
.L\name\()_abort:
  ldr w7, [x1, #TCM_ABORTS]
  add w7, w7, #1
  str w7, [x1, #TCM_ABORTS]
  tst w7, #(TCM_ABORTS_PER_RETREAT - 1)
  b.ne \again
  b \retreat
  .endm

  .macro END_ROUTINE name
  .cfi_endproc
  .size \name, . - \name
  .globl \name\()_end
  .hidden \name\()_end
\name\()_end:

  .pushsection .data.rel.ro, "aw"
  .p2align 5
  .globl \name\()_section
  .hidden \name\()_section
  .type \name\()_section, %object
  .size \name\()_section, 32
\name\()_section:
  .word 0, 0 // version, flags
  .xword .L\name\()_start
  .xword .L\name\()_committed - .L\name\()_start
  .xword .L\name\()_abort
  .popsection
  .endm

  .macro GO_TO_ARGUMENT
  br x2
  .endm

  .macro GO_TO_SLOW_MALLOC
  ldr x2, [x1, #TCM_MALLOC_SLOW]
  br x2
  .endm

// void* (size_t size x0, FastThread thread x1[, AllocateSlowPath slow x2])
  .macro ALLOCATE name, id, go_to_slow
  BEGIN_ROUTINE \name
1:
  START \name, \id
  ldr x10, [x1, #TCM_CLOCK]
  subs x10, x10, x0
  b.lo 2f
  add x4, x5, #TCM_SLAB_CLASSES
  ldrb w4, [x4, x0]
  FIND_CLASS
  ldr x7, [x6, #TCM_TOP]
  lsr x8, x7, #TCM_INDEX_BITS
  cbz x8, 2f
  INDEX_OF x7, x7
  sub x7, x7, #1
  LOAD_BELOW x7, x7, x9
  str x10, [x1, #TCM_CLOCK]
  str x7, [x6, #TCM_TOP]
  COMMITTED \name
  mov x0, x8
  str xzr, [x0]
  ret
2:
  \go_to_slow
  ON_ABORT \name, 1b, 2b
  END_ROUTINE \name
  .endm

// void (void* object x0, FastThread thread x1, ObjectReference reference x2)
  .macro DEALLOCATE name, id
  BEGIN_ROUTINE \name
  ldr x7, [x1, #TCM_LINK_LIMIT]
  cmp x2, x7
  b.ge 2f
  ldr x7, [x1, #TCM_CLASSES]
  lsr x4, x2, #(TCMALLOC_PAGE_SHIFT - 3)
  ldrb w4, [x7, x4]
  ldr x9, [x1, #TCM_FREE_SECTION]
1:
  START_AT \name, \id, x9
  FIND_CLASS
  ldrh w7, [x6, #TCM_TOP]
  ldrh w8, [x6, #TCM_END]
  cmp w7, w8
  b.hs 2f
  ldr w8, [x0]
  cmp w8, w9
  b.eq 2f
  str w9, [x0]
  add x8, x7, #1
  orr x8, x8, x0, lsl #TCM_INDEX_BITS
  str x8, [x5, x7, lsl #3]
  str x8, [x6, #TCM_TOP]
  COMMITTED \name
  ret
2:
  ldr x3, [x1, #TCM_FREE_SLOW]
  br x3
  ON_ABORT \name, 1b, 2b
  END_ROUTINE \name
  .endm

// void* (uint8_t size_class w0, FastThread thread x1[, size_t size x2])
//
// Treats the clock as malloc does if it gets a size.
  .macro POP name, id, counted=0
  BEGIN_ROUTINE \name
  and w4, w0, #0xff
1:
  START \name, \id
  .if \counted
  ldr x10, [x1, #TCM_CLOCK]
  subs x10, x10, x2
  b.lo 2f
  .endif
  FIND_CLASS
  ldr x7, [x6, #TCM_TOP]
  INDEX_OF x8, x7
  ldrh w9, [x6, #TCM_BEGIN]
  cmp w8, w9
  b.ls 2f
  sub x8, x8, #1
  LOAD_BELOW x8, x8, x9
  .if \counted
  str x10, [x1, #TCM_CLOCK]
  .endif
  str x8, [x6, #TCM_TOP]
  COMMITTED \name
  lsr x0, x7, #TCM_INDEX_BITS
  str xzr, [x0]
  ret
2:
  mov x0, #0
  ret
  ON_ABORT \name, 1b, 2b
  END_ROUTINE \name
  .endm

// bool (uint8_t size_class w0, FastThread thread x1, void* object x2)
  .macro PUSH name, id
  BEGIN_ROUTINE \name
  and w4, w0, #0xff
1:
  START \name, \id
  FIND_CLASS
  ldrh w7, [x6, #TCM_TOP]
  ldrh w8, [x6, #TCM_END]
  cmp w7, w8
  b.hs 2f
  add x8, x7, #1
  orr x8, x8, x2, lsl #TCM_INDEX_BITS
  str x8, [x5, x7, lsl #3]
  str x8, [x6, #TCM_TOP]
  COMMITTED \name
  mov w0, #1
  ret
2:
  mov w0, #0
  ret
  ON_ABORT \name, 1b, 2b
  END_ROUTINE \name
  .endm

// uint32_t (uint8_t size_class w0, FastThread thread x1, void** out x2, uint32_t n w3)
//
// w0 is how many objects move, w9 how many are left, w7 the slot after the next one. The loop ends
// with the slot after the new top in w7.
  .macro POP_BATCH name, id
  BEGIN_ROUTINE \name
  and w4, w0, #0xff
  cbz w3, 3f
1:
  START \name, \id
  FIND_CLASS
  ldrh w7, [x6, #TCM_TOP]
  ldrh w8, [x6, #TCM_BEGIN]
  subs w0, w7, w8
  b.ls 3f
  cmp w0, w3
  csel w0, w0, w3, lo
  mov w9, w0
2:
  sub w7, w7, #1
  sub w9, w9, #1
  ldr x8, [x5, x7, lsl #3]
  lsr x8, x8, #TCM_INDEX_BITS
  str x8, [x2, x9, lsl #3]
  cbnz w9, 2b
  LOAD_BELOW x8, x7, x9
  str x8, [x6, #TCM_TOP]
  COMMITTED \name
  ret
3:
  mov w0, #0
  ret
  ON_ABORT \name, 1b, 3b
  END_ROUTINE \name
  .endm

// uint32_t (uint8_t size_class w0, FastThread thread x1, void* const* in x2, uint32_t n w3)
//
// w0 is how many objects move, w9 how many have been copied, w7 the slot of the next one. The loop
// ends with the new top in x10.
  .macro PUSH_BATCH name, id
  BEGIN_ROUTINE \name
  and w4, w0, #0xff
  cbz w3, 3f
1:
  START \name, \id
  FIND_CLASS
  ldrh w7, [x6, #TCM_TOP]
  ldrh w8, [x6, #TCM_END]
  subs w0, w8, w7
  b.ls 3f
  cmp w0, w3
  csel w0, w0, w3, lo
  mov w9, #0
2:
  ldr x8, [x2, x9, lsl #3]
  add x10, x7, #1
  orr x10, x10, x8, lsl #TCM_INDEX_BITS
  str x10, [x5, x7, lsl #3]
  add w7, w7, #1
  add w9, w9, #1
  cmp w9, w0
  b.lo 2b
  str x10, [x6, #TCM_TOP]
  COMMITTED \name
  ret
3:
  mov w0, #0
  ret
  ON_ABORT \name, 1b, 3b
  END_ROUTINE \name
  .endm

  ALLOCATE tcmalloc_allocate_by_mm_cid, TCM_AREA_MM_CID, GO_TO_ARGUMENT
  ALLOCATE tcmalloc_malloc_by_mm_cid, TCM_AREA_MM_CID, GO_TO_SLOW_MALLOC
  DEALLOCATE tcmalloc_deallocate_by_mm_cid, TCM_AREA_MM_CID
  POP tcmalloc_pop_by_mm_cid, TCM_AREA_MM_CID
  POP tcmalloc_pop_counted_by_mm_cid, TCM_AREA_MM_CID, 1
  PUSH tcmalloc_push_by_mm_cid, TCM_AREA_MM_CID
  POP_BATCH tcmalloc_pop_batch_by_mm_cid, TCM_AREA_MM_CID
  PUSH_BATCH tcmalloc_push_batch_by_mm_cid, TCM_AREA_MM_CID

  ALLOCATE tcmalloc_allocate_by_cpu_id, TCM_AREA_CPU_ID, GO_TO_ARGUMENT
  ALLOCATE tcmalloc_malloc_by_cpu_id, TCM_AREA_CPU_ID, GO_TO_SLOW_MALLOC
  DEALLOCATE tcmalloc_deallocate_by_cpu_id, TCM_AREA_CPU_ID
  POP tcmalloc_pop_by_cpu_id, TCM_AREA_CPU_ID
  POP tcmalloc_pop_counted_by_cpu_id, TCM_AREA_CPU_ID, 1
  PUSH tcmalloc_push_by_cpu_id, TCM_AREA_CPU_ID
  POP_BATCH tcmalloc_pop_batch_by_cpu_id, TCM_AREA_CPU_ID
  PUSH_BATCH tcmalloc_push_batch_by_cpu_id, TCM_AREA_CPU_ID

  .section .note.GNU-stack, "", %progbits
