// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "heap_profile/early_stacks.h"

#include <algorithm>
#include <cstring>

#include "base/attributes.h"
#include "heap_profile/caller_stack.h"
#include "unwind/stack_trace.h"

namespace tcmalloc {

constinit EarlyStacks early_stacks;

bool EarlyStacks::Claim(Slot& slot, State from) {
  // Acquire pairs with the releases in Add and WalkAll: the slot is complete.
  return slot.state.load(std::memory_order_relaxed) == from &&
         slot.state.compare_exchange_strong(from, State::kClaimed, std::memory_order_acquire,
                                            std::memory_order_relaxed);
}

// Claims a slot that is empty, or whose stack nobody else refers to.
bool EarlyStacks::ClaimForNew(Slot& slot, StackTable& stacks) {
  if (Claim(slot, State::kEmpty)) return true;
  const StackId stack = slot.stack;
  if (stack == 0 || !stacks.HasOneReference(stack) || !Claim(slot, State::kHeld)) return false;
  if (stacks.Reopen(slot.stack)) return true;
  // Release pairs with the acquire in Claim.
  slot.state.store(State::kHeld, std::memory_order_release);
  return false;
}

// Returns a slot for a copy of `bytes` bytes that has a stack; null if there is no room.
EarlyStacks::Slot* EarlyStacks::ClaimOne(StackTable& stacks, size_t bytes) {
  Slot* slot = slots_;
  for (const Size& size : kSizes) {
    Slot* const end = slot + size.slots;
    for (; slot != end; ++slot) {
      if (bytes > size.bytes || !ClaimForNew(*slot, stacks)) continue;
      if (slot->stack == 0) slot->stack = stacks.NewOpen();
      if (slot->stack != 0) return slot;
      // Release pairs with the acquire in Claim.
      slot->state.store(State::kEmpty, std::memory_order_release);
      return nullptr;
    }
  }
  return nullptr;
}

// Returns where the copy of a slot lies.
uintptr_t* EarlyStacks::MemoryOf(const Slot& slot) {
  auto index = static_cast<size_t>(&slot - slots_);
  uintptr_t* memory = memory_;
  for (const Size& size : kSizes) {
    const size_t before = std::min(index, size.slots);
    memory += before * (size.bytes / sizeof(uintptr_t));
    index -= before;
  }
  return memory;
}

// Not inlined, so that its frame is there to be left out.
TCMALLOC_NOINLINE StackId EarlyStacks::Add(StackTable& stacks) {
  if (unwind_method() != UnwindMethod::kTables) return 0;
  Registers registers;
  machine::ReadOwnRegisters(&registers);
  const uintptr_t sp = registers.values[machine::kStackPointer];
  const size_t words = OwnStackBytesFrom(sp) / sizeof(uintptr_t);
  if (words == 0) return 0;
  Slot* const slot = ClaimOne(stacks, sizeof(registers) + words * sizeof(uintptr_t));
  if (slot == nullptr) return 0;
  uintptr_t* const memory = MemoryOf(*slot);
  std::memcpy(memory, &registers, sizeof(registers));
  machine::CopyWords(sp, memory + sizeof(registers) / sizeof(uintptr_t), words);
  slot->stack_bytes = static_cast<uint32_t>(words * sizeof(uintptr_t));
  const StackId id = slot->stack;
  stacks.AddReference(id);
  // Release pairs with the acquire in Claim and publishes the copy.
  slot->state.store(State::kHeld, std::memory_order_release);
  return id;
}

void EarlyStacks::WalkAll(StackTable& stacks) {
  for (Slot& slot : slots_) {
    if (!Claim(slot, State::kHeld)) continue;
    const uintptr_t* const memory = MemoryOf(slot);
    Registers registers;
    std::memcpy(&registers, memory, sizeof(registers));
    const StackId id = slot.stack;
    stacks.Close(id, CallerStack({.registers = registers,
                                  .stack = memory + sizeof(registers) / sizeof(uintptr_t),
                                  .bytes = slot.stack_bytes})
                         .frames());
    slot.stack = 0;
    // Release pairs with the acquire in Claim.
    slot.state.store(State::kEmpty, std::memory_order_release);
    stacks.Release(id);
  }
}

size_t EarlyStacks::copies() const {
  return static_cast<size_t>(std::ranges::count_if(slots_, [](const Slot& slot) {
    return slot.state.load(std::memory_order_relaxed) == State::kHeld;
  }));
}

}  // namespace tcmalloc
