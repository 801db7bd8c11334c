// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The restartable sequences on a slab, for x86-64.
//
// A slab belongs to an id: a CPU's number, or a concurrency id that the kernel gives to one running
// thread of the process at a time. A section finds the slab of the id that the thread has now,
// reads and prepares as it likes, and ends with one store, to the class's top word, that makes the
// operation happen. If the thread is interrupted anywhere between the section's start and the end of
// that store, the kernel lets it go on at the abort handler, and nothing has happened: what the
// section wrote before, a slot above the top, is no part of the cache. Nobody else changes the top
// of an open slab, so nothing here needs a lock prefix.
//
// The top word has the object that malloc returns next beside the index of the first free slot, so
// that malloc neither looks for the slot first nor has to read what a free before has just written
// there. A pair of free and malloc waits for each other's words, and this is what it waits for.
//
// Each try stores the address of its descriptor in the thread's rseq area first, which is what
// makes it a section in the kernel's eyes. Nothing clears it afterwards: the kernel does when it
// finds the thread elsewhere. A handler counts the abort and tries again, but after every
// TCM_ABORTS_PER_RETREAT aborts it gives up instead, as if the slab were empty or full, so that a
// thread which is interrupted at every instruction gets on by the slow path.
//
// A closed slab, or one that was never used, is empty and full at once, which the same comparisons
// find. docs/subsystems/per-cpu.md has the protocol between sections and those who close a slab.
//
// Each routine NAME comes with the symbols NAME_section, its descriptor, and NAME_end. sections.h
// says what the routines do.

#include "cache/per_cpu/sections_layout.h"

  .macro BEGIN_ROUTINE name
  .text
  .p2align 6
  .globl \name
  .hidden \name
  .type \name, @function
\name:
  .cfi_startproc
  .endm

// Makes what follows the section of `name`; leaves the area's address in `area`.
  .macro START name, area, scratch
  mov TCM_RSEQ_AREA(%rsi), \area
  lea \name\()_section(%rip), \scratch
  mov \scratch, TCM_AREA_SECTION(\area)
.L\name\()_start:
  .endm

// START for a routine whose descriptor is the one at `section`.
  .macro START_AT name, section, area
  mov TCM_RSEQ_AREA(%rsi), \area
  mov \section, TCM_AREA_SECTION(\area)
.L\name\()_start:
  .endm

// The slab of the id that lies at `id` in the area; `area32` is the lower half of `area`, which
// becomes the slab's address.
  .macro FIND_SLAB id, area, area32
  imul $TCM_SLAB_BYTES, \id(\area), \area32
  add TCM_SLABS(%rsi), \area
  .endm

  .macro COMMITTED name
.L\name\()_committed:
  .endm

// The abort handler: goes to `again` or, now and then, to `retreat`.
  .macro ON_ABORT name, again, retreat
  .byte 0x0f, 0xb9, 0x3d // ud1, with the signature as its operand
  .long TCM_SIGNATURE_X86_64
.L\name\()_abort:
  incl TCM_ABORTS(%rsi)
  testl $(TCM_ABORTS_PER_RETREAT - 1), TCM_ABORTS(%rsi)
  jnz \again
  jmp \retreat
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
  .type \name\()_section, @object
  .size \name\()_section, 32
\name\()_section:
  .long 0, 0 // version, flags
  .quad .L\name\()_start
  .quad .L\name\()_committed - .L\name\()_start
  .quad .L\name\()_abort
  .popsection
  .endm

  .macro GO_TO_ARGUMENT
  jmp *%rdx
  .endm

  .macro GO_TO_SLOW_MALLOC
  jmp *TCM_MALLOC_SLOW(%rsi)
  .endm

// void* (size_t size %rdi, FastThread thread %rsi[, AllocateSlowPath slow %rdx])
//
// The clock refuses a size that is larger than what it has left, however large, and is never
// negative: whoever runs in between and makes it run down aborts the section. A try that is aborted
// just before the commit has counted its bytes, and the next one counts them again.
//
// The top is read as the word that it was written as: some processors hand a store at once to a load
// of the same width, and to a narrower one much later.
// docs/decisions/0126-tops-are-read-as-they-were-written.md.
  .macro ALLOCATE name, id, go_to_slow
  BEGIN_ROUTINE \name
1:
  START \name, %rcx, %rax
  cmp %rdi, TCM_CLOCK(%rsi)
  jb 2f
  FIND_SLAB \id, %rcx, %ecx
  movzbl TCM_SLAB_CLASSES(%rcx,%rdi), %r8d
  mov TCM_TOP(%rcx,%r8,8), %rax
  movzwl %ax, %r9d
  shr $TCM_INDEX_BITS, %rax
  jz 2f
  mov -16(%rcx,%r9,8), %r9
  sub %rdi, TCM_CLOCK(%rsi)
  mov %r9, TCM_TOP(%rcx,%r8,8)
  COMMITTED \name
  movq $0, (%rax)
  ret
2:
  \go_to_slow
  ON_ABORT \name, 1b, 2b
  END_ROUTINE \name
  .endm

// void (void* object %rdi, FastThread thread %rsi, ObjectReference reference %rdx)
//
// The object is marked before the slot is written and the store is committed. A try that is aborted
// in between leaves the mark; the next one finds it and leaves the object to the slow path. The mark
// is the lower half of the address of the descriptor, a copy whose place is random.
  .macro DEALLOCATE name, id
  BEGIN_ROUTINE \name
  cmp TCM_LINK_LIMIT(%rsi), %rdx
  jge 2f
  shr $(TCMALLOC_PAGE_SHIFT - 3), %rdx
  mov TCM_CLASSES(%rsi), %rax
  movzbl (%rax,%rdx), %edx
  mov TCM_FREE_SECTION(%rsi), %r10
