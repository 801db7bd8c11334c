// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Call frame information: how the registers of a caller are computed from those of the function
// that it called, as .eh_frame tells it.

#ifndef TCMALLOC_UNWIND_CFI_H_
#define TCMALLOC_UNWIND_CFI_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "unwind/loaded_objects.h"
#include "unwind/machine.h"

namespace tcmalloc {

// Where the caller's value of a register is. The frame address is what the stack pointer was before
// the call.
enum class RuleKind : uint8_t {
  kSame,          // in the register
  kUndefined,     // lost
  kAtOffset,      // in memory, at the frame address plus value
  kOffset,        // the frame address plus value
  kRegister,      // in the register with index `value`
  kAtExpression,  // in memory, at the result of an expression
  kExpression,    // the result of an expression
};

struct RegisterRule {
  RuleKind kind = RuleKind::kSame;
  int32_t value = 0;  // of an expression: where its block is, from tables_start on
};

struct FrameRules {
  std::array<RegisterRule, Registers::kCount> registers;
  // The frame address: a register plus a number, or an expression.
  RuleKind frame_kind = RuleKind::kUndefined;  // or kOffset or kExpression
  int16_t frame_register = -1;                 // of kOffset; -1 if it is not tracked
  int32_t frame_value = 0;
  int16_t return_register = -1;  // the one whose value in the caller is the return address
  bool is_signal_frame = false;
  uintptr_t function = 0;  // where the code begins that the rules are those of
};

// The state of a machine that executes the instructions of a function's table.
struct TableState {
  static constexpr size_t kMostRemembered = 2;

  uintptr_t location = 0;  // in the function: the rules are those of the instructions before it
  FrameRules rules;
  FrameRules initial;  // those that all functions of a compilation have
  FrameRules remembered[kMostRemembered];
  size_t remembered_count = 0;
};

// How far the last long table was executed. A function that calls a thousand others one after the
// other, and pushes arguments for each, has a table of some thousand instructions, all of which
// would be executed again for each call.
struct TableProgress {
  uint64_t object = 0;         // its identity; 0 if there is none
  uintptr_t instructions = 0;  // where those of the function begin
  uintptr_t address = 0;       // for which the table was executed
  uintptr_t position = 0;      // of the next instruction
  // A TableState. As bytes, so that one that never was is all zero.
  alignas(TableState) std::array<std::byte, sizeof(TableState)> state = {};
};

// The entry that the functions of one compilation share (CIE).
struct CommonInformation {
  uint64_t code_alignment = 0;
  int64_t data_alignment = 0;
  int return_register = 0;  // -1 if it is not tracked
  uint8_t pointer_encoding = 0;
  bool has_augmentation = false;
  bool is_signal_frame = false;
  uintptr_t instructions = 0;
  uintptr_t instructions_end = 0;
};

// Shared entries that were read lately. A library has few, and nearly all of its functions have the
// same one or two.
class CommonEntries {
 public:
  struct Entry {
    uint64_t object = 0;  // its identity; 0 if there is none
    uintptr_t position = 0;
    CommonInformation information;
    // The rules that the entry's instructions lead to. As bytes, so that one that never was is all
    // zero.
    alignas(FrameRules) std::array<std::byte, sizeof(FrameRules)> rules = {};
  };

  // Returns the place of an entry, which has that one if it is known.
  Entry& At(uint64_t object, uintptr_t position) {
    return entries_[(object ^ position / sizeof(uint32_t)) % kEntries];
  }

 private:
  static constexpr size_t kEntries = 4;

  Entry entries_[kEntries];
};

// Lets reads of tables use the work of earlier ones. For one thread.
struct TableMemory {
  CommonEntries common;
  TableProgress progress;  // last, because few tables are long
};

// Finds the rules for the instruction at `address` in the tables of `object`. Returns false where
// they say nothing, are not understood or are damaged. `memory` may be null.
bool ReadFrameRules(const LoadedObject& object, uintptr_t address, TableMemory* memory,
                    FrameRules* rules);

}  // namespace tcmalloc

#endif  // TCMALLOC_UNWIND_CFI_H_
