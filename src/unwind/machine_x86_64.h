// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Registers of x86-64, numbered as in DWARF. Include unwind/machine.h.

#ifndef TCMALLOC_UNWIND_MACHINE_X86_64_H_
#define TCMALLOC_UNWIND_MACHINE_X86_64_H_

#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/attributes.h"

namespace tcmalloc::machine {

inline constexpr int kFramePointer = 6;  // rbp
inline constexpr int kStackPointer = 7;  // rsp
inline constexpr int kPc = 16;           // the column of return addresses, too
// The register that a compact rule restores beside the frame pointer. It may be the base of a frame
// address as well.
inline constexpr int kExtra = 3;  // rbx
inline constexpr bool kExtraIsReturnAddress = false;
inline constexpr uint32_t kAllKnown = (uint32_t{1} << Registers::kCount) - 1;

// Bytes below the stack pointer that a function may use.
inline constexpr uintptr_t kRedZone = 128;
// The bytes of a return address and the caller's frame pointer, which a frame pointer points to.
inline constexpr uintptr_t kFrameRecordBytes = 16;
inline constexpr uintptr_t kFrameAlignment = 8;

// Returns the index of a register by its DWARF number, -1 for one that is not tracked.
constexpr int RegisterIndex(uint64_t dwarf) {
  return dwarf < Registers::kCount ? static_cast<int>(dwarf) : -1;
}

constexpr uintptr_t StripAuthentication(uintptr_t address) { return address; }

// Reads a word of another function's frame, which sanitizers may have closed to others.
TCMALLOC_ALWAYS_INLINE uintptr_t LoadWord(uintptr_t address) {
  uintptr_t word;
  asm("movq %1, %0" : "=r"(word) : "m"(*reinterpret_cast<const uintptr_t*>(address)));
  return word;
}

// Copies words, likewise.
TCMALLOC_ALWAYS_INLINE void CopyWords(uintptr_t from, void* to, size_t words) {
  asm volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(words) : : "memory");
}

// Reads the registers that functions preserve, the stack pointer and the address of the code that
// reads them.
TCMALLOC_ALWAYS_INLINE void ReadOwnRegisters(Registers* registers) {
  asm volatile(
      "movq %%rbx, 24(%0)\n\t"
      "movq %%rbp, 48(%0)\n\t"
      "movq %%rsp, 56(%0)\n\t"
      "movq %%r12, 96(%0)\n\t"
      "movq %%r13, 104(%0)\n\t"
      "movq %%r14, 112(%0)\n\t"
      "movq %%r15, 120(%0)\n\t"
      "leaq 1f(%%rip), %%rax\n"
      "1:\n\t"
      "movq %%rax, 128(%0)"
      :
      : "r"(registers->values)
      : "rax", "memory");
  registers->known = 1u << 3 | 1u << 6 | 1u << 7 | 0x1f000u;
}

// Where the kernel keeps the registers that a signal handler interrupted, in the handler's context.
inline constexpr size_t kContextWords = NGREG;
inline const uintptr_t* ContextWords(const ucontext_t& context) {
  return reinterpret_cast<const uintptr_t*>(context.uc_mcontext.gregs);
}
// Where among those words each register is.
inline constexpr int kContextPlaces[Registers::kCount] = {
    REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
    REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};

// Returns what the instruction wanted that raised SIGSEGV.
inline Access AccessOf(const ucontext_t& context) {
  constexpr greg_t kWriteBit = 2;  // of the page fault's error code
  return (context.uc_mcontext.gregs[REG_ERR] & kWriteBit) != 0 ? Access::kWrite : Access::kRead;
}

// The beginning of libunwind's names for its functions that walk the own process.
#define TCMALLOC_LIBUNWIND_NAME(name) "_ULx86_64_" name

// The code that a signal handler returns to: mov $15, %rax; syscall. The saved registers lie
// kContextWordsOffset bytes above its stack pointer.
inline constexpr unsigned char kSignalReturn[] = {0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05};
inline constexpr uintptr_t kContextWordsOffset = offsetof(ucontext_t, uc_mcontext.gregs);

}  // namespace tcmalloc::machine

#endif  // TCMALLOC_UNWIND_MACHINE_X86_64_H_
