// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Mistakes of the program, and the reports of them.

#ifndef TCMALLOC_DEBUG_FAULTS_H_
#define TCMALLOC_DEBUG_FAULTS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/attributes.h"
#include "debug/block_record.h"
#include "debug/own_place.h"
#include "debug/program_stack.h"
#include "debug/released_stacks.h"

namespace tcmalloc {

enum class FaultKind : uint8_t {
  kNone,
  kUnknown,         // no block of ours
  kInterior,        // a pointer into a block
  kFreed,           // a block that is free
  kMismatch,        // malloc, new and new[] mixed up
  kWrongSize,       // given to a delete
  kWrongAlignment,  // given to a delete
  kBefore,          // bytes before the block were written
  kAfter,           // bytes behind the block were written
  kWrittenFree,     // bytes of a free block were written
};

// Nothing but the kind is set of what is no fault.
struct Fault {
  FaultKind kind = FaultKind::kNone;
  unsigned char found;
  unsigned char wanted;
  BlockFamily family;   // of the call
  bool in_heap;         // kUnknown: in memory that the heap had once
  const void* address;  // that the program gave
  const char* damage;   // the first byte that was written
  const char* next;     // kAfter: the block behind, if what is before it was written as well
  size_t given;         // size or alignment
  BlockRecord block;    // a copy; of kUnknown nothing but zeros

  explicit operator bool() const { return kind != FaultKind::kNone; }
};

// Prints the fault, found by a call of `call`, with the stacks that are known, and aborts. If
// several threads come here at once, one of them prints. Not called inside the slow path.
[[noreturn]] TCMALLOC_COLD void ReportFault(const Fault& fault, const char* call);

// Captures the stack of the program that led to a call site, and keeps it. 0 if there is no memory.
StackId KeepStack(const CallSite& site);
void ReleaseStack(StackId stack);
// References that threads give back many at a time.
extern constinit ReleasedStacks released_stacks[kOwnPlaces];

// Gives back a block's stack, inside the slow path, by a thread with that place.
TCMALLOC_NOINLINE void ReleaseStackSlow(uint32_t place, StackId stack);
TCMALLOC_ALWAYS_INLINE void ReleaseStackAt(uint32_t place, StackId stack) {
  const bool done = TCMALLOC_LIKELY(IsOwnPlace(place)) && released_stacks[place].TryAdd(stack);
  if (TCMALLOC_UNLIKELY(!done)) ReleaseStackSlow(place, stack);
}

}  // namespace tcmalloc

#endif  // TCMALLOC_DEBUG_FAULTS_H_
