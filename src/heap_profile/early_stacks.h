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
#include "unwind/stack_trace.h"

namespace tcmalloc {

// A walk reads unwind tables of the program and of each library on the stack, which the kernel maps
// sixteen pages at a time: some 400 KiB, more than a tenth of what many small programs have. A copy
// takes one or two KiB.
//
// Copies lie one after the other, each in a slot of the size that its first one had. Each belongs
// to an open stack of the StackTable, which gets its frames when the copies are walked. A copy
// whose stack nobody refers to any more makes room for the next one, with its stack.
//
// The memory of all slots is mapped for the first copy. Thread safe, without a lock;
// async-signal-safe. All zero at first.
class EarlyStacks {
 public:
  constexpr EarlyStacks() = default;
  EarlyStacks(const EarlyStacks&) = delete;
  EarlyStacks& operator=(const EarlyStacks&) = delete;

  // Copies the stack of the running thread. Returns a stack of `stacks` with a reference for the
  // caller; 0 if the stack has to be walked now, because it is no thread's own, is deep, or there
  // is no room.
  StackId Add(StackTable& stacks);

  // Gives all stacks their frames, but for those that another thread is adding or walking.
  void WalkAll(StackTable& stacks);

  size_t copies();

  // Larger copies are not made.
  static constexpr size_t kMostBytes = size_t{160} << 10;
  // The bytes of all slots, unless that is more than its share of a limit of the address space.
  static constexpr size_t kMemoryBytes = size_t{4} << 20;
  static constexpr size_t kLimitShare = 256;

 private:
  enum class State : uint32_t {
    kEmpty,
    kClaimed,  // by a thread, to which all else belongs
    kHeld,     // a copy, and a reference to its stack
  };
  static constexpr unsigned kStateBits = 2;
  static constexpr uint32_t kStateMask = (1 << kStateBits) - 1;

  // Precedes the words of its copy.
  struct Slot {
    // The units of the slot and, in the lowest bits, its state. 0 behind the last slot. The units
    // stay as they are.
    std::atomic<uint32_t> word;
    // Of a slot that is empty, one that nobody else refers to, or 0.
    Relaxed<StackId> stack;
    StackExtent extent;
    Registers registers;

    uintptr_t* words() { return reinterpret_cast<uintptr_t*>(this + 1); }
  };

  // Slots begin at multiples of a unit.
  static constexpr size_t kUnit = 512;
  static constexpr size_t kFewestBytes = size_t{64} << 10;
  // Copies do not take slots that are so many times larger, which deep stacks need.
  static constexpr uint32_t kMostSpare = 4;
  // A new slot would fit so many times into the room that is left.
  static constexpr uint32_t kLeastFits = 8;
  // Bounds the slots at which one copy looks for room.
  static constexpr uint32_t kMostProbes = 32;

  static State StateOf(uint32_t word) { return static_cast<State>(word & kStateMask); }
  static uint32_t UnitsOf(uint32_t word) { return word >> kStateBits; }
  static uint32_t WordOf(uint32_t units, State state) {
    return units << kStateBits | static_cast<uint32_t>(state);
  }

  // The mapping, and the base-2 logarithm of its bytes in the bits that are zero in an address.
  static constexpr uintptr_t kLog2Mask = 63;
  static size_t BytesOf(uintptr_t memory) { return size_t{1} << (memory & kLog2Mask); }

  // Acquire pairs with the release in HasMemory: the memory is zero.
  uintptr_t memory() const { return memory_.load(std::memory_order_acquire); }
  // Returns the number of units of all slots; 0 if nothing is mapped.
  uint32_t all_units() const;
  Slot& SlotAt(uint32_t unit) {
    return *reinterpret_cast<Slot*>((memory() & ~kLog2Mask) + unit * kUnit);
  }
  bool HasMemory();
  // Returns the word of the slot at `unit`; 0 if there is none.
  uint32_t WordAt(uint32_t unit);
  static uint32_t UnitsFor(size_t bytes);
  static void Leave(Slot& slot, State state);
  static bool Claim(Slot& slot, State from);
  static bool ClaimForNew(Slot& slot, StackTable& stacks);
  Slot* ClaimUsed(StackTable& stacks, uint32_t units);
  Slot* ClaimFresh(uint32_t units);
  Slot* ClaimOne(StackTable& stacks, size_t bytes);
  template <typename F>
  void ForEachSlot(F f);

  Relaxed<uint32_t> probe_ = 0;  // the unit at which the next search begins
  Relaxed<uint32_t> end_ = 0;    // a unit at which a slot begins, or the first behind all slots
  std::atomic<uintptr_t> memory_{0};
};

extern constinit EarlyStacks early_stacks;

}  // namespace tcmalloc

#endif  // TCMALLOC_HEAP_PROFILE_EARLY_STACKS_H_
