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

  // Takes over a reference to a stack, which may be 0.
  TCMALLOC_ALWAYS_INLINE void Add(StackId stack, StackTable& stacks) {
    Slot& slot = slots_[stack / kStackIdStep % kSlots];
    if (TCMALLOC_UNLIKELY(slot.stack != stack || slot.count == kMost)) {
      if (slot.stack != 0) stacks.Release(slot.stack, slot.count);
      slot = {stack, 0};
    }
    ++slot.count;
  }

 private:
  static constexpr size_t kSlots = 32;
  static constexpr uint32_t kMost = 64;

  struct Slot {
    StackId stack = 0;
    uint32_t count = 0;
  };

  Slot slots_[kSlots] = {};
};

}  // namespace tcmalloc

#endif  // TCMALLOC_DEBUG_RELEASED_STACKS_H_
