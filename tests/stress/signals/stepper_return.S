// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// How the stepper's signal handler returns to an instruction inside a restartable section.
//
// The kernel aborted the section for the signal and knows of none any longer. Here a section of our
// own stands for it, which begins below, ends right behind the instruction that is returned to, and
// so protects the thread from here until that instruction has run. Whether the thread was
// switched out before, since its section began, is told by the count of its switches. In either
// case the thread goes on where the allocator's section is aborted.

#include "cache/per_cpu/sections_layout.h"

#define SYS_RT_SIGRETURN 15
#define SYS_GETRUSAGE 98
#define RUSAGE_THREAD 1
#define USAGE_VOLUNTARY_SWITCHES 128
#define USAGE_SWITCHES 136
#define CONTEXT_RIP 168

#if defined(__x86_64__)

  .text
// The stack pointer tells the two places apart at which this section is aborted.
  .byte 0x0f, 0xb9, 0x3d // ud1, with the signature as its operand
  .long TCM_SIGNATURE_X86_64
  .globl tcm_stepper_aborted
tcm_stepper_aborted:
  cmp %rsp, tcm_stepper_frame(%rip)
  je .Labandon
  movb $1, tcm_stepper_was_aborted(%rip)
  jmp *tcm_stepper_abort(%rip)
.Labandon:
  mov tcm_stepper_abort(%rip), %rax
  mov %rax, CONTEXT_RIP(%rsp)
  mov $SYS_RT_SIGRETURN, %eax
  syscall

// Return address of a handler: the signal's context is at the stack pointer.
  .globl tcm_stepper_return
tcm_stepper_return:
  mov tcm_stepper_area(%rip), %rcx
  test %rcx, %rcx
  jz .Lreturn
  mov %rsp, tcm_stepper_frame(%rip)
  lea tcm_stepper_section(%rip), %rax
  mov %rax, TCM_AREA_SECTION(%rcx)
  .globl tcm_stepper_start
tcm_stepper_start:
  mov $SYS_GETRUSAGE, %eax
  mov $RUSAGE_THREAD, %edi
  lea tcm_stepper_usage(%rip), %rsi
  syscall
  mov tcm_stepper_usage+USAGE_VOLUNTARY_SWITCHES(%rip), %rax
  add tcm_stepper_usage+USAGE_SWITCHES(%rip), %rax
  cmp tcm_stepper_switches(%rip), %rax
  jne .Labandon
.Lreturn:
  mov $SYS_RT_SIGRETURN, %eax
  syscall

#endif

  .section .note.GNU-stack, "", @progbits
