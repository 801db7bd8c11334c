// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "heap_profile/early_stacks.h"

#include <algorithm>
#include <bit>
#include <cerrno>

#include "base/attributes.h"
#include "base/bits.h"
#include "heap_profile/caller_stack.h"
#include "system/address_window.h"
#include "system/own_memory.h"

namespace tcmalloc {

constinit EarlyStacks early_stacks;

uint32_t EarlyStacks::all_units() const {
  const uintptr_t mapped = memory();
  return mapped != 0 ? static_cast<uint32_t>(BytesOf(mapped) / kUnit) : 0;
}

// Maps the memory of the slots if need be. Returns true if there is some.
bool EarlyStacks::HasMemory() {
  if (TCMALLOC_LIKELY(memory() != 0)) return true;
  const int saved_errno = errno;
  const size_t share = AddressSpaceLimit() / kLimitShare;
  errno = saved_errno;
  const size_t bytes = std::bit_floor(std::clamp(share, kFewestBytes, kMemoryBytes));
  void* mapped = MapSparse(bytes);
  if (mapped == nullptr) return memory() != 0;
  uintptr_t none = 0;
  const auto log2 = static_cast<uintptr_t>(std::countr_zero(bytes));
  // Release pairs with the acquire in memory.
  if (!memory_.compare_exchange_strong(none, reinterpret_cast<uintptr_t>(mapped) | log2,
                                       std::memory_order_release, std::memory_order_relaxed)) {
    UnmapSparse(mapped, bytes);
  }
  return true;
}

uint32_t EarlyStacks::WordAt(uint32_t unit) {
  // Acquire pairs with the releases in Leave and ClaimFresh: a slot that is there has its size.
  return unit < all_units() ? SlotAt(unit).word.load(std::memory_order_acquire) : 0;
}

// Gives up a claimed slot.
void EarlyStacks::Leave(Slot& slot, State state) {
  const uint32_t units = UnitsOf(slot.word.load(std::memory_order_relaxed));
  // Release pairs with the acquire in Claim and publishes the copy.
  slot.word.store(WordOf(units, state), std::memory_order_release);
}

bool EarlyStacks::Claim(Slot& slot, State from) {
  uint32_t word = slot.word.load(std::memory_order_relaxed);
  // Acquire pairs with the release in Leave: the slot is complete.
  return StateOf(word) == from &&
         slot.word.compare_exchange_strong(word, WordOf(UnitsOf(word), State::kClaimed),
                                           std::memory_order_acquire, std::memory_order_relaxed);
}

// Claims a slot that is empty, or whose stack nobody else refers to.
bool EarlyStacks::ClaimForNew(Slot& slot, StackTable& stacks) {
  if (Claim(slot, State::kEmpty)) return true;
  const StackId stack = slot.stack;
  if (stack == 0 || !stacks.HasOneReference(stack) || !Claim(slot, State::kHeld)) return false;
  if (stacks.Reopen(slot.stack)) return true;
  Leave(slot, State::kHeld);
  return false;
}

// Claims a slot of `units` units or some more; null if none is found among the next ones.
EarlyStacks::Slot* EarlyStacks::ClaimUsed(StackTable& stacks, uint32_t units) {
  const uint32_t begin = probe_;
  uint32_t unit = begin;
  for (uint32_t probes = 0; probes < kMostProbes; ++probes) {
    const uint32_t word = WordAt(unit);
    if (word == 0) {
      if (unit == 0 || begin == 0) break;
      unit = 0;
      continue;
    }
    const uint32_t has = UnitsOf(word);
    if (has >= units && has <= kMostSpare * units && ClaimForNew(SlotAt(unit), stacks))
      return &SlotAt(unit);
    unit += has;
    if (unit == begin) break;
  }
  probe_ = WordAt(unit) == 0 ? 0 : unit;
  return nullptr;
}

// Makes a slot behind the others; null if that would take too much of the room that is left, so
// that a few deep stacks leave it to many others.
EarlyStacks::Slot* EarlyStacks::ClaimFresh(uint32_t units) {
  uint32_t unit = end_;
  while (units <= (all_units() - unit) / kLeastFits) {
    Slot& slot = SlotAt(unit);
    uint32_t word = 0;
    // Release pairs with the acquire in WordAt. Acquire pairs with the release in ClaimFresh, where
    // another thread has made a slot here.
    if (slot.word.compare_exchange_strong(word, WordOf(units, State::kClaimed),
                                          std::memory_order_acq_rel, std::memory_order_acquire)) {
      own_bytes.Add(units * kUnit);
      end_ = unit + units;
      return &slot;
    }
    unit += UnitsOf(word);
  }
  return nullptr;
}

// Returns the units of a slot for `bytes` bytes. Larger slots have fewer sizes, so that copies of
// other depths find room in them.
uint32_t EarlyStacks::UnitsFor(size_t bytes) {
  const auto units = static_cast<uint32_t>((bytes + kUnit - 1) / kUnit);
  const uint32_t step = std::max(std::bit_floor(units) / 4, uint32_t{1});
  return (units + step - 1) / step * step;
}

// Returns a slot for `bytes` bytes, with the slot's own, that has a stack; null if there is no
// room.
EarlyStacks::Slot* EarlyStacks::ClaimOne(StackTable& stacks, size_t bytes) {
  const uint32_t units = UnitsFor(bytes);
  Slot* slot = ClaimUsed(stacks, units);
  if (slot == nullptr) slot = ClaimFresh(units);
  if (slot == nullptr) return nullptr;
  if (slot->stack == 0) slot->stack = stacks.NewOpen();
  if (slot->stack != 0) return slot;
  Leave(*slot, State::kEmpty);
  return nullptr;
}

// Not inlined, so that its frame is there to be left out.
TCMALLOC_NOINLINE StackId EarlyStacks::Add(StackTable& stacks) {
  if (unwind_method() != UnwindMethod::kTables) return 0;
  Registers registers;
  machine::ReadOwnRegisters(&registers);
  const uintptr_t sp = registers.values[machine::kStackPointer];
  const StackExtent extent = OwnStackFrom(sp);
  const size_t bytes = sizeof(Slot) + extent.copied();
  if (extent.bytes == 0 || bytes > kMostBytes || !HasMemory()) return 0;
  Slot* const slot = ClaimOne(stacks, bytes);
  if (slot == nullptr) return 0;
  slot->extent = extent;
  slot->registers = registers;
  uintptr_t* const words = slot->words();
  machine::CopyWords(sp, words, extent.bytes / sizeof(uintptr_t));
  machine::CopyWords(sp + extent.bytes + extent.zero_bytes,
                     words + extent.bytes / sizeof(uintptr_t),
                     extent.bytes_after / sizeof(uintptr_t));
  const StackId id = slot->stack;
  stacks.AddReference(id);
  Leave(*slot, State::kHeld);
  return id;
}

// Calls f(Slot&) for each slot.
template <typename F>
void EarlyStacks::ForEachSlot(F f) {
  uint32_t unit = 0;
  while (const uint32_t word = WordAt(unit)) {
    f(SlotAt(unit));
    unit += UnitsOf(word);
  }
}

void EarlyStacks::WalkAll(StackTable& stacks) {
  ForEachSlot([&stacks](Slot& slot) {
    if (!Claim(slot, State::kHeld)) return;
    const StackId id = slot.stack;
    stacks.Close(id, CallerStack({.registers = slot.registers,
                                  .stack = {.words = slot.words(),
                                            .bytes = slot.extent.bytes,
                                            .zero_bytes = slot.extent.zero_bytes,
                                            .bytes_after = slot.extent.bytes_after}})
                         .frames());
    slot.stack = 0;
    Leave(slot, State::kEmpty);
    stacks.Release(id);
  });
}

size_t EarlyStacks::copies() {
  size_t count = 0;
  ForEachSlot([&count](Slot& slot) {
    count += StateOf(slot.word.load(std::memory_order_relaxed)) == State::kHeld;
  });
  return count;
}

}  // namespace tcmalloc
