// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// DWARF expressions in call frame information.

#ifndef TCMALLOC_UNWIND_EXPRESSION_H_
#define TCMALLOC_UNWIND_EXPRESSION_H_

#include <cstdint>

#include "unwind/loaded_objects.h"
#include "unwind/machine.h"
#include "unwind/readable_memory.h"

namespace tcmalloc {

enum class ExpressionResult : uint8_t {
  kGood,
  kBad,              // not understood, without end, or it reads what is not there
  kUnknownRegister,  // needs a register that is not known
};

// Evaluates the expression whose block, a length and operations, is at `block` in `object`. `first`
// lies on the stack at the beginning.
ExpressionResult Evaluate(const LoadedObject& object, uintptr_t block, uintptr_t first,
                          const Registers& registers, StackMemory* memory, uintptr_t* result);

}  // namespace tcmalloc

#endif  // TCMALLOC_UNWIND_EXPRESSION_H_
