// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Looks at blocks: at their fences, at their filling after they were freed, and at what a release
// says of them. Whoever asks holds the block, or the lock of its record.

#ifndef TCMALLOC_DEBUG_BLOCK_CHECKS_H_
#define TCMALLOC_DEBUG_BLOCK_CHECKS_H_

#include <cstddef>

#include "base/attributes.h"
#include "debug/block_record.h"
#include "debug/faults.h"
#include "debug/fences.h"
#include "debug/release_claim.h"

namespace tcmalloc {

// The alignment of every block whose program asks for none.
inline constexpr size_t kPlainAlignment = 16;

// Returns a fault of that kind at a block, without damage.
Fault FaultOf(FaultKind kind, const BlockRecord& block);

// Look at the bytes around a block, and at one that was freed and filled. Return false and tell
// about the first fault.
TCMALLOC_COLD bool FindFenceFault(const BlockRecord& block, Fault* fault);
TCMALLOC_COLD bool FindFillingFault(const BlockRecord& block, Fault* fault);

// Returns true if bytes before a block were written, which may be by whoever wrote beyond the block
// before it.
bool IsDamagedBefore(const Fault& fault);
// Looks at the bytes behind a block. Returns true and tells about it if some were written.
bool FindOverflow(const BlockRecord& block, Fault* fault);

TCMALLOC_ALWAYS_INLINE bool AreFencesGood(const BlockRecord& block, Fault* fault) {
  return TCMALLOC_LIKELY(AreFencesWhole(block)) || FindFenceFault(block, fault);
}

// Returns true if a block that was freed has its filling and its fences.
TCMALLOC_ALWAYS_INLINE bool IsFilled(const BlockRecord& block) {
  return TCMALLOC_LIKELY(IsAllFreed(block.user, block.end()) && AreFencesWhole(block));
}

inline bool IsFilled(const BlockRecord& block, Fault* fault) {
  const bool is_all_filled = block.size <= kMostFilled;
  return block.unreadable || (is_all_filled && IsFilled(block)) || FindFillingFault(block, fault);
}

// free takes blocks of any alignment. A delete names it, unless every block has it.
TCMALLOC_ALWAYS_INLINE bool IsAlignmentOf(const BlockRecord& block, const ReleaseClaim& claim) {
  if (claim.alignment != ReleaseClaim::kUnknown) return claim.alignment == block.alignment();
  return claim.family == BlockFamily::kMalloc || block.alignment() <= kPlainAlignment;
}

// Returns true if all that a release says of a live block is as it was said when it was allocated.
TCMALLOC_ALWAYS_INLINE bool IsClaimPlainlyRight(const BlockRecord& block,
                                                const ReleaseClaim& claim) {
  return block.family == claim.family &&
         (claim.size == ReleaseClaim::kUnknown || claim.size == block.size) &&
         IsAlignmentOf(block, claim);
}

// Looks at a block that should be live; `block` is null if nothing is known of it. Returns false
// and tells about a fault.
bool IsGood(const BlockRecord* block, const ReleaseClaim& claim, Fault* fault);

}  // namespace tcmalloc

#endif  // TCMALLOC_DEBUG_BLOCK_CHECKS_H_
