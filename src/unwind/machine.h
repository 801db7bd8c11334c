// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Registers of the machine that stacks are walked on: the one place in this layer that selects an
// architecture.

#ifndef TCMALLOC_UNWIND_MACHINE_H_
#define TCMALLOC_UNWIND_MACHINE_H_

#include <cstddef>
#include <cstdint>

namespace tcmalloc {

// The registers of one frame that a caller's frame may be computed from, by the indexes that
// machine::RegisterIndex gives. Both architectures need as many.
struct Registers {
  static constexpr size_t kCount = 17;

  uintptr_t values[kCount];
  uint32_t known;  // a bit for each value that is valid

  bool Knows(size_t index) const { return (known >> index & 1) != 0; }
  void Set(size_t index, uintptr_t value) {
    values[index] = value;
    known |= uint32_t{1} << index;
  }
  void Forget(size_t index) { known &= ~(uint32_t{1} << index); }
};

namespace machine {

// The access that an instruction that faulted attempted.
enum class Access : uint8_t { kUnknown, kRead, kWrite };

}  // namespace machine

}  // namespace tcmalloc

#if defined(__x86_64__)
#include "unwind/machine_x86_64.h"
#elif defined(__aarch64__)
#include "unwind/machine_aarch64.h"
#endif

namespace tcmalloc::machine {

inline void ReadContext(const uintptr_t* words, Registers* registers) {
  for (size_t i = 0; i < Registers::kCount; ++i) registers->values[i] = words[kContextPlaces[i]];
  registers->known = kAllKnown;
}

// Sets the registers that are known.
inline void WriteContext(const Registers& registers, ucontext_t* context) {
  auto* words = const_cast<uintptr_t*>(ContextWords(*context));
  for (size_t i = 0; i < Registers::kCount; ++i) {
    if (registers.Knows(i)) words[kContextPlaces[i]] = registers.values[i];
  }
}

}  // namespace tcmalloc::machine

#endif  // TCMALLOC_UNWIND_MACHINE_H_
