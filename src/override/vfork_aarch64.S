// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// vfork for aarch64. thread/vfork.h gives the reasons for it.
//
// The child runs on the caller's stack and returns first, so that it overwrites everything below
// the caller's frame. The parent's values are therefore in registers during the system call, which
// keeps all but x0; the return address stays in x30. Both return with the caller's registers, which
// neither the kernel nor the functions called here change.

#include <sys/syscall.h>

#define CLONE_VM_AND_VFORK_WITH_SIGCHLD 0x4111

  .text
  .p2align 4
  .globl vfork
  .type vfork, %function
vfork:
  .cfi_startproc
  stp x29, x30, [sp, #-16]!
  .cfi_def_cfa_offset 16
  .cfi_offset x29, -16
  .cfi_offset x30, -8
  bl tcmalloc_before_vfork
  ldp x29, x30, [sp], #16
  .cfi_def_cfa_offset 0
  .cfi_restore x29
  .cfi_restore x30
  mov x9, x0
  mov x10, x1
  mov x0, #CLONE_VM_AND_VFORK_WITH_SIGCHLD
  mov x1, #0 // the caller's stack
  mov x2, #0
  mov x3, #0
  mov x4, #0
  mov x8, #SYS_clone
  svc #0
  cbz x0, 1f
  mov x2, x0
  mov x0, x9
  mov x1, x10
  b tcmalloc_after_vfork
1:
  ret
  .cfi_endproc
  .size vfork, . - vfork

  .section .note.GNU-stack, "", %progbits
