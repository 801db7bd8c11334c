// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/stack_switch.h"

#include "base/attributes.h"

namespace tcmalloc {

// Has a frame pointer, so that debuggers find its caller from the other stack.
TCMALLOC_NOINLINE void CallOnStack(char* stack_end, void (*f)(void* argument), void* argument) {
  asm volatile("" ::"r"(__builtin_frame_address(0)));
#if defined(__x86_64__)
  asm volatile(
      "movq %%rsp, %%rbx\n\t"
      "movq %[stack_end], %%rsp\n\t"
      "callq *%[f]\n\t"
      "movq %%rbx, %%rsp"
      : "+D"(argument), [f] "+r"(f), [stack_end] "+r"(stack_end)
      :
      : "rax", "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2", "xmm3",
        "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
        "xmm15", "memory", "cc");
#elif defined(__aarch64__)
  register void* first asm("x0") = argument;
  register void (*called)(void*) asm("x9") = f;
  register char* end asm("x10") = stack_end;
  asm volatile(
      "mov x19, sp\n\t"
      "mov sp, x10\n\t"
      "blr x9\n\t"
      "mov sp, x19"
      : "+r"(first), "+r"(called), "+r"(end)
      :
      : "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x11", "x12", "x13", "x14", "x15", "x16",
        "x17", "x18", "x19", "x30", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9",
        "v10", "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22",
        "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31", "memory", "cc");
#endif
}

}  // namespace tcmalloc
