// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// vfork for x86-64. thread/vfork.h gives the reasons for it.
//
// The child runs on the caller's stack and returns first, so that it overwrites everything below
// the caller's frame, this function's return address included. The parent's values are therefore in
// registers during the system call, which keeps all but rax, rcx and r11. Both return with the
// caller's registers, which neither the kernel nor the functions called here change.

#include <sys/syscall.h>

  .text
  .p2align 4
  .globl vfork
  .type vfork, @function
vfork:
  .cfi_startproc
  sub $8, %rsp
  .cfi_adjust_cfa_offset 8
  call tcmalloc_before_vfork
  add $8, %rsp
  .cfi_adjust_cfa_offset -8
  pop %r8
  .cfi_adjust_cfa_offset -8
  .cfi_register %rip, %r8
  mov %rax, %rdi
  mov %rdx, %rsi
  mov $SYS_vfork, %eax
  syscall
  push %r8
  .cfi_adjust_cfa_offset 8
  .cfi_offset %rip, -8
  mov %rax, %rdx
  test %rax, %rax
  jne tcmalloc_after_vfork
  ret
  .cfi_endproc
  .size vfork, . - vfork

  .section .note.GNU-stack, "", @progbits
