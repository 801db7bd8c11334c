// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Stacks that a thread was found in by walks.

#ifndef TCMALLOC_DEBUG_KEPT_STACKS_H_
#define TCMALLOC_DEBUG_KEPT_STACKS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/attributes.h"
#include "heap_profile/stack_table.h"

namespace tcmalloc {

// Walks of a recursion differ, but mostly lead to the same few stacks. Names of such stacks are
// here, with references to give, so that most walks change no memory that threads share. Guarded by
// its owner.
class KeptStacks {
 public:
  constexpr KeptStacks() = default;
  KeptStacks(const KeptStacks&) = delete;
  KeptStacks& operator=(const KeptStacks&) = delete;

  // Returns what stacks.Add(frames) would. `stacks` is always the same.
  StackId Keep(std::span<void* const> frames, StackTable& stacks) {
    const uint64_t hash = HashOf(frames);
    Slot& slot = slots_[hash >> (64 - kLog2Slots)];
    if (TCMALLOC_LIKELY(slot.stack != 0 && slot.hash == hash && Has(slot.stack, frames, stacks))) {
      if (TCMALLOC_UNLIKELY(slot.held == 1) && stacks.Retain(slot.stack, kRetained)) {
        slot.held += kRetained;
      }
      if (TCMALLOC_LIKELY(slot.held > 1)) {
        --slot.held;
        return slot.stack;
      }
    }
    return Add(frames, hash, slot, stacks);
  }

 private:
  static constexpr int kLog2Slots = 7;
  static constexpr uint32_t kRetained = 64;

  struct Slot {
    uint64_t hash = 0;
    StackId stack = 0;
    uint32_t held = 0;  // references to the stack; one at least, if there is one
  };

  // The multiplications do not wait for each other.
  static uint64_t HashOf(std::span<void* const> frames) {
    constexpr uint64_t kGolden = 0x9E37'79B9'7F4A'7C15;
    uint64_t factor = kGolden;
    uint64_t hash = 0;
    for (void* frame : frames) {
      hash += reinterpret_cast<uintptr_t>(frame) * factor;
      factor += 2 * kGolden;
    }
    return (hash ^ hash >> 29) * kGolden;
  }

  static bool Has(StackId stack, std::span<void* const> frames, const StackTable& stacks) {
    const std::span<const uintptr_t> held = stacks.FramesOfHeld(stack);
    return held.size() == frames.size() &&
           (frames.empty() || std::memcmp(held.data(), frames.data(), frames.size_bytes()) == 0);
  }

  TCMALLOC_NOINLINE static StackId Add(std::span<void* const> frames, uint64_t hash, Slot& slot,
                                       StackTable& stacks) {
    const StackId stack = stacks.Add(frames);
    if (stack == 0 || !stacks.Retain(stack)) return stack;
    if (slot.stack != 0) stacks.Release(slot.stack, slot.held);
    slot = {hash, stack, 1};
    return stack;
  }

  Slot slots_[size_t{1} << kLog2Slots] = {};
};

}  // namespace tcmalloc

#endif  // TCMALLOC_DEBUG_KEPT_STACKS_H_
