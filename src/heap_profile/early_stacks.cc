// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "heap_profile/early_stacks.h"

#include <algorithm>
#include <cstring>

#include "base/attributes.h"
#include "heap_profile/caller_stack.h"
#include "unwind/stack_trace.h"

namespace tcmalloc {

constinit EarlyStacks early_stacks;

namespace {

// Copies words that sanitizers may have closed to others.
void CopyWords(uintptr_t from, std::byte* to, size_t bytes) {
  for (size_t i = 0; i < bytes; i += sizeof(uintptr_t)) {
    const uintptr_t word = machine::LoadWord(from + i);
    std::memcpy(to + i, &word, sizeof(word));
  }
}

}  // namespace

// Not inlined, so that its frame is there to be left out.
TCMALLOC_NOINLINE StackId EarlyStacks::Add(StackTable& stacks) {
  if (unwind_method() != UnwindMethod::kTables) return 0;
  Registers registers;
  machine::ReadOwnRegisters(&registers);
  const uintptr_t sp = registers.values[machine::kStackPointer];
  const size_t bytes = OwnStackBytesFrom(sp) & ~(sizeof(uintptr_t) - 1);
  if (bytes == 0 || bytes > kMostStackBytes || !TryEnter()) return 0;
  FreeUnused(stacks);
  StackId id = 0;
  if (Copy* copy = TakeCopy(stacks, (sizeof(registers) + bytes + kUnitBytes - 1) / kUnitBytes)) {
    std::byte* const memory = memory_of(*copy);
    std::memcpy(memory, &registers, sizeof(registers));
    const size_t whole = copy->units * kUnitBytes - sizeof(registers);
    CopyWords(sp, memory + sizeof(registers), bytes);
    // The walk ends where the stack does.
    std::memset(memory + sizeof(registers) + bytes, 0, whole - bytes);
    id = copy->stack;
    stacks.AddReference(id);
  }
  Leave();
  return id;
}

void EarlyStacks::WalkAll(StackTable& stacks) {
  if (!TryEnter()) return;
  for (Copy& copy : copies_) {
    if (copy.units == 0) continue;
    const std::byte* const memory = memory_of(copy);
    StackCopy stack;
    std::memcpy(&stack.registers, memory, sizeof(stack.registers));
    stack.stack = memory + sizeof(stack.registers);
    stack.bytes = copy.units * kUnitBytes - sizeof(stack.registers);
    const StackId id = copy.stack;
    stacks.Close(id, CallerStack(stack).frames());
    FreeUnits(copy);
    copy.stack = 0;
    stacks.Release(id);
  }
  Leave();
}

size_t EarlyStacks::copies() const {
  return static_cast<size_t>(
      std::ranges::count_if(copies_, [](const Copy& copy) { return copy.units != 0; }));
}

// Frees the copies of stacks that only this object refers to.
void EarlyStacks::FreeUnused(StackTable& stacks) {
  for (Copy& copy : copies_) {
    if (copy.units != 0 && stacks.Reopen(copy.stack)) FreeUnits(copy);
  }
}

// Returns a copy with a stack, whose memory has so many units; null if there is no room.
EarlyStacks::Copy* EarlyStacks::TakeCopy(StackTable& stacks, size_t units) {
  Copy* const copy = std::ranges::find(copies_, 0, &Copy::units);
  const size_t first = FindUnits(units);
  if (copy == copies_ + kMostCopies || first == kUnits) return nullptr;
  if (copy->stack == 0) copy->stack = stacks.NewOpen();
  if (copy->stack == 0) return nullptr;
  copy->first = static_cast<uint16_t>(first);
  copy->units = static_cast<uint16_t>(units);
  for (size_t i = first; i < first + units; ++i) used_.set(i);
  return copy;
}

// Returns the first of so many free units next to each other, kUnits if there are none.
size_t EarlyStacks::FindUnits(size_t units) const {
  size_t run = 0;
  for (size_t i = 0; i < kUnits; ++i) {
    run = used_[i] ? 0 : run + 1;
    if (run == units) return i + 1 - units;
  }
  return kUnits;
}

void EarlyStacks::FreeUnits(Copy& copy) {
  const size_t first = copy.first;
  const size_t units = copy.units;
  copy.units = 0;
  for (size_t i = first; i < first + units; ++i) used_.reset(i);
}

}  // namespace tcmalloc
