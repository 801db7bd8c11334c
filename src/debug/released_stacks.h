// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// References to stacks that a thread gives back many at a time.

#ifndef TCMALLOC_DEBUG_RELEASED_STACKS_H_
#define TCMALLOC_DEBUG_RELEASED_STACKS_H_

#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "heap_profile/stack_table.h"

namespace tcmalloc {

// Most blocks were allocated and freed in few places. Their references are counted here first, so
// that most calls change no memory that threads share. Guarded by its owner.
class ReleasedStacks {
 public:
  constexpr ReleasedStacks() = default;
  ReleasedStacks(const ReleasedStacks&) = delete;
  ReleasedStacks& operator=(const ReleasedStacks&) = delete;

  // Takes over a reference to a stack, which may be 0, unless another stack would have to go.
  [[nodiscard]] TCMALLOC_ALWAYS_INLINE bool TryAdd(StackId stack) {
    Slot& slot = SlotOf(stack);
    if (TCMALLOC_UNLIKELY(slot.stack != stack || slot.count == kMost)) return false;
    ++slot.count;
    return true;
  }
  // Takes over a reference in any case.
  void Add(StackId stack, StackTable& stacks) {
    if (TryAdd(stack)) return;
    Slot& slot = SlotOf(stack);
    if (slot.stack != 0) stacks.Release(slot.stack, slot.count);
    slot = {stack, 1};
  }

 private:
  static constexpr size_t kSlots = 128;
  static constexpr uint32_t kMost = 64;

  struct Slot {
    StackId stack = 0;
    uint32_t count = 0;
  };

  Slot& SlotOf(StackId stack) { return slots_[stack / kStackIdStep % kSlots]; }

  Slot slots_[kSlots] = {};
};

}  // namespace tcmalloc

#endif  // TCMALLOC_DEBUG_RELEASED_STACKS_H_
