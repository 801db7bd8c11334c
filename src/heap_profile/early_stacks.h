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
// takes the room of a few stacks of its size, which lie one after the other.
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
  // are many copies of its size in use.
  StackId Add(StackTable& stacks);

  // Gives all stacks their frames, but for those that another thread is adding or walking.
  void WalkAll(StackTable& stacks);

  size_t copies() const;

 private:
  // A copy is the registers, and behind them the words of the stack.
  static_assert(sizeof(Registers) % sizeof(uintptr_t) == 0);

  // Slots for copies of at most `bytes` bytes.
  struct Size {
    size_t bytes;
    size_t slots;
  };
  // Most programs have 1.5 to 2.5 KiB on the stack of their first thread. Other threads have some
  // 2.5 KiB more, because their thread-local variables lie at its end.
  static constexpr Size kSizes[] = {
      {size_t{5} << 9, 32},
      {size_t{5} << 10, 48},
      {size_t{24} << 10, 16},
  };
  static constexpr size_t kSlots = kSizes[0].slots + kSizes[1].slots + kSizes[2].slots;
  static constexpr size_t kMemoryBytes = kSizes[0].bytes * kSizes[0].slots +
                                         kSizes[1].bytes * kSizes[1].slots +
                                         kSizes[2].bytes * kSizes[2].slots;

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

  bool Claim(Slot& slot, State from);
  bool ClaimForNew(Slot& slot, StackTable& stacks);
  Slot* ClaimOne(StackTable& stacks, size_t bytes);
  uintptr_t* MemoryOf(const Slot& slot);

  alignas(64) uintptr_t memory_[kMemoryBytes / sizeof(uintptr_t)] = {};
  // Last, because libs/rare_text.ld puts the variables of the table of stacks behind them.
  Slot slots_[kSlots] = {};
};

extern constinit EarlyStacks early_stacks;

}  // namespace tcmalloc

#endif  // TCMALLOC_HEAP_PROFILE_EARLY_STACKS_H_
