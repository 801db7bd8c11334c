// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "unwind/libunwind_walker.h"

namespace tcmalloc {
namespace {

// Functions of libunwind, weak, so that its headers and itself may be missing.
extern "C" {
__attribute__((weak)) int LibunwindInit(void* cursor, ucontext_t* context,
                                        int flags) asm(TCMALLOC_LIBUNWIND_NAME("init_local2"));
__attribute__((weak)) int LibunwindStep(void* cursor) asm(TCMALLOC_LIBUNWIND_NAME("step"));
__attribute__((weak)) int LibunwindGet(void* cursor, int number,
                                       uintptr_t* value) asm(TCMALLOC_LIBUNWIND_NAME("get_reg"));
}

// Of LibunwindInit: the context is that of an interrupted function.
constexpr int kInterrupted = 1;
// libunwind's numbers are those of DWARF, and of aarch64's program counter one that DWARF has not.
constexpr int kLibunwindPc = machine::kExtraIsReturnAddress ? 32 : 16;
constexpr int kLibunwindSp = machine::kExtraIsReturnAddress ? 31 : 7;

}  // namespace

bool HasLibunwind() {
  return LibunwindInit != nullptr && LibunwindStep != nullptr && LibunwindGet != nullptr;
}

LibunwindWalker::LibunwindWalker(const Registers& registers, bool at_call)
    : pc_(registers.values[machine::kPc]), sp_(registers.values[machine::kStackPointer]) {
  machine::WriteContext(registers, &context_);
  good_ = LibunwindInit(cursor_, &context_, at_call ? 0 : kInterrupted) == 0;
}

StepResult LibunwindWalker::Step() {
  if (!good_ || LibunwindStep(cursor_) <= 0) return StepResult::kEnd;
  if (LibunwindGet(cursor_, kLibunwindPc, &pc_) != 0 || pc_ == 0) return StepResult::kEnd;
  return LibunwindGet(cursor_, kLibunwindSp, &sp_) == 0 ? StepResult::kCaller : StepResult::kEnd;
}

}  // namespace tcmalloc
