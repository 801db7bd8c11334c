// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "debug/debug_mode.h"

#include "base/message.h"
#include "debug/debug_heap.h"
#include "thread/current_thread.h"

namespace tcmalloc {
namespace {

// Returns the alignment that the record of a block names: an alignment of 1 asks for nothing.
size_t RecordedAlignment(size_t alignment) { return alignment > 1 ? alignment : 0; }

void* Allocate(const BlockRequest& request) {
  return debug_heap.Allocate({.size = request.size,
                              .alignment = RecordedAlignment(request.alignment),
                              .family = request.family,
                              .zeroed = request.zeroed,
                              .site = CallSite::OfThisFunction()});
}

void* AllocatePlain(size_t size, BlockFamily family) {
  return debug_heap.AllocatePlain(size, family, CallSite::OfThisFunction());
}

void Free(void* block, const BlockClaim& claim) {
  static_assert(BlockClaim::kUnknown == ReleaseClaim::kUnknown);
  debug_heap.Free(block, {.family = claim.family,
                          .size = claim.size,
                          .alignment = RecordedAlignment(claim.alignment),
                          .call = claim.call != nullptr ? claim.call : "free",
                          .site = CallSite::OfThisFunction()});
}

void FreePlain(void* block) { debug_heap.FreePlain(block, CallSite::OfThisFunction()); }

void* Reallocate(void* block, size_t size) {
  return debug_heap.Reallocate(block, size, CallSite::OfThisFunction());
}

}  // namespace

const BlockFunctions kDebugFunctions = {
    .allocate = Allocate,
    .allocate_plain = AllocatePlain,
    .free = Free,
    .free_plain = FreePlain,
    .reallocate = Reallocate,
    .set_family = [](void* block, BlockFamily family) { debug_heap.SetFamily(block, family); },
    .usable_size = [](const void* block,
                      const char* call) { return debug_heap.SizeOf(block, call); },
    .size_for = [](size_t size, size_t alignment) { return DebugHeap::SizeFor(size, alignment); },
    .owns = [](const void* block) { return debug_heap.Owns(block); },
    .check_at_exit = [] { debug_heap.VerifyAll("the check of all blocks at exit"); },
};

void StartDebugMode() {
  CheckEntries();
  OmitAdvice();
  EnterMode(kDebugFunctions);
}

}  // namespace tcmalloc
