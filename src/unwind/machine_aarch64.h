// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Registers of aarch64: x16 to x30 and the stack pointer, in the order of DWARF, and the address of
// the code. Include unwind/machine.h.

#ifndef TCMALLOC_UNWIND_MACHINE_AARCH64_H_
#define TCMALLOC_UNWIND_MACHINE_AARCH64_H_

#include <signal.h>
#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/attributes.h"

namespace tcmalloc::machine {

inline constexpr uint64_t kFirstDwarfRegister = 16;
inline constexpr int kFramePointer = 29 - 16;
inline constexpr int kStackPointer = 31 - 16;
inline constexpr int kPc = 16;
// The register that a compact rule restores beside the frame pointer: the one with the return
// address, x30.
inline constexpr int kExtra = 30 - 16;
inline constexpr bool kExtraIsReturnAddress = true;
inline constexpr uint32_t kAllKnown = (uint32_t{1} << Registers::kCount) - 1;

inline constexpr uintptr_t kRedZone = 0;
inline constexpr uintptr_t kFrameRecordBytes = 16;
inline constexpr uintptr_t kFrameAlignment = 16;

constexpr int RegisterIndex(uint64_t dwarf) {
  return dwarf >= kFirstDwarfRegister && dwarf <= 31 ? static_cast<int>(dwarf - kFirstDwarfRegister)
                                                     : -1;
}

// Removes the signature that a return address may carry. The instruction does nothing on processors
// that do not sign pointers.
TCMALLOC_ALWAYS_INLINE uintptr_t StripAuthentication(uintptr_t address) {
  register uintptr_t link asm("x30") = address;
  asm("hint #7" : "+r"(link));  // xpaclri
  return link;
}

TCMALLOC_ALWAYS_INLINE uintptr_t LoadWord(uintptr_t address) {
  uintptr_t word;
  asm("ldr %0, %1" : "=r"(word) : "m"(*reinterpret_cast<const uintptr_t*>(address)));
  return word;
}

TCMALLOC_ALWAYS_INLINE void CopyWords(uintptr_t from, void* to, size_t words) {
  auto* const copies = static_cast<uintptr_t*>(to);
  for (size_t i = 0; i < words; ++i) copies[i] = LoadWord(from + i * sizeof(uintptr_t));
}

TCMALLOC_ALWAYS_INLINE void ReadOwnRegisters(Registers* registers) {
  asm volatile(
      "stp x19, x20, [%0, #24]\n\t"
      "stp x21, x22, [%0, #40]\n\t"
      "stp x23, x24, [%0, #56]\n\t"
      "stp x25, x26, [%0, #72]\n\t"
      "stp x27, x28, [%0, #88]\n\t"
      "stp x29, x30, [%0, #104]\n\t"
      "mov x9, sp\n\t"
      "adr x10, .\n\t"
      "stp x9, x10, [%0, #120]"
      :
      : "r"(registers->values)
      : "x9", "x10", "memory");
  registers->known = kAllKnown & ~uint32_t{7};
}

// x0 to x30, the stack pointer and the address of the code follow each other.
inline constexpr size_t kContextWords = 33;
inline const uintptr_t* ContextWords(const ucontext_t& context) {
  return reinterpret_cast<const uintptr_t*>(context.uc_mcontext.regs);
}
inline constexpr int kContextPlaces[Registers::kCount] = {16, 17, 18, 19, 20, 21, 22, 23, 24,
                                                          25, 26, 27, 28, 29, 30, 31, 32};

// Returns what the instruction wanted that raised SIGSEGV: the syndrome is in one of the records
// behind the registers, which a record without bytes ends.
inline Access AccessOf(const ucontext_t& context) {
  struct Record {
    uint32_t magic;
    uint32_t bytes;
    uint64_t syndrome;
  };
  constexpr uint32_t kSyndromeMagic = 0x45535201;
  constexpr uint64_t kWriteBit = 1 << 6;
  const auto& space = context.uc_mcontext.__reserved;
  for (size_t at = 0; at + sizeof(Record) <= sizeof(space);) {
    Record record;
    std::memcpy(&record, &space[at], sizeof(record));
    if (record.magic == kSyndromeMagic) {
      return (record.syndrome & kWriteBit) != 0 ? Access::kWrite : Access::kRead;
    }
    if (record.bytes == 0) break;
    at += record.bytes;
  }
  return Access::kUnknown;
}

#define TCMALLOC_LIBUNWIND_NAME(name) "_ULaarch64_" name

// mov x8, #139; svc #0
inline constexpr unsigned char kSignalReturn[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4};
inline constexpr uintptr_t kContextWordsOffset =
    sizeof(siginfo_t) + offsetof(ucontext_t, uc_mcontext.regs);

}  // namespace tcmalloc::machine

#endif  // TCMALLOC_UNWIND_MACHINE_AARCH64_H_
