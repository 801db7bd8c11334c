// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Walks a stack from frame to frame.

#ifndef TCMALLOC_UNWIND_WALKER_H_
#define TCMALLOC_UNWIND_WALKER_H_

#include <cstdint>

#include "unwind/cfi.h"
#include "unwind/loaded_objects.h"
#include "unwind/machine.h"
#include "unwind/readable_memory.h"
#include "unwind/rule_cache.h"

namespace tcmalloc {

enum class StepResult : uint8_t {
  kCaller,         // moved to the caller
  kEnd,            // there is no caller, or it cannot be found
  kNeedsRegister,  // a register is needed that compact rules do not restore
};

// Allocates nothing, takes no lock and reads nothing that is not mapped.
class Walker {
 public:
  // Compact rules are fast, and lose all registers but those that nearly every function needs.
  enum class Precision : uint8_t { kFewRegisters, kAllRegisters };

  // Begins at the function with these registers. `at_call` tells that it is making a call, and was
  // not interrupted. `objects` is this walk's until its end.
  Walker(const Registers& registers, bool at_call, Precision precision, KnownObjects& objects);

  // Begins at a function that made a call with these registers when the words from its stack
  // pointer on were copied. All that ran then may be gone by now.
  Walker(const Registers& registers, Precision precision, KnownObjects& objects,
         const CopiedWords& copy);

  // Lets searches in tables begin where earlier ones ended. `tables` is this walk's until its
  // end.
  void UseTableMemory(TableMemory& tables) { tables_ = &tables; }

  // Moves to the caller by the tables, or by the frame pointer where they say nothing.
  StepResult Step();
  // Moves to the caller by the frame pointer.
  StepResult StepByFramePointer();
  // True if the frame pointer leads to the caller: the tables say that it points to the function's
  // record, or say nothing.
  bool HasFrameRecord();
  // True if the address lies in an object, or in other memory that can be read, as that of a JIT
  // compiler.
  bool MayBeCode();

  // Returns true if the function makes a call, and false if it was interrupted.
  bool at_call() const { return at_call_; }
  uintptr_t pc() const { return registers_.values[machine::kPc]; }
  uintptr_t sp() const { return registers_.values[machine::kStackPointer]; }
  const Registers& registers() const { return registers_; }
  StackMemory& memory() { return memory_; }
  ObjectsOfWalk& objects() { return objects_; }

  // The rule of the last step; kNone if it went another way, or began where no table vouches for
  // it.
  CompactRule last_rule() const { return last_rule_; }

  // Moves to a frame further up, which makes a call. `sp` and `pc` are its own, and the registers
  // that compact rules restore are in these places; 0 stands for a register that is as it was.
  bool MoveUp(uintptr_t sp, uintptr_t pc, uintptr_t frame_pointer_at, uintptr_t extra_at);

 private:
  StepResult StepByRule(CompactRule rule);
  StepResult StepByTables(const LoadedObject& object, uintptr_t address);
  StepResult StepOutOfHandler();
  StepResult MoveTo(uintptr_t frame, uintptr_t pc);
  CompactRule RuleOf(const LoadedObject& object, uintptr_t address);
  bool IsAtRecord(CompactRule rule, uintptr_t base) const;
  CompactRule FindRule(const LoadedObject& object, uintptr_t address);
  bool FindFrame(const LoadedObject& object, const FrameRules& rules, uintptr_t* frame,
                 StepResult* failure);
  bool FindRegister(const LoadedObject& object, const RegisterRule& rule, uintptr_t frame,
                    size_t index, Registers* caller);
  bool IsSignalReturn() const;
  // Forgets all registers that compact rules do not restore.
  void KeepFew() {
    registers_.known &= uint32_t{1} << machine::kFramePointer | uint32_t{1} << machine::kExtra |
                        uint32_t{1} << machine::kStackPointer | uint32_t{1} << machine::kPc;
  }

  Registers registers_;
  StackMemory memory_;
  ObjectsOfWalk objects_;
  TableMemory* tables_ = nullptr;
  CompactRule last_rule_;
  bool at_call_;
  bool keeps_all_;
  // A frame pointer was followed that no table vouched for, or what ran may be gone.
  bool guessed_ = false;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_UNWIND_WALKER_H_