1:
  START_AT \name, %r10, %r8
  FIND_SLAB \id, %r8, %r8d
  mov TCM_TOP(%r8,%rdx,8), %rax
  movzwl %ax, %eax
  cmp TCM_END(%r8,%rdx,8), %ax
  jae 2f
  cmp %r10d, (%rdi)
  je 2f
  mov %r10d, (%rdi)
  imul $(1 << TCM_INDEX_BITS), %rdi, %r9
  lea 1(%r9,%rax), %r9
  mov %r9, (%r8,%rax,8)
  mov %r9, TCM_TOP(%r8,%rdx,8)
  COMMITTED \name
  ret
2:
  jmp *TCM_FREE_SLOW(%rsi)
  ON_ABORT \name, 1b, 2b
  END_ROUTINE \name
  .endm

// void* (uint8_t size_class %dil, FastThread thread %rsi[, size_t size %rdx])
//
// Treats the clock as malloc does if it gets a size.
  .macro POP name, id, counted=0
  BEGIN_ROUTINE \name
  movzbl %dil, %edi
1:
  START \name, %rcx, %rax
  .if \counted
  cmp %rdx, TCM_CLOCK(%rsi)
  jb 2f
  .endif
  FIND_SLAB \id, %rcx, %ecx
  mov TCM_TOP(%rcx,%rdi,8), %rax
  cmp TCM_BEGIN(%rcx,%rdi,8), %ax
  jbe 2f
  movzwl %ax, %r8d
  shr $TCM_INDEX_BITS, %rax
  mov -16(%rcx,%r8,8), %r8
  .if \counted
  sub %rdx, TCM_CLOCK(%rsi)
  .endif
  mov %r8, TCM_TOP(%rcx,%rdi,8)
  COMMITTED \name
  movq $0, (%rax)
  ret
2:
  xor %eax, %eax
  ret
  ON_ABORT \name, 1b, 2b
  END_ROUTINE \name
  .endm

// bool (uint8_t size_class %dil, FastThread thread %rsi, void* object %rdx)
  .macro PUSH name, id
  BEGIN_ROUTINE \name
  movzbl %dil, %edi
1:
  START \name, %rcx, %rax
  FIND_SLAB \id, %rcx, %ecx
  mov TCM_TOP(%rcx,%rdi,8), %rax
  movzwl %ax, %eax
  cmp TCM_END(%rcx,%rdi,8), %ax
  jae 2f
  imul $(1 << TCM_INDEX_BITS), %rdx, %r8
  lea 1(%r8,%rax), %r8
  mov %r8, (%rcx,%rax,8)
  mov %r8, TCM_TOP(%rcx,%rdi,8)
  COMMITTED \name
  mov $1, %eax
  ret
2:
  xor %eax, %eax
  ret
  ON_ABORT \name, 1b, 2b
  END_ROUTINE \name
  .endm

// uint32_t (uint8_t size_class %dil, FastThread thread %rsi, void** out %rdx, uint32_t n %ecx)
//
// %eax is how many objects move, %r9 the slot after the next one to be copied, %r10 its place in
// `out`. The loop ends with the slot after the new top in %r9.
  .macro POP_BATCH name, id
  BEGIN_ROUTINE \name
  movzbl %dil, %edi
  test %ecx, %ecx
  jz 3f
1:
  START \name, %r8, %rax
  FIND_SLAB \id, %r8, %r8d
  mov TCM_TOP(%r8,%rdi,8), %r9
  movzwl %r9w, %r9d
  movzwl TCM_BEGIN(%r8,%rdi,8), %r10d
  mov %r9d, %eax
  sub %r10d, %eax
  jbe 3f
  cmp %ecx, %eax
  cmova %ecx, %eax
  mov %eax, %r10d
2:
  mov -8(%r8,%r9,8), %r11
  shr $TCM_INDEX_BITS, %r11
  mov %r11, -8(%rdx,%r10,8)
  dec %r9d
  dec %r10d
  jnz 2b
  mov -8(%r8,%r9,8), %r11
  mov %r11, TCM_TOP(%r8,%rdi,8)
  COMMITTED \name
  ret
3:
  xor %eax, %eax
  ret
  ON_ABORT \name, 1b, 3b
  END_ROUTINE \name
  .endm

// uint32_t (uint8_t size_class %dil, FastThread thread %rsi, void* const* in %rdx, uint32_t n %ecx)
//
// %eax is how many objects move, %r9 the slot of the next one, %r10 its place in `in`. The loop
// ends with the new top in %r11.
  .macro PUSH_BATCH name, id
  BEGIN_ROUTINE \name
  movzbl %dil, %edi
  test %ecx, %ecx
  jz 3f
1:
  START \name, %r8, %rax
  FIND_SLAB \id, %r8, %r8d
  mov TCM_TOP(%r8,%rdi,8), %r9
  movzwl %r9w, %r9d
  movzwl TCM_END(%r8,%rdi,8), %eax
  sub %r9d, %eax
  jbe 3f
  cmp %ecx, %eax
  cmova %ecx, %eax
  xor %r10d, %r10d
2:
  imul $(1 << TCM_INDEX_BITS), (%rdx,%r10,8), %r11
  lea 1(%r11,%r9), %r11
  mov %r11, (%r8,%r9,8)
  inc %r9d
  inc %r10d
  cmp %eax, %r10d
  jb 2b
  mov %r11, TCM_TOP(%r8,%rdi,8)
  COMMITTED \name
  ret
3:
  xor %eax, %eax
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

  .section .note.GNU-stack, "", @progbits
