// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Stacks of a small program, which are copied and not walked until somebody wants to see them.

#ifndef TCMALLOC_HEAP_PROFILE_EARLY_STACKS_H_
#define TCMALLOC_HEAP_PROFILE_EARLY_STACKS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/relaxed.h"
#include "heap_profile/stack_table.h"
#include "unwind/machine.h"

namespace tcmalloc {

// A walk reads unwind tables of the program and of each library on the stack, which the kernel maps
// sixteen pages at a time: some 400 KiB, more than a tenth of what many small programs have. A copy
// of the stack takes as many pages as the stack has.
//
// Each copy belongs to an open stack of the StackTable, which gets its frames when the copies are
// walked. A copy whose stack nobody refers to any more makes room for the next one, with its stack.
//
// Thread safe, without a lock; async-signal-safe. All zero at first.
class EarlyStacks {
 public:
  constexpr EarlyStacks() = default;
  EarlyStacks(const EarlyStacks&) = delete;
  EarlyStacks& operator=(const EarlyStacks&) = delete;

  // Copies the stack of the running thread. Returns a stack of `stacks` with a reference for the
  // caller; 0 if the stack has to be walked now, because it is no thread's own, is deep, or there
  // are many copies in use.
  StackId Add(StackTable& stacks);

  // Gives all stacks their frames, but for those that another thread is adding or walking.
  void WalkAll(StackTable& stacks);

  size_t copies() const;

 private:
  static constexpr size_t kMostCopies = 48;
  static constexpr size_t kCopyBytes = size_t{24} << 10;
  static constexpr size_t kStackBytes = kCopyBytes - sizeof(Registers);
  static_assert(sizeof(Registers) % sizeof(uintptr_t) == 0);

  enum class State : uint32_t {
    kEmpty,
    kClaimed,  // by a thread, to which all else belongs
    kHeld,     // a copy, and a reference to its stack
  };

  struct Slot {
    std::atomic<State> state;
    // Of a slot that is empty, one that nobody else refers to, or 0.
    Relaxed<StackId> stack;
    uint32_t stack_bytes;
  };

  // A page of a copy that is not used is not touched.
  struct alignas(4096) Memory {
    Registers registers;
    uintptr_t stack[kStackBytes / sizeof(uintptr_t)];
  };
  static_assert(sizeof(Memory) == kCopyBytes);

  bool Claim(Slot& slot, State from);
  bool ClaimForNew(Slot& slot, StackTable& stacks);
  Slot* ClaimOne(StackTable& stacks);

  Slot slots_[kMostCopies] = {};
  Memory memory_[kMostCopies] = {};
};

extern constinit EarlyStacks early_stacks;

}  // namespace tcmalloc

#endif  // TCMALLOC_HEAP_PROFILE_EARLY_STACKS_H_
