// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "guarded/fault_report.h"

#include "base/message.h"
#include "profile_format/symbolizer.h"

namespace tcmalloc {
namespace {

const void* AsPointer(uintptr_t value) { return reinterpret_cast<const void*>(value); }

void Write(const Message& line) { WriteCrashLine(line); }

const char* NameOf(machine::Access access) {
  if (access == machine::Access::kRead) return "read of ";
  return access == machine::Access::kWrite ? "write to " : "access to ";
}

// Writes what was done, as "use after free: read of 0x7f00, byte 3 of the freed block of ...".
void WriteFirstLine(const GuardedFault& fault) {
  const GuardedSlot& slot = *fault.slot;
  const bool freed = slot.state.load(std::memory_order_relaxed) == GuardedSlot::State::kFreed;
  const bool before = fault.address < slot.begin;
  const bool inside = !before && fault.address < slot.end();
  const uint64_t byte = before   ? slot.begin - fault.address
                        : inside ? fault.address - slot.begin
                                 : fault.address - slot.end() + 1;
  Message line;
  line << (freed    ? "use after free: "
           : before ? "underflow: "
                    : "overflow: ")
       << NameOf(fault.access) << AsPointer(fault.address) << ", byte " << byte
       << (inside   ? " of"
           : before ? " before"
                    : " behind")
       << " the " << (freed ? "freed " : "") << "block of " << uint64_t{slot.size} << " bytes at "
       << AsPointer(slot.begin);
  WriteFirstCrashLine(line);
}

// Writes one frame. The first address of an interrupted stack is that of an instruction, others
// are those to which calls return.
void WriteFrame(const Symbolizer* symbolizer, uintptr_t address, bool is_instruction) {
  Message line;
  line << "    @ " << AsPointer(address);
  if (symbolizer != nullptr) symbolizer->Describe(address + (is_instruction ? 1 : 0), line);
  Write(line);
}

void WriteStack(const Symbolizer* symbolizer, const char* title, const GuardedStack& stack,
                bool interrupted) {
  if (stack.count == 0) return;
  Write(Message() << "    " << title << " by thread " << stack.thread << ":");
  for (uint32_t i = 0; i < stack.count; ++i) {
    WriteFrame(symbolizer, reinterpret_cast<uintptr_t>(stack.frames[i]), interrupted && i == 0);
  }
}

void WriteStacksOf(const Symbolizer* symbolizer, const GuardedSlot& slot) {
  WriteStack(symbolizer, "allocated", slot.allocated, /*interrupted=*/false);
  if (slot.state.load(std::memory_order_relaxed) != GuardedSlot::State::kFreed) return;
  WriteStack(symbolizer, "freed", slot.freed, /*interrupted=*/false);
}

void WriteFaultWith(const Symbolizer* symbolizer, const GuardedFault& fault) {
  WriteFirstLine(fault);
  WriteStack(symbolizer, "accessed", fault.stack, /*interrupted=*/true);
  WriteStacksOf(symbolizer, *fault.slot);
}

}  // namespace

void WriteFault(const GuardedFault& fault, bool names) {
  if (!names) return WriteFaultWith(nullptr, fault);
  const Symbolizer symbolizer(/*names=*/true);
  WriteFaultWith(&symbolizer, fault);
}

void WriteGuardedStacks(const void* address) {
  const GuardedSlot* slot = guarded_blocks.FindNearest(reinterpret_cast<uintptr_t>(address));
  if (slot == nullptr) return;
  const Symbolizer symbolizer(/*names=*/true);
  WriteStacksOf(&symbolizer, *slot);
}

}  // namespace tcmalloc
