// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Prints reports of faults and mistakes at guarded blocks.

#ifndef TCMALLOC_GUARDED_FAULT_REPORT_H_
#define TCMALLOC_GUARDED_FAULT_REPORT_H_

#include <cstdint>

#include "guarded/guarded_blocks.h"
#include "unwind/machine.h"

namespace tcmalloc {

// An access that the hardware refused.
struct GuardedFault {
  uintptr_t address = 0;
  machine::Access access = machine::Access::kUnknown;
  const GuardedSlot* slot = nullptr;
  GuardedStack stack = {};  // of the access; the first address is that of the instruction
};

// Writes what happened, and the stacks of the access, the allocation and the free. Takes no lock
// and allocates nothing from the heap. `names` looks for the names of functions, which takes some
// ten KiB of stack.
void WriteFault(const GuardedFault& fault, bool names);

// Writes the stacks of the allocation and of the free of the block that is nearest to an address of
// the guarded range.
void WriteGuardedStacks(const void* address);

}  // namespace tcmalloc

#endif  // TCMALLOC_GUARDED_FAULT_REPORT_H_
